/* SPDX-License-Identifier: Apache-2.0 */
// products.cpp: products of matrices, and convolutions by them.
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "operators.h"

namespace l0rt_torch {
namespace {

// out = alpha * a @ b + beta * bias, of matrices or of batches of them; `bias` has the shape of `out`, or is undefined.
bool multiply(const Tensor &a, const Tensor &b, const Tensor &bias, const Tensor &out, const at::Scalar &alpha,
              const at::Scalar &beta) {
  static auto &small = *new Kernels("matmul");
  static auto &tiled = *new Kernels("matmul_tiled");
  for (const Tensor *operand : {&a, &b, &out}) {
    if (!is_served(*operand) || operand->dim() != a.dim() || operand->device() != a.device()) return false;
  }
  if (a.dtype() != b.dtype() || alpha.isComplex() || beta.isComplex()) return false;
  if (bias.defined() && (!is_served(bias) || bias.sizes() != out.sizes())) return false;
  Compute compute = compute_of(a.scalar_type());
  if (!can_compute(compute, a) || a.scalar_type() == at::kBool) return false;
  if (compute == Compute::Long && (alpha.isFloatingPoint() || beta.isFloatingPoint())) return false;
  bool is_batch = a.dim() == 3;
  int64_t rows = a.size(-2), depth = a.size(-1), columns = b.size(-1), batch = is_batch ? a.size(0) : 1;
  if (out.numel() == 0) return true;
  if (batch * rows * columns > INT32_MAX || depth > INT32_MAX) return false;
  // What is written is not what is read: results go to a copy where `out` is not dense, or is the bias.
  bool is_direct = out.is_contiguous() && !(bias.defined() && bias.is_alias_of(out));
  Tensor to = is_direct ? out : at::empty(out.sizes(), out.options());
  auto steps = [is_batch](const Tensor &tensor, Arguments &arguments) {
    arguments << (is_batch ? tensor.stride(0) : int64_t{0}) << tensor.stride(-2) << tensor.stride(-1);
  };
  Arguments arguments;
  const void *none = nullptr;
  arguments << to.mutable_data_ptr() << a.const_data_ptr() << b.const_data_ptr()
            << (bias.defined() ? bias.const_data_ptr() : none)
            << word(letter(to.scalar_type()), letter(a.scalar_type()), letter(b.scalar_type()),
                    bias.defined() ? letter(bias.scalar_type()) : 0)
            << word(size_of(to), size_of(a), size_of(b), bias.defined() ? size_of(bias) : 0)
            << static_cast<uint32_t>(rows) << static_cast<uint32_t>(depth) << static_cast<uint32_t>(columns);
  steps(a, arguments);
  steps(b, arguments);
  if (bias.defined()) steps(bias, arguments);
  else arguments << int64_t{0} << int64_t{0} << int64_t{0};
  arguments << Value(compute, alpha) << Value(compute, beta);
  bool is_large = compute != Compute::Long && rows >= 32 && columns >= 32 && depth >= 16 && batch < 65536;
  if (is_large) {
    const uint32_t groups[3] = {static_cast<uint32_t>((columns + 63) / 64), static_cast<uint32_t>((rows + 63) / 64),
                                static_cast<uint32_t>(batch)};
    const uint32_t size[3] = {256, 1, 1};
    launch_groups(a.get_device(), tiled[compute], arguments, groups, size);
  } else {
    launch(a.get_device(), small[compute], arguments, static_cast<uint32_t>(batch * ((rows + 3) / 4) * columns));
  }
  if (!is_direct) out.copy_(to);
  return true;
}

bool product_out(Call &call) { // self, other, out
  Tensor out = call.out();
  return multiply(call.tensor(0), call.tensor(1), {}, out, 1, 0) && call.done(out);
}

bool sum_of_product_out(Call &call) { // bias, a, b, beta, alpha, out
  Tensor bias = call.tensor(0), out = call.out();
  at::Scalar beta = call[3].toScalar(), alpha = call[4].toScalar();
  bool is_ignored = !beta.isComplex() && beta.toDouble() == 0; // NaN in it too
  if (!is_ignored && bias.sizes() != out.sizes()) bias = bias.expand(out.sizes());
  return multiply(call.tensor(1), call.tensor(2), is_ignored ? Tensor() : bias, out, alpha, beta) && call.done(out);
}

bool matrix_and_vector_out(Call &call) { // bias, matrix, vector, beta, alpha, out
  Tensor bias = call.tensor(0), out = call.out(), vector = call.tensor(2);
  at::Scalar beta = call[3].toScalar(), alpha = call[4].toScalar();
  bool is_ignored = !beta.isComplex() && beta.toDouble() == 0;
  Tensor column = is_ignored ? Tensor() : bias.expand(out.sizes()).unsqueeze(1);
  return multiply(call.tensor(1), vector.unsqueeze(1), column, out.unsqueeze(1), alpha, beta) && call.done(out);
}

bool dot(Call &call) {
  Tensor self = call.tensor(0), other = call.tensor(1);
  if (!is_served(self) || !is_served(other) || self.dtype() != other.dtype() || self.dim() != 1) return false;
  TORCH_CHECK(other.dim() == 1 && self.numel() == other.numel(), "inconsistent tensor size, expected tensor [",
              self.numel(), "] and src [", other.numel(), "] to have the same number of elements");
  return call.done((self * other).sum().to(self.dtype()));
}

struct Window {
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
  int64_t dims() const { return static_cast<int64_t>(stride.size()); }
};

Tensor padded(const Tensor &input, const Window &window) {
  bool is_padded = std::any_of(window.padding.begin(), window.padding.end(), [](int64_t n) { return n != 0; });
  if (!is_padded) return input.contiguous();
  auto sizes = input.sizes().vec();
  for (int64_t d = 0; d < window.dims(); d++) sizes[d + 2] += 2 * window.padding[d];
  Tensor result = at::zeros(sizes, input.options().memory_format(std::nullopt)), inside = result;
  for (int64_t d = 0; d < window.dims(); d++) inside = inside.narrow(d + 2, window.padding[d], input.size(d + 2));
  inside.copy_(input);
  return result;
}

std::vector<int64_t> output_sizes(IntArrayRef input, IntArrayRef weight, const Window &window) {
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < window.dims(); d++) {
    int64_t span = window.dilation[d] * (weight[d + 2] - 1) + 1;
    int64_t size = input[d + 2] + 2 * window.padding[d];
    TORCH_CHECK(size >= span, "Calculated padded input size per channel: (", size, "). Kernel size: (", span,
                "). Kernel size can't be greater than actual input size");
    sizes.push_back((size - span) / window.stride[d] + 1);
  }
  return sizes;
}

// The elements below each place of the kernel, as a matrix for each image and group: (N, C/G * K, O).
Tensor columns(const Tensor &input, IntArrayRef weight, IntArrayRef out, const Window &window, int64_t group) {
  int64_t channels = weight[1];
  Tensor part = input.narrow(1, group * channels, channels);
  std::vector<int64_t> sizes{part.size(0), channels}, strides{part.stride(0), part.stride(1)};
  for (int64_t d = 0; d < window.dims(); d++) {
    sizes.push_back(weight[d + 2]);
    strides.push_back(part.stride(d + 2) * window.dilation[d]);
  }
  for (int64_t d = 0; d < window.dims(); d++) {
    sizes.push_back(out[d]);
    strides.push_back(part.stride(d + 2) * window.stride[d]);
  }
  int64_t kernel = c10::multiply_integers(weight.slice(2));
  return part.as_strided(sizes, strides, part.storage_offset())
      .reshape({part.size(0), channels * kernel, c10::multiply_integers(out)});
}

Tensor convolve(const Tensor &input, const Tensor &weight, const Window &window) {
  auto out = output_sizes(input.sizes(), weight.sizes(), window);
  std::vector<int64_t> sizes{input.size(0), weight.size(0)};
  sizes.insert(sizes.end(), out.begin(), out.end());
  Tensor result = at::empty(sizes, input.options().memory_format(std::nullopt)), source = padded(input, window);
  int64_t of_group = weight.size(0) / window.groups, area = c10::multiply_integers(out);
  Tensor flat = result.view({input.size(0), weight.size(0), area});
  Tensor matrix = weight.reshape({window.groups, of_group, -1});
  for (int64_t group = 0; group < window.groups; group++) {
    Tensor part = flat.narrow(1, group * of_group, of_group);
    Tensor left = matrix[group].unsqueeze(0).expand({input.size(0), -1, -1});
    at::bmm_out(part, left, columns(source, weight.sizes(), out, window, group));
  }
  return result;
}

// The gradient of the input, of the sizes given: each place of the kernel adds its part.
Tensor gradient_of_input(const Tensor &grad, const Tensor &weight, IntArrayRef input, const Window &window) {
  auto sizes = input.vec();
  for (int64_t d = 0; d < window.dims(); d++) sizes[d + 2] += 2 * window.padding[d];
  Tensor sums = at::zeros(sizes, grad.options().memory_format(std::nullopt));
  int64_t of_group = weight.size(0) / window.groups, channels = weight.size(1), images = grad.size(0);
  int64_t kernel = c10::multiply_integers(weight.sizes().slice(2));
  Tensor matrix = weight.reshape({window.groups, of_group, channels * kernel});
  Tensor flat = grad.reshape({images, weight.size(0), -1});
  auto out = grad.sizes().slice(2);
  for (int64_t group = 0; group < window.groups; group++) {
    Tensor left = matrix[group].t().unsqueeze(0).expand({images, -1, -1});
    Tensor parts = at::bmm(left, flat.narrow(1, group * of_group, of_group));
    std::vector<int64_t> shape{images, channels, kernel};
    shape.insert(shape.end(), out.begin(), out.end());
    parts = parts.view(shape);
    for (int64_t place = 0; place < kernel; place++) {
      Tensor target = sums.narrow(1, group * channels, channels);
      int64_t rest = place;
      for (int64_t d = window.dims() - 1; d >= 0; d--) {
        int64_t first = rest % weight.size(d + 2) * window.dilation[d];
        rest /= weight.size(d + 2);
        target = target.slice(d + 2, first, first + (out[d] - 1) * window.stride[d] + 1, window.stride[d]);
      }
      target.add_(parts.select(2, place));
    }
  }
  for (int64_t d = 0; d < window.dims(); d++) sums = sums.narrow(d + 2, window.padding[d], input[d + 2]);
  return sums.contiguous();
}

Tensor gradient_of_weight(const Tensor &grad, const Tensor &input, IntArrayRef weight, const Window &window) {
  Tensor source = padded(input, window), flat = grad.reshape({grad.size(0), grad.size(1), -1});
  int64_t of_group = weight[0] / window.groups;
  Tensor result = at::empty(weight, grad.options().memory_format(std::nullopt));
  for (int64_t group = 0; group < window.groups; group++) {
    Tensor right = columns(source, weight, grad.sizes().slice(2), window, group).transpose(1, 2);
    Tensor sums = at::bmm(flat.narrow(1, group * of_group, of_group), right).sum({0});
    Tensor part = result.narrow(0, group * of_group, of_group);
    part.copy_(sums.view(part.sizes()));
  }
  return result;
}

Window window_of(Call &call, size_t first, size_t groups, int64_t dims) {
  auto list = [&](size_t i) {
    auto values = call[i].toIntVector();
    return values.size() == 1 ? std::vector<int64_t>(dims, values[0]) : values;
  };
  return {list(first), list(first + 1), list(first + 2), call.integer(groups)};
}

bool are_floats(std::initializer_list<Tensor> tensors) {
  for (const Tensor &tensor : tensors) {
    if (!is_served(tensor) || !at::isFloatingType(tensor.scalar_type()) || tensor.dim() > 5) return false;
    if (!can_compute(compute_of(tensor.scalar_type()), tensor) || tensor.dtype() != tensors.begin()->dtype())
      return false;
  }
  return true;
}

// input, weight, bias, stride, padding, dilation, transposed, output_padding, groups. The operator has no fallback.
bool convolution(Call &call) {
  Tensor input = call.tensor(0), weight = call.tensor(1), bias = call.tensor(2), out;
  TORCH_CHECK_NOT_IMPLEMENTED(are_floats({input, weight}), "convolution of ", input.scalar_type(), " by ",
                              weight.scalar_type(), " on ", input.device(), ": it needs floating-point numbers");
  Window window = window_of(call, 3, 8, input.dim() - 2);
  if (!call[6].toBool()) {
    out = convolve(input, weight, window);
  } else {
    auto extra = call[7].toIntVector();
    std::vector<int64_t> sizes{input.size(0), weight.size(1) * window.groups};
    for (int64_t d = 0; d < window.dims(); d++) {
      sizes.push_back((input.size(d + 2) - 1) * window.stride[d] - 2 * window.padding[d] +
                      window.dilation[d] * (weight.size(d + 2) - 1) + extra[extra.size() == 1 ? 0 : d] + 1);
    }
    out = gradient_of_input(input, weight, sizes, window);
  }
  if (bias.defined()) {
    std::vector<int64_t> sizes(out.dim(), 1);
    sizes[1] = bias.numel();
    out.add_(bias.view(sizes));
  }
  return call.done(out);
}

// grad, input, weight, stride, padding, dilation, transposed, output_padding, groups, mask.
bool convolution_backward(Call &call) {
  Tensor grad = call.tensor(0), input = call.tensor(1), weight = call.tensor(2), grad_input, grad_weight, grad_bias;
  TORCH_CHECK_NOT_IMPLEMENTED(are_floats({grad, input, weight}), "gradient of a convolution of ", input.scalar_type(),
                              " on ", input.device(), ": it needs floating-point numbers");
  Window window = window_of(call, 3, 8, input.dim() - 2);
  bool transposed = call[6].toBool();
  auto mask = call[9].toBoolList();
  if (mask[0]) {
    grad_input = transposed ? convolve(grad, weight, window) : gradient_of_input(grad, weight, input.sizes(), window);
  }
  if (mask[1]) {
    grad_weight = transposed ? gradient_of_weight(input, grad, weight.sizes(), window)
                             : gradient_of_weight(grad, input, weight.sizes(), window);
  }
  if (mask[2]) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < grad.dim(); d++) dims.push_back(d);
    grad_bias = grad.sum(dims);
  }
  return call.done(grad_input, grad_weight, grad_bias);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  OPERATOR("mm.out", product_out);
  OPERATOR("bmm.out", product_out);
  OPERATOR("addmm.out", sum_of_product_out);
  OPERATOR("baddbmm.out", sum_of_product_out);
  OPERATOR("addmv.out", matrix_and_vector_out);
  OPERATOR("dot", dot);
  OPERATOR("convolution_overrideable", convolution);
  OPERATOR("convolution_backward_overrideable", convolution_backward);
}

} // namespace
} // namespace l0rt_torch
