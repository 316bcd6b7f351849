/* SPDX-License-Identifier: Apache-2.0 */
// device.h: l0rt's C API as torch's registrations use it. A StreamId is the stream's address; the default stream is 0.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <l0rt/l0rt.h>

namespace l0rt_torch {

constexpr auto kType = c10::DeviceType::PrivateUse1;

extern const l0rt_api *api;           // set when the extension is imported
extern const l0rt_guard_impl *table;  // of the device type "xpu"

[[noreturn]] void fail();  // throws the thread's last failure
void forget() noexcept;    // where nothing may be thrown: the failure is not left as a Python exception

inline int ok(int status) {
  if (C10_UNLIKELY(status < 0)) fail();
  return status;
}

template <typename T>
inline T *ok(T *pointer) {
  if (C10_UNLIKELY(pointer == nullptr)) fail();
  return pointer;
}

inline l0rt_stream *native(const c10::Stream &stream) {
  if (stream.id() != 0) return reinterpret_cast<l0rt_stream *>(stream.id());
  return static_cast<l0rt_stream *>(ok(table->get_default_stream(stream.device_index())));
}

inline c10::Stream wrapped(void *stream) {
  ok(stream);
  auto device = static_cast<c10::DeviceIndex>(ok(table->stream_device(stream)));
  bool is_default = stream == table->get_default_stream(device);
  c10::StreamId id = is_default ? 0 : reinterpret_cast<c10::StreamId>(stream);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, device), id);
}

inline l0rt_stream *current(int device) { return ok(api->current_stream(device)); }

inline bool is_pinned(const void *ptr) {
  l0rt_pointer_info info;
  return ptr != nullptr && ok(api->pointer_query(ptr, &info)) == 1 && info.kind == L0RT_MEMORY_HOST;
}

c10::Allocator *device_allocator();
c10::Allocator *pinned_allocator();

} // namespace l0rt_torch
