/* SPDX-License-Identifier: Apache-2.0 */
/* l0rt.hpp: classes over the C API of l0rt, for C++17. Header only; it needs nothing but l0rt.h.
 *
 *     l0rt::import();                           (once, with the GIL held)
 *     l0rt::buffer x(1 << 20);
 *     l0rt::stream_guard guard(l0rt::pool_stream());
 *     l0rt::module code = l0rt::module::from_source("kernel void twice(global float *x) { ... }");
 *     code["twice"].launch(16, 64, x);
 *
 * No class needs the GIL. A call that fails throws l0rt::error; then a Python exception is set in the thread too, as
 * with the C API. A function that returns to Python returns its failure. A function that goes on calls PyErr_Clear()
 * with the GIL held. Destructors throw nothing: they end what cannot fail, and drop the rest.
 *
 * Guards belong to the thread that made them, and end in the opposite order. They are neither copied nor moved. Buffers,
 * events, pools and graphs are moved. */
#ifndef L0RT_L0RT_HPP
#define L0RT_L0RT_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory_resource>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <l0rt/l0rt.h>

namespace l0rt {

/* The table of functions. import() sets it; who has the table already, such as a second extension, sets it alone. */
inline const l0rt_api *api = nullptr;

#ifdef PYTHON_API_VERSION
/* What import() throws; an ImportError is set too. A function that Python calls, such as PyInit_name, catches it. */
class import_error : public std::runtime_error {
 public:
  import_error() : std::runtime_error("the C API of l0rt cannot be imported: the Python exception says why") {}
};

/* Gets the table and returns it. Include Python.h before this header. */
inline const l0rt_api *import() {
  if (api == nullptr) api = l0rt_import();
  if (api == nullptr) throw import_error();
  return api;
}
#endif

/* A failure: its text, and the ze_result_t of the driver's call, or -1 for any other failure. */
class error : public std::runtime_error {
 public:
  error() : std::runtime_error(last_text()), code_(api->last_error(nullptr, 0)) {}
  int code() const noexcept { return code_; }

 private:
  static std::string last_text() {
    char text[1024];
    api->last_error(text, sizeof text);
    return text;
  }
  int code_;
};

/* Returns the status of a C function, or throws if that is a failure. */
inline int check(int status) {
  if (status < 0) throw error();
  return status;
}

/* Returns the pointer, or throws if it is NULL. */
template <class T>
T *check(T *pointer) {
  if (pointer == nullptr) throw error();
  return pointer;
}

using stream = l0rt_stream *; /* borrowed, as in C */

/* Returns the stream, or throws if it is NULL: a guard table takes a stream at its word. */
inline stream not_null(stream which) {
  if (which == nullptr) check(api->stream_query(which));
  return which;
}

inline stream current_stream(int device = -1) { return check(api->current_stream(device)); }
inline stream pool_stream(int device = -1, int priority = 0) { return check(api->pool_stream(device, priority)); }
inline void synchronize(stream which) { check(api->stream_synchronize(which)); }
inline void synchronize(int device = -1) { check(api->device_synchronize(device)); }
inline bool query(stream which) { return check(api->stream_query(which)) != 0; }
inline void wait_stream(stream which, stream other) { check(api->stream_wait_stream(which, other)); }
inline void copy(void *target, const void *source, std::size_t nbytes, stream on = nullptr) {
  check(api->memcpy_async(target, source, nbytes, on));
}
inline void fill(void *target, int value, std::size_t nbytes, stream on = nullptr) {
  check(api->memset_async(target, value, nbytes, on));
}

/* The guard table of a device type. */
inline const l0rt_guard_impl *guard_impl(const char *type = "xpu") { return check(api->guard_impl_of(type)); }

/* What is neither copied nor moved. */
class pinned_down {
 public:
  pinned_down() = default;
  pinned_down(const pinned_down &) = delete;
  pinned_down &operator=(const pinned_down &) = delete;
};

/* Makes a device current until its end; a negative index changes nothing. */
class device_guard : pinned_down {
 public:
  explicit device_guard(int device, const l0rt_guard_impl *impl = guard_impl()) {
    check(l0rt_device_guard_enter(&guard_, impl, device));
  }
  ~device_guard() { l0rt_device_guard_reset_device(&guard_); }
  void set_index(int device) { check(l0rt_device_guard_set_index(&guard_, device)); }
  void reset_device() noexcept { l0rt_device_guard_reset_device(&guard_); }
  int original_device() const noexcept { return guard_.original_device; }
  int current_device() const noexcept { return guard_.current_device; }

 private:
  l0rt_device_guard guard_;
};

/* A device guard that may be empty. */
class optional_device_guard : pinned_down {
 public:
  explicit optional_device_guard(const l0rt_guard_impl *impl = guard_impl()) : impl_(impl) {}
  explicit optional_device_guard(int device, const l0rt_guard_impl *impl = guard_impl()) : impl_(impl) {
    set_index(device);
  }
  ~optional_device_guard() { reset(); }
  void set_index(int device) { check(l0rt_optional_device_guard_set_index(&guard_, impl_, device)); }
  void reset() noexcept { l0rt_optional_device_guard_reset(&guard_); }
  explicit operator bool() const noexcept { return guard_.engaged != 0; }
  std::optional<int> original_device() const {
    return guard_.engaged ? std::optional<int>(guard_.guard.original_device) : std::nullopt;
  }
  std::optional<int> current_device() const {
    return guard_.engaged ? std::optional<int>(guard_.guard.current_device) : std::nullopt;
  }

 private:
  const l0rt_guard_impl *impl_;
  l0rt_optional_device_guard guard_{};
};

/* A stream guard that may be empty. */
class optional_stream_guard : pinned_down {
 public:
  explicit optional_stream_guard(const l0rt_guard_impl *impl = guard_impl()) : impl_(impl) {}
  explicit optional_stream_guard(stream which, const l0rt_guard_impl *impl = guard_impl()) : impl_(impl) {
    reset_stream(which);
  }
  ~optional_stream_guard() { reset(); }
  /* Restores what an earlier call has changed, and makes the stream and its device current. */
  void reset_stream(stream which) { check(l0rt_optional_stream_guard_reset_stream(&guard_, impl_, not_null(which))); }
  void reset() noexcept { l0rt_optional_stream_guard_reset(&guard_); }
  explicit operator bool() const noexcept { return guard_.engaged != 0; }
  std::optional<int> original_device() const {
    return guard_.engaged ? std::optional<int>(guard_.guard.original_device) : std::nullopt;
  }
  stream original_stream() const noexcept {
    return guard_.engaged ? static_cast<stream>(guard_.guard.original_stream) : nullptr;
  }
  stream current_stream() const noexcept {
    return guard_.engaged ? static_cast<stream>(guard_.guard.current_stream) : nullptr;
  }

 private:
  const l0rt_guard_impl *impl_;
  l0rt_optional_stream_guard guard_{};
};

/* Makes a stream and its device current until its end. */
class stream_guard : pinned_down {
 public:
  explicit stream_guard(stream which, const l0rt_guard_impl *impl = guard_impl()) : guard_(which, impl) {}
  void reset_stream(stream which) { guard_.reset_stream(which); }
  int original_device() const { return *guard_.original_device(); }
  stream original_stream() const noexcept { return guard_.original_stream(); }
  stream current_stream() const noexcept { return guard_.current_stream(); }

 private:
  optional_stream_guard guard_;
};

/* Makes each of several streams current on its own device until its end; the current device stays the same. */
class multi_stream_guard : pinned_down {
 public:
  multi_stream_guard(std::initializer_list<stream> streams, const l0rt_guard_impl *impl = guard_impl())
      : multi_stream_guard(std::vector<stream>(streams), impl) {}
  explicit multi_stream_guard(const std::vector<stream> &streams, const l0rt_guard_impl *impl = guard_impl())
      : originals_(streams.size()) {
    std::vector<void *> given(streams.begin(), streams.end());
    for (stream which : streams) not_null(which);
    check(l0rt_multi_stream_guard_enter(&guard_, impl, given.data(), given.size(), originals_.data()));
  }
  ~multi_stream_guard() { l0rt_multi_stream_guard_reset(&guard_); }
  const std::vector<void *> &original_streams() const noexcept { return originals_; }

 private:
  std::vector<void *> originals_;
  l0rt_multi_stream_guard guard_;
};

/* A mark in a stream's work. Its native event is made at the first record(). */
class event {
 public:
  explicit event(bool timing = false) noexcept : flags_(timing ? L0RT_EVENT_TIMING : 0) {}
  event(event &&other) noexcept : event_(std::exchange(other.event_, nullptr)), flags_(other.flags_) {}
  event &operator=(event &&other) noexcept {
    std::swap(event_, other.event_);
    std::swap(flags_, other.flags_);
    return *this;
  }
  ~event() {
    if (event_ != nullptr) api->event_destroy(event_);
  }
  void record(stream on = l0rt::current_stream()) { check(api->event_record(&event_, on, flags_)); }
  void wait(stream which = l0rt::current_stream()) const { check(api->stream_wait_event(which, event_)); }
  bool query() const { return check(api->event_query(event_)) != 0; }
  void synchronize() const { check(api->event_synchronize(event_)); }
  double elapsed_time(const event &end) const {
    double milliseconds = 0;
    check(api->event_elapsed_time(event_, end.event_, &milliseconds));
    return milliseconds;
  }
  l0rt_event *get() const noexcept { return event_; }

 private:
  l0rt_event *event_ = nullptr;
  unsigned flags_;
};

/* Device memory, or pinned host memory. It is freed in the order of its stream. */
class buffer {
 public:
  buffer() noexcept = default;
  explicit buffer(std::size_t nbytes, stream on = nullptr, int device = -1) : size_(nbytes) {
    if (nbytes != 0) data_ = check(api->malloc(nbytes, device, on));
  }
  static buffer pinned(std::size_t nbytes, int device = -1) {
    buffer made;
    made.size_ = nbytes;
    made.is_pinned_ = true;
    if (nbytes != 0) made.data_ = check(api->host_malloc(nbytes, device));
    return made;
  }
  buffer(buffer &&other) noexcept { swap(other); }
  buffer &operator=(buffer &&other) noexcept {
    buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~buffer() {
    if (data_ != nullptr) is_pinned_ ? api->host_free(data_) : api->free(data_);
  }
  void swap(buffer &other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(is_pinned_, other.is_pinned_);
  }
  /* Frees the memory, to be reused in the order of another stream. */
  void free(stream on) {
    if (data_ != nullptr) check(is_pinned_ ? api->record_use(data_, on) : api->free_async(data_, on));
    if (is_pinned_ && data_ != nullptr) check(api->host_free(data_));
    data_ = nullptr;
    size_ = 0;
  }
  /* Gives the memory away: the caller frees it. */
  void *release() noexcept {
    size_ = 0;
    return std::exchange(data_, nullptr);
  }
  void record_stream(stream which) { check(api->record_stream(data_, which)); }
  void record_use(stream which) { check(api->record_use(data_, which)); }
  void *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool is_pinned() const noexcept { return is_pinned_; }

 private:
  void *data_ = nullptr;
  std::size_t size_ = 0;
  bool is_pinned_ = false;
};

/* Device memory as a std::pmr::memory_resource, in the order of one stream; NULL is the current stream of `device` at
 * each allocation. The host does not reach the memory: containers that construct elements in it do not work. */
class memory_resource : public std::pmr::memory_resource {
 public:
  explicit memory_resource(stream on = nullptr, int device = -1) noexcept : stream_(on), device_(device) {}

 protected:
  void *do_allocate(std::size_t nbytes, std::size_t alignment) override {
    if (alignment > alignment_of_blocks) throw std::bad_alloc();
    return check(api->malloc(nbytes != 0 ? nbytes : 1, device_, stream_));
  }
  void do_deallocate(void *pointer, std::size_t, std::size_t) override { api->free(pointer); }
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    auto same = dynamic_cast<const memory_resource *>(&other);
    return same != nullptr && same->stream_ == stream_ && same->device_ == device_;
  }

 private:
  static constexpr std::size_t alignment_of_blocks = 512;
  stream stream_;
  int device_;
};

/* Pinned host memory as a std::pmr::memory_resource: std::pmr::vector and its like work in it. */
class host_memory_resource : public std::pmr::memory_resource {
 public:
  explicit host_memory_resource(int device = -1) noexcept : device_(device) {}

 protected:
  void *do_allocate(std::size_t nbytes, std::size_t alignment) override {
    if (alignment > alignment_of_blocks) throw std::bad_alloc();
    return check(api->host_malloc(nbytes != 0 ? nbytes : 1, device_));
  }
  void do_deallocate(void *pointer, std::size_t, std::size_t) override { api->host_free(pointer); }
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    auto same = dynamic_cast<const host_memory_resource *>(&other);
    return same != nullptr && same->device_ == device_;
  }

 private:
  static constexpr std::size_t alignment_of_blocks = 64;
  int device_;
};

/* A private memory pool. */
class pool {
 public:
  pool() : pool_(check(api->pool_create())) {}
  pool(pool &&other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
  pool &operator=(pool &&other) noexcept {
    std::swap(pool_, other.pool_);
    return *this;
  }
  ~pool() { api->pool_release(pool_); }
  l0rt_pool *get() const noexcept { return pool_; }

 private:
  l0rt_pool *pool_;
};

/* The thread allocates from a pool until the guard's end. */
class pool_guard : pinned_down {
 public:
  explicit pool_guard(const pool &from, int device = -1) : scope_(check(api->pool_enter(from.get(), device))) {}
  ~pool_guard() { api->pool_leave(scope_); }

 private:
  l0rt_pool_scope *scope_;
};

/* Work that is captured once and replayed. */
class graph {
 public:
  graph() : graph_(check(api->graph_create())) {}
  graph(graph &&other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  graph &operator=(graph &&other) noexcept {
    std::swap(graph_, other.graph_);
    return *this;
  }
  ~graph() { api->graph_release(graph_); }
  void begin() { check(api->graph_begin(graph_)); }
  void end() { check(api->graph_end(graph_)); }
  void replay() { check(api->graph_replay(graph_)); }
  l0rt_graph *get() const noexcept { return graph_; }

 private:
  l0rt_graph *graph_;
};

/* How many groups there are, and how many work-items a group has, along x, y and z. */
struct extent {
  extent(std::uint32_t along_x, std::uint32_t along_y = 1, std::uint32_t along_z = 1)
      : sizes{along_x, along_y, along_z} {}
  std::uint32_t sizes[3];
};

/* An argument of a launch: local memory that each group has for itself. */
struct local_memory {
  std::size_t nbytes;
};

/* One argument of a launch: a buffer, local memory, an address of memory, or a value of the size that the kernel takes.
 * It refers to the value, and lives as long as the call. */
class argument {
 public:
  template <class T>
  argument(const T &value) noexcept : value_(&value), size_(sizeof value) {
    static_assert(std::is_trivially_copyable_v<T>, "a kernel takes the bytes of a value");
  }
  argument(const buffer &memory) noexcept : pointer_(memory.data()), size_(sizeof pointer_) {}
  argument(const local_memory &memory) noexcept : size_(memory.nbytes), is_local_(true) {}
  l0rt_arg raw() const noexcept {
    const void *place = value_ != nullptr ? value_ : &pointer_;
    return {is_local_ ? nullptr : place, size_};
  }

 private:
  const void *value_ = nullptr;
  void *pointer_ = nullptr;
  std::size_t size_;
  bool is_local_ = false;
};

/* A kernel. It belongs to its module, and ends with it. */
class kernel {
 public:
  explicit kernel(l0rt_kernel *which) noexcept : kernel_(which) {}
  /* Launches the kernel in the order of the current stream of the module's device. */
  template <class... Values>
  void launch(extent groups, extent group_size, const Values &...values) const {
    issue(groups, group_size, {argument(values)...}, 0, nullptr);
  }
  /* Launches the kernel in the order of a stream. */
  template <class... Values>
  void launch_on(stream on, extent groups, extent group_size, const Values &...values) const {
    issue(groups, group_size, {argument(values)...}, 0, not_null(on));
  }
  /* Launches it in the order of a stream, with groups that wait for each other. */
  template <class... Values>
  void launch_cooperative(stream on, extent groups, extent group_size, const Values &...values) const {
    issue(groups, group_size, {argument(values)...}, L0RT_LAUNCH_COOPERATIVE, not_null(on));
  }
  l0rt_kernel *get() const noexcept { return kernel_; }

 private:
  void issue(const extent &groups, const extent &group_size, std::initializer_list<argument> arguments, unsigned flags,
             stream on) const {
    std::vector<l0rt_arg> given;
    given.reserve(arguments.size());
    for (const argument &each : arguments) given.push_back(each.raw());
    auto count = static_cast<std::uint32_t>(given.size());
    check(api->launch(kernel_, groups.sizes, group_size.sizes, given.data(), count, flags, on));
  }
  l0rt_kernel *kernel_;
};

/* Code that was built for one device. */
class module {
 public:
  /* Builds a program of OpenCL C, as l0rt.compile() does. */
  static module from_source(const std::string &text, const char *options = nullptr, int device = -1) {
    return module(text.data(), text.size(), L0RT_MODULE_OPENCL_C, options, device);
  }
  static module from_spirv(const void *code, std::size_t nbytes, const char *options = nullptr, int device = -1) {
    return module(code, nbytes, L0RT_MODULE_SPIRV, options, device);
  }
  static module from_native(const void *code, std::size_t nbytes, const char *options = nullptr, int device = -1) {
    return module(code, nbytes, L0RT_MODULE_NATIVE, options, device);
  }
  module(module &&other) noexcept : module_(std::exchange(other.module_, nullptr)) {}
  module &operator=(module &&other) noexcept {
    std::swap(module_, other.module_);
    return *this;
  }
  ~module() { api->module_release(module_); }
  kernel operator[](const char *name) const { return kernel(check(api->kernel_get(module_, name))); }
  l0rt_module *get() const noexcept { return module_; }

 private:
  module(const void *code, std::size_t nbytes, int format, const char *options, int device)
      : module_(check(api->module_create(device, code, nbytes, format, options))) {}
  l0rt_module *module_;
};

/* What l0rt knows of an address; nothing for one that is in no allocation of l0rt. */
inline std::optional<l0rt_pointer_info> pointer_info(const void *pointer) {
  l0rt_pointer_info found;
  return check(api->pointer_query(pointer, &found)) ? std::optional<l0rt_pointer_info>(found) : std::nullopt;
}

}  // namespace l0rt

#endif
