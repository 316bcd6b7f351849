/* SPDX-License-Identifier: Apache-2.0 */
// module.cpp: the extension module, and failures as C++ exceptions.
#include <ATen/Context.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include "compiled.h"
#include "hooks.h"
#include "tensors.h"

namespace l0rt_torch {

const l0rt_api *api;
const l0rt_guard_impl *table;

namespace {

// The failure's text without the name of its Python class, as torch's own messages are.
std::string message_of(const char *text) {
  const char *end = std::strstr(text, ": ");
  return end == nullptr ? text : end + 2;
}

bool has_python() { return Py_IsInitialized() && PyGILState_GetThisThreadState() != nullptr; }

} // namespace

void fail() {
  char text[1024] = "";
  int code = api->last_error(text, sizeof text);
  if (has_python()) {
    pybind11::gil_scoped_acquire gil;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
      python_error interrupt;
      interrupt.persist();
      throw interrupt;
    }
    PyErr_Clear();
  }
  c10::SourceLocation place{__func__, __FILE__, __LINE__};
  if (code == L0RT_ERROR_OUT_OF_HOST_MEMORY || code == L0RT_ERROR_OUT_OF_DEVICE_MEMORY) {
    throw c10::OutOfMemoryError(place, message_of(text));
  }
  throw c10::Error(place, message_of(text));
}

void forget() noexcept {
  if (!has_python()) return;
  pybind11::gil_scoped_acquire gil;
  PyErr_Clear();
}

} // namespace l0rt_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  using namespace l0rt_torch;
  api = l0rt_import();
  if (api == nullptr) throw pybind11::error_already_set();
  table = api->guard_impl_of("xpu");
  if (table == nullptr) throw pybind11::error_already_set();
  register_hooks();
  m.def("set_kernels", [](int module, const pybind11::bytes &code) { set_kernels(module, code); });
  m.def("init", [] {
    torch::utils::register_fork_handler_for_device_init(kType);
    at::globalContext().lazyInitDevice(kType);
  });
  m.def("is_in_bad_fork", [] { return torch::utils::is_device_in_bad_fork(kType); });
  m.def("device_count", [] { return ok(api->count_devices()); });
  m.def("current_device", [] { return api->current_device(); });
  m.def("exchange_device", [](int device) { return ok(api->exchange_device(device)); });
  m.def("memory_allocated", [](int device) { return api->memory_allocated(device); });
  m.def("default_generator", [](int device) {
    const at::Generator &generator = at::globalContext().defaultGenerator(
        {kType, static_cast<c10::DeviceIndex>(device)});
    return pybind11::reinterpret_steal<pybind11::object>(THPGenerator_Wrap(generator));
  });
  m.def("fallbacks", [] {
    pybind11::list rows;
    for (const Fallback &entry : fallbacks()) {
      rows.append(pybind11::make_tuple(entry.name, entry.calls, entry.bytes, entry.seconds));
    }
    return rows;
  });
  m.def("forget_fallbacks", [] { forget_fallbacks(); });
  m.def("compiled_kernel", &compiled_kernel);
  m.def("check_errors", &check_errors);
}
