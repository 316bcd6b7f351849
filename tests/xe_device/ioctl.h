/* SPDX-License-Identifier: Apache-2.0 */
/* ioctl.h: what the kernel driver is asked. */
#ifndef XE_DEVICE_IOCTL_H
#define XE_DEVICE_IOCTL_H

#include "device.h"

/* As ioctl(2) on the device's node: 0, or -1 with errno. */
int xe_ioctl(xe_device *device, unsigned long request, void *argument);

#endif
