/* SPDX-License-Identifier: Apache-2.0 */
/* files.h: file descriptors of the devices. files.c defines the C library's functions that reach them. */
#ifndef XE_DEVICE_FILES_H
#define XE_DEVICE_FILES_H

#include "device.h"

/* The device that this file descriptor is open on, or NULL. */
xe_device *xe_files_device(int fd);

#endif
