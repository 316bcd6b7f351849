/* SPDX-License-Identifier: Apache-2.0 */
/* check.h: how every C test ends that finds something wrong. */
#ifndef L0RT_CPU_TEST_CHECK_H
#define L0RT_CPU_TEST_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                  \
      exit(1);                                                                                                         \
    }                                                                                                                  \
  } while (0)

#endif
