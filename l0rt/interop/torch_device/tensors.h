/* SPDX-License-Identifier: Apache-2.0 */
// tensors.h: launches of l0rt's own kernels for torch's operators, and the fallback to the CPU.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/KernelFunction.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "device.h"

namespace l0rt_torch {

// The sizes of up to 8 dimensions, the first one the fastest, and of three operands the steps in elements: an argument
// of the strided kernels.
struct Shape {
  int32_t dims;
  int32_t unused;
  int64_t sizes[8];
  int64_t steps[3][8];
};

// The arguments of a launch: values of up to 8 bytes, and addresses of larger ones.
class Arguments {
 public:
  template <typename T>
  Arguments &operator<<(const T &value) {
    static_assert(sizeof(T) <= sizeof(uint64_t));
    std::memcpy(&values_[count_], &value, sizeof value);
    list_[count_] = {&values_[count_], sizeof value};
    count_++;
    return *this;
  }
  Arguments &operator<<(const Shape &shape) {
    list_[count_++] = {&shape, sizeof shape};
    return *this;
  }
  const l0rt_arg *list() const { return list_.data(); }
  uint32_t count() const { return count_; }

 private:
  std::array<l0rt_arg, 16> list_;
  std::array<uint64_t, 16> values_;
  uint32_t count_ = 0;
};

// Launch a kernel with at least `items` work-items, which it gets as its last argument, on the current stream.
void launch(int device, const std::string &name, Arguments &arguments, uint64_t items);
// The same with groups of a fixed size, and without that argument.
void launch_groups(int device, const std::string &name, const Arguments &arguments, const uint32_t groups[3],
                   const uint32_t group_size[3]);
void set_kernels(std::string spirv);

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
