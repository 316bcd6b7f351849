/* SPDX-License-Identifier: Apache-2.0 */
/* guard_impl.h: the guard table of a device type, and the guards that are written against it. Code that uses the table
 * works on every device type. l0rt has a table for "xpu" and one for "cpu". Another device type fills its own and
 * passes it to l0rt.interface.register_guard_impl().
 *
 * These rules hold for every function of the table:
 *
 * - GIL: the caller holds no GIL. The guards below need none either.
 * - Threads: every function may be called from any thread. What is current belongs to the calling thread.
 * - Errors: -1, or NULL for a pointer, means failure. A function that can set a Python exception sets one. After a
 *   failure of l0rt's table "xpu", l0rt_api.last_error() returns its code and text.
 * - Ownership: streams are borrowed, events belong to the caller until destroy_event(), and a table lives as long as
 *   the process. Streams, events and tables of one device type must not be passed to the functions of another.
 * - NULL for a stream or for a place to write to is a failure of l0rt's own tables; an event may be NULL where the
 *   function says so.
 * - A parameter `device` is an index. -1 is the current device where the function says so.
 *
 * docs/c-api.md is made from these comments. */
#ifndef L0RT_GUARD_IMPL_H
#define L0RT_GUARD_IMPL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define L0RT_GUARD_IMPL_VERSION 1

/* The flags of record_event(): what the event must be able to do. */
enum { L0RT_EVENT_TIMING = 1 };

/* The bits of device_capability(): the element types that a device computes with. */
enum {
  L0RT_DTYPE_BOOL = 1 << 0,
  L0RT_DTYPE_INT8 = 1 << 1,
  L0RT_DTYPE_UINT8 = 1 << 2,
  L0RT_DTYPE_INT16 = 1 << 3,
  L0RT_DTYPE_UINT16 = 1 << 4,
  L0RT_DTYPE_INT32 = 1 << 5,
  L0RT_DTYPE_UINT32 = 1 << 6,
  L0RT_DTYPE_INT64 = 1 << 7,
  L0RT_DTYPE_UINT64 = 1 << 8,
  L0RT_DTYPE_FLOAT16 = 1 << 9,
  L0RT_DTYPE_BFLOAT16 = 1 << 10,
  L0RT_DTYPE_FLOAT32 = 1 << 11,
  L0RT_DTYPE_FLOAT64 = 1 << 12,
  L0RT_DTYPE_COMPLEX64 = 1 << 13,
  L0RT_DTYPE_COMPLEX128 = 1 << 14
};

typedef struct l0rt_guard_impl {
  uint32_t version; /* L0RT_GUARD_IMPL_VERSION */
  uint32_t size;    /* sizeof(l0rt_guard_impl) of the table's author. A newer table only appends functions. */
  const char *type; /* The name of the device type, such as "xpu". */

  /* Returns the number of devices; 0 means that there is none. l0rt's own tables open no driver for it. */
  int (*device_count)(void);
  /* Returns the index of the calling thread's current device. */
  int (*get_device)(void);
  /* Makes `device` current; a negative index changes nothing. Returns the previous index. */
  int (*exchange_device)(int device);
  /* Makes `device` current; a negative index changes nothing. Returns 0. */
  int (*set_device)(int device);
  /* Makes `device` current again. A guard restores with it, so it must not fail: a device that is not there changes
   * nothing. It returns 0. */
  int (*unchecked_set_device)(int device);

  /* Returns the calling thread's current stream on `device`; -1 is the current device. */
  void *(*get_stream)(int device);
  /* Returns the default stream of `device`; -1 is the current device. */
  void *(*get_default_stream)(int device);
  /* Returns the next stream of the pool of `device`; -1 is the current device. A negative `priority` is high, 0 is
   * normal, a positive one is low. */
  void *(*get_stream_from_pool)(int device, int priority);
  /* Makes `stream` and its device current. Returns the stream that was current on that device. */
  void *(*exchange_stream)(void *stream);
  /* Returns the index of the stream's device. */
  int (*stream_device)(void *stream);
  /* Returns the native handle of the stream, which the stream owns. */
  void *(*stream_native_handle)(void *stream);
  /* Returns 1 if all work of the stream is complete, 0 if it is not. */
  int (*query_stream)(void *stream);
  /* Waits until all work of the stream is complete. Returns 0. */
  int (*synchronize_stream)(void *stream);
  /* Waits until all streams of `device` are idle. Returns 0. */
  int (*synchronize_device)(int device);

  /* Records the present end of the stream's work. `*event` is NULL for a new event, or an event to record again: it
   * stays, or ends and another one is written to `*event`, as l0rt's own table does, so that other copies of the pointer
   * are not to be used any more. The caller owns the event and calls destroy_event(). Returns 0. */
  int (*record)(void **event, void *stream);
  /* Makes later work of the stream wait for the event; the host continues. An event that is NULL makes nothing wait.
   * Returns 0. */
  int (*block)(void *event, void *stream);
  /* Returns 1 if the event is complete, 0 if it is not. NULL is complete. */
  int (*query_event)(void *event);
  /* Waits until the event is complete. Returns 0. */
  int (*synchronize_event)(void *event);
  /* Frees the event, which may still be pending. NULL does nothing. It must not fail. */
  void (*destroy_event)(void *event);

  /* The functions below are optional: the table may end before any of them, or have NULL there. */

  /* Returns a stream for one holder where the device type can make one; l0rt returns the next stream of the pool. */
  void *(*get_new_stream)(int device, int priority);
  /* Writes -1 (high), 0 (normal) or 1 (low) to `*priority`. Returns 0. */
  int (*stream_priority)(void *stream, int *priority);
  /* Returns 1 if a graph is being captured from the stream, 0 if none is. */
  int (*is_stream_capturing)(void *stream);
  /* Records as record() does. `flags` says what the event must be able to do: L0RT_EVENT_TIMING or 0. Returns 0. */
  int (*record_event)(void **event, void *stream, uint32_t flags);
  /* Writes the time from `start` to `end` to `*milliseconds`. Both events must be timed, recorded and complete. Returns
   * 0. */
  int (*elapsed_time)(void *start, void *end, double *milliseconds);
  /* Says that the stream uses the memory at `ptr`: when it is freed, it is not reused before the work is complete that
   * the stream was given by that time. Returns 0. */
  int (*record_data_ptr_on_stream)(void *ptr, void *stream);
  /* Writes the L0RT_DTYPE bits of the element types that the device computes with to `*dtypes`. Returns 0. */
  int (*device_capability)(int device, uint64_t *dtypes);
} l0rt_guard_impl;

/* A device guard. It belongs to the thread that entered it, and the caller provides its memory. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  int current_device;
} l0rt_device_guard;

/* Makes `device` current and remembers the original device; a negative index changes nothing. Returns 0, or -1 if the
 * device type refused the index: then nothing is to be reset. */
static inline int l0rt_device_guard_enter(l0rt_device_guard *guard, const l0rt_guard_impl *impl, int device) {
  int previous = impl->exchange_device(device);
  guard->impl = impl;
  guard->original_device = previous;
  guard->current_device = device < 0 ? previous : device;
  return previous < 0 ? -1 : 0;
}

/* Makes another device current; the original device stays the same. A negative index changes nothing. Returns 0 or -1.
 */
static inline int l0rt_device_guard_set_index(l0rt_device_guard *guard, int device) {
  int previous = guard->impl->exchange_device(device);
  if (previous < 0) return -1;
  if (device >= 0) guard->current_device = device;
  return 0;
}

/* Makes the original device current again. It cannot fail. */
static inline void l0rt_device_guard_reset_device(l0rt_device_guard *guard) {
  guard->impl->unchecked_set_device(guard->original_device);
  guard->current_device = guard->original_device;
}

/* A stream guard. It belongs to the thread that entered it, and the caller provides its memory. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  void *original_stream; /* the stream that was current on the original device */
  void *current_stream;
  void *left_stream; /* the stream that was current on the new stream's device */
} l0rt_stream_guard;

/* Makes `stream` and its device current, and remembers what was current. Returns 0; or -1, and nothing is changed. */
static inline int l0rt_stream_guard_enter(l0rt_stream_guard *guard, const l0rt_guard_impl *impl, void *stream) {
  guard->impl = impl;
  guard->original_device = impl->get_device();
  if (guard->original_device < 0) return -1;
  guard->original_stream = impl->get_stream(guard->original_device);
  if (guard->original_stream == NULL) return -1;
  guard->left_stream = impl->exchange_stream(stream);
  guard->current_stream = stream;
  return guard->left_stream == NULL ? -1 : 0;
}

/* Makes the remembered stream current on its device again, then the original device. It cannot fail. */
static inline void l0rt_stream_guard_reset(l0rt_stream_guard *guard) {
  guard->impl->exchange_stream(guard->left_stream);
  guard->impl->unchecked_set_device(guard->original_device);
  guard->current_stream = guard->original_stream;
}

/* A device guard that may be empty. Initialise it with zeros; an empty guard changes nothing. */
typedef struct {
  l0rt_device_guard guard; /* valid while engaged */
  int engaged;
} l0rt_optional_device_guard;

/* Enters an empty guard, or sets another device on a guard that is not empty. Returns 0 or -1. */
static inline int l0rt_optional_device_guard_set_index(l0rt_optional_device_guard *guard, const l0rt_guard_impl *impl,
                                                       int device) {
  if (guard->engaged) return l0rt_device_guard_set_index(&guard->guard, device);
  if (l0rt_device_guard_enter(&guard->guard, impl, device) < 0) return -1;
  guard->engaged = 1;
  return 0;
}

/* Makes the original device current again if the guard is not empty, and empties it. It cannot fail. */
static inline void l0rt_optional_device_guard_reset(l0rt_optional_device_guard *guard) {
  if (guard->engaged) l0rt_device_guard_reset_device(&guard->guard);
  guard->engaged = 0;
}

/* A stream guard that may be empty. Initialise it with zeros; an empty guard changes nothing. */
typedef struct {
  l0rt_stream_guard guard; /* valid while engaged */
  int engaged;
} l0rt_optional_stream_guard;

/* Restores what the guard has changed if it is not empty, and empties it. It cannot fail. */
static inline void l0rt_optional_stream_guard_reset(l0rt_optional_stream_guard *guard) {
  if (guard->engaged) l0rt_stream_guard_reset(&guard->guard);
  guard->engaged = 0;
}

/* Makes `stream` and its device current. What an earlier call has changed is restored first, so that the device of the
 * earlier stream has its own stream again. Returns 0 or -1. */
static inline int l0rt_optional_stream_guard_reset_stream(l0rt_optional_stream_guard *guard,
                                                          const l0rt_guard_impl *impl, void *stream) {
  l0rt_optional_stream_guard_reset(guard);
  if (l0rt_stream_guard_enter(&guard->guard, impl, stream) < 0) return -1;
  guard->engaged = 1;
  return 0;
}

/* A guard of several streams. The caller provides its memory. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  size_t count;
  void **originals;
} l0rt_multi_stream_guard;

/* Makes the original streams current again, the last one first, then the original device. It cannot fail. */
static inline void l0rt_multi_stream_guard_reset(l0rt_multi_stream_guard *guard) {
  while (guard->count > 0) guard->impl->exchange_stream(guard->originals[--guard->count]);
  guard->impl->unchecked_set_device(guard->original_device);
}

/* Makes each of `count` streams current on its own device; the current device stays the same. `originals` is memory of
 * the caller for `count` pointers, which the guard uses until it is reset. Returns 0; or -1, and nothing is changed. */
static inline int l0rt_multi_stream_guard_enter(l0rt_multi_stream_guard *guard, const l0rt_guard_impl *impl,
                                                void *const *streams, size_t count, void **originals) {
  guard->impl = impl;
  guard->original_device = impl->get_device();
  if (guard->original_device < 0) return -1;
  guard->originals = originals;
  for (guard->count = 0; guard->count < count; guard->count++) {
    void *original = impl->exchange_stream(streams[guard->count]);
    if (original == NULL) {
      l0rt_multi_stream_guard_reset(guard);
      return -1;
    }
    originals[guard->count] = original;
  }
  impl->unchecked_set_device(guard->original_device);
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
