/* SPDX-License-Identifier: Apache-2.0 */
// guard.cpp: torch's devices, streams and events over l0rt's guard table.
#include <c10/core/DeviceCapability.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "compiled.h"
#include "device.h"

namespace l0rt_torch {
namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::Stream;

int index_of(Device device) {
  TORCH_CHECK(device.type() == kType, "expected a device of type ", c10::DeviceTypeName(kType, true), ", got ", device);
  return device.index();
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = kType;

  Guard() = default;
  explicit Guard(c10::DeviceType) {}
  c10::DeviceType type() const override { return kType; }

  Device exchangeDevice(Device device) const override {
    return {kType, static_cast<DeviceIndex>(ok(table->exchange_device(index_of(device))))};
  }
  Device getDevice() const override { return {kType, static_cast<DeviceIndex>(table->get_device())}; }
  void setDevice(Device device) const override { ok(table->set_device(index_of(device))); }
  void uncheckedSetDevice(Device device) const noexcept override { table->unchecked_set_device(device.index()); }
  DeviceIndex deviceCount() const noexcept override {
    int count = api == nullptr ? 0 : api->count_devices();
    if (count < 0) forget();
    return static_cast<DeviceIndex>(count < 0 ? 0 : count);
  }

  Stream getStream(Device device) const override { return wrapped(table->get_stream(device.index())); }
  Stream getDefaultStream(Device device) const override { return wrapped(table->get_default_stream(device.index())); }
  Stream getStreamFromGlobalPool(Device device, bool is_high) const override {
    return wrapped(table->get_stream_from_pool(device.index(), is_high ? -1 : 0));
  }
  Stream getNewStream(Device device, int priority) const override {
    return wrapped(table->get_new_stream(device.index(), priority));
  }
  Stream exchangeStream(Stream stream) const override { return wrapped(api->exchange_device_stream(native(stream))); }
  void *getStreamNativeHandle(const Stream stream) const override {
    return ok(table->stream_native_handle(native(stream)));
  }
  bool queryStream(const Stream &stream) const override { return ok(table->query_stream(native(stream))) == 1; }
  void synchronizeStream(const Stream &stream) const override {
    ok(table->synchronize_stream(native(stream)));
    check_errors(stream.device_index());
  }
  void synchronizeDevice(const DeviceIndex device) const override {
    ok(table->synchronize_device(device));
    check_errors(device);
  }
  bool isStreamCapturing(const Stream &stream) const override {
    return ok(table->is_stream_capturing(native(stream))) == 1;
  }

  void record(void **event, const Stream &stream, const DeviceIndex device, const c10::EventFlag flag) const override {
    TORCH_CHECK(device == -1 || device == stream.device_index(), "Event device index ", static_cast<int>(device),
                " does not match recording stream's device index ", static_cast<int>(stream.device_index()), ".");
    ok(table->record_event(event, native(stream), flag == c10::EventFlag::BACKEND_DEFAULT ? L0RT_EVENT_TIMING : 0));
  }
  void destroyEvent(void *event, const DeviceIndex) const noexcept override { table->destroy_event(event); }
  void block(void *event, const Stream &stream) const override { ok(table->block(event, native(stream))); }
  bool queryEvent(void *event) const override { return ok(table->query_event(event)) == 1; }
  void synchronizeEvent(void *event) const override { ok(table->synchronize_event(event)); }
  double elapsedTime(void *start, void *end, const DeviceIndex) const override {
    double milliseconds = 0;
    ok(table->elapsed_time(start, end, &milliseconds));
    return milliseconds;
  }
  void recordDataPtrOnStream(const c10::DataPtr &data, const Stream &stream) const override {
    if (data.get() != nullptr) ok(table->record_data_ptr_on_stream(data.get(), native(stream)));
  }

  c10::DeviceCapability getDeviceCapability(Device device) const override {
    uint64_t dtypes = 0;
    ok(table->device_capability(device.index(), &dtypes));
    c10::DeviceCapability result;
    result.capability_data.capability_bits = 0;
    auto &types = result.capability_data.supported_scalar_types;
    types.has_Bool = (dtypes & L0RT_DTYPE_BOOL) != 0;
    types.has_Char = (dtypes & L0RT_DTYPE_INT8) != 0;
    types.has_Byte = (dtypes & L0RT_DTYPE_UINT8) != 0;
    types.has_Short = (dtypes & L0RT_DTYPE_INT16) != 0;
    types.has_Int = (dtypes & L0RT_DTYPE_INT32) != 0;
    types.has_Long = (dtypes & L0RT_DTYPE_INT64) != 0;
    types.has_Half = (dtypes & L0RT_DTYPE_FLOAT16) != 0;
    types.has_BFloat16 = (dtypes & L0RT_DTYPE_BFLOAT16) != 0;
    types.has_Float = (dtypes & L0RT_DTYPE_FLOAT32) != 0;
    types.has_Double = (dtypes & L0RT_DTYPE_FLOAT64) != 0;
    types.has_ComplexFloat = (dtypes & L0RT_DTYPE_COMPLEX64) != 0;
    types.has_ComplexDouble = (dtypes & L0RT_DTYPE_COMPLEX128) != 0;
    return result;
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

} // namespace
} // namespace l0rt_torch
