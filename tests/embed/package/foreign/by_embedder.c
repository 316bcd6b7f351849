/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime of other software asks of l0rt, all in a thread that Python has never seen. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <l0rt/l0rt.h>

static const l0rt_api *l0rt;

#define CHECK(condition)                                                                                               \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      char why[512] = "";                                                                                              \
      int code = l0rt->last_error(why, sizeof why);                                                                    \
      snprintf(text, size, "line %d: %s (%d %s)", __LINE__, #condition, code, why);                                    \
      return;                                                                                                          \
    }                                                                                                                  \
  } while (0)

static int failed_with(int code, const char *words) {
  char why[1024] = "";
  int actual = l0rt->last_error(why, sizeof why);
  return (code == 0 ? actual != 0 : actual == code) && strstr(why, words) != NULL;
}

static void counts(char *text, size_t size) {
  const l0rt_guard_impl *table = l0rt->guard_impl_of("xpu");
  CHECK(!l0rt->is_open() && l0rt->count_devices() == 2 && table->device_count() == 2 && !l0rt->is_open());
  CHECK(l0rt->init() == 0 && l0rt->is_open() && l0rt->count_devices() == 2 && table->device_count() == 2);
}

static void failures(char *text, size_t size) {
  const l0rt_guard_impl *table = l0rt->guard_impl_of("xpu");
  l0rt_stream *stream = l0rt->current_stream(0);
  double ms;
  CHECK(l0rt->malloc((size_t)1 << 60, 0, stream) == NULL);
  CHECK(failed_with(L0RT_ERROR_OUT_OF_DEVICE_MEMORY, "OutOfMemoryError"));
  CHECK(l0rt->current_stream(7) == NULL && failed_with(0, "The device index is out of range"));
  CHECK(l0rt->host_malloc((size_t)1 << 60, 0) == NULL &&
        failed_with(L0RT_ERROR_OUT_OF_HOST_MEMORY, "OutOfMemoryError"));
  CHECK(table->exchange_device(9) == -1 && failed_with(0, "got 9"));
  CHECK(table->set_device(10) == -1 && failed_with(0, "got 10"));
  CHECK(table->get_stream(11) == NULL && failed_with(0, "got 11"));
  CHECK(table->get_default_stream(12) == NULL && failed_with(0, "got 12"));
  CHECK(table->get_stream_from_pool(13, 0) == NULL && failed_with(0, "got 13"));
  CHECK(table->synchronize_device(14) == -1 && failed_with(0, "got 14"));
  CHECK(table->exchange_stream(NULL) == NULL && failed_with(0, "a stream is needed"));
  CHECK(table->elapsed_time(NULL, NULL, &ms) == -1 && failed_with(0, "Both events must be recorded"));
  CHECK(table->record_data_ptr_on_stream(&ms, stream) == -1 && failed_with(0, "invalid device pointer"));
  CHECK(l0rt->exchange_device(-3) == 0 && l0rt->exchange_device(3) == -1 && failed_with(0, "got 3"));
  CHECK(l0rt->free(&ms) == -1 && failed_with(0, "invalid device pointer"));
  CHECK(l0rt->event_record(NULL, stream, 0) == -1 && failed_with(0, "a place for the event"));
  /* No exception is left that would confuse Python code in this thread. */
  PyGILState_STATE state = PyGILState_Ensure();
  int is_clean = PyErr_Occurred() == NULL;
  PyGILState_Release(state);
  CHECK(is_clean);
}

static void statistics(char *text, size_t size) {
  l0rt_memory_stats stats;
  size_t free_bytes = 0, total = 0;
  for (int kind = L0RT_MEMORY_DEVICE; kind <= L0RT_MEMORY_HOST; kind++) {
    int is_device = kind == L0RT_MEMORY_DEVICE;
    memset(&stats, 0xff, sizeof stats);
    CHECK(l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0 && stats.allocation.all.allocated == 0);
    void *block = is_device ? l0rt->malloc(3 << 20, 1, NULL) : l0rt->host_malloc(3 << 20, 1);
    CHECK(block != NULL && l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0);
    CHECK(stats.allocated_bytes.all.current == 3 << 20 && stats.allocation.all.current == 1);
    CHECK(stats.reserved_bytes.all.current >= 3 << 20 && stats.num_device_alloc > 0);
    CHECK(l0rt->memory_allocated(1) == (is_device ? 3 << 20 : 0) && l0rt->memory_allocated(0) == 0);
    CHECK((is_device ? l0rt->free(block) : l0rt->host_free(block)) == 0);
    CHECK(l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0);
    CHECK(stats.allocated_bytes.all.current == 0 && stats.allocated_bytes.all.peak == 3 << 20);
    CHECK(l0rt->memory_reset_stats(1, kind, L0RT_RESET_PEAKS) == 0);
    CHECK(l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0 && stats.allocated_bytes.all.peak == 0);
    CHECK(stats.allocated_bytes.all.allocated == 3 << 20);
    CHECK(l0rt->memory_reset_stats(1, kind, L0RT_RESET_TOTALS | L0RT_RESET_PEAKS) == 0);
    CHECK(l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0 && stats.allocated_bytes.all.allocated == 0);
    CHECK(stats.reserved_bytes.all.current > 0 && l0rt->memory_empty_cache(kind) == 0);
    CHECK(l0rt->get_memory_stats(1, kind, &stats, sizeof stats) == 0 && stats.reserved_bytes.all.current == 0);
  }
  stats.segment.all.current = -5; /* an older caller's structure ends before it */
  CHECK(l0rt->get_memory_stats(1, L0RT_MEMORY_DEVICE, &stats, sizeof(l0rt_stat_pools)) == 0);
  CHECK(stats.segment.all.current == -5);
  CHECK(l0rt->memory_info(1, &free_bytes, &total) == 0 && 0 < free_bytes && free_bytes <= total);
  CHECK(l0rt->memory_info(5, &free_bytes, &total) == -1 && failed_with(0, "got 5"));
  CHECK(l0rt->get_memory_stats(5, 0, &stats, sizeof stats) == -1 && failed_with(0, "got 5"));
  CHECK(l0rt->memory_allocated(5) == -1 && l0rt->memory_set_limit(5, 1) == -1);
  CHECK(l0rt->get_memory_stats(0, 2, &stats, sizeof stats) == -1 &&
        failed_with(0, "the kind of memory must be 0 or 1"));
  CHECK(l0rt->get_memory_stats(0, 0, NULL, 0) == -1 && failed_with(0, "a place for the statistics"));
  CHECK(l0rt->memory_reset_stats(0, 0, 4) == -1 && failed_with(0, "the flags of a reset"));
  CHECK(l0rt->memory_empty_cache(7) == -1 && failed_with(0, "the kind of memory"));
  CHECK(l0rt->memory_set_limit(0, 4 << 20) == 0 && l0rt->malloc(8 << 20, 0, NULL) == NULL);
  CHECK(failed_with(L0RT_ERROR_OUT_OF_DEVICE_MEMORY, "OutOfMemoryError"));
  CHECK(l0rt->memory_set_limit(0, UINT64_MAX) == 0 && l0rt->free(l0rt->malloc(8 << 20, 0, NULL)) == 0);
}

static void fills(char *text, size_t size) {
  unsigned char pattern[16], *host = l0rt->host_malloc(4096, 0);
  l0rt_stream *stream = l0rt->current_stream(0);
  for (int i = 0; i < 16; i++) pattern[i] = (unsigned char)(7 * i + 1);
  void *block = l0rt->malloc(4096, 0, stream);
  for (size_t n = 1; n <= 16; n *= 2) {
    CHECK(l0rt->fill_async(block, pattern, n, 4096, stream) == 0);
    CHECK(l0rt->memcpy_async(host, block, 4096, stream) == 0 && l0rt->stream_synchronize(stream) == 0);
    for (size_t i = 0; i < 4096; i++) CHECK(host[i] == pattern[i % n]);
  }
  CHECK(l0rt->fill_async(block, pattern, 3, 4095, stream) == -1 && failed_with(0, "a pattern must have"));
  CHECK(l0rt->fill_async(block, pattern, 8, 12, stream) == -1 && failed_with(0, "a pattern must have"));
  CHECK(l0rt->fill_async(block, NULL, 8, 16, stream) == -1 && failed_with(0, "a pattern is needed"));
  CHECK(l0rt->fill_async(NULL, pattern, 8, 16, stream) == -1 && l0rt->fill_async(NULL, pattern, 8, 0, stream) == 0);
  CHECK(l0rt->free(block) == 0 && l0rt->host_free(host) == 0);
}

static void streams(char *text, size_t size) {
  l0rt_stream *mine = l0rt->pool_stream(1, 0), *before = l0rt->current_stream(1);
  CHECK(l0rt->current_device() == 0 && l0rt->exchange_device_stream(mine) == before && l0rt->current_device() == 0);
  CHECK(l0rt->current_stream(1) == mine && l0rt->exchange_device_stream(before) == mine);
  CHECK(l0rt->exchange_device_stream(NULL) == NULL && failed_with(0, "a stream is needed"));
}

static void pools(char *text, size_t size) {
  uint64_t id[2] = {0, 0}, again[2] = {0, 0}, none[2] = {12345, 6};
  l0rt_pool *pool = l0rt->pool_create();
  CHECK(l0rt->pool_id(pool, id) == 0 && (id[0] != 0 || id[1] != 0));
  l0rt_pool *same = l0rt->pool_find(id);
  CHECK(same != NULL && l0rt->pool_id(same, again) == 0 && memcmp(id, again, sizeof id) == 0);
  CHECK(l0rt->pool_release(same) == 0 && l0rt->pool_release(pool) == 0);
  CHECK(l0rt->pool_find(id) == NULL && failed_with(0, "no memory pool with the id"));
  CHECK(l0rt->pool_find(none) == NULL && l0rt->pool_id(NULL, id) == -1 && failed_with(0, "a pool"));
}

static void graphs(char *text, size_t size) {
  l0rt_stream *stream = l0rt->pool_stream(0, 0);
  l0rt_graph *graph = l0rt->graph_create_with(L0RT_GRAPH_KEEP), *other = l0rt->graph_create();
  l0rt_pool *pool = l0rt->pool_create(), *of_graph;
  uint64_t id[2], of[2];
  unsigned char byte = 0;
  unsigned word = 0x01020304;
  void *block = l0rt->malloc(64, 0, stream), *inside;
  l0rt->exchange_stream(stream);
  CHECK(l0rt->graph_instantiate(graph) == -1 && l0rt->graph_pool(graph) == NULL && failed_with(0, "no memory pool"));
  CHECK(l0rt->graph_begin_with(graph, pool, "sometimes") == -1 && failed_with(0, "the mode of a capture must be"));
  CHECK(l0rt->graph_begin_with(graph, pool, "relaxed") == 0);
  inside = l0rt->malloc(64, 0, stream);
  CHECK(inside != NULL && l0rt->fill_async(inside, &word, 4, 64, stream) == 0);
  CHECK(l0rt->memcpy_async(block, inside, 64, stream) == 0 && l0rt->free(inside) == 0 && l0rt->graph_end(graph) == 0);
  of_graph = l0rt->graph_pool(graph);
  CHECK(l0rt->pool_id(pool, id) == 0 && l0rt->pool_id(of_graph, of) == 0 && memcmp(id, of, sizeof id) == 0);
  CHECK(l0rt->graph_instantiate(graph) == 0 && l0rt->graph_replay(graph) == 0);
  CHECK(l0rt->memcpy_async(&byte, (char *)block + 61, 1, stream) == 0 && l0rt->stream_synchronize(stream) == 0);
  CHECK(byte == 3);
  CHECK(l0rt->graph_dump(graph, "graph.dot") == 0 && l0rt->graph_dump(graph, "/no/such/folder/x") == -1);
  CHECK(l0rt->graph_reset(graph) == 0 && l0rt->graph_replay(graph) == -1 && failed_with(0, "nothing captured"));
  CHECK(l0rt->graph_begin_with(other, NULL, NULL) == 0 && l0rt->graph_end(other) == 0);
  CHECK(l0rt->graph_instantiate(other) == -1 && failed_with(0, "keep_graph=True"));
  CHECK(l0rt->graph_create_with(2) == NULL && failed_with(0, "the flags of a graph"));
  CHECK(l0rt->graph_release(graph) == 0 && l0rt->graph_release(other) == 0 && l0rt->free(block) == 0);
  CHECK(l0rt->pool_release(of_graph) == 0 && l0rt->pool_release(pool) == 0);
}

static void generators(char *text, size_t size) {
  uint64_t seed = 0, offset = 1, within = 1, read[2] = {0, 0};
  void *at_seed, *at_offset;
  l0rt_stream *stream = l0rt->current_stream(0);
  l0rt_generator *generator = l0rt->generator_create(0), *known = l0rt->generator_default(0);
  CHECK(l0rt->generator_set(generator, 42, 8) == 0 && l0rt->generator_draw(generator, 5, &seed, &offset) == 0);
  CHECK(seed == 42 && offset == 8 && l0rt->generator_get(generator, &seed, &offset) == 0 && offset == 16);
  CHECK(l0rt->generator_place(generator, 4, &at_seed, &at_offset, &within) == 0 && within == 0);
  CHECK(l0rt->memcpy_async(read, at_seed, 8, stream) == 0 && l0rt->memcpy_async(read + 1, at_offset, 8, stream) == 0);
  CHECK(l0rt->stream_synchronize(stream) == 0 && read[0] == 42 && read[1] == 16);
  CHECK(l0rt->generator_set(generator, 1, 3) == -1 && failed_with(0, "multiple of 4"));
  CHECK(l0rt->generator_set(known, 7, 0) == 0 && l0rt->generator_release(known) == 0);
  known = l0rt->generator_default(-1);
  CHECK(l0rt->generator_get(known, &seed, &offset) == 0 && seed == 7 && offset == 0);

  l0rt_graph *graph = l0rt->graph_create();
  stream = l0rt->pool_stream(0, 0);
  l0rt->exchange_stream(stream);
  uint64_t *out = l0rt->malloc(16, 0, stream);
  CHECK(l0rt->graph_register_generator(graph, generator) == 0 && l0rt->graph_begin(graph) == 0);
  CHECK(l0rt->generator_place(generator, 4, &at_seed, &at_offset, &within) == 0 && within == 0);
  CHECK(l0rt->memcpy_async(out, at_seed, 8, stream) == 0 && l0rt->memcpy_async(out + 1, at_offset, 8, stream) == 0);
  CHECK(l0rt->generator_place(generator, 4, &at_seed, &at_offset, &within) == 0 && within == 4);
  CHECK(l0rt->graph_end(graph) == 0 && l0rt->generator_set(generator, 9, 100) == 0);
  for (uint64_t i = 0; i < 3; i++) {
    CHECK(l0rt->graph_replay(graph) == 0 && l0rt->memcpy_async(read, out, 16, stream) == 0);
    CHECK(l0rt->stream_synchronize(stream) == 0 && read[0] == 9 && read[1] == 100 + 8 * i);
  }
  CHECK(l0rt->generator_get(generator, &seed, &offset) == 0 && offset == 124);
  CHECK(l0rt->generator_create(6) == NULL && failed_with(0, "got 6") && l0rt->generator_default(6) == NULL);
  CHECK(l0rt->graph_release(graph) == 0 && l0rt->free(out) == 0 && l0rt->generator_release(NULL) == 0);
  CHECK(l0rt->generator_release(generator) == 0 && l0rt->generator_release(known) == 0);
}

static const struct {
  const char *name;
  void (*run)(char *text, size_t size);
} parts[] = {{"counts", counts},   {"failures", failures}, {"statistics", statistics}, {"fills", fills},
             {"streams", streams}, {"pools", pools},       {"graphs", graphs},         {"generators", generators}};

typedef struct {
  void (*run)(char *text, size_t size);
  char text[1024];
} work;

static void *work_run(void *argument) {
  work *w = argument;
  w->run(w->text, sizeof w->text);
  return NULL;
}

static PyObject *run(PyObject *self, PyObject *name) {
  const char *wanted = PyUnicode_AsUTF8(name);
  if (wanted == NULL) return NULL;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    pthread_t thread;
    work w = {parts[i].run, ""};
    if (strcmp(parts[i].name, wanted) != 0) continue;
    Py_BEGIN_ALLOW_THREADS
    if (pthread_create(&thread, NULL, work_run, &w) != 0) abort();
    pthread_join(thread, NULL);
    Py_END_ALLOW_THREADS
    return PyUnicode_FromString(w.text);
  }
  PyErr_SetObject(PyExc_KeyError, name);
  return NULL;
}

static PyMethodDef methods[] = {{"run", run, METH_O, "Run a part; return which check failed, or an empty text."}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "by_embedder", NULL, 0, methods};

PyMODINIT_FUNC PyInit_by_embedder(void) {
  l0rt = l0rt_import();
  return l0rt == NULL ? NULL : PyModule_Create(&module);
}
