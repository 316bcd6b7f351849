/* SPDX-License-Identifier: Apache-2.0 */
// compiled.cpp: the kernels that torch.compile writes, as functions of Python that take tensors and numbers.
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/csrc/utils/python_numbers.h>

#include <array>

#include "compiled.h"
#include "tensors.h"

namespace l0rt_torch {
namespace {

constexpr uint32_t kMostArguments = 256;
constexpr int kMostDevices = 64;
constexpr const char *kCapsule = "l0rt_torch.Compiled";

// A kernel, and how a call becomes a launch of it. `kinds` has a letter for each argument: p is a tensor, q a whole
// number, d a real one, e the device's word for errors, which the caller does not give. The last argument of a call,
// which the kernel gets too, is the number of results: of work-items, or of groups where `is_grouped`.
struct Compiled {
  std::string name;
  std::string kinds;
  uint32_t group_size;
  bool is_grouped;
  pybind11::object load; // of a device's index: the code and the format, for the first launch there
  std::array<l0rt_kernel *, kMostDevices> kernels{};
};

// One word for each device, in pinned memory: 0, or what a kernel has found wrong. It is read before each launch of a
// kernel that can write to it, and when the host waits for the device.
std::array<volatile int32_t *, kMostDevices> error_words{};

volatile int32_t *error_word(int device) {
  if (error_words[device] == nullptr) {
    auto *word = static_cast<int32_t *>(ok(api->host_malloc(64, device)));
    *word = 0;
    error_words[device] = word;
  }
  return error_words[device];
}

l0rt_kernel *load(Compiled &compiled, int device) {
  pybind11::tuple loaded = compiled.load(device);
  auto code = loaded[0].cast<std::string>();
  l0rt_module *module = ok(api->module_create(device, code.data(), code.size(), loaded[1].cast<int>(), nullptr));
  return compiled.kernels[device] = ok(api->kernel_get(module, compiled.name.c_str()));
}

PyObject *call(PyObject *capsule, PyObject *const *given, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  auto &compiled = *static_cast<Compiled *>(PyCapsule_GetPointer(capsule, kCapsule));
  c10::OptionalDeviceGuard guard; // a kernel runs where its tensors are
  for (Py_ssize_t i = 0; i < count; i++) {
    if (THPVariable_Check(given[i]) && THPVariable_Unpack(given[i]).is_privateuseone()) {
      c10::Device place = THPVariable_Unpack(given[i]).device();
      if (place.index() != api->current_device()) guard.reset_device(place);
      break;
    }
  }
  int device = api->current_device();
  TORCH_CHECK(device < kMostDevices, "l0rt has at most ", kMostDevices, " devices, got device ", device);
  l0rt_kernel *kernel = compiled.kernels[device];
  if (C10_UNLIKELY(kernel == nullptr)) kernel = load(compiled, device);

  std::array<uint64_t, kMostArguments> values;
  std::array<l0rt_arg, kMostArguments> arguments;
  std::vector<at::Tensor> copies;
  Py_ssize_t next = 0;
  uint32_t filled = 0;
  for (char kind : compiled.kinds) {
    uint64_t &value = values[filled];
    if (kind == 'e') {
      check_errors(device);
      value = reinterpret_cast<uint64_t>(error_word(device));
    } else {
      TORCH_CHECK(next < count, "the kernel ", compiled.name, " has more arguments than ", count);
      PyObject *object = given[next++];
      if (kind == 'p') {
        TORCH_CHECK_TYPE(THPVariable_Check(object), "an argument of ", compiled.name, " must be a tensor");
        const at::Tensor *tensor = &THPVariable_Unpack(object);
        if (C10_UNLIKELY(!tensor->is_privateuseone())) { // a value of the host
          copies.push_back(tensor->to(c10::Device(kType, static_cast<c10::DeviceIndex>(device))));
          tensor = &copies.back();
        }
        value = reinterpret_cast<uint64_t>(tensor->const_data_ptr());
      } else if (kind == 'd') {
        double number = THPUtils_unpackDouble(object);
        std::memcpy(&value, &number, sizeof value);
      } else {
        value = static_cast<uint64_t>(THPUtils_unpackLong(object));
      }
    }
    arguments[filled++] = {&value, sizeof value};
  }
  TORCH_CHECK(next == count, "the kernel ", compiled.name, " has ", next, " arguments, got ", count);
  uint64_t results = values[filled - 1];
  if (results == 0) Py_RETURN_NONE;
  uint64_t groups = compiled.is_grouped ? results : (results + compiled.group_size - 1) / compiled.group_size;
  TORCH_CHECK(groups <= UINT32_MAX, "a launch of ", compiled.name, " has too many results: ", results);
  const uint32_t counts[3] = {static_cast<uint32_t>(groups), 1, 1};
  const uint32_t sizes[3] = {compiled.group_size, 1, 1};
  {
    pybind11::gil_scoped_release without_gil;
    ok(api->launch(kernel, counts, sizes, arguments.data(), filled, 0, current(device)));
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyMethodDef definition = {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)), METH_FASTCALL,
                          "Launch a compiled kernel on the current stream."};

void release(PyObject *capsule) { delete static_cast<Compiled *>(PyCapsule_GetPointer(capsule, kCapsule)); }

} // namespace

void check_errors(int device) {
  if (device >= kMostDevices || error_words[device] == nullptr || *error_words[device] == 0) return;
  *error_words[device] = 0;
  TORCH_CHECK_INDEX(false, "a compiled kernel on device ", device, " got an index that is out of range");
}

pybind11::object compiled_kernel(std::string name, std::string kinds, uint32_t group_size, bool is_grouped,
                                 pybind11::object load) {
  TORCH_CHECK(!kinds.empty() && kinds.back() == 'q', "the last argument of a kernel is the number of results");
  TORCH_CHECK(kinds.size() <= kMostArguments, "a kernel has at most ", kMostArguments, " arguments, got ",
              kinds.size());
  auto *compiled = new Compiled{std::move(name), std::move(kinds), group_size, is_grouped, std::move(load)};
  auto capsule = pybind11::reinterpret_steal<pybind11::object>(PyCapsule_New(compiled, kCapsule, &release));
  if (!capsule) throw pybind11::error_already_set();
  auto function = pybind11::reinterpret_steal<pybind11::object>(PyCFunction_New(&definition, capsule.ptr()));
  if (!function) throw pybind11::error_already_set();
  return function;
}

} // namespace l0rt_torch
