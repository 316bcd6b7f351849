/* SPDX-License-Identifier: Apache-2.0 */
/* l0rt.h: the C API of l0rt, for C and C++. It is one table of functions, which the Python module hands out:
 *
 *     const l0rt_api *l0rt = l0rt_import();     (once, with the GIL held; NULL: a Python exception is set)
 *     void *p = l0rt->malloc(1 << 20, -1, NULL);
 *
 * These rules hold for every function of the table:
 *
 * - GIL: the caller needs no GIL. A function takes the GIL itself only for a failure, for the first use of the driver,
 *   and where Python code must run.
 * - Threads: every function may be called from any thread, and from several threads at once.
 * - Errors: -1 or NULL means failure, unless the function says otherwise. Then a Python exception is set in the calling
 *   thread, and last_error() returns its code and text without the GIL. A caller that continues after a failure must
 *   call PyErr_Clear() with the GIL held. A C function that returns a result to Python while an exception is set makes
 *   Python raise SystemError. In a thread that Python did not start, and outside of Python code there, no exception
 *   stays set: last_error() alone has the failure.
 * - Units: sizes are in bytes, devices are indexes from 0.
 * - Ownership: streams and tables are borrowed; the caller never frees them. Memory from malloc() belongs to the caller
 *   until free() or free_async().
 *
 * docs/c-api.md is made from these comments. */
#ifndef L0RT_L0RT_H
#define L0RT_L0RT_H

#include <stddef.h>
#include <stdint.h>

#include <l0rt/guard_impl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define L0RT_API_VERSION 1

/* A stream. The type is opaque and the pointer is borrowed. A default stream and a stream of the pool live as long as
 * the process. A stream of l0rt.Stream.from_handle() or of a lease lives as long as its Python object. */
typedef struct l0rt_stream l0rt_stream;

/* An event: a mark in a stream's work. The type is opaque; l0rt_api.event_record() makes it, and
 * l0rt_api.event_destroy() ends it. It is an event of the guard table "xpu" too. */
typedef struct l0rt_event l0rt_event;

/* A private memory pool, and the time during which a thread allocates from one. Both types are opaque. */
typedef struct l0rt_pool l0rt_pool;
typedef struct l0rt_pool_scope l0rt_pool_scope;

/* A graph: captured work, which is replayed. The type is opaque; l0rt_api.graph_create() makes it, and
 * l0rt_api.graph_release() ends it. */
typedef struct l0rt_graph l0rt_graph;

/* What pointer_query() tells of an address. */
typedef struct l0rt_pointer_info {
  void *base;          /* where the allocation begins, */
  size_t size;         /* how large it is, */
  size_t requested;    /* and how much of that was asked for */
  l0rt_stream *stream; /* in whose order it is reused; NULL for memory that no stream orders */
  int device;
  int kind; /* L0RT_MEMORY_DEVICE, L0RT_MEMORY_HOST or L0RT_MEMORY_SHARED */
} l0rt_pointer_info;

#define L0RT_MEMORY_DEVICE 0
#define L0RT_MEMORY_HOST 1
#define L0RT_MEMORY_SHARED 2

/* A module: code that was built for one device. The type is opaque; l0rt_api.module_create() makes it, and
 * l0rt_api.module_release() ends it. */
typedef struct l0rt_module l0rt_module;

/* A kernel of a module. The type is opaque. It belongs to the module, and ends with it. */
typedef struct l0rt_kernel l0rt_kernel;

/* One argument of a launch: the address of its value and its size in bytes. For a pointer, the value is the pointer.
 * With value NULL the argument is `size` bytes of local memory. */
typedef struct l0rt_arg {
  const void *value;
  size_t size;
} l0rt_arg;

/* A generator of random numbers: a seed and an offset into the Philox stream of that seed. The type is opaque. */
typedef struct l0rt_generator l0rt_generator;

/* One statistic, and the same of all memory and of each of the allocator's two pools. The names are torch's. */
typedef struct l0rt_stat_values {
  int64_t current;
  int64_t peak;
  int64_t allocated;
  int64_t freed;
} l0rt_stat_values;

typedef struct l0rt_stat_pools {
  l0rt_stat_values all;
  l0rt_stat_values small_pool;
  l0rt_stat_values large_pool;
} l0rt_stat_pools;

/* What get_memory_stats() returns. A newer l0rt only appends fields. */
typedef struct l0rt_memory_stats {
  l0rt_stat_pools allocation;
  l0rt_stat_pools segment;
  l0rt_stat_pools active;
  l0rt_stat_pools inactive_split;
  l0rt_stat_pools allocated_bytes;
  l0rt_stat_pools reserved_bytes;
  l0rt_stat_pools active_bytes;
  l0rt_stat_pools inactive_split_bytes;
  l0rt_stat_pools requested_bytes;
  l0rt_stat_values oversize_allocations;
  l0rt_stat_values oversize_segments;
  int64_t num_alloc_retries;
  int64_t num_ooms;
  int64_t num_sync_all_streams;
  int64_t num_device_alloc;
  int64_t num_device_free;
  int64_t num_oom_rejections;
  int64_t num_oom_fallback;
  int64_t max_split_size;
} l0rt_memory_stats;

/* What memory_reset_stats() resets, and the flag of graph_create_with(). */
#define L0RT_RESET_PEAKS 1
#define L0RT_RESET_TOTALS 2
#define L0RT_GRAPH_KEEP 1u

/* The codes of last_error() when memory ran out, or a limit left none: of the host and of the device. */
#define L0RT_ERROR_OUT_OF_HOST_MEMORY 0x70000002
#define L0RT_ERROR_OUT_OF_DEVICE_MEMORY 0x70000003

/* The formats of module_create(), and the flags of launch(). */
#define L0RT_MODULE_SPIRV 0
#define L0RT_MODULE_NATIVE 1
#define L0RT_MODULE_OPENCL_C 2
#define L0RT_LAUNCH_COOPERATIVE 1u

typedef struct l0rt_api {
  uint32_t version; /* L0RT_API_VERSION. It changes when a function of the table changes its meaning or its type. */
  uint32_t size;    /* sizeof(l0rt_api) of the installed l0rt. A newer l0rt only appends functions. */
  /* Opens the driver now. Without this call the first function that needs a device opens it. Returns 0. */
  int (*init)(void);
  /* Returns the number of devices. It opens the driver; count_devices() does not. */
  int (*device_count)(void);
  /* Returns the index of the calling thread's current device, 0 by default. It never fails. */
  int (*current_device)(void);
  /* Makes `device` the thread's current device. A negative index changes nothing. Returns the previous index. Fails
   * with IndexError if there is no such device. */
  int (*exchange_device)(int device);
  /* Returns the thread's current stream on `device`; -1 is the current device. */
  l0rt_stream *(*current_stream)(int device);
  /* Makes `stream` and its device current in this thread. Returns the stream that was current on that device. */
  l0rt_stream *(*exchange_stream)(l0rt_stream *stream);
  /* Returns the next stream of the device's pool, in turn; -1 is the current device. A negative `priority` is high, 0
   * is normal, a positive one is low. Several callers get the same stream when the pool starts again. */
  l0rt_stream *(*pool_stream)(int device, int priority);
  /* Returns the ze_command_list_handle_t of the stream, and creates the list if needed. The stream keeps owning it.
   * The caller may append commands; it must not do so while another thread uses the stream. After this call l0rt asks
   * the driver whether the stream is idle, since it cannot count the caller's commands. */
  void *(*stream_handle)(l0rt_stream *stream);
  /* Waits until all work that the stream was given is complete. Signal handlers run during the wait in the main
   * thread: Ctrl-C makes it fail with KeyboardInterrupt. Returns 0. */
  int (*stream_synchronize)(l0rt_stream *stream);
  /* Waits for all streams of `device`; -1 is the current device. Signals are handled as in stream_synchronize().
   * Returns 0. */
  int (*device_synchronize)(int device);
  /* Allocates `nbytes` bytes of device memory from the caching allocator, or from the thread's active memory pool.
   * `stream` may use the memory at once, and the memory is reused in the order of this stream; NULL is the current
   * stream of `device`. `device` is -1 or the index of the stream's device. Returns the address, which the caller
   * frees. For 0 bytes it returns NULL and sets no exception. Fails with OutOfMemoryError. */
  void *(*malloc)(size_t nbytes, int device, l0rt_stream *stream);
  /* Frees an address that malloc() returned. The memory is reused in the order of the stream that it was allocated
   * for; nothing waits. NULL does nothing. Any other address fails with InvalidArgumentError and stays allocated:
   * memory of a Buffer, pinned memory, an address inside an allocation. Returns 0. */
  int (*free)(void *ptr);
  /* Frees as free() does, but the memory is reused in the order of `stream`, after all work that both streams were
   * given before this call. Returns 0. */
  int (*free_async)(void *ptr, l0rt_stream *stream);
  /* Says that `stream` uses the memory at `ptr`. When the memory is freed, it is not reused before the work is complete
   * that `stream` was given by that time. `ptr` may point anywhere into the allocation. Returns 0. */
  int (*record_stream)(void *ptr, l0rt_stream *stream);
  /* Copies `nbytes` bytes in the order of `stream`, also between two devices; NULL is the current stream of the current
   * device. The device must be able to reach both addresses, and both must stay allocated until the copy is complete:
   * the call does not record the use of the memory. It returns 0 without waiting, unless the driver itself waits for a
   * copy of pageable host memory. */
  int (*memcpy_async)(void *dst, const void *src, size_t nbytes, l0rt_stream *stream);
  /* Sets `nbytes` bytes to the low 8 bits of `value`, in the order of `stream`; NULL is the current stream of the
   * current device. Returns 0 without waiting. */
  int (*memset_async)(void *dst, int value, size_t nbytes, l0rt_stream *stream);
  /* Copies the text of the calling thread's last failure to `text`: at most `size` bytes, the final 0 included. Returns
   * the code: the ze_result_t of the driver's call, -1 for any other failure, 0 if no call of this thread has failed. A
   * later success does not clear it. `text` may be NULL. It never fails. */
  int (*last_error)(char *text, size_t size);
  /* Says that `stream` has used the memory at `ptr`, up to the work that it was given before this call. When the memory
   * is freed, it is not reused before that work is complete; later work does not count. Returns 0. */
  int (*record_use)(void *ptr, l0rt_stream *stream);
  /* Returns the guard table of a device type, such as "xpu" or "cpu". The table lives as long as the process. Fails
   * with NotImplementedError if the type has registered none. */
  const l0rt_guard_impl *(*guard_impl_of)(const char *type);
  /* Builds a module for `device`; -1 is the current device. `format` is L0RT_MODULE_SPIRV or L0RT_MODULE_NATIVE, and
   * `options` are the driver's build options or NULL; or it is L0RT_MODULE_OPENCL_C, then `code` is the text of a
   * program, and it is compiled as l0rt.compile() does, with the options and the cache of that function. The code is
   * copied. The caller releases the module. Fails with ModuleBuildError; then last_error() returns the build log. Fails
   * with CompilerNotFoundError if no compiler of OpenCL C is installed. */
  l0rt_module *(*module_create)(int device, const void *code, size_t nbytes, int format, const char *options);
  /* Ends the module and its kernels. Launches that still run end first; the call does not wait. NULL does nothing.
   * Returns 0. */
  int (*module_release)(l0rt_module *module);
  /* Returns the kernel of that name; the same name returns the same kernel. Fails with KeyError if there is none. */
  l0rt_kernel *(*kernel_get)(l0rt_module *module, const char *name);
  /* Launches `groups` groups of `group_size` work-items, along x, y and z, in the order of `stream`; NULL is the
   * current stream of the module's device. `args` has the kernel's `count` arguments, which are copied. `flags` is 0 or
   * L0RT_LAUNCH_COOPERATIVE, for groups that wait for each other. Several threads may launch one kernel at once. The
   * use of memory is not recorded. Returns 0 without waiting. */
  int (*launch)(l0rt_kernel *kernel, const uint32_t groups[3], const uint32_t group_size[3], const l0rt_arg *args,
                uint32_t count, unsigned flags, l0rt_stream *stream);
  /* Returns 1 if all work of the stream is complete, 0 if it is not. */
  int (*stream_query)(l0rt_stream *stream);
  /* Makes later work of `stream` wait for all work that `other` was given so far; the host continues. Returns 0. */
  int (*stream_wait_stream)(l0rt_stream *stream, l0rt_stream *other);
  /* Records the present end of the stream's work in a new event, which it writes to `*event`. `*event` is NULL, or an
   * event that ends when the new one takes its place, as event_destroy() ends it: other copies of that pointer are not
   * to be used any more. After a failure `*event` is as before. The caller owns the event and calls event_destroy().
   * `flags` is L0RT_EVENT_TIMING or 0; what an earlier event had does not count. Returns 0. */
  int (*event_record)(l0rt_event **event, l0rt_stream *stream, unsigned flags);
  /* Makes later work of the stream wait for the event; the host continues. NULL makes nothing wait. Returns 0. */
  int (*stream_wait_event)(l0rt_stream *stream, l0rt_event *event);
  /* Returns 1 if the event is complete, 0 if it is not. NULL is complete. */
  int (*event_query)(l0rt_event *event);
  /* Waits until the event is complete. Signals are handled as in stream_synchronize(). Returns 0. */
  int (*event_synchronize)(l0rt_event *event);
  /* Writes the time from `start` to `end` to `*milliseconds`. Both events are timed, recorded and complete. Returns
   * 0. */
  int (*event_elapsed_time)(l0rt_event *start, l0rt_event *end, double *milliseconds);
  /* Ends the event, which may still be pending. NULL does nothing. Returns 0. */
  int (*event_destroy)(l0rt_event *event);
  /* Allocates `nbytes` bytes of pinned host memory, which every device of the context of `device` reaches; -1 is the
   * current device. The caller frees it. For 0 bytes it returns NULL and sets no exception. Fails with
   * OutOfMemoryError. */
  void *(*host_malloc)(size_t nbytes, int device);
  /* Frees an address that host_malloc() returned. The memory is reused when the work is complete that record_stream()
   * and record_use() told of; a copy of memcpy_async() does not tell. NULL does nothing. Any other address fails with
   * InvalidArgumentError and stays allocated. Returns 0. */
  int (*host_free)(void *ptr);
  /* Makes a private memory pool. The caller releases it. */
  l0rt_pool *(*pool_create)(void);
  /* Releases the pool. Memory that was allocated from it stays until it is freed. NULL does nothing. Returns 0. */
  int (*pool_release)(l0rt_pool *pool);
  /* Makes the calling thread allocate device memory from the pool, on `device` or with -1 on every device. Returns the
   * scope, which the same thread leaves by pool_leave(), the last one first. */
  l0rt_pool_scope *(*pool_enter)(l0rt_pool *pool, int device);
  /* Ends a scope. Fails with RuntimeError in another thread or order; then the scope goes on. NULL does nothing.
   * Returns 0. */
  int (*pool_leave)(l0rt_pool_scope *scope);
  /* Finds the allocation of l0rt that an address is in, wherever in it. Returns 1 and fills `*info`; or 0 if the address
   * is in no allocation of l0rt, and `*info` stays as it is. */
  int (*pointer_query)(const void *ptr, l0rt_pointer_info *info);
  /* Makes an empty graph. The caller releases it. */
  l0rt_graph *(*graph_create)(void);
  /* Begins to record what the thread's current stream is given, the default stream included; that does not run. Memory
   * comes from the graph's own pool meanwhile. Returns 0. */
  int (*graph_begin)(l0rt_graph *graph);
  /* Ends the capture, in the thread that began it, and builds what is replayed. Returns 0. */
  int (*graph_end)(l0rt_graph *graph);
  /* Issues what was captured, in the order of the current stream of the graph's device. Returns 0 without waiting. */
  int (*graph_replay)(l0rt_graph *graph);
  /* Ends the graph. Replays that still run end first; the call does not wait. NULL does nothing. Returns 0. */
  int (*graph_release)(l0rt_graph *graph);
  /* Launches as launch() does, with global ids that begin at `global_offset`, along x, y and z. Fails with
   * UnsupportedError on a device without global offsets, unless all three are 0. Returns 0 without waiting. */
  int (*launch_with_offset)(l0rt_kernel *kernel, const uint32_t groups[3], const uint32_t group_size[3],
                            const uint32_t global_offset[3], const l0rt_arg *args, uint32_t count, unsigned flags,
                            l0rt_stream *stream);
  /* Returns 1 if the driver is open in this process, 0 if it is not. It never fails. */
  int (*is_open)(void);
  /* Returns the number of devices without opening the driver in this process; 0 means that there is none. */
  int (*count_devices)(void);
  /* Makes `stream` current on its device, and leaves the current device as it is. Returns the stream that was current
   * on the device of `stream`. */
  l0rt_stream *(*exchange_device_stream)(l0rt_stream *stream);
  /* Fills `nbytes` bytes with copies of the pattern, in the order of `stream`; NULL is the current stream of the current
   * device. `pattern_size` is 1, 2, 4, 8 or 16, and divides `nbytes`. The pattern is copied. Returns 0 without waiting.
   */
  int (*fill_async)(void *dst, const void *pattern, size_t pattern_size, size_t nbytes, l0rt_stream *stream);
  /* Writes the statistics of the memory of `device` to `*stats`; -1 is the current device. `kind` is L0RT_MEMORY_DEVICE
   * or L0RT_MEMORY_HOST, the pinned memory of the device's context. `size` is sizeof(l0rt_memory_stats). Before the
   * first allocation all are 0. Returns 0. */
  int (*get_memory_stats)(int device, int kind, l0rt_memory_stats *stats, size_t size);
  /* Returns the bytes of all allocated blocks of `device`; -1 is the current device. */
  int64_t (*memory_allocated)(int device);
  /* Writes how many bytes of the memory of `device` are free, and how many it has; -1 is the current device. Returns
   * 0. */
  int (*memory_info)(int device, size_t *free, size_t *total);
  /* Resets statistics of `device` and of a kind of memory: `what` is L0RT_RESET_PEAKS (every peak is the current value),
   * L0RT_RESET_TOTALS (allocated, freed and the counters are 0), or both. Returns 0. */
  int (*memory_reset_stats)(int device, int kind, int what);
  /* Returns cached memory of that kind, of all devices, to the driver. Returns 0. */
  int (*memory_empty_cache)(int kind);
  /* Lets the allocator of `device` reserve at most `nbytes` bytes; UINT64_MAX removes the limit. Returns 0. */
  int (*memory_set_limit)(int device, uint64_t nbytes);
  /* Writes the id of the pool to `id`: two numbers, which no other pool of the process has. Returns 0. */
  int (*pool_id)(l0rt_pool *pool, uint64_t id[2]);
  /* Returns the living pool with that id; the caller releases it. Fails with ValueError if there is none. */
  l0rt_pool *(*pool_find)(const uint64_t id[2]);
  /* Makes an empty graph as graph_create() does. `flags` is 0, or L0RT_GRAPH_KEEP: graph_end() builds nothing, and
   * graph_instantiate() or the first replay does. */
  l0rt_graph *(*graph_create_with)(unsigned flags);
  /* Begins a capture as graph_begin() does. Memory comes from `pool`; NULL is the graph's own. `mode` is "default",
   * "thread_local", "global" or "relaxed": whose waits for a whole device are refused meanwhile. NULL is "default".
   * Returns 0. */
  int (*graph_begin_with)(l0rt_graph *graph, l0rt_pool *pool, const char *mode);
  /* Builds what is replayed, of a graph that was made with L0RT_GRAPH_KEEP. Returns 0. */
  int (*graph_instantiate)(l0rt_graph *graph);
  /* Drops the capture, waits for its replays, and releases its memory pool. Returns 0. */
  int (*graph_reset)(l0rt_graph *graph);
  /* Returns the memory pool of a captured graph; the caller releases it. */
  l0rt_pool *(*graph_pool)(l0rt_graph *graph);
  /* Writes a description of a captured graph, in the DOT language, to the file `path`. Returns 0. */
  int (*graph_dump)(l0rt_graph *graph, const char *path);
  /* Lets captures of the graph draw from the generator: each replay uses new numbers. Returns 0. */
  int (*graph_register_generator)(l0rt_graph *graph, l0rt_generator *generator);
  /* Makes a generator for `device`; -1 is the current device. The caller releases it. */
  l0rt_generator *(*generator_create)(int device);
  /* Returns the default generator of `device`, which l0rt's own random numbers come from; -1 is the current device. The
   * caller releases it. */
  l0rt_generator *(*generator_default)(int device);
  /* Ends this holder's use of the generator. NULL does nothing. Returns 0. */
  int (*generator_release)(l0rt_generator *generator);
  /* Writes the generator's seed, and the number of 32-bit words that were used. Returns 0. */
  int (*generator_get)(l0rt_generator *generator, uint64_t *seed, uint64_t *offset);
  /* Sets the seed and the offset, a multiple of 4. Returns 0. */
  int (*generator_set)(l0rt_generator *generator, uint64_t seed, uint64_t offset);
  /* Advances the offset by `words` 32-bit words, rounded up to a multiple of 4. Writes the seed, and the offset of the
   * first of these words. Fails while a graph is captured from the current stream. Returns 0. */
  int (*generator_draw)(l0rt_generator *generator, uint64_t words, uint64_t *seed, uint64_t *offset);
  /* Does the same for a kernel, also in a capture: writes the addresses, in memory of the device, where the kernel reads
   * the seed and the offset, 64 bits each; and how many words it adds to that offset. Launch the kernel in the order of
   * the current stream. Returns 0. */
  int (*generator_place)(l0rt_generator *generator, uint64_t words, void **seed, void **offset, uint64_t *within);
} l0rt_api;

#ifdef PYTHON_API_VERSION
/* Returns the table. It imports l0rt.capi, so the caller holds the GIL. Include Python.h before this header. The table
 * lives as long as the process. NULL means that l0rt is not installed, or that it is older than this header: an
 * ImportError is set. */
static inline const l0rt_api *l0rt_import(void) {
  PyObject *package = PyImport_ImportModule("l0rt"); /* which imports nothing else */
  const l0rt_api *api;
  if (package == NULL) {
    if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError))
      PyErr_Format(
          PyExc_ModuleNotFoundError,
          "the C API of l0rt comes from the Python package l0rt, which is not on sys.path of the Python in %S: "
          "install it there (python3 -m pip install l0rt), or add its folder to PYTHONPATH",
          PySys_GetObject("prefix"));
    return NULL;
  }
  Py_DECREF(package);
  api = (const l0rt_api *)PyCapsule_Import("l0rt.capi._C_API", 0);
  if (api == NULL) return NULL;
  if (api->version != L0RT_API_VERSION || api->size < sizeof(l0rt_api)) {
    PyErr_Format(PyExc_ImportError,
                 "expected version %d of l0rt's C API with at least %d bytes, got version %d with %d bytes: "
                 "install the l0rt that this extension was built with, or a newer one",
                 L0RT_API_VERSION, (int)sizeof(l0rt_api), (int)api->version, (int)api->size);
    return NULL;
  }
  return api;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
