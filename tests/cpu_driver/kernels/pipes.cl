/* SPDX-License-Identifier: Apache-2.0 */
/* pipes.cl: a kernel that the engine refuses, and one that it runs. */
kernel void drained(read_only pipe int from, global int *out) { read_pipe(from, &out[get_global_id(0)]); }

kernel void plain(global int *out) { out[get_global_id(0)] = 7; }
