/* SPDX-License-Identifier: Apache-2.0 */
/* query.h: what a device is. */
#ifndef XE_DEVICE_QUERY_H
#define XE_DEVICE_QUERY_H

#include <drm/drm.h>
#include <drm/xe_drm.h>

#include "device.h"

/* Answers DRM_IOCTL_XE_DEVICE_QUERY: 0 or a number of errno. */
int xe_query(const xe_device *device, struct drm_xe_device_query *query);

#endif
