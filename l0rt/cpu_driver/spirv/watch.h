/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h: what trace.c and races.c share: which bytes a step reaches. */
#ifndef L0RT_CPU_SPIRV_WATCH_H
#define L0RT_CPU_SPIRV_WATCH_H

#include "run.h"

typedef struct {
  uint64_t address, size; /* size 0: the step reaches no memory */
  bool reads, writes, atomic;
} spirv_access;

/* What a step does to memory for a lane; a copy of memory is two accesses, of `part` 0 and 1. */
spirv_access spirv_access_of(const spirv_wave *w, const spirv_step *s, uint32_t lane, int part);

#endif
