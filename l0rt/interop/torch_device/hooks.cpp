/* SPDX-License-Identifier: Apache-2.0 */
// hooks.cpp: what torch asks of the device type as a whole, and its generators.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/core/Generator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GeneratorImpl.h>
#include <c10/core/Storage.h>

#include <cstring>
#include <deque>
#include <mutex>

#include "hooks.h"

namespace l0rt_torch {

// A generator of torch's over one of l0rt's: both draw from one state.
struct GeneratorOfDevice final : c10::GeneratorImpl {
  GeneratorOfDevice(c10::DeviceIndex device, l0rt_generator *generator)
      : c10::GeneratorImpl({kType, device}, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        generator_(generator) {}
  ~GeneratorOfDevice() override {
    if (api->generator_release(generator_) < 0) forget();
  }
  static c10::DeviceType device_type() { return kType; }

  void set_current_seed(uint64_t seed) override { ok(api->generator_set(generator_, seed, 0)); }
  void set_offset(uint64_t offset) override { ok(api->generator_set(generator_, state().seed, offset)); }
  uint64_t get_offset() const override { return state().offset; }
  uint64_t current_seed() const override { return state().seed; }
  uint64_t seed() override {
    uint64_t seed = c10::detail::getNonDeterministicRandom(true);
    set_current_seed(seed);
    return seed;
  }
  void set_state(const c10::TensorImpl &bytes) override {
    State state;
    at::detail::check_rng_state(bytes);
    TORCH_CHECK(bytes.numel() == sizeof state, "a generator's state has ", sizeof state, " bytes, got ", bytes.numel());
    std::memcpy(&state, bytes.data(), sizeof state);
    ok(api->generator_set(generator_, state.seed, state.offset));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    State now = state();
    at::Tensor bytes = at::empty({sizeof now}, at::TensorOptions().dtype(at::kByte).device(at::kCPU));
    std::memcpy(bytes.data_ptr(), &now, sizeof now);
    return bytes.getIntrusivePtr();
  }
  Beginning draw(uint64_t words) {
    Beginning beginning{};
    void *offset = nullptr;
    if (ok(table->is_stream_capturing(current(device_.index()))) == 1) {
      ok(api->generator_place(generator_, words, &beginning.state, &offset, &beginning.within));
    } else {
      ok(api->generator_draw(generator_, words, &beginning.seed, &beginning.offset));
    }
    return beginning;
  }

 private:
  struct State {
    uint64_t seed;
    uint64_t offset;
  };

  State state() const {
    State now;
    ok(api->generator_get(generator_, &now.seed, &now.offset));
    return now;
  }
  GeneratorOfDevice *clone_impl() const override {
    auto device = device_.index();
    auto *copy = new GeneratorOfDevice(device, ok(api->generator_create(device)));
    State now = state();
    ok(api->generator_set(copy->generator_, now.seed, now.offset));
    return copy;
  }

  l0rt_generator *generator_;
};

namespace {

using c10::DeviceIndex;

DeviceIndex existing(DeviceIndex device) {
  int count = ok(api->count_devices());
  if (device == -1) return static_cast<DeviceIndex>(api->current_device());
  TORCH_CHECK_INDEX(0 <= device && device < count, "device index ", static_cast<int>(device), " is not in [0, ", count,
                    ")");
  return device;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  void init() const override { ok(api->init()); }
  bool hasPrimaryContext(DeviceIndex) const override { return api->is_open() == 1; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return count() > 0; }
  DeviceIndex deviceCount() const override { return count(); }
  void setCurrentDevice(DeviceIndex device) const override { ok(table->set_device(device)); }
  DeviceIndex getCurrentDevice() const override { return static_cast<DeviceIndex>(table->get_device()); }
  DeviceIndex exchangeDevice(DeviceIndex device) const override {
    return static_cast<DeviceIndex>(ok(table->exchange_device(device)));
  }
  DeviceIndex maybeExchangeDevice(DeviceIndex device) const override { return exchangeDevice(device); }

  at::Allocator *getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  bool isPinnedPtr(const void *ptr) const override { return is_pinned(ptr); }
  c10::Device getDeviceFromPtr(void *ptr) const override {
    l0rt_pointer_info info;
    bool is_device = ok(api->pointer_query(ptr, &info)) == 1 && info.kind == L0RT_MEMORY_DEVICE;
    TORCH_CHECK(is_device, "no device memory of l0rt is at ", ptr);
    return {kType, static_cast<DeviceIndex>(info.device)};
  }

  const at::Generator &getDefaultGenerator(DeviceIndex device) const override {
    static std::mutex mutex;
    static std::deque<at::Generator> *generators = new std::deque<at::Generator>; // references to them stay valid
    device = existing(device);
    std::lock_guard<std::mutex> lock(mutex);
    while (generators->size() <= static_cast<size_t>(device)) {
      auto next = static_cast<DeviceIndex>(generators->size());
      generators->push_back(at::make_generator<GeneratorOfDevice>(next, ok(api->generator_default(next))));
    }
    return (*generators)[device];
  }
  at::Generator getNewGenerator(DeviceIndex device) const override {
    device = existing(device);
    return at::make_generator<GeneratorOfDevice>(device, ok(api->generator_create(device)));
  }
  void resizePrivateUse1Bytes(const c10::Storage &storage, size_t nbytes) const override {
    resize_storage(storage.unsafeGetStorageImpl(), nbytes);
  }

 private:
  static DeviceIndex count() {
    int count = api->count_devices();
    if (count < 0) forget();
    return static_cast<DeviceIndex>(count < 0 ? 0 : count);
  }
};

Hooks hooks;

} // namespace

void resize_storage(c10::StorageImpl *storage, size_t nbytes) {
  if (nbytes == storage->nbytes()) return;
  c10::DeviceGuard guard(storage->device());
  c10::DataPtr data = device_allocator()->allocate(nbytes);
  size_t kept = std::min(nbytes, storage->nbytes());
  if (kept != 0) ok(api->memcpy_async(data.get(), storage->data(), kept, nullptr));
  storage->set_data_ptr_noswap(std::move(data));
  storage->set_nbytes(nbytes);
}

Beginning draw(const std::optional<at::Generator> &generator, int device, uint64_t words) {
  const at::Generator &fallback = hooks.getDefaultGenerator(static_cast<DeviceIndex>(device));
  return at::get_generator_or_default<GeneratorOfDevice>(generator, fallback)->draw(words);
}

void register_hooks() { at::RegisterPrivateUse1HooksInterface(&hooks); }

} // namespace l0rt_torch
