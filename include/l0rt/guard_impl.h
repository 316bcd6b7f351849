/* SPDX-License-Identifier: Apache-2.0 */
/* guard_impl.h: what a device type gives so that guards, and whoever else is device-agnostic, work on it.
 *
 * Every function runs without the GIL and may be called from any thread. -1 (NULL for a pointer) means failure, with a
 * Python exception set where the type's functions can set one; device_count answers 0 instead. A stream, an event, a
 * table of a type mean nothing to another type. l0rt's own table, for "xpu", is the first client. */
#ifndef L0RT_GUARD_IMPL_H
#define L0RT_GUARD_IMPL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define L0RT_GUARD_IMPL_VERSION 1

/* What an event can do: flags of record_event. */
enum { L0RT_EVENT_TIMING = 1 };

/* Element types that a device computes with: bits of device_capability. */
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
  uint32_t size;    /* sizeof(l0rt_guard_impl): a newer table is longer, never different */
  const char *type; /* "xpu" */

  int (*device_count)(void);
  int (*get_device)(void);
  int (*exchange_device)(int device); /* returns the previous one; negative: no change */
  int (*set_device)(int device);
  int (*unchecked_set_device)(int device); /* for restoring: never fails */

  void *(*get_stream)(int device); /* the calling thread's, device -1: on its current device */
  void *(*get_default_stream)(int device);
  void *(*get_stream_from_pool)(int device, int priority);
  void *(*exchange_stream)(void *stream); /* sets its device too; returns that device's previous stream */
  int (*stream_device)(void *stream);
  void *(*stream_native_handle)(void *stream);
  int (*query_stream)(void *stream); /* 1 idle, 0 not yet */
  int (*synchronize_stream)(void *stream);
  int (*synchronize_device)(int device);

  int (*record)(void **event, void *stream); /* *event NULL: made; else recorded anew */
  int (*block)(void *event, void *stream);   /* the stream waits for the event */
  int (*query_event)(void *event);           /* 1 complete, 0 not yet */
  int (*synchronize_event)(void *event);
  void (*destroy_event)(void *event); /* never fails */

  /* A table may end here, and each entry below may be NULL: not supported. */
  void *(*get_new_stream)(int device, int priority);
  int (*stream_priority)(void *stream, int *priority); /* -1 high, 0, 1 low */
  int (*is_stream_capturing)(void *stream);            /* 1 yes, 0 no */
  int (*record_event)(void **event, void *stream, uint32_t flags); /* as record; the event can do what is asked */
  int (*elapsed_time)(void *start, void *end, double *milliseconds); /* both timed, recorded and complete */
  int (*record_data_ptr_on_stream)(void *ptr, void *stream); /* freed memory is not reused before the stream's work */
  int (*device_capability)(int device, uint64_t *dtypes);
} l0rt_guard_impl;

/* A device guard: set_index as often as needed, then reset_device brings back the device of its making. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  int current_device;
} l0rt_device_guard;

static inline int l0rt_device_guard_enter(l0rt_device_guard *guard, const l0rt_guard_impl *impl, int device) {
  int previous = impl->exchange_device(device);
  guard->impl = impl;
  guard->original_device = previous;
  guard->current_device = device < 0 ? previous : device;
  return previous < 0 ? -1 : 0;
}

static inline int l0rt_device_guard_set_index(l0rt_device_guard *guard, int device) {
  int previous = guard->impl->exchange_device(device);
  if (previous < 0) return -1;
  if (device >= 0) guard->current_device = device;
  return 0;
}

static inline void l0rt_device_guard_reset_device(l0rt_device_guard *guard) {
  guard->impl->unchecked_set_device(guard->original_device);
  guard->current_device = guard->original_device;
}

/* A stream guard: the stream and its device are current; leaving restores the device, and that device's stream. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  void *original_stream; /* the original device's */
  void *current_stream;
  void *left_stream; /* what was current on the new stream's device */
} l0rt_stream_guard;

static inline int l0rt_stream_guard_enter(l0rt_stream_guard *guard, const l0rt_guard_impl *impl, void *stream) {
  guard->impl = impl;
  guard->original_device = impl->get_device();
  guard->original_stream = impl->get_stream(guard->original_device);
  guard->left_stream = impl->exchange_stream(stream);
  guard->current_stream = stream;
  return guard->original_stream == NULL || guard->left_stream == NULL ? -1 : 0;
}

static inline void l0rt_stream_guard_reset(l0rt_stream_guard *guard) {
  guard->impl->exchange_stream(guard->left_stream);
  guard->impl->unchecked_set_device(guard->original_device);
  guard->current_stream = guard->original_stream;
}

/* Guards that may be empty: zeroed they are, and stay so until they are given a device or a stream. */
typedef struct {
  l0rt_device_guard guard; /* valid while engaged */
  int engaged;
} l0rt_optional_device_guard;

static inline int l0rt_optional_device_guard_set_index(l0rt_optional_device_guard *guard, const l0rt_guard_impl *impl,
                                                       int device) {
  if (guard->engaged) return l0rt_device_guard_set_index(&guard->guard, device);
  if (l0rt_device_guard_enter(&guard->guard, impl, device) < 0) return -1;
  guard->engaged = 1;
  return 0;
}

static inline void l0rt_optional_device_guard_reset(l0rt_optional_device_guard *guard) {
  if (guard->engaged) l0rt_device_guard_reset_device(&guard->guard);
  guard->engaged = 0;
}

typedef struct {
  l0rt_stream_guard guard; /* valid while engaged */
  int engaged;
} l0rt_optional_stream_guard;

static inline void l0rt_optional_stream_guard_reset(l0rt_optional_stream_guard *guard) {
  if (guard->engaged) l0rt_stream_guard_reset(&guard->guard);
  guard->engaged = 0;
}

/* The originals are restored first, so that a device left behind has its own stream again. */
static inline int l0rt_optional_stream_guard_reset_stream(l0rt_optional_stream_guard *guard,
                                                          const l0rt_guard_impl *impl, void *stream) {
  l0rt_optional_stream_guard_reset(guard);
  if (l0rt_stream_guard_enter(&guard->guard, impl, stream) < 0) return -1;
  guard->engaged = 1;
  return 0;
}

/* Several streams at once, each current on its own device; the current device stays. `originals` is the caller's, with
 * space for as many as there are streams. */
typedef struct {
  const l0rt_guard_impl *impl;
  int original_device;
  size_t count;
  void **originals;
} l0rt_multi_stream_guard;

static inline void l0rt_multi_stream_guard_reset(l0rt_multi_stream_guard *guard) {
  while (guard->count > 0) guard->impl->exchange_stream(guard->originals[--guard->count]);
  guard->impl->unchecked_set_device(guard->original_device);
}

static inline int l0rt_multi_stream_guard_enter(l0rt_multi_stream_guard *guard, const l0rt_guard_impl *impl,
                                                void *const *streams, size_t count, void **originals) {
  guard->impl = impl;
  guard->original_device = impl->get_device();
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
