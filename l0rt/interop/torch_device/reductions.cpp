/* SPDX-License-Identifier: Apache-2.0 */
// reductions.cpp: sums, extremes, variances and running sums over any dimensions.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bitset>
#include <cmath>

#include "operators.h"

namespace l0rt_torch {
namespace {

using Dims = std::bitset<64>;

Dims dims_of(const c10::IValue &value, const Tensor &self) {
  Dims dims;
  std::vector<int64_t> list;
  if (value.isInt()) list = {value.toInt()};
  else if (!value.isNone()) list = value.toIntVector();
  for (int64_t dim : list) {
    size_t at = c10::maybe_wrap_dim(dim, self.dim());
    TORCH_CHECK(!dims[at], "dim ", at, " appears multiple times in the list of dims");
    dims.set(at);
  }
  return list.empty() ? dims.set() : dims;
}

// What a kernel reduces: of each result, its place in up to two outputs, and where its elements are.
struct Reduced {
  Extents outer, inner;
  Strides outer_strides{}, inner_strides{};
  int64_t results = 1, size = 1;

  // The outputs have the reduced dimensions or lack them; an undefined one has no place.
  bool set(const Tensor &self, const Dims &dims, const Tensor &to, const Tensor &second = {}) {
    int64_t to_dim = 0, second_dim = 0;
    for (int64_t d = 0; d < self.dim(); d++) {
      bool is_reduced = dims[d];
      if (is_reduced) {
        inner.add(self.size(d), {0, step(self, d), 0, 0});
        size *= self.size(d);
      } else {
        int64_t at = to.defined() ? to_dim : 0, second_at = second.defined() ? second_dim : 0;
        outer.add(self.size(d), {step(to, at), step(self, d), step(second, second_at), 0});
        results *= self.size(d);
      }
      if (!is_reduced || (to.defined() && to.dim() == self.dim())) to_dim++;
      if (!is_reduced || (second.defined() && second.dim() == self.dim())) second_dim++;
    }
    return outer.fill(outer_strides) && inner.fill(inner_strides);
  }
  uint32_t workers() const {
    bool is_dense = !inner.extents.empty() && inner.extents.back().steps[1] <= 16;
    return workers_of(size, results, is_dense);
  }
};

bool is_reducible(const Tensor &self, const Tensor &out) {
  return is_served(self) && is_served(out) && self.device() == out.device() && self.numel() > 0 &&
         self.numel() <= INT32_MAX && self.dim() <= 64;
}

Tensor empty_of(IntArrayRef sizes, const Tensor &self, at::ScalarType dtype) {
  return at::empty(sizes, self.options().dtype(dtype).memory_format(std::nullopt));
}

// Few results of many elements each: sums of parts first, which many groups compute.
constexpr int64_t kParts = 1 << 15;

bool parts_of(const Tensor &self, const Dims &dims, Tensor &parts) {
  if (!self.is_contiguous() || self.dim() == 0) return false;
  int64_t results = 1, size = 1;
  for (int64_t d = 0; d < self.dim(); d++) (dims[d] ? size : results) *= self.size(d);
  if (results != 1 || size < kParts) return false;
  for (int64_t count = 256; count >= 16; count--) {
    if (size % count == 0) {
      parts = self.view({count, size / count});
      return true;
    }
  }
  return false;
}

enum { TERM_ELEMENT, TERM_ABSOLUTE, TERM_SQUARE, TERM_NONZERO, TERM_FINITE };

bool sum(const Tensor &self, const Dims &dims, const Tensor &out, uint32_t term, double divisor) {
  static auto &kernels = *new Kernels("sum");
  if (!is_reducible(self, out)) return false;
  Compute compute = compute_of(self.scalar_type());
  if (out.scalar_type() == at::kDouble) compute = Compute::Double;
  if (compute == Compute::Long && !at::isIntegralType(out.scalar_type(), true)) compute = Compute::Float;
  if (!can_compute(compute, self)) return false;
  Tensor parts;
  if (parts_of(self, dims, parts)) {
    Tensor sums = empty_of({parts.size(0)}, self, dtype_of(compute));
    bool is_norm = divisor == 0;
    if (!sum(parts, Dims(2), sums, term, 1) || !sum(sums, Dims(1), out, TERM_ELEMENT, is_norm ? 1 : divisor))
      return false;
    if (is_norm) out.sqrt_();
    return true;
  }
  Reduced reduced;
  if (!reduced.set(self, dims, out)) return false;
  Arguments arguments;
  arguments << out.mutable_data_ptr() << self.const_data_ptr() << reduced.outer_strides << reduced.inner_strides
            << word(letter(out.scalar_type()), letter(self.scalar_type())) << static_cast<uint32_t>(reduced.size)
            << term << Value(compute, divisor);
  launch_workers(self.get_device(), kernels[compute], arguments, static_cast<uint32_t>(reduced.results),
                 reduced.workers());
  return true;
}

bool sum_out(Call &call) { // self, dims, keepdim, dtype, out
  Tensor self = call.tensor(0), out = call.out();
  if (call.dtype(3).value_or(out.scalar_type()) != out.scalar_type()) return false;
  return sum(self, dims_of(call[1], self), out, TERM_ELEMENT, 1) && call.done(out);
}

bool nansum_out(Call &call) {
  Tensor self = call.tensor(0), out = call.out();
  if (!at::isFloatingType(self.scalar_type())) return false;
  return sum(self, dims_of(call[1], self), out, TERM_FINITE, 1) && call.done(out);
}

int64_t count_of(const Tensor &self, const Dims &dims) {
  int64_t count = 1;
  for (int64_t d = 0; d < self.dim(); d++) count *= dims[d] ? self.size(d) : 1;
  return count;
}

bool mean_out(Call &call) {
  Tensor self = call.tensor(0), out = call.out();
  if (!at::isFloatingType(self.scalar_type())) return false;
  Dims dims = dims_of(call[1], self);
  return sum(self, dims, out, TERM_ELEMENT, static_cast<double>(count_of(self, dims))) && call.done(out);
}

bool norm_out(Call &call) { // linalg_vector_norm: self, order, dims, keepdim, dtype, out
  Tensor self = call.tensor(0), out = call.out();
  double order = call[1].toScalar().isComplex() ? 3 : call[1].toScalar().toDouble();
  if (!at::isFloatingType(self.scalar_type()) || (order != 1 && order != 2)) return false;
  if (call.dtype(4).value_or(self.scalar_type()) != self.scalar_type()) return false;
  bool is_root = order == 2;
  Dims dims = dims_of(call[2], self);
  return sum(self, dims, out, is_root ? TERM_SQUARE : TERM_ABSOLUTE, is_root ? 0 : 1) && call.done(out);
}

bool count_nonzero(Call &call) { // self, dims
  Tensor self = call.tensor(0);
  if (!is_served(self) || self.numel() == 0) return false;
  Dims dims = dims_of(call[1], self);
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (!dims[d]) sizes.push_back(self.size(d));
  }
  Tensor out = empty_of(sizes, self, at::kLong);
  return sum(self, dims, out, TERM_NONZERO, 1) && call.done(out);
}

bool combine(Kernels &kernels, const Tensor &self, const Dims &dims, const Tensor &out) {
  if (!is_reducible(self, out)) return false;
  Compute compute = compute_of(self.scalar_type());
  if (!can_compute(compute, self)) return false;
  if (compute == Compute::Long && !at::isIntegralType(out.scalar_type(), true)) return false;
  Reduced reduced;
  if (!reduced.set(self, dims, out)) return false;
  Arguments arguments;
  arguments << out.mutable_data_ptr() << self.const_data_ptr() << reduced.outer_strides << reduced.inner_strides
            << word(letter(out.scalar_type()), letter(self.scalar_type())) << static_cast<uint32_t>(reduced.size);
  launch_workers(self.get_device(), kernels[compute], arguments, static_cast<uint32_t>(reduced.results),
                 reduced.workers());
  return true;
}

#define COMBINES(NAME)                                                                                                 \
  bool NAME##_out(Call &call) { /* self, dims, keepdim, out; or self, out */                                           \
    static auto &kernels = *new Kernels(#NAME);                                                                        \
    Tensor self = call.tensor(0), out = call.out();                                                                    \
    Dims dims = call.count() > 2 ? dims_of(call[1], self) : Dims().set();                                              \
    return combine(kernels, self, dims, out) && call.done(out);                                                        \
  }
COMBINES(amax)
COMBINES(amin)
COMBINES(any)
COMBINES(all)
COMBINES(prod)
#undef COMBINES

bool prod_all(Call &call) { // self, dtype
  static auto &kernels = *new Kernels("prod");
  Tensor self = call.tensor(0);
  if (!is_served(self)) return false;
  bool is_whole = at::isIntegralType(self.scalar_type(), true);
  Tensor out = empty_of({}, self, is_whole ? at::kLong : self.scalar_type());
  if (call.dtype(1).value_or(out.scalar_type()) != out.scalar_type()) return false;
  return combine(kernels, self, Dims().set(), out) && call.done(out);
}

bool extreme(const Tensor &self, const Dims &dims, const Tensor &values, const Tensor &indices, bool is_greatest) {
  static auto &kernels = *new Kernels("extreme");
  if (!is_reducible(self, values.defined() ? values : indices)) return false;
  Compute compute = compute_of(self.scalar_type());
  if (!can_compute(compute, self)) return false;
  Reduced reduced;
  if (!reduced.set(self, dims, values, indices)) return false;
  void *none = nullptr;
  Arguments arguments;
  arguments << (values.defined() ? values.mutable_data_ptr() : none)
            << (indices.defined() ? indices.mutable_data_ptr() : none) << self.const_data_ptr() << reduced.outer_strides
            << reduced.inner_strides
            << word(values.defined() ? letter(values.scalar_type()) : 0, letter(self.scalar_type()))
            << static_cast<uint32_t>(reduced.size) << static_cast<uint32_t>(is_greatest);
  launch_workers(self.get_device(), kernels[compute], arguments, static_cast<uint32_t>(reduced.results),
                 reduced.workers());
  return true;
}

template <bool IS_GREATEST>
bool arg_out(Call &call) { // self, dim, keepdim, out
  Tensor self = call.tensor(0), out = call.out();
  return extreme(self, dims_of(call[1], self), {}, out, IS_GREATEST) && call.done(out);
}

template <bool IS_GREATEST>
bool extreme_out(Call &call) { // self, dim, keepdim, values, indices
  Tensor self = call.tensor(0), values = call.tensor(3), indices = call.tensor(4);
  return extreme(self, dims_of(call[1], self), values, indices, IS_GREATEST) && call.done(values, indices);
}

template <bool IS_GREATEST>
bool extreme_of_all(Call &call) { // self, or self and out
  Tensor self = call.tensor(0);
  if (!is_served(self)) return false;
  Tensor out = call.count() > 1 ? call.tensor(1) : empty_of({}, self, self.scalar_type());
  return extreme(self, Dims().set(), out, {}, IS_GREATEST) && call.done(out);
}

bool variance(const Tensor &self, const Dims &dims, double correction, bool is_root, const Tensor &to,
              const Tensor &mean) {
  static auto &kernels = *new Kernels("variance");
  if (!is_reducible(self, to) || !at::isFloatingType(self.scalar_type())) return false;
  Compute compute = compute_of(self.scalar_type());
  if (!can_compute(compute, self)) return false;
  Reduced reduced;
  if (!reduced.set(self, dims, to, mean)) return false;
  void *none = nullptr;
  Arguments arguments;
  arguments << to.mutable_data_ptr() << (mean.defined() ? mean.mutable_data_ptr() : none) << self.const_data_ptr()
            << reduced.outer_strides << reduced.inner_strides
            << word(letter(to.scalar_type()), letter(self.scalar_type()),
                    mean.defined() ? letter(mean.scalar_type()) : 0)
            << static_cast<uint32_t>(reduced.size)
            << Value(compute, std::max(0.0, static_cast<double>(reduced.size) - correction))
            << static_cast<uint32_t>(is_root);
  launch_workers(self.get_device(), kernels[compute], arguments, static_cast<uint32_t>(reduced.results),
                 reduced.workers());
  return true;
}

template <bool IS_ROOT, bool HAS_MEAN>
bool variance_of(Call &call) { // self, dims, correction, keepdim, and out
  Tensor self = call.tensor(0), out = call.out(), mean;
  if (!is_served(self)) return false;
  Dims dims = dims_of(call[1], self);
  bool keepdim = call[3].toBool();
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < self.dim(); d++) {
    if (!dims[d]) sizes.push_back(self.size(d));
    else if (keepdim) sizes.push_back(1);
  }
  if (out.defined() && out.sizes() != IntArrayRef(sizes)) out.resize_(sizes);
  if (!out.defined()) out = empty_of(sizes, self, self.scalar_type());
  if (HAS_MEAN) mean = empty_of(sizes, self, self.scalar_type());
  double correction = call[2].isNone() ? 1 : call[2].toScalar().toDouble();
  if (!variance(self, dims, correction, IS_ROOT, out, mean)) return false;
  return HAS_MEAN ? call.done(out, mean) : call.done(out);
}

template <bool IS_PRODUCT>
bool cumulate(Call &call) { // self, dim, dtype, out
  static auto &kernels = *new Kernels("cumulate");
  Tensor self = call.tensor(0), out = call.out();
  if (!is_reducible(self, out) || out.sizes() != self.sizes()) return false;
  Compute compute = compute_of(out.scalar_type());
  if (!can_compute(compute, self)) return false;
  if (compute != Compute::Double && self.scalar_type() == at::kDouble) return false;
  if (compute == Compute::Long && !at::isIntegralType(self.scalar_type(), true)) return false;
  Extents outer;
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  for (int64_t d = 0; d < self.dim(); d++) {
    if (d != dim) outer.add(self.size(d), {step(out, d), step(self, d), 0, 0});
  }
  Strides strides{};
  if (!outer.fill(strides)) return false;
  bool is_scalar = self.dim() == 0;
  Arguments arguments;
  arguments << out.mutable_data_ptr() << self.const_data_ptr() << strides
            << word(letter(out.scalar_type()), letter(self.scalar_type()))
            << static_cast<uint32_t>(is_scalar ? 1 : self.size(dim))
            << static_cast<int32_t>(is_scalar ? 0 : step(out, dim))
            << static_cast<int32_t>(is_scalar ? 0 : step(self, dim)) << static_cast<uint32_t>(IS_PRODUCT);
  launch(self.get_device(), kernels[compute], arguments, static_cast<uint32_t>(outer.numel()));
  return call.done(out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("sum.IntList_out", sum_out);
  OPERATOR("nansum.out", nansum_out);
  OPERATOR("mean.out", mean_out);
  OPERATOR("linalg_vector_norm.out", norm_out);
  OPERATOR("count_nonzero.dim_IntList", count_nonzero);
  OPERATOR("amax.out", amax_out);
  OPERATOR("amin.out", amin_out);
  OPERATOR("any.out", any_out);
  OPERATOR("any.dims_out", any_out);
  OPERATOR("any.all_out", any_out);
  OPERATOR("all.out", all_out);
  OPERATOR("all.dims_out", all_out);
  OPERATOR("all.all_out", all_out);
  OPERATOR("prod.int_out", prod_out);
  OPERATOR("prod", prod_all);
  OPERATOR("argmax.out", arg_out<true>);
  OPERATOR("argmin.out", arg_out<false>);
  OPERATOR("max.dim_max", extreme_out<true>);
  OPERATOR("min.dim_min", extreme_out<false>);
  OPERATOR("max", extreme_of_all<true>);
  OPERATOR("min", extreme_of_all<false>);
  OPERATOR("var.correction", (variance_of<false, false>));
  OPERATOR("var.correction_out", (variance_of<false, false>));
  OPERATOR("std.correction", (variance_of<true, false>));
  OPERATOR("std.correction_out", (variance_of<true, false>));
  OPERATOR("var_mean.correction", (variance_of<false, true>));
  OPERATOR("std_mean.correction", (variance_of<true, true>));
  OPERATOR("cumsum.out", cumulate<false>);
  OPERATOR("cumprod.out", cumulate<true>);
}

} // namespace
} // namespace l0rt_torch
