/* SPDX-License-Identifier: Apache-2.0 */
/* sampler.h: samplers. */
#ifndef L0RT_CPU_SAMPLER_H
#define L0RT_CPU_SAMPLER_H

#include "base/context.h"

typedef struct {
  cpu_object base;
  cpu_context *context; /* held */
  uint32_t bits; /* as the engine has samplers */
} cpu_sampler;

static inline cpu_sampler *cpu_sampler_cast(ze_sampler_handle_t handle) { return cpu_cast(handle, CPU_SAMPLER); }

/* The bits of a description. */
ze_result_t cpu_sampler_read(const ze_sampler_desc_t *desc, uint32_t *bits);

#endif
