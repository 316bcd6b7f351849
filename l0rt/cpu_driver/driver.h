/* driver.h: the one driver. */
#ifndef L0RT_CPU_DRIVER_H
#define L0RT_CPU_DRIVER_H

#include "object.h"

typedef struct {
  cpu_object base;
} cpu_driver;

static inline cpu_driver *cpu_driver_cast(ze_driver_handle_t handle) { return cpu_cast(handle, CPU_DRIVER); }

#endif
