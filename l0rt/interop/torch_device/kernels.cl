/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cl: torch's operators on l0rt, computed in floats. kernels.spv is what a compiler made of it: see
 * CONTRIBUTING.md. */

#include "pointwise.clh"
#include "reductions.clh"
#include "matmul.clh"
#include "indexing.clh"

/* Elements as they are, with any strides. */
#define COPY(NAME, U)                                                                                   \
  kernel void copy_##NAME(global uchar *to, global const uchar *from, strides s, uint count) {          \
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) {                               \
      OFFSETS(s, i)                                                                                     \
      *(global U *)(to + o0) = *(global const U *)(from + o1);                                          \
    }                                                                                                   \
  }
COPY(1, uchar)
COPY(2, ushort)
COPY(4, uint)
COPY(8, ulong)
COPY(16, ulong2)
