/* SPDX-License-Identifier: Apache-2.0 */
// launches.cpp: launches of kernels, and operators that run on the CPU instead.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>

#include <chrono>
#include <map>
#include <mutex>
#include <unordered_map>

#include "tensors.h"

namespace l0rt_torch {
namespace {

constexpr uint32_t kGroup = 64;

std::string spirv;

l0rt_kernel *kernel_of(int device, const std::string &name) {
  static std::mutex mutex;
  static auto *modules = new std::map<int, l0rt_module *>;
  static auto *kernels = new std::unordered_map<std::string, l0rt_kernel *>[64];
  TORCH_CHECK(device < 64, "l0rt has at most 64 devices, got device ", device);
  std::lock_guard<std::mutex> lock(mutex);
  l0rt_kernel *&kernel = kernels[device][name];
  if (kernel == nullptr) {
    l0rt_module *&module = (*modules)[device];
    if (module == nullptr) {
      module = ok(api->module_create(device, spirv.data(), spirv.size(), L0RT_MODULE_SPIRV, nullptr));
    }
    kernel = ok(api->kernel_get(module, name.c_str()));
  }
  return kernel;
}

std::mutex fallbacks_mutex;
auto *counted = new std::map<std::string, Fallback>;

uint64_t bytes_on_device(const torch::jit::Stack &stack, size_t count) {
  uint64_t bytes = 0;
  for (size_t i = stack.size() - count; i < stack.size(); i++) {
    if (stack[i].isTensor()) {
      const at::Tensor &tensor = stack[i].toTensor();
      if (tensor.defined() && tensor.is_privateuseone()) bytes += tensor.nbytes();
    } else if (stack[i].isTensorList()) {
      for (const at::Tensor &tensor : stack[i].toTensorVector()) {
        if (tensor.defined() && tensor.is_privateuseone()) bytes += tensor.nbytes();
      }
    }
  }
  return bytes;
}

} // namespace

void set_kernels(std::string code) { spirv = std::move(code); }

void launch_groups(int device, const std::string &name, const Arguments &arguments, const uint32_t groups[3],
                   const uint32_t group_size[3]) {
  l0rt_kernel *kernel = kernel_of(device, name);
  ok(api->launch(kernel, groups, group_size, arguments.list(), arguments.count(), 0, current(device)));
}

void launch(int device, const std::string &name, Arguments &arguments, uint64_t items) {
  if (items == 0) return;
  arguments << items;
  uint64_t groups = (items + kGroup - 1) / kGroup;
  // One dimension has 2**32 groups at most; a kernel numbers its items over two.
  uint32_t row = static_cast<uint32_t>(std::min<uint64_t>(groups, 1u << 20));
  const uint32_t counts[3] = {row, static_cast<uint32_t>((groups + row - 1) / row), 1};
  const uint32_t sizes[3] = {kGroup, 1, 1};
  launch_groups(device, name, arguments, counts, sizes);
}

void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  auto begin = std::chrono::steady_clock::now();
  const auto &schema = op.schema();
  uint64_t bytes = bytes_on_device(*stack, schema.arguments().size());
  at::native::cpu_fallback(op, stack);
  bytes += bytes_on_device(*stack, schema.returns().size());
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::string name = schema.name();
  if (!schema.overload_name().empty()) name += "." + schema.overload_name();
  std::lock_guard<std::mutex> lock(fallbacks_mutex);
  Fallback &entry = (*counted)[name];
  entry.name = name;
  entry.calls++;
  entry.bytes += bytes;
  entry.seconds += seconds.count();
}

std::vector<Fallback> fallbacks() {
  std::lock_guard<std::mutex> lock(fallbacks_mutex);
  std::vector<Fallback> result;
  for (const auto &entry : *counted) result.push_back(entry.second);
  return result;
}

void forget_fallbacks() {
  std::lock_guard<std::mutex> lock(fallbacks_mutex);
  counted->clear();
}

} // namespace l0rt_torch
