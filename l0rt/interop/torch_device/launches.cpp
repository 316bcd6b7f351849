/* SPDX-License-Identifier: Apache-2.0 */
// launches.cpp: launches of kernels, and operators that run on the CPU instead.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <chrono>
#include <map>
#include <mutex>

#include "tensors.h"

namespace l0rt_torch {
namespace {

constexpr uint32_t kGroup = 256;

std::array<std::string, kModules> spirv;

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

void set_kernels(int module, std::string code) { spirv[module] = std::move(code); }

l0rt_kernel *Kernel::build(int device) {
  static std::mutex mutex;
  static auto *modules = new std::map<std::pair<int, int>, l0rt_module *>;
  TORCH_CHECK(device < kDevices, "l0rt has at most ", kDevices, " devices, got device ", device);
  std::lock_guard<std::mutex> lock(mutex);
  l0rt_module *&module = (*modules)[{device, module_}];
  if (module == nullptr) {
    const std::string &code = spirv[module_];
    module = ok(api->module_create(device, code.data(), code.size(), L0RT_MODULE_SPIRV, nullptr));
  }
  if (kernels_[device] == nullptr) kernels_[device] = ok(api->kernel_get(module, name_.c_str()));
  return kernels_[device];
}

void launch_groups(int device, Kernel &kernel, const Arguments &arguments, const uint32_t groups[3],
                   const uint32_t group_size[3]) {
  ok(api->launch(kernel.of(device), groups, group_size, arguments.list(), arguments.count(), 0, current(device)));
}

void launch(int device, Kernel &kernel, Arguments &arguments, uint32_t items, uint32_t each) {
  if (items == 0) return;
  arguments << items;
  uint32_t workers = (items + each - 1) / each;
  uint32_t size = workers <= 32 ? 32 : kGroup;
  const uint32_t counts[3] = {(workers + size - 1) / size, 1, 1};
  const uint32_t sizes[3] = {size, 1, 1};
  launch_groups(device, kernel, arguments, counts, sizes);
}

void launch_workers(int device, Kernel &kernel, Arguments &arguments, uint32_t results, uint32_t workers) {
  if (results == 0) return;
  arguments << workers << results;
  uint32_t of_group = kGroup / workers;
  const uint32_t counts[3] = {(results + of_group - 1) / of_group, 1, 1};
  const uint32_t sizes[3] = {kGroup, 1, 1};
  launch_groups(device, kernel, arguments, counts, sizes);
}

bool has_double(int device) {
  uint64_t dtypes = 0;
  ok(table->device_capability(device, &dtypes));
  return (dtypes & L0RT_DTYPE_FLOAT64) != 0;
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

namespace {

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back>()); }

} // namespace
} // namespace l0rt_torch
