/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: a device: its memory's accounts and its engines. */
#ifndef L0RT_CPU_DEVICE_H
#define L0RT_CPU_DEVICE_H

#include "base/group.h"

struct cpu_engine;

enum { CPU_DEVICES_MAX = 64 };
enum { CPU_PCI_DOMAIN = 0x10c4 }; /* no machine has it */

typedef struct {
  cpu_object base;
  uint32_t index;
  _Atomic uint64_t used; /* bytes of its memory that are allocated */
  _Atomic uint32_t pieces; /* that a submission lists: allocations, and without VM_BIND physical memory */
  _Atomic uint64_t listed; /* without VM_BIND: bytes of physical memory that every submission lists */
  _Atomic uint32_t listened; /* zes_event_type_flags_t that a tool has registered */
  _Atomic bool lost;         /* a listener has got the event of its loss */
  struct cpu_engine *_Atomic engines[CPU_GROUPS_MAX][CPU_QUEUES_MAX]; /* made at first use */
} cpu_device;

extern cpu_device *cpu_devices[CPU_DEVICES_MAX]; /* all of them */
extern uint32_t cpu_device_count;

static inline cpu_device *cpu_device_cast(ze_device_handle_t handle) { return cpu_cast(handle, CPU_DEVICE); }

/* Does the affinity mask let the program see it? System management shows all. */
bool cpu_device_is_visible(const cpu_device *device);

/* Makes the devices that the knobs ask for; false when there is no memory for them. */
bool cpu_devices_make(void);

/* What zeDeviceGetProperties says of it, but for the chain; the bytes of its memory that are not allocated. */
void cpu_device_describe(const cpu_device *device, ze_device_properties_t *properties);
uint64_t cpu_device_free(const cpu_device *device);

/* Takes bytes of a device's memory, or returns that there are none left; gives them back. */
bool cpu_device_charge(cpu_device *device, size_t size);
void cpu_device_refund(cpu_device *device, size_t size);

/* Without VM_BIND: is more listed for the device's next submission than it has memory? */
bool cpu_device_is_over(const cpu_device *device);

#endif
