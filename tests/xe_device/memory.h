/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h: requests for buffers, and for what is bound where. All return 0 or a number of errno. */
#ifndef XE_DEVICE_MEMORY_H
#define XE_DEVICE_MEMORY_H

#include <drm/drm.h>
#include <drm/xe_drm.h>

#include "device.h"

int xe_memory_create(xe_device *device, struct drm_xe_gem_create *create);
int xe_memory_close(xe_device *device, const struct drm_gem_close *close);
int xe_memory_offset(xe_device *device, struct drm_xe_gem_mmap_offset *offset);
int xe_memory_bind(xe_device *device, const struct drm_xe_vm_bind *bind);
int xe_memory_export(xe_device *device, struct drm_prime_handle *handle);
int xe_memory_import(xe_device *device, struct drm_prime_handle *handle);

#endif
