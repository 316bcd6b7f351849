/* SPDX-License-Identifier: Apache-2.0 */
// copies.h: copies between tensors of any devices, strides and types.
#pragma once

#include <ATen/core/Tensor.h>

namespace l0rt_torch {

void copy_values(const at::Tensor &to, const at::Tensor &from, bool non_blocking);

} // namespace l0rt_torch
