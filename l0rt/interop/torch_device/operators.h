/* SPDX-License-Identifier: Apache-2.0 */
// operators.h: what the files of operators share. An operator is a function that answers false where no kernel serves
// its arguments; it runs on the CPU then.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <optional>

#include "tensors.h"

namespace l0rt_torch {

using at::Tensor;
using c10::IntArrayRef;
using std::optional;

// A call of an operator: its arguments lie on the stack, and so do its results afterwards.
class Call {
 public:
  Call(const c10::OperatorHandle &op, torch::jit::Stack *stack)
      : op(op), stack_(stack), count_(op.schema().arguments().size()) {}
  size_t count() const { return count_; }
  const c10::IValue &operator[](size_t i) const { return (*stack_)[stack_->size() - count_ + i]; }
  Tensor tensor(size_t i) const { return (*this)[i].isNone() ? Tensor() : (*this)[i].toTensor(); }
  int64_t integer(size_t i) const { return (*this)[i].toInt(); }
  optional<at::ScalarType> dtype(size_t i) const {
    return (*this)[i].isNone() ? std::nullopt : optional((*this)[i].toScalarType());
  }
  // The result given: the last argument of an out variant, the first one of an operator in place, or nothing.
  Tensor out() const;

  template <typename... Results>
  bool done(Results &&...results) {
    torch::jit::drop(*stack_, count_);
    (stack_->emplace_back(std::forward<Results>(results)), ...);
    return true;
  }

  const c10::OperatorHandle &op;

 private:
  torch::jit::Stack *stack_;
  size_t count_;
};

template <bool (*Function)(Call &)>
void boxed(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  Call call(op, stack);
  c10::DeviceIndex device = -1;
  for (size_t i = 0; i < call.count() && device < 0; i++) {
    const c10::IValue &value = call[i];
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().is_privateuseone()) {
      device = value.toTensor().get_device();
    } else if (value.isDevice() && value.toDevice().is_privateuseone()) {
      device = value.toDevice().index();
    }
  }
  c10::OptionalDeviceGuard guard;
  if (device >= 0) guard.reset_device(c10::Device(kType, device));
  if (!Function(call)) fall_back(op, stack);
}

#define OPERATOR(NAME, FUNCTION) m.impl(NAME, torch::CppFunction::makeFromBoxedFunction<&boxed<&FUNCTION>>())

// Whether kernels serve a tensor: of the device, real, with its bits as they are.
bool is_served(const Tensor &tensor);
// The letter of a type in a kernel's argument; 0 where there is none.
uint32_t letter(at::ScalarType type);
// The type that results of elements of a type are computed in.
Compute compute_of(at::ScalarType type);
at::ScalarType dtype_of(Compute compute);
bool can_compute(Compute compute, const Tensor &tensor);
inline uint32_t word(uint32_t a, uint32_t b = 0, uint32_t c = 0, uint32_t d = 0) {
  return a | b << 8 | c << 16 | d << 24;
}
inline uint32_t size_of(const Tensor &tensor) { return static_cast<uint32_t>(tensor.element_size()); }

// Dimensions, the slowest first, with the bytes between neighbours of up to four operands.
class Extents {
 public:
  void add(int64_t size, const std::array<int64_t, 4> &steps);
  // Fill the argument of a kernel; false where it cannot have them.
  bool fill(Strides &strides) const;
  int64_t numel() const;

  struct Extent {
    int64_t size;
    std::array<int64_t, 4> steps;
  };
  std::vector<Extent> extents;
};

inline int64_t step(const Tensor &tensor, int64_t dim) {
  return tensor.defined() ? tensor.stride(dim) * static_cast<int64_t>(tensor.element_size()) : 0;
}

// Run a pointwise operator of pointwise.h by name; `out` may be undefined.
Tensor compute_pointwise(const char *name, const Tensor &out, std::initializer_list<Tensor> operands,
                         std::initializer_list<double> parameters = {});
// Copy elements of other types, or with other strides; false where no kernel serves them.
bool convert(const Tensor &to, const Tensor &from);

// The work-items that make one result of `size` elements, where there are `results`.
uint32_t workers_of(int64_t size, int64_t results, bool is_dense);

} // namespace l0rt_torch
