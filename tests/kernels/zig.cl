/* SPDX-License-Identifier: Apache-2.0 */
/* zig.cl: what zig's clang makes otherwise than ocloc: the atomics of OpenCL 1.x are calls of imported functions, whose
 * pointers are ones to bytes. l0rt.compile with L0RT_COMPILER=zig makes zig.spv of it. */
kernel void histogram(global uint *counts, const global uchar *x) { atomic_inc(&counts[x[get_global_id(0)]]); }
