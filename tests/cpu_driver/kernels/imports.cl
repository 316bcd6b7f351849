/* SPDX-License-Identifier: Apache-2.0 */
/* imports.cl: a module whose kernel needs another module's function. */
int twice(int value);

kernel void doubled(global int *out) { out[get_global_id(0)] = twice((int)get_global_id(0)); }
