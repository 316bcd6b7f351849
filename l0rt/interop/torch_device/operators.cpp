/* SPDX-License-Identifier: Apache-2.0 */
// operators.cpp: what the files of operators share: types, strides, and how many work-items make a result.
#include "operators.h"

namespace l0rt_torch {

Tensor Call::out() const {
  const auto &arguments = op.schema().arguments();
  if (arguments.back().is_out()) return tensor(count_ - 1);
  const auto *alias = arguments[0].alias_info();
  return alias != nullptr && alias->isWrite() ? tensor(0) : Tensor();
}

uint32_t letter(at::ScalarType type) {
  switch (type) {
    case at::kBool: return TYPE_BOOL;
    case at::kByte: return TYPE_BYTE;
    case at::kChar: return TYPE_CHAR;
    case at::kShort: return TYPE_SHORT;
    case at::kInt: return TYPE_INT;
    case at::kLong: return TYPE_LONG;
    case at::kHalf: return TYPE_HALF;
    case at::kBFloat16: return TYPE_BFLOAT;
    case at::kFloat: return TYPE_FLOAT;
    case at::kDouble: return TYPE_DOUBLE;
    default: return 0;
  }
}

bool is_served(const Tensor &tensor) {
  return tensor.defined() && tensor.is_privateuseone() && letter(tensor.scalar_type()) != 0 && !tensor.is_neg();
}

Compute compute_of(at::ScalarType type) {
  if (type == at::kDouble) return Compute::Double;
  return at::isIntegralType(type, true) ? Compute::Long : Compute::Float;
}

at::ScalarType dtype_of(Compute compute) {
  switch (compute) {
    case Compute::Float: return at::kFloat;
    case Compute::Long: return at::kLong;
    default: return at::kDouble;
  }
}

bool can_compute(Compute compute, const Tensor &tensor) {
  return compute != Compute::Double || has_double(tensor.get_device());
}

void Extents::add(int64_t size, const std::array<int64_t, 4> &steps) {
  if (size == 1) return;
  if (!extents.empty()) { // with the dimension before, where both are one
    Extent &before = extents.back();
    bool is_one = true;
    for (int i = 0; i < 4; i++) is_one = is_one && before.steps[i] == steps[i] * size;
    if (is_one) {
      before.size *= size;
      before.steps = steps;
      return;
    }
  }
  extents.push_back({size, steps});
}

int64_t Extents::numel() const {
  int64_t numel = 1;
  for (const Extent &extent : extents) numel *= extent.size;
  return numel;
}

bool Extents::fill(Strides &strides) const {
  if (extents.size() > 8 || numel() > INT32_MAX) return false;
  strides.dims = static_cast<uint32_t>(extents.size());
  std::array<int64_t, 4> last{};
  for (uint32_t d = 0; d < strides.dims; d++) {
    const Extent &extent = extents[strides.dims - 1 - d];
    strides.sizes[d] = static_cast<uint32_t>(extent.size);
    for (int i = 0; i < 4; i++) {
      last[i] += (extent.size - 1) * extent.steps[i];
      if (last[i] > INT32_MAX || extent.steps[i] > INT32_MAX) return false;
      strides.steps[i][d] = static_cast<int32_t>(extent.steps[i]);
    }
  }
  return true;
}

uint32_t workers_of(int64_t size, int64_t results, bool is_dense) {
  constexpr int64_t kElements = 16, kItems = 8192; // of a worker; of a launch that keeps a device busy
  uint32_t workers = 1;
  while (workers < 256 && workers * kElements < size && (is_dense || workers * results < kItems)) workers *= 2;
  return workers;
}

} // namespace l0rt_torch
