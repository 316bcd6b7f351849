/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: the engine of l0rt's CPU driver, which runs SPIR-V. XE_DEVICE_ENGINE names the driver's library. */
#ifndef XE_DEVICE_ENGINE_H
#define XE_DEVICE_ENGINE_H

#include "spirv/spirv.h"

/* The engine, or NULL if XE_DEVICE_ENGINE is not set: kernels do not compute then. */
const spirv_engine *xe_engine_get(void);

#endif
