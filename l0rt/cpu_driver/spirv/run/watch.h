/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h: shared by trace.c and races.c: the bytes that a step accesses. */
#ifndef L0RT_CPU_SPIRV_WATCH_H
#define L0RT_CPU_SPIRV_WATCH_H

#include "spirv/run/run.h"

typedef struct {
  uint64_t address, size; /* size 0: the step accesses no memory */
  bool reads, writes, atomic;
} spirv_access;

/* The access of a step to memory for one lane. A copy of memory is two accesses, with `part` 0 and 1. */
spirv_access spirv_access_of(const spirv_wave *w, const spirv_step *s, uint32_t lane, int part);

#endif
