/* SPDX-License-Identifier: Apache-2.0 */
/* prints.cl: printf of what looks different by width, or by the program's locale. */
kernel void prints(global int *p, float x) {
  printf("[%p] [%24p] [%-24p] [%.3p] [%p]\n", p, p, p, p, (global int *)0);
  printf("[%5.2f] [%e] [%g] [%a] [%v4f] [%'d]\n", x, x, x, x, (float4)x, 1234567);
}
