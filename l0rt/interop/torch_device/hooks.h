/* SPDX-License-Identifier: Apache-2.0 */
// hooks.h: the registration of the device type's hooks, and storages that grow.
#pragma once

#include <c10/core/StorageImpl.h>

#include "device.h"

namespace l0rt_torch {

void register_hooks();
void resize_storage(c10::StorageImpl *storage, size_t nbytes);

} // namespace l0rt_torch
