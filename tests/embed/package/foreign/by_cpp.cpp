/* SPDX-License-Identifier: Apache-2.0 */
/* What a foreign C++ module does with the classes of l0rt.hpp, without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <functional>
#include <map>
#include <numeric>
#include <thread>

#include <l0rt/l0rt.hpp>

namespace {

void require(bool holds, const char *what) {
  if (!holds) throw std::logic_error(what);
}

void guards() {
  int device = l0rt::api->current_device(), last = l0rt::api->device_count() - 1;
  l0rt::stream before = l0rt::current_stream(), s = l0rt::pool_stream(last), t = l0rt::pool_stream(last, -1);
  {
    l0rt::device_guard guard(last);
    require(l0rt::api->current_device() == last && guard.original_device() == device, "device_guard");
    guard.set_index(0);
    require(l0rt::api->current_device() == 0 && guard.current_device() == 0, "set_index");
    guard.reset_device();
    require(l0rt::api->current_device() == device, "reset_device");
    guard.set_index(last);
  }
  require(l0rt::api->current_device() == device, "the end of device_guard");
  {
    l0rt::stream_guard guard(s);
    require(l0rt::current_stream() == s && guard.original_stream() == before, "stream_guard");
    guard.reset_stream(t);
    require(l0rt::current_stream() == t && guard.current_stream() == t, "reset_stream");
    require(guard.original_device() == device, "original_device");
  }
  require(l0rt::current_stream() == before, "the end of stream_guard");
  l0rt::optional_device_guard maybe;
  require(!maybe && !maybe.original_device(), "an empty guard");
  maybe.set_index(last);
  require(maybe && *maybe.original_device() == device, "optional_device_guard");
  maybe.reset();
  require(!maybe && l0rt::api->current_device() == device, "reset");
  l0rt::optional_stream_guard none;
  require(!none && none.original_stream() == nullptr, "an empty stream guard");
  none.reset_stream(t);
  require(none.current_stream() == t, "optional_stream_guard");
  none.reset();
  {
    l0rt::multi_stream_guard guard({s, l0rt::pool_stream(0)});
    require(l0rt::current_stream(last) == s || last == 0, "multi_stream_guard");
    require(l0rt::api->current_device() == device, "the device stays");
  }
  require(l0rt::current_stream() == before, "the end of multi_stream_guard");
}

void events() {
  l0rt::stream s = l0rt::pool_stream(), t = l0rt::pool_stream();
  l0rt::event start(true), end(true), never;
  require(never.query(), "an event that was never recorded is complete");
  never.wait(s);
  never.synchronize();
  l0rt::buffer x(1 << 20, s);
  start.record(s);
  l0rt::fill(x.data(), 7, x.size(), s);
  end.record(s);
  end.wait(t);
  l0rt::wait_stream(t, s);
  end.synchronize();
  require(end.query() && start.elapsed_time(end) >= 0, "elapsed_time");
  l0rt::event moved(std::move(end));
  require(end.get() == nullptr && moved.get() != nullptr, "a move");
  l0rt::synchronize(t);
  require(l0rt::query(s) && l0rt::query(t), "query");
}

void buffers() {
  l0rt::stream s = l0rt::pool_stream();
  l0rt::buffer x(4096, s), host = l0rt::buffer::pinned(4096), nothing;
  auto bytes = static_cast<unsigned char *>(host.data());
  std::iota(bytes, bytes + host.size(), 0);
  l0rt::copy(x.data(), bytes, x.size(), s);
  l0rt::fill(x.data(), 9, 16, s);
  l0rt::copy(bytes, x.data(), x.size(), s);
  l0rt::synchronize(s);
  require(bytes[0] == 9 && bytes[15] == 9 && bytes[16] == 16 && bytes[4095] == 255, "a round trip");
  auto info = l0rt::pointer_info(static_cast<char *>(x.data()) + 100);
  require(info && info->base == x.data() && info->requested == 4096 && info->stream == s, "pointer_info");
  require(info->kind == L0RT_MEMORY_DEVICE && l0rt::pointer_info(bytes)->kind == L0RT_MEMORY_HOST, "kinds");
  int local = 0;
  require(!l0rt::pointer_info(&local), "memory of nobody");
  void *address = x.data();
  l0rt::buffer moved(std::move(x));
  require(x.data() == nullptr && moved.data() == address && moved.size() == 4096, "a move");
  moved.record_stream(l0rt::pool_stream());
  moved.record_use(s);
  moved.free(l0rt::pool_stream());
  host.free(s);
  require(moved.data() == nullptr && nothing.size() == 0, "free");
  l0rt::buffer given(100);
  l0rt::check(l0rt::api->free(given.release()));
}

void resources() {
  l0rt::memory_resource device, other(l0rt::pool_stream());
  l0rt::host_memory_resource host;
  require(device.is_equal(l0rt::memory_resource()) && !device.is_equal(other) && !device.is_equal(host), "is_equal");
  void *p = device.allocate(1000), *q = other.allocate(0);
  l0rt::fill(p, 1, 1000);
  l0rt::synchronize();
  device.deallocate(p, 1000);
  other.deallocate(q, 0);
  std::pmr::map<int, std::pmr::vector<double>> numbers(&host);
  for (int i = 0; i < 100; i++) numbers[i].assign(i, 0.5);
  require(numbers[99].size() == 99 && numbers[99][98] == 0.5, "a container in pinned memory");
  require(l0rt::pointer_info(numbers[99].data()).has_value(), "pinned memory");
  try {
    require(device.allocate(8, 1 << 20) == nullptr, "an alignment that nobody has");
  } catch (const std::bad_alloc &) {
  }
}

void pools_and_graphs() {
  l0rt::stream s = l0rt::pool_stream();
  l0rt::buffer x(4096, s), host = l0rt::buffer::pinned(4096);
  {
    l0rt::pool pool;
    l0rt::pool_guard inside(pool);
    l0rt::buffer from_pool(4096, s);
    require(from_pool.data() != nullptr, "a pool");
  }
  l0rt::fill(x.data(), 0, x.size(), s);
  l0rt::synchronize(s);
  l0rt::graph graph;
  {
    l0rt::stream_guard guard(s);
    graph.begin();
    l0rt::fill(x.data(), 5, x.size(), s);
    l0rt::copy(host.data(), x.data(), x.size(), s);
    graph.end();
    static_cast<unsigned char *>(host.data())[7] = 1;
    graph.replay();
    graph.replay();
  }
  l0rt::synchronize(s);
  require(static_cast<unsigned char *>(host.data())[7] == 5, "a replay");

  l0rt::graph of_default; /* the current stream of a thread that has entered none is the default stream */
  of_default.begin();
  l0rt::fill(x.data(), 6, x.size());
  l0rt::copy(host.data(), x.data(), x.size());
  of_default.end();
  require(static_cast<unsigned char *>(host.data())[7] == 5, "a capture of the default stream runs nothing");
  of_default.replay();
  l0rt::synchronize(l0rt::current_stream());
  require(static_cast<unsigned char *>(host.data())[7] == 6, "a replay of what the default stream was given");
}

void failures() {
  try {
    l0rt::buffer never(std::size_t(1) << 62);
    require(false, "memory without end");
  } catch (const l0rt::error &failure) {
    require(std::string(failure.what()).find("requested") != std::string::npos && failure.code() != 0, "the text");
  }
  int refused = 0;
  for (auto &wrong : std::initializer_list<std::function<void()>>{
           [] { l0rt::device_guard guard(1000); },
           [] { l0rt::stream_guard guard(nullptr); },
           [] { l0rt::wait_stream(nullptr, l0rt::current_stream()); },
           [] { l0rt::check(l0rt::api->host_free(&l0rt::api)); },
           [] { l0rt::graph().replay(); },
           [] { l0rt::graph().end(); },
           [] { l0rt::check(l0rt::api->graph_begin(nullptr)); },
           [] { l0rt::check(l0rt::api->pool_enter(nullptr, 0)); },
           [] { l0rt::check(l0rt::api->pool_enter(l0rt::pool().get(), 1000)); },
           [] { l0rt::check(l0rt::api->pointer_query(&l0rt::api, nullptr)); },
           [] { l0rt::check(l0rt::api->event_record(nullptr, nullptr, 0)); },
           [] { l0rt::guard_impl("nothing"); },
           [] { l0rt::event().elapsed_time(l0rt::event()); },
       }) {
    try {
      wrong();
    } catch (const l0rt::error &) {
      refused++;
    }
  }
  require(refused == 13, "everything is refused");
}

const std::map<std::string, void (*)()> parts = {
    {"guards", guards},
    {"events", events},
    {"buffers", buffers},
    {"resources", resources},
    {"pools_and_graphs", pools_and_graphs},
    {"failures", failures},
};

PyObject *run(PyObject *, PyObject *name) {
  std::string text;
  const char *asked = PyUnicode_AsUTF8(name);
  if (asked == nullptr) return nullptr;
  auto part = parts.at(asked);
  Py_BEGIN_ALLOW_THREADS
  try {
    part();
  } catch (const std::exception &failure) {
    text = failure.what();
  }
  Py_END_ALLOW_THREADS
  PyErr_Clear(); /* of the failures that were expected */
  return PyUnicode_FromString(text.c_str());
}

PyMethodDef methods[] = {{"run", run, METH_O, "Run a part; return what did not hold, or nothing."}, {}};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "by_cpp", nullptr, 0, methods};

}  // namespace

PyMODINIT_FUNC PyInit_by_cpp() {
  try {
    l0rt::import();
  } catch (const l0rt::import_error &) {
    return nullptr;
  }
  return PyModule_Create(&module);
}
