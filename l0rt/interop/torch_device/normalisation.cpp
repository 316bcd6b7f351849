/* SPDX-License-Identifier: Apache-2.0 */
// normalisation.cpp: softmax, layer norm and batch norm, and their gradients.
#include <ATen/ops/empty.h>
#include <ATen/ops/var_mean.h>

#include "operators.h"

namespace l0rt_torch {
namespace {

using Mask = std::array<bool, 3>;

Mask mask_of(const c10::IValue &value) {
  Mask mask{};
  auto list = value.toBoolList();
  for (size_t i = 0; i < mask.size(); i++) mask[i] = list[i];
  return mask;
}

bool is_computable(const Tensor &self) {
  return is_served(self) && at::isFloatingType(self.scalar_type()) && self.numel() > 0 && self.numel() <= INT32_MAX &&
         can_compute(compute_of(self.scalar_type()), self);
}

// Run a function of rows along the last dimension for another dimension: `out` is dense along it, or a copy is.
template <typename Function>
bool along(int64_t dim, const Tensor &out, Function function) {
  Tensor to = out.movedim(dim, -1);
  bool is_dense = to.is_contiguous();
  Tensor rows = is_dense ? to : at::empty(to.sizes(), to.options());
  if (!function(rows)) return false;
  if (!is_dense) to.copy_(rows);
  return true;
}

template <bool IS_LOG>
bool softmax_out(Call &call) { // self, dim, half_to_float, out
  static auto &kernels = *new Kernels("softmax");
  Tensor self = call.tensor(0), out = call.out();
  if (!is_computable(self) || !is_served(out) || out.sizes() != self.sizes()) return false;
  if (self.dim() == 0) {
    out.fill_(IS_LOG ? 0 : 1);
    return call.done(out);
  }
  int64_t dim = c10::maybe_wrap_dim(call.integer(1), self.dim());
  Tensor from = self.movedim(dim, -1).contiguous();
  Compute compute = compute_of(self.scalar_type());
  bool is_done = along(dim, out, [&](const Tensor &to) {
    int64_t size = from.size(-1), rows = from.numel() / size;
    Arguments arguments;
    arguments << to.mutable_data_ptr() << from.const_data_ptr()
              << word(letter(to.scalar_type()), letter(from.scalar_type()), size_of(to), size_of(from))
              << static_cast<uint32_t>(size) << static_cast<uint32_t>(IS_LOG);
    launch_workers(self.get_device(), kernels[compute], arguments, rows, workers_of(size, rows, true));
    return true;
  });
  return is_done && call.done(out);
}

template <bool IS_LOG>
bool softmax_backward_out(Call &call) { // grad, output, dim, dtype, out
  static auto &kernels = *new Kernels("softmax_backward");
  Tensor grad = call.tensor(0), output = call.tensor(1), out = call.out();
  if (!is_computable(grad) || !is_computable(output) || !is_served(out) || out.sizes() != grad.sizes()) return false;
  if (grad.dim() == 0) {
    out.zero_();
    return call.done(out);
  }
  int64_t dim = c10::maybe_wrap_dim(call.integer(2), grad.dim());
  Tensor grads = grad.movedim(dim, -1).contiguous(), results = output.movedim(dim, -1).contiguous();
  Compute compute = compute_of(output.scalar_type());
  bool is_done = along(dim, out, [&](const Tensor &to) {
    int64_t size = grads.size(-1), rows = grads.numel() / size;
    Arguments arguments;
    arguments << to.mutable_data_ptr() << grads.const_data_ptr() << results.const_data_ptr()
              << word(letter(to.scalar_type()), letter(grads.scalar_type()), letter(results.scalar_type()))
              << word(size_of(to), size_of(grads), size_of(results)) << static_cast<uint32_t>(size)
              << static_cast<uint32_t>(IS_LOG);
    launch_workers(grad.get_device(), kernels[compute], arguments, rows, workers_of(size, rows, true));
    return true;
  });
  return is_done && call.done(out);
}

const void *data_of(const Tensor &tensor) { return tensor.defined() ? tensor.const_data_ptr() : nullptr; }

bool layer_norm(Call &call) { // input, normalized_shape, weight, bias, eps
  static auto &kernels = *new Kernels("layer_norm");
  Tensor input = call.tensor(0), weight = call.tensor(2), bias = call.tensor(3);
  auto shape = call[1].toIntVector();
  if (!is_computable(input) || (weight.defined() && !is_computable(weight))) return false;
  if (bias.defined() && (!is_computable(bias) || (weight.defined() && weight.dtype() != bias.dtype()))) return false;
  int64_t first = input.dim() - static_cast<int64_t>(shape.size());
  TORCH_CHECK(first >= 0 && input.sizes().slice(first) == IntArrayRef(shape),
              "Given normalized_shape=", IntArrayRef(shape), ", expected input with shape [*, ", IntArrayRef(shape),
              "], but got input of size", input.sizes());
  int64_t size = c10::multiply_integers(shape), rows = input.numel() / size;
  Compute compute = compute_of(input.scalar_type());
  auto sizes = input.sizes().vec();
  std::fill(sizes.begin() + first, sizes.end(), 1);
  auto options = input.options().dtype(dtype_of(compute)).memory_format(std::nullopt);
  Tensor from = input.contiguous(), scale = weight.defined() ? weight.contiguous() : weight;
  Tensor shift = bias.defined() ? bias.contiguous() : bias, out = at::empty(input.sizes(), from.options());
  Tensor means = at::empty(sizes, options), scales = at::empty(sizes, options);
  const Tensor &affine = scale.defined() ? scale : shift;
  uint32_t affine_letter = affine.defined() ? letter(affine.scalar_type()) : 0;
  Arguments arguments;
  arguments << out.mutable_data_ptr() << means.mutable_data_ptr() << scales.mutable_data_ptr() << from.const_data_ptr()
            << data_of(scale) << data_of(shift)
            << word(letter(out.scalar_type()), letter(from.scalar_type()), affine_letter)
            << word(size_of(out), size_of(from), affine.defined() ? size_of(affine) : 0) << static_cast<uint32_t>(size)
            << Value(compute, call[4].toDouble());
  launch_workers(input.get_device(), kernels[compute], arguments, rows, workers_of(size, rows, true));
  return call.done(out, means, scales);
}

bool layer_norm_backward(Call &call) { // grad, input, normalized_shape, mean, rstd, weight, bias, mask
  static auto &kernels = *new Kernels("layer_norm_backward");
  Tensor grad = call.tensor(0), input = call.tensor(1), mean = call.tensor(3), rstd = call.tensor(4);
  Tensor weight = call.tensor(5), bias = call.tensor(6), grad_input, grad_weight, grad_bias;
  if (!is_computable(input) || !is_served(grad) || grad.dtype() != input.dtype()) return false;
  if (weight.defined() && !is_computable(weight)) return false;
  Compute compute = compute_of(input.scalar_type());
  if (mean.scalar_type() != dtype_of(compute) || rstd.scalar_type() != dtype_of(compute)) return false;
  Mask mask = mask_of(call[7]);
  auto shape = call[2].toIntVector();
  int64_t size = c10::multiply_integers(shape), rows = input.numel() / size;
  Tensor from = input.contiguous(), grads = grad.contiguous();
  if (mask[0]) {
    Tensor scale = weight.defined() ? weight.contiguous() : weight;
    grad_input = at::empty(input.sizes(), from.options());
    Arguments arguments;
    arguments << grad_input.mutable_data_ptr() << grads.const_data_ptr() << from.const_data_ptr()
              << mean.const_data_ptr() << rstd.const_data_ptr() << data_of(scale)
              << word(letter(from.scalar_type()), 0, scale.defined() ? letter(scale.scalar_type()) : 0)
              << word(size_of(from), 0, scale.defined() ? size_of(scale) : 0) << static_cast<uint32_t>(size);
    launch_workers(input.get_device(), kernels[compute], arguments, rows, workers_of(size, rows, true));
  }
  auto type = [](const Tensor &affine) { return affine.scalar_type(); };
  if (mask[1] && weight.defined()) {
    Tensor normal = (from - mean) * rstd;
    grad_weight = (grads * normal).reshape({rows, size}).sum({0}).to(type(weight)).view(shape);
  }
  if (mask[2] && bias.defined()) grad_bias = grads.view({rows, size}).sum({0}).to(type(bias)).view(shape);
  return call.done(grad_input, grad_weight, grad_bias);
}

// A value for each channel, as it broadcasts over the tensor.
Tensor per_channel(const Tensor &values, const Tensor &input) {
  std::vector<int64_t> sizes(input.dim(), 1);
  sizes[1] = input.size(1);
  return values.view(sizes);
}

std::vector<int64_t> all_but_channels(const Tensor &input) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.dim(); d++) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}

bool batch_norm(Call &call, const Tensor &running_mean, const Tensor &running_var, size_t rest) {
  Tensor input = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2);
  if (!is_computable(input) || input.dim() < 2) return false;
  bool training = call[rest].toBool();
  double momentum = call[rest + 1].toDouble(), eps = call[rest + 2].toDouble();
  Compute compute = compute_of(input.scalar_type());
  Tensor x = input.to(dtype_of(compute)), mean, inverse, none = at::empty({0}, x.options());
  if (training) {
    auto [variance, average] = at::var_mean(x, all_but_channels(x), at::Scalar(0), false);
    mean = average;
    inverse = (variance + eps).rsqrt();
    double count = static_cast<double>(x.numel() / x.size(1));
    if (running_mean.defined()) running_mean.mul_(1 - momentum).add_(mean.to(running_mean.dtype()), momentum);
    if (running_var.defined()) {
      Tensor unbiased = variance * (count / (count - 1));
      running_var.mul_(1 - momentum).add_(unbiased.to(running_var.dtype()), momentum);
    }
  } else {
    mean = running_mean.to(x.dtype());
    inverse = (running_var.to(x.dtype()) + eps).rsqrt();
  }
  Tensor scale = weight.defined() ? inverse * weight : inverse;
  Tensor out = (x - per_channel(mean, x)) * per_channel(scale, x);
  if (bias.defined()) out = out + per_channel(bias, x);
  out = out.to(input.dtype());
  return training ? call.done(out, mean, inverse) : call.done(out, none, none);
}

bool native_batch_norm(Call &call) { return batch_norm(call, call.tensor(3), call.tensor(4), 5); }
bool batch_norm_without_statistics(Call &call) { return batch_norm(call, {}, {}, 3); }

bool batch_norm_backward(Call &call) { // grad, input, weight, running mean and var, saved ones, train, eps, mask
  Tensor grad = call.tensor(0), input = call.tensor(1), weight = call.tensor(2), grad_input, grad_weight, grad_bias;
  if (!is_computable(input) || !is_served(grad) || input.dim() < 2) return false;
  bool training = call[7].toBool();
  Mask mask = mask_of(call[9]);
  auto dtype = dtype_of(compute_of(input.scalar_type()));
  Tensor x = input.to(dtype), g = grad.to(dtype);
  Tensor mean = training ? call.tensor(5) : call.tensor(3).to(dtype);
  Tensor inverse = training ? call.tensor(6) : (call.tensor(4).to(dtype) + call[8].toDouble()).rsqrt();
  auto dims = all_but_channels(x);
  Tensor normal = (x - per_channel(mean, x)) * per_channel(inverse, x);
  Tensor sum = g.sum(dims), along = (g * normal).sum(dims);
  if (mask[0]) {
    Tensor scale = weight.defined() ? inverse * weight : inverse;
    double count = static_cast<double>(x.numel() / x.size(1));
    if (training) g = g - per_channel(sum / count, x) - normal * per_channel(along / count, x);
    grad_input = (g * per_channel(scale, x)).to(input.dtype());
  }
  if (mask[1] && weight.defined()) grad_weight = along.to(weight.dtype());
  if (mask[2]) grad_bias = sum.to(weight.defined() ? weight.scalar_type() : input.scalar_type());
  return call.done(grad_input, grad_weight, grad_bias);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("_softmax.out", softmax_out<false>);
  OPERATOR("_log_softmax.out", softmax_out<true>);
  OPERATOR("_softmax_backward_data.out", softmax_backward_out<false>);
  OPERATOR("_log_softmax_backward_data.out", softmax_backward_out<true>);
  OPERATOR("native_layer_norm", layer_norm);
  OPERATOR("native_layer_norm_backward", layer_norm_backward);
  OPERATOR("native_batch_norm", native_batch_norm);
  OPERATOR("_native_batch_norm_legit", native_batch_norm);
  OPERATOR("_native_batch_norm_legit.no_stats", batch_norm_without_statistics);
  OPERATOR("native_batch_norm_backward", batch_norm_backward);
}

} // namespace
} // namespace l0rt_torch
