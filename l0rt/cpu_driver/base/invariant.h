/* SPDX-License-Identifier: Apache-2.0 */
/* invariant.h: what must be true unless this driver itself is wrong. Callers' errors are results, never these.
 * CPU_DEBUG=1 checks what costs nothing, 2 also walks data structures; 0, as built for users, checks nothing. */
#ifndef L0RT_CPU_INVARIANT_H
#define L0RT_CPU_INVARIANT_H

#include <stdio.h>
#include <stdlib.h>

#ifndef CPU_DEBUG
#define CPU_DEBUG 0
#endif

#define CPU_CHECK_AT(level, condition)                                                                                 \
  do {                                                                                                                 \
    if (CPU_DEBUG >= (level) && !(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                          \
      abort();                                                                                                         \
    }                                                                                                                  \
  } while (0)

#define CPU_INVARIANT(condition) CPU_CHECK_AT(1, condition)
#define CPU_INVARIANT_WALK(condition) CPU_CHECK_AT(2, condition)

#endif
