/* SPDX-License-Identifier: Apache-2.0 */
// tensors.h: launches of l0rt's own kernels for torch's operators, and the fallback to the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>

#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "device.h"
#include "pointwise.h"

namespace l0rt_torch {

// The type that a kernel computes in: each has a module of its own.
enum class Compute { Float, Long, Double };
constexpr int kComputes = 3;

// Bytes between neighbours along up to 8 dimensions, the first one the fastest, of four operands: as in types.clh.
struct Strides {
  uint32_t dims;
  uint32_t sizes[8];
  int32_t steps[4][8];
};

// A value of the type that is computed in.
struct Value {
  Compute compute;
  double number;
  int64_t integer;
  Value(Compute compute, double number) : compute(compute), number(number), integer(0) {
    if (compute == Compute::Long) integer = static_cast<int64_t>(number);
  }
  Value(Compute compute, const at::Scalar &scalar) : compute(compute), number(0), integer(0) {
    if (compute == Compute::Long) integer = scalar.toLong();
    else number = scalar.toDouble();
  }
};

// The arguments of a launch: values of up to 8 bytes, and addresses of larger ones.
class Arguments {
 public:
  template <typename T>
  Arguments &operator<<(const T &value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    TORCH_INTERNAL_ASSERT_DEBUG_ONLY(count_ < list_.size());
    std::memcpy(&values_[count_], &value, sizeof value);
    list_[count_] = {&values_[count_], sizeof value};
    count_++;
    return *this;
  }
  Arguments &operator<<(const Strides &strides) {
    list_[count_++] = {&strides, sizeof strides};
    return *this;
  }
  Arguments &operator<<(const Value &value) {
    switch (value.compute) {
      case Compute::Float: return *this << static_cast<float>(value.number);
      case Compute::Long: return *this << value.integer;
      default: return *this << value.number;
    }
  }
  const l0rt_arg *list() const { return list_.data(); }
  uint32_t count() const { return count_; }

 private:
  std::array<l0rt_arg, 24> list_;
  std::array<uint64_t, 24> values_;
  uint32_t count_ = 0;
};

// The modules of kernels, by their numbers: those of Compute, and l0rt's random numbers outside and in captures.
enum { kRandom = kComputes, kRandomDouble, kRandomGraph, kRandomGraphDouble, kModules };
void set_kernels(int module, std::string spirv);

// A kernel of a module, built for a device at its first use.
class Kernel {
 public:
  Kernel(int module, std::string name) : module_(module), name_(std::move(name)) {}
  l0rt_kernel *of(int device) {
    l0rt_kernel *kernel = device < kDevices ? kernels_[device].load(std::memory_order_acquire) : nullptr;
    return C10_LIKELY(kernel != nullptr) ? kernel : build(device);
  }

 private:
  static constexpr int kDevices = 64;
  l0rt_kernel *build(int device);
  int module_;
  std::string name_;
  std::array<std::atomic<l0rt_kernel *>, kDevices> kernels_{};
};

// The kernels of one name that compute in each type.
class Kernels {
 public:
  explicit Kernels(const std::string &name) : kernels_{Kernel(0, name), Kernel(1, name), Kernel(2, name)} {}
  Kernel &operator[](Compute compute) { return kernels_[static_cast<int>(compute)]; }

 private:
  std::array<Kernel, kComputes> kernels_;
};

void launch_groups(int device, Kernel &kernel, const Arguments &arguments, const uint32_t groups[3],
                   const uint32_t group_size[3]);
// Launch with a work-item for each `each` of `items`, whose count is the last argument.
void launch(int device, Kernel &kernel, Arguments &arguments, uint32_t items, uint32_t each = 1);
// Launch with `workers` work-items for each of the results, whose count is the last argument.
void launch_workers(int device, Kernel &kernel, Arguments &arguments, uint32_t results, uint32_t workers);

bool has_double(int device);

// Run an operator on the CPU, with copies of its tensors; it is counted.
void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack);

struct Fallback {
  std::string name;
  uint64_t calls;
  uint64_t bytes;
  double seconds;
};

std::vector<Fallback> fallbacks();
void forget_fallbacks();

} // namespace l0rt_torch
