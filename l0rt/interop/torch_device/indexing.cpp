/* SPDX-License-Identifier: Apache-2.0 */
// indexing.cpp: gathers, scatters, embeddings, concatenations, ranges and triangles. An index outside reads zeros and
// writes nothing: a check would wait for the device.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "operators.h"

namespace l0rt_torch {
namespace {

bool is_index(const Tensor &index) {
  return index.defined() && index.is_privateuseone() &&
         (index.scalar_type() == at::kLong || index.scalar_type() == at::kInt);
}

bool is_movable(const Tensor &tensor) {
  return tensor.defined() && tensor.is_privateuseone() && !tensor.is_neg() && !tensor.is_conj();
}

// Which element of `limit` ones, `step` bytes apart, an index chooses.
struct Choice {
  int64_t step, limit;
};

Kernel &kernel_of(const char *name, size_t bytes) {
  static auto &gathers = *new std::array<Kernel, 5>{Kernel(0, "gather_1"), Kernel(0, "gather_2"), Kernel(0, "gather_4"),
                                                    Kernel(0, "gather_8"), Kernel(0, "gather_16")};
  static auto &scatters = *new std::array<Kernel, 5>{Kernel(0, "scatter_1"), Kernel(0, "scatter_2"),
                                                     Kernel(0, "scatter_4"), Kernel(0, "scatter_8"),
                                                     Kernel(0, "scatter_16")};
  size_t i = 0;
  while (size_t{1} << i < bytes) i++;
  return (*name == 'g' ? gathers : scatters)[i];
}

bool move(Kernel &kernel, const Tensor &to, const Tensor &from, const Tensor &index, const Extents &extents,
          Choice choice) {
  Strides strides{};
  if (!extents.fill(strides)) return false;
  Arguments arguments;
  arguments << to.mutable_data_ptr() << from.const_data_ptr() << index.const_data_ptr() << strides
            << letter(index.scalar_type()) << choice.step << choice.limit;
  launch(to.get_device(), kernel, arguments, static_cast<uint32_t>(extents.numel()), 4);
  return true;
}

// The dimensions of an index along whose dimension `dim` of `chosen` it chooses; `other` has those of the index.
Extents extents_of(const Tensor &index, const Tensor &to, const Tensor &from, int64_t dim, bool is_scatter) {
  Extents extents;
  for (int64_t d = 0; d < index.dim(); d++) {
    int64_t to_step = is_scatter && d == dim ? 0 : step(to, d), from_step = !is_scatter && d == dim ? 0 : step(from, d);
    extents.add(index.size(d), {to_step, from_step, step(index, d), 0});
  }
  return extents;
}

bool gather(const Tensor &to, const Tensor &from, int64_t dim, const Tensor &index) {
  if (!is_movable(to) || !is_movable(from) || !is_index(index) || to.dtype() != from.dtype()) return false;
  if (to.numel() == 0) return true;
  if (to.dim() == 0) return gather(to.view({1}), from.reshape({1}), 0, index.reshape({1}));
  return move(kernel_of("gather", from.element_size()), to, from, index, extents_of(index, to, from, dim, false),
              {step(from, dim), from.size(dim)});
}

// `adds`: to what is there, in an order that is not known.
bool scatter(const Tensor &to, const Tensor &from, int64_t dim, const Tensor &index, bool adds) {
  static auto &kernels = *new Kernels("scatter_add");
  if (!is_movable(to) || !is_movable(from) || !is_index(index) || to.dtype() != from.dtype()) return false;
  if (index.numel() == 0) return true;
  if (to.dim() == 0) return scatter(to.view({1}), from.reshape({1}), 0, index.reshape({1}), adds);
  Extents extents = extents_of(index, to, from, dim, true);
  Choice choice{step(to, dim), to.size(dim)};
  if (!adds) return move(kernel_of("scatter", to.element_size()), to, from, index, extents, choice);
  bool has_kernel = to.scalar_type() == at::kFloat || to.scalar_type() == at::kLong;
  if (!has_kernel || (to.scalar_type() == at::kFloat && at::globalContext().deterministicAlgorithms())) return false;
  return move(kernels[compute_of(to.scalar_type())], to, from, index, extents, choice);
}

void check_shapes(const Tensor &self, const Tensor &index, int64_t dim, const char *name) {
  int64_t dims = std::max<int64_t>(self.dim(), 1), index_dims = std::max<int64_t>(index.dim(), 1);
  TORCH_CHECK(dims == index_dims || index.numel() == 0,
              "Index tensor must have the same number of dimensions as input tensor");
  for (int64_t d = 0; d < index.dim() && self.dim() > 0; d++) {
    TORCH_CHECK(d == dim || index.size(d) <= self.size(d), "Size does not match at dimension ", d, " expected index ",
                index.sizes(), " to be no larger than self ", self.sizes(), " apart from dimension ", dim, " in ",
                name);
  }
}

bool gather_out(Call &call) { // self, dim, index, sparse_grad, out
  Tensor self = call.tensor(0), index = call.tensor(2), out = call.out();
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  check_shapes(self, index, dim, "gather");
  if (out.sizes() != index.sizes()) out.resize_(index.sizes());
  return gather(out, self, dim, index) && call.done(out);
}

// self, dim, index, src or value, out: `adds` is a sum of both.
template <bool ADDS>
bool scatter_out(Call &call) {
  Tensor self = call.tensor(0), index = call.tensor(2), out = call.out(), from;
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  if (!is_served(self) || !is_index(index)) return false;
  if (call[3].isTensor()) from = call.tensor(3);
  else from = at::empty({}, self.options()).fill_(call[3].toScalar()).expand(index.sizes());
  if (!is_served(from) || from.dtype() != self.dtype()) return false;
  bool can_add = self.scalar_type() == at::kFloat || self.scalar_type() == at::kLong;
  if (ADDS && (!can_add || at::globalContext().deterministicAlgorithms())) return false;
  if (!out.is_same(self)) out.copy_(self);
  return scatter(out, from, dim, index, ADDS) && call.done(out);
}

std::vector<int64_t> with_size(const Tensor &self, int64_t dim, int64_t size) {
  auto sizes = self.sizes().vec();
  if (!sizes.empty()) sizes[dim] = size;
  return sizes;
}

// An index of one dimension, as it broadcasts along `dim` of others.
Tensor along(const Tensor &index, int64_t dim, IntArrayRef sizes) {
  std::vector<int64_t> shape(sizes.size(), 1);
  if (!shape.empty()) shape[dim] = index.numel();
  return index.reshape(shape).expand(sizes);
}

bool index_select(Call &call) { // self, dim, index, and out
  Tensor self = call.tensor(0), index = call.tensor(2), out = call.out();
  if (!is_movable(self) || !is_index(index) || self.dim() > 8) return false;
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  auto sizes = with_size(self, dim, index.numel());
  if (!out.defined()) out = at::empty(sizes, self.options().memory_format(std::nullopt));
  if (out.sizes() != IntArrayRef(sizes)) out.resize_(sizes);
  return gather(out, self, dim, along(index, dim, sizes)) && call.done(out);
}

bool index_add_out(Call &call) { // self, dim, index, source, alpha, out
  Tensor self = call.tensor(0), index = call.tensor(2), source = call.tensor(3), out = call.out();
  if (!is_served(self) || !is_index(index) || !is_served(source) || self.dim() == 0) return false;
  bool can_add = self.scalar_type() == at::kFloat || self.scalar_type() == at::kLong;
  if (!can_add || self.dtype() != source.dtype() || at::globalContext().deterministicAlgorithms()) return false;
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  if (!call[4].toScalar().equal(1)) source = source * call[4].toScalar();
  if (!out.is_same(self)) out.copy_(self);
  return scatter(out, source, dim, along(index, dim, source.sizes()), true) && call.done(out);
}

// self[indices] as one gather along a flat dimension: the indexed dimensions first, as one index of elements.
struct Flat {
  Tensor index;             // broadcast, of elements
  std::vector<int64_t> sizes; // of the result
  Extents extents;          // of operand 0 the elements at the chosen ones, of 1 those of the result's
  int64_t limit = 0;
};

bool flatten(const Tensor &self, const c10::IValue &list, Flat &flat, Tensor &value, bool has_value) {
  std::vector<Tensor> indices;
  for (const c10::IValue &item : list.toListRef()) indices.push_back(item.isNone() ? Tensor() : item.toTensor());
  if (!is_movable(self) || indices.size() > static_cast<size_t>(self.dim())) return false;
  std::vector<int64_t> shape;
  int64_t first = -1, last = -1, count = 0;
  for (size_t d = 0; d < indices.size(); d++) {
    if (!indices[d].defined()) continue;
    if (!is_index(indices[d])) return false;
    shape = at::infer_size(shape, indices[d].sizes());
    if (first < 0) first = static_cast<int64_t>(d);
    last = static_cast<int64_t>(d);
    count++;
  }
  if (count == 0) return false;
  bool is_together = last - first + 1 == count;
  for (size_t d = 0; d < indices.size(); d++) {
    if (!indices[d].defined()) continue;
    int64_t size = self.size(d);
    Tensor index = indices[d].to(at::kLong);
    // An index from the end counts; one that is outside is outside of the whole.
    index = at::where(index < 0, index + size, index);
    Tensor is_outside = (index < 0).logical_or(index >= size);
    index = index * self.stride(d);
    index = index.masked_fill(is_outside, int64_t{1} << 48);
    flat.index = flat.index.defined() ? flat.index + index : index;
    flat.limit += (size - 1) * self.stride(d);
  }
  flat.limit++;
  flat.index = flat.index.expand(shape);
  for (int64_t d = 0; d < self.dim(); d++) {
    bool is_chosen = d < static_cast<int64_t>(indices.size()) && indices[d].defined();
    if ((is_together && d == first) || (!is_together && d == 0)) {
      flat.sizes.insert(flat.sizes.end(), shape.begin(), shape.end());
    }
    if (!is_chosen) flat.sizes.push_back(self.size(d));
  }
  if (!has_value) value = at::empty(flat.sizes, self.options().memory_format(std::nullopt));
  else value = value.expand(flat.sizes);
  int64_t at = 0;
  auto add_shape = [&] {
    for (size_t d = 0; d < shape.size(); d++, at++) {
      flat.extents.add(shape[d], {0, step(value, at), step(flat.index, d), 0});
    }
  };
  if (!is_together) add_shape();
  for (int64_t d = 0; d < self.dim(); d++) {
    bool is_chosen = d < static_cast<int64_t>(indices.size()) && indices[d].defined();
    if (is_together && d == first) add_shape();
    if (!is_chosen) {
      flat.extents.add(self.size(d), {step(self, d), step(value, at), 0, 0});
      at++;
    }
  }
  return true;
}

bool index_tensor(Call &call) { // self, indices, and out
  Tensor self = call.tensor(0), out = call.out(), result;
  Flat flat;
  if (!flatten(self, call[1], flat, result, false)) return false;
  for (auto &extent : flat.extents.extents) std::swap(extent.steps[0], extent.steps[1]);
  bool is_done = result.numel() == 0 || move(kernel_of("gather", self.element_size()), result, self, flat.index,
                                             flat.extents, {static_cast<int64_t>(self.element_size()), flat.limit});
  if (!is_done) return false;
  if (!out.defined()) return call.done(result);
  if (out.sizes() != result.sizes()) out.resize_(result.sizes());
  out.copy_(result);
  return call.done(out);
}

bool index_put(Call &call) { // self, indices, values, accumulate, unsafe
  static auto &sums = *new Kernels("scatter_add");
  Tensor self = call.tensor(0), values = call.tensor(2);
  bool adds = call[3].toBool();
  if (!is_movable(self) || !is_movable(values) || self.dtype() != values.dtype()) return false;
  bool can_add = self.scalar_type() == at::kFloat || self.scalar_type() == at::kLong;
  if (adds && (!can_add || at::globalContext().deterministicAlgorithms())) return false;
  Flat flat;
  if (!flatten(self, call[1], flat, values, true)) return false;
  Kernel &kernel = adds ? sums[compute_of(self.scalar_type())] : kernel_of("scatter", self.element_size());
  Choice choice{static_cast<int64_t>(self.element_size()), flat.limit};
  if (values.numel() != 0 && !move(kernel, self, values, flat.index, flat.extents, choice)) return false;
  return call.done(self);
}

bool embedding_backward(Call &call) { // grad, indices, num_weights, padding_idx, scale_grad_by_freq
  Tensor grad = call.tensor(0), index = call.tensor(1);
  if (!is_served(grad) || grad.scalar_type() != at::kFloat || !is_index(index) || call[4].toBool()) return false;
  if (at::globalContext().deterministicAlgorithms()) return false;
  int64_t padding = call.integer(3), size = grad.size(-1);
  Tensor sums = at::zeros({call.integer(2), size}, grad.options().memory_format(std::nullopt));
  index = index.reshape({-1, 1});
  if (padding >= 0) index = index.masked_fill(index == padding, -1);
  index = index.expand({-1, size});
  return scatter(sums, grad.reshape({-1, size}), 0, index, true) && call.done(sums);
}

bool cat_out(Call &call) { // tensors, dim, out
  auto tensors = call[0].toTensorVector();
  Tensor out = call.out();
  auto is_skipped = [](const Tensor &tensor) { return tensor.dim() == 1 && tensor.numel() == 0; };
  int64_t dims = out.dim(), dim = c10::maybe_wrap_dim(call.integer(1), dims), at = 0;
  for (const Tensor &tensor : tensors) {
    if (!is_movable(tensor) || tensor.device() != out.device() || out.is_alias_of(tensor)) return false;
  }
  for (const Tensor &tensor : tensors) {
    if (is_skipped(tensor)) continue;
    int64_t size = tensor.size(dim);
    out.narrow(dim, at, size).copy_(tensor);
    at += size;
  }
  return call.done(out);
}

bool fill_range(const Tensor &out, const at::Scalar &start, const at::Scalar &difference) {
  static auto &kernels = *new Kernels("arange");
  if (!is_served(out)) return false;
  Compute compute = compute_of(out.scalar_type());
  if (!can_compute(compute, out) || out.numel() > INT32_MAX) return false;
  if (compute == Compute::Long && (start.isFloatingPoint() || difference.isFloatingPoint())) return false;
  if (out.numel() == 0) return true;
  Tensor to = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
  Arguments arguments;
  arguments << to.mutable_data_ptr() << letter(to.scalar_type()) << Value(compute, start) << Value(compute, difference)
            << size_of(to);
  launch(out.get_device(), kernels[compute], arguments, static_cast<uint32_t>(to.numel()));
  if (!to.is_same(out)) out.copy_(to);
  return true;
}

bool arange_out(Call &call) { // start, end, step, out
  at::Scalar start = call[0].toScalar(), end = call[1].toScalar(), difference = call[2].toScalar();
  Tensor out = call.out();
  double step = difference.toDouble(), span = end.toDouble() - start.toDouble();
  TORCH_CHECK(step != 0, "step must be nonzero");
  TORCH_CHECK(std::isfinite(span), "unsupported range: ", start.toDouble(), " -> ", end.toDouble());
  TORCH_CHECK(span == 0 || (span > 0) == (step > 0), "upper bound and lower bound inconsistent with step sign");
  int64_t size;
  if (start.isIntegral(true) && end.isIntegral(true) && difference.isIntegral(true)) {
    int64_t by = difference.toLong(), sign = by > 0 ? 1 : -1;
    size = (end.toLong() - start.toLong() + by - sign) / by;
  } else {
    size = static_cast<int64_t>(std::ceil(span / step));
  }
  if (out.numel() != size) out.resize_({size});
  return fill_range(out, start, difference) && call.done(out);
}

template <bool IS_UPPER>
bool triangle_out(Call &call) { // self, diagonal, out
  Tensor self = call.tensor(0), out = call.out();
  if (!is_served(self) || !is_served(out) || self.dim() < 2 || self.numel() == 0) return false;
  auto whole = self.options().dtype(at::kLong);
  Tensor rows = at::arange(self.size(-2), whole).unsqueeze(1), columns = at::arange(self.size(-1), whole);
  Tensor distance = columns - rows;
  Tensor is_kept = IS_UPPER ? distance >= call.integer(1) : distance <= call.integer(1);
  out.copy_(at::where(is_kept, self, at::zeros({}, self.options())));
  return call.done(out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("gather.out", gather_out);
  OPERATOR("scatter.src_out", scatter_out<false>);
  OPERATOR("scatter.value_out", scatter_out<false>);
  OPERATOR("scatter_add.out", scatter_out<true>);
  OPERATOR("index_select", index_select);
  OPERATOR("index_select.out", index_select);
  OPERATOR("index_add.out", index_add_out);
  OPERATOR("index.Tensor_out", index_tensor);
  OPERATOR("index.Tensor", index_tensor);
  OPERATOR("_index_put_impl_", index_put);
  OPERATOR("embedding_dense_backward", embedding_backward);
  OPERATOR("cat.out", cat_out);
  OPERATOR("arange.start_out", arange_out);
  OPERATOR("tril.out", triangle_out<false>);
  OPERATOR("triu.out", triangle_out<true>);
}

} // namespace
} // namespace l0rt_torch
