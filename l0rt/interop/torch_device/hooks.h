/* SPDX-License-Identifier: Apache-2.0 */
// hooks.h: the registration of the device type's hooks, draws from its generators, and storages that grow.
#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/StorageImpl.h>

#include <optional>

#include "device.h"

namespace l0rt_torch {

void register_hooks();

// Where the words of a launch begin: at an offset of a seed's stream, or `within` words behind what memory says.
struct Beginning {
  uint64_t seed, offset;
  void *state; // where the seed and the offset are, for a launch of a capture
  uint64_t within;
};
// Advance a generator of the device, or its default one.
Beginning draw(const std::optional<at::Generator> &generator, int device, uint64_t words);

void resize_storage(c10::StorageImpl *storage, size_t nbytes);

} // namespace l0rt_torch
