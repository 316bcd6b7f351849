/* SPDX-License-Identifier: Apache-2.0 */
// allocators.cpp: torch's allocators of device memory and of pinned memory over l0rt's.
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <cstring>

#include "device.h"

namespace l0rt_torch {
namespace {

using c10::DeviceIndex;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;

void device_free(void *ptr) {
  if (api->free(ptr) < 0) forget();
}

void pinned_free(void *ptr) {
  if (api->host_free(ptr) < 0) forget();
}

void copy(Stat &to, const l0rt_stat_values &from) {
  to.current = from.current;
  to.peak = from.peak;
  to.allocated = from.allocated;
  to.freed = from.freed;
}

void copy(StatArray &to, const l0rt_stat_pools &from) {
  copy(to[static_cast<size_t>(StatType::AGGREGATE)], from.all);
  copy(to[static_cast<size_t>(StatType::SMALL_POOL)], from.small_pool);
  copy(to[static_cast<size_t>(StatType::LARGE_POOL)], from.large_pool);
}

l0rt_memory_stats statistics(int device, int kind) {
  l0rt_memory_stats stats;
  ok(api->get_memory_stats(device, kind, &stats, sizeof stats));
  return stats;
}

struct DeviceMemory final : c10::DeviceAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    int device = api->current_device();
    void *ptr = nbytes == 0 ? nullptr : ok(api->malloc(nbytes, -1, nullptr));
    return {ptr, ptr, &device_free, c10::Device(kType, static_cast<DeviceIndex>(device))};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &device_free; }
  void copy_data(void *to, const void *from, size_t nbytes) const override {
    ok(api->memcpy_async(to, from, nbytes, nullptr));
  }

  bool initialized() override { return api->is_open() == 1; }
  void emptyCache(c10::MempoolId_t) override { ok(api->memory_empty_cache(L0RT_MEMORY_DEVICE)); }
  void recordStream(const c10::DataPtr &data, c10::Stream stream) override {
    if (data.get() != nullptr) ok(api->record_stream(data.get(), native(stream)));
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex device) override {
    l0rt_memory_stats from = statistics(device, L0RT_MEMORY_DEVICE);
    c10::CachingDeviceAllocator::DeviceStats to;
    copy(to.allocation, from.allocation);
    copy(to.segment, from.segment);
    copy(to.active, from.active);
    copy(to.inactive_split, from.inactive_split);
    copy(to.allocated_bytes, from.allocated_bytes);
    copy(to.reserved_bytes, from.reserved_bytes);
    copy(to.active_bytes, from.active_bytes);
    copy(to.inactive_split_bytes, from.inactive_split_bytes);
    copy(to.requested_bytes, from.requested_bytes);
    copy(to.oversize_allocations, from.oversize_allocations);
    copy(to.oversize_segments, from.oversize_segments);
    to.num_alloc_retries = from.num_alloc_retries;
    to.num_ooms = from.num_ooms;
    to.num_sync_all_streams = from.num_sync_all_streams;
    to.num_device_alloc = from.num_device_alloc;
    to.num_device_free = from.num_device_free;
    to.max_split_size = from.max_split_size;
    return to;
  }
  void resetAccumulatedStats(DeviceIndex device) override {
    ok(api->memory_reset_stats(device, L0RT_MEMORY_DEVICE, L0RT_RESET_TOTALS));
  }
  void resetPeakStats(DeviceIndex device) override {
    ok(api->memory_reset_stats(device, L0RT_MEMORY_DEVICE, L0RT_RESET_PEAKS));
  }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override {
    size_t free = 0, total = 0;
    ok(api->memory_info(device, &free, &total));
    return {free, total};
  }
};

struct PinnedMemory final : at::HostAllocator {
  c10::DataPtr allocate(size_t nbytes) override {
    void *ptr = nbytes == 0 ? nullptr : ok(api->host_malloc(nbytes, -1));
    return {ptr, ptr, &pinned_free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &pinned_free; }
  void copy_data(void *to, const void *from, size_t nbytes) const override { std::memcpy(to, from, nbytes); }

  bool record_event(void *ptr, void *, c10::Stream stream) override {
    if (!is_pinned(ptr)) return false;
    ok(api->record_use(ptr, native(stream)));
    return true;
  }
  void empty_cache() override { ok(api->memory_empty_cache(L0RT_MEMORY_HOST)); }
  at::HostStats get_stats() override {
    l0rt_memory_stats from = statistics(-1, L0RT_MEMORY_HOST);
    at::HostStats to;
    copy(to.allocations, from.segment.all);
    copy(to.allocated_bytes, from.reserved_bytes.all);
    copy(to.active_requests, from.active.all);
    copy(to.active_bytes, from.active_bytes.all);
    to.num_host_alloc = from.num_device_alloc;
    to.num_host_free = from.num_device_free;
    return to;
  }
  void reset_accumulated_stats() override { ok(api->memory_reset_stats(-1, L0RT_MEMORY_HOST, L0RT_RESET_TOTALS)); }
  void reset_peak_stats() override { ok(api->memory_reset_stats(-1, L0RT_MEMORY_HOST, L0RT_RESET_PEAKS)); }
};

DeviceMemory device_memory;
PinnedMemory pinned_memory;

REGISTER_ALLOCATOR(kType, &device_memory);
REGISTER_HOST_ALLOCATOR(kType, &pinned_memory);

} // namespace

c10::Allocator *device_allocator() { return &device_memory; }
c10::Allocator *pinned_allocator() { return &pinned_memory; }

} // namespace l0rt_torch
