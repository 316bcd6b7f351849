/* SPDX-License-Identifier: Apache-2.0 */
// operators.cpp: torch's operators by l0rt's kernels, for fp32. torch derives the other overloads of an operator from
// its out variant. What a kernel does not serve goes to the CPU.
#include <ATen/TensorIterator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/abs_ops.h>
#include <ATen/ops/add_ops.h>
#include <ATen/ops/addmm_ops.h>
#include <ATen/ops/bmm_ops.h>
#include <ATen/ops/cos_ops.h>
#include <ATen/ops/div_ops.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp_ops.h>
#include <ATen/ops/log_ops.h>
#include <ATen/ops/maximum_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/minimum_ops.h>
#include <ATen/ops/mm_ops.h>
#include <ATen/ops/mul_ops.h>
#include <ATen/ops/neg_ops.h>
#include <ATen/ops/reciprocal_ops.h>
#include <ATen/ops/relu_ops.h>
#include <ATen/ops/rsqrt_ops.h>
#include <ATen/ops/sigmoid_backward_ops.h>
#include <ATen/ops/sigmoid_ops.h>
#include <ATen/ops/sin_ops.h>
#include <ATen/ops/sqrt_ops.h>
#include <ATen/ops/sub_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/tanh_backward_ops.h>
#include <ATen/ops/tanh_ops.h>
#include <ATen/ops/threshold_backward_ops.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tensors.h"

namespace l0rt_torch {
namespace {

using at::Tensor;
using std::optional;

template <typename Op, typename... Args>
decltype(auto) on_cpu(Args &&...args) {
  return at::native::call_fallback_fn<&fall_back, Op>::call(std::forward<Args>(args)...);
}

bool is_served(const Tensor &tensor) {
  return tensor.is_privateuseone() && tensor.scalar_type() == at::kFloat && !tensor.is_neg();
}

bool is_value(const Tensor &tensor) { return tensor.is_cpu() && tensor.dim() == 0; }

Shape shape_of(const at::TensorIterator &iter) {
  Shape shape{};
  shape.dims = iter.ndim();
  for (int d = 0; d < iter.ndim(); d++) {
    shape.sizes[d] = iter.shape()[d];
    for (int i = 0; i < iter.ntensors(); i++)
      shape.steps[i][d] = iter.strides(i)[d] / static_cast<int64_t>(sizeof(float));
  }
  return shape;
}

// Launch the kernel of a pointwise operator, on operands that broadcast; an operand may be a value of the host.
void pointwise(const std::string &name, at::TensorIterator &iter, float parameter) {
  if (iter.numel() == 0) return;
  c10::DeviceGuard guard(iter.device(0));
  Arguments arguments;
  std::string kind = "_dense";
  arguments << iter.data_ptr(0) << iter.data_ptr(1);
  bool has_value = iter.ntensors() == 3 && iter.is_cpu_scalar(2);
  if (has_value) {
    arguments << iter.scalar_value<float>(2);
    kind = "_scalar";
  } else if (iter.ntensors() == 3) {
    arguments << iter.data_ptr(2);
  }
  arguments << parameter;
  Shape shape;
  if (!has_value && !iter.is_contiguous()) {
    shape = shape_of(iter);
    kind = "_strided";
    arguments << shape;
  }
  launch(iter.device(0).index(), name + kind, arguments, iter.numel());
}

template <typename Op>
Tensor &unary(const char *name, const Tensor &self, Tensor &out) {
  if (!is_served(self) || !is_served(out) || self.dim() > 8) return on_cpu<Op>(self, out);
  auto iter = at::TensorIterator::unary_op(out, self);
  pointwise(name, iter, 0);
  return out;
}

// Whether a kernel serves the operands, which `left` and `right` are then: a value of the host comes second, and only
// where the result is dense; a value that comes first, or for strided operands, is a tensor of the device.
bool prepare(Tensor &left, Tensor &right, const Tensor &out) {
  if (!is_served(out) || left.dim() > 8 || right.dim() > 8) return false;
  for (Tensor *operand : {&left, &right}) {
    if (is_value(*operand)) {
      const Tensor &other = operand == &left ? right : left;
      if (!is_served(other) || at::isComplexType(operand->scalar_type())) return false;
      *operand = operand->to(at::kFloat);
      bool is_dense = operand == &right && other.is_contiguous() && out.is_contiguous() && out.sizes() == other.sizes();
      if (!is_dense) *operand = operand->to(other.device());
    } else if (!is_served(*operand)) {
      return false;
    }
  }
  return left.device() == out.device() && (is_value(right) || right.device() == out.device());
}

template <typename Op, typename... Rest>
Tensor &binary(const char *name, float parameter, const Tensor &self, const Tensor &other, Tensor &out,
               Rest &&...rest) {
  Tensor left = self, right = other;
  if (!prepare(left, right, out)) return on_cpu<Op>(self, other, std::forward<Rest>(rest)..., out);
  auto iter = at::TensorIterator::binary_op(out, left, right);
  pointwise(name, iter, parameter);
  return out;
}

#define UNARY(NAME)                                                                                                    \
  Tensor &NAME##_out(const Tensor &self, Tensor &out) { return unary<at::_ops::NAME##_out>(#NAME, self, out); }
UNARY(neg)
UNARY(abs)
UNARY(exp)
UNARY(log)
UNARY(sqrt)
UNARY(rsqrt)
UNARY(reciprocal)
UNARY(tanh)
UNARY(sigmoid)
UNARY(sin)
UNARY(cos)
#undef UNARY

Tensor relu(const Tensor &self) {
  if (!is_served(self) || self.dim() > 8) return on_cpu<at::_ops::relu>(self);
  Tensor out;
  auto iter = at::TensorIterator::unary_op(out, self);
  pointwise("relu", iter, 0);
  return iter.output();
}

Tensor &relu_(Tensor &self) {
  if (!is_served(self) || self.dim() > 8) return on_cpu<at::_ops::relu_>(self);
  auto iter = at::TensorIterator::unary_op(self, self);
  pointwise("relu", iter, 0);
  return self;
}

Tensor &add_out(const Tensor &self, const Tensor &other, const at::Scalar &alpha, Tensor &out) {
  return binary<at::_ops::add_out>("add", alpha.isComplex() ? 0 : alpha.toFloat(), self, other, out, alpha);
}
Tensor &sub_out(const Tensor &self, const Tensor &other, const at::Scalar &alpha, Tensor &out) {
  return binary<at::_ops::sub_out>("sub", alpha.isComplex() ? 0 : alpha.toFloat(), self, other, out, alpha);
}
Tensor &mul_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return binary<at::_ops::mul_out>("mul", 0, self, other, out);
}
Tensor &div_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return binary<at::_ops::div_out>("div", 0, self, other, out);
}
Tensor &maximum_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return binary<at::_ops::maximum_out>("maximum", 0, self, other, out);
}
Tensor &minimum_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return binary<at::_ops::minimum_out>("minimum", 0, self, other, out);
}
Tensor &sigmoid_backward_out(const Tensor &grad, const Tensor &output, Tensor &out) {
  return binary<at::_ops::sigmoid_backward_grad_input>("sigmoid_backward", 0, grad, output, out);
}
Tensor &tanh_backward_out(const Tensor &grad, const Tensor &output, Tensor &out) {
  return binary<at::_ops::tanh_backward_grad_input>("tanh_backward", 0, grad, output, out);
}
Tensor &threshold_backward_out(const Tensor &grad, const Tensor &self, const at::Scalar &threshold, Tensor &out) {
  return binary<at::_ops::threshold_backward_grad_input>("threshold_backward", threshold.toFloat(), grad, self, out,
                                                         threshold);
}

// The one block of dimensions that is reduced of a dense tensor: [first, last), or nothing.
optional<std::pair<int64_t, int64_t>> reduced_block(const Tensor &self, at::OptionalIntArrayRef dims) {
  if (!dims || dims->empty() || self.dim() == 0) return std::pair<int64_t, int64_t>(0, self.dim());
  std::vector<int64_t> sorted;
  for (int64_t dim : *dims) sorted.push_back(c10::maybe_wrap_dim(dim, self.dim()));
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 1; i < sorted.size(); i++) {
    if (sorted[i] != sorted[i - 1] + 1) return std::nullopt;
  }
  return std::pair<int64_t, int64_t>(sorted.front(), sorted.back() + 1);
}

bool sum_rows(const Tensor &self, at::OptionalIntArrayRef dims, optional<c10::ScalarType> dtype, Tensor &out,
              bool is_mean) {
  if (!is_served(self) || !is_served(out) || dtype.value_or(at::kFloat) != at::kFloat) return false;
  auto block = reduced_block(self, dims);
  if (!block || self.numel() == 0 || !out.is_contiguous()) return false;
  int64_t outer = 1, inner = 1, after = 1;
  for (int64_t d = 0; d < self.dim(); d++) {
    (d < block->first ? outer : d < block->second ? inner : after) *= self.size(d);
  }
  if ((outer != 1 && after != 1) || out.numel() != outer * after) return false;
  c10::DeviceGuard guard(self.device());
  Tensor dense = self.contiguous();
  Arguments arguments;
  uint64_t step = outer != 1 ? inner : 1, inner_step = outer != 1 ? 1 : after;
  arguments << out.mutable_data_ptr() << dense.const_data_ptr() << static_cast<uint64_t>(inner) << step << inner_step
            << (is_mean ? 1.0f / static_cast<float>(inner) : 1.0f);
  launch(self.get_device(), "sum_rows", arguments, out.numel());
  return true;
}

Tensor &sum_out(const Tensor &self, at::OptionalIntArrayRef dims, bool keepdim, optional<c10::ScalarType> dtype,
                Tensor &out) {
  if (sum_rows(self, dims, dtype, out, false)) return out;
  return on_cpu<at::_ops::sum_IntList_out>(self, dims, keepdim, dtype, out);
}
Tensor &mean_out(const Tensor &self, at::OptionalIntArrayRef dims, bool keepdim, optional<c10::ScalarType> dtype,
                 Tensor &out) {
  if (sum_rows(self, dims, dtype, out, true)) return out;
  return on_cpu<at::_ops::mean_out>(self, dims, keepdim, dtype, out);
}

bool is_last(const Tensor &self, int64_t dim) {
  return self.dim() > 0 && c10::maybe_wrap_dim(dim, self.dim()) == self.dim() - 1 && self.numel() > 0;
}

bool softmax_rows(const Tensor &self, int64_t dim, Tensor &out, int is_log) {
  if (!is_served(self) || !is_served(out) || !is_last(self, dim) || !out.is_contiguous() || out.sizes() != self.sizes())
    return false;
  c10::DeviceGuard guard(self.device());
  Tensor dense = self.contiguous();
  auto size = static_cast<uint64_t>(self.size(-1));
  Arguments arguments;
  arguments << out.mutable_data_ptr() << dense.const_data_ptr() << size << is_log;
  launch(self.get_device(), "softmax_rows", arguments, self.numel() / size);
  return true;
}

bool softmax_backward_rows(const Tensor &grad, const Tensor &output, int64_t dim, Tensor &out, int is_log) {
  if (!is_served(grad) || !is_served(output) || !is_served(out) || !is_last(output, dim) || !out.is_contiguous() ||
      out.sizes() != output.sizes())
    return false;
  c10::DeviceGuard guard(grad.device());
  Tensor dense_grad = grad.contiguous(), dense_output = output.contiguous();
  auto size = static_cast<uint64_t>(output.size(-1));
  Arguments arguments;
  arguments << out.mutable_data_ptr() << dense_grad.const_data_ptr() << dense_output.const_data_ptr() << size << is_log;
  launch(grad.get_device(), "softmax_backward_rows", arguments, output.numel() / size);
  return true;
}

Tensor &softmax_out(const Tensor &self, int64_t dim, bool to_float, Tensor &out) {
  return softmax_rows(self, dim, out, 0) ? out : on_cpu<at::_ops::_softmax_out>(self, dim, to_float, out);
}
Tensor &log_softmax_out(const Tensor &self, int64_t dim, bool to_float, Tensor &out) {
  return softmax_rows(self, dim, out, 1) ? out : on_cpu<at::_ops::_log_softmax_out>(self, dim, to_float, out);
}
Tensor &softmax_backward_out(const Tensor &grad, const Tensor &output, int64_t dim, c10::ScalarType dtype,
                             Tensor &out) {
  if (softmax_backward_rows(grad, output, dim, out, 0)) return out;
  return on_cpu<at::_ops::_softmax_backward_data_out>(grad, output, dim, dtype, out);
}
Tensor &log_softmax_backward_out(const Tensor &grad, const Tensor &output, int64_t dim, c10::ScalarType dtype,
                                 Tensor &out) {
  if (softmax_backward_rows(grad, output, dim, out, 1)) return out;
  return on_cpu<at::_ops::_log_softmax_backward_data_out>(grad, output, dim, dtype, out);
}

// Multiply matrices, or a batch of them; each result has a row of `bias` added, or the same row.
bool matmul(const Tensor &a, const Tensor &b, const Tensor *bias, Tensor &out) {
  bool is_batch = a.dim() == 3;
  for (const Tensor *operand : {&a, &b, static_cast<const Tensor *>(&out)}) {
    if (!is_served(*operand) || operand->dim() != a.dim() || operand->device() != a.device()) return false;
  }
  if (bias != nullptr && (!is_served(*bias) || bias->dim() == 0 || bias->stride(-1) != 1)) return false;
  int64_t rows = a.size(-2), depth = a.size(-1), columns = b.size(-1), batch = is_batch ? a.size(0) : 1;
  if (!out.is_contiguous() || rows >= INT32_MAX || depth >= INT32_MAX || columns >= INT32_MAX) return false;
  if (out.numel() != batch * rows * columns || b.size(-2) != depth) return false;
  if (bias != nullptr && bias->size(-1) != columns) return false;
  c10::DeviceGuard guard(a.device());
  Arguments arguments;
  uint64_t bias_row = bias != nullptr && bias->dim() == 2 && bias->size(0) != 1 ? bias->stride(0) : 0;
  arguments << out.mutable_data_ptr() << a.const_data_ptr() << b.const_data_ptr()
            << (bias == nullptr ? nullptr : bias->const_data_ptr()) << static_cast<uint32_t>(rows)
            << static_cast<uint32_t>(depth) << static_cast<uint32_t>(columns) << (is_batch ? a.stride(0) : int64_t{0})
            << a.stride(-2) << a.stride(-1) << (is_batch ? b.stride(0) : int64_t{0}) << b.stride(-2) << b.stride(-1)
            << bias_row;
  launch(a.get_device(), "matmul", arguments, batch * ((rows + 3) / 4) * columns);
  return true;
}

Tensor &mm_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return matmul(self, other, nullptr, out) ? out : on_cpu<at::_ops::mm_out>(self, other, out);
}
Tensor &bmm_out(const Tensor &self, const Tensor &other, Tensor &out) {
  return matmul(self, other, nullptr, out) ? out : on_cpu<at::_ops::bmm_out>(self, other, out);
}
Tensor &addmm_out(const Tensor &self, const Tensor &a, const Tensor &b, const at::Scalar &beta, const at::Scalar &alpha,
                  Tensor &out) {
  bool is_plain = beta.equal(1) && alpha.equal(1) && self.data_ptr() != out.data_ptr();
  if (is_plain && matmul(a, b, &self, out)) return out;
  return on_cpu<at::_ops::addmm_out>(self, a, b, beta, alpha, out);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("neg.out", neg_out);
  m.impl("abs.out", abs_out);
  m.impl("exp.out", exp_out);
  m.impl("log.out", log_out);
  m.impl("sqrt.out", sqrt_out);
  m.impl("rsqrt.out", rsqrt_out);
  m.impl("reciprocal.out", reciprocal_out);
  m.impl("tanh.out", tanh_out);
  m.impl("sigmoid.out", sigmoid_out);
  m.impl("sin.out", sin_out);
  m.impl("cos.out", cos_out);
  m.impl("relu", relu);
  m.impl("relu_", relu_);
  m.impl("add.out", add_out);
  m.impl("sub.out", sub_out);
  m.impl("mul.out", mul_out);
  m.impl("div.out", div_out);
  m.impl("maximum.out", maximum_out);
  m.impl("minimum.out", minimum_out);
  m.impl("sigmoid_backward.grad_input", sigmoid_backward_out);
  m.impl("tanh_backward.grad_input", tanh_backward_out);
  m.impl("threshold_backward.grad_input", threshold_backward_out);
  m.impl("sum.IntList_out", sum_out);
  m.impl("mean.out", mean_out);
  m.impl("_softmax.out", softmax_out);
  m.impl("_log_softmax.out", log_softmax_out);
  m.impl("_softmax_backward_data.out", softmax_backward_out);
  m.impl("_log_softmax_backward_data.out", log_softmax_backward_out);
  m.impl("mm.out", mm_out);
  m.impl("bmm.out", bmm_out);
  m.impl("addmm.out", addmm_out);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

} // namespace
} // namespace l0rt_torch
