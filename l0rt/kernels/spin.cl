/* SPDX-License-Identifier: Apache-2.0 */
/* spin.cl: a work-item that is busy. Each step needs the one before, so that no compiler leaves any out. */

kernel void spin(global uint *last, ulong steps) {
  uint x = *last;
  for (ulong i = 0; i < steps; i++) x = x * 1664525u + 1013904223u;
  *last = x;
}
