/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h: the one driver. */
#ifndef L0RT_CPU_DRIVER_H
#define L0RT_CPU_DRIVER_H

#include "base/object.h"

typedef struct {
  cpu_object base;
} cpu_driver;

/* What the calls that initialise do: reads the settings and opens the gate, once (start.c). */
ze_result_t cpu_driver_open(const char *function);

/* Makes the driver's handle; false without memory. */
bool cpu_driver_make(void);

/* Its version as a text. */
const char *cpu_driver_version(void);

/* Are graphs recorded and replayed? Not by a build of Intel's driver that is older than that. */
bool cpu_driver_has_graphs(void);

/* Are ranges of mapped memory shared by one handle? Since 1.18, so by no build of Intel's driver that is simulated. */
bool cpu_driver_shares_ranges(void);

/* Lists the driver, and its devices, all or those that the affinity mask shows, as the specification says of lists. */
ze_result_t cpu_driver_list(uint32_t *count, ze_driver_handle_t *drivers);
ze_result_t cpu_driver_devices(ze_driver_handle_t driver, bool all, uint32_t *count, ze_device_handle_t *devices);

static inline cpu_driver *cpu_driver_cast(ze_driver_handle_t handle) { return cpu_cast(handle, CPU_DRIVER); }

#endif
