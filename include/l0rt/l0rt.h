/* SPDX-License-Identifier: Apache-2.0 */
/* l0rt.h: l0rt for C and C++. One table of functions, fetched once from the Python module:
 *
 *     const l0rt_api *l0rt = l0rt_import();     (with the GIL held; NULL: a Python exception is set)
 *     void *p = l0rt->malloc(1 << 20, -1, NULL);
 *
 * After that no function needs the GIL. -1 or NULL means failure: a Python exception is set in the calling thread, and
 * last_error tells code and text without the GIL. Code that goes on after a failure calls PyErr_Clear(), with the GIL: to
 * return a result to Python while an exception is set raises SystemError. */
#ifndef L0RT_L0RT_H
#define L0RT_L0RT_H

#include <stddef.h>
#include <stdint.h>

#include <l0rt/guard_impl.h>

#ifdef __cplusplus
extern "C" {
#endif

#define L0RT_API_VERSION 1

/* Opaque. Borrowed: l0rt's own for the life of the process, or owned by the Stream object that it came from. */
typedef struct l0rt_stream l0rt_stream;

typedef struct l0rt_api {
  uint32_t version; /* L0RT_API_VERSION: changes only when what is below changes */
  uint32_t size;    /* sizeof(l0rt_api): a newer table is longer */
  int (*init)(void);
  int (*device_count)(void);
  int (*current_device)(void);
  int (*exchange_device)(int device); /* the previous one; negative: no change */
  l0rt_stream *(*current_stream)(int device); /* -1: the current device */
  l0rt_stream *(*exchange_stream)(l0rt_stream *stream); /* sets the device too; that device's previous stream */
  l0rt_stream *(*pool_stream)(int device, int priority);
  void *(*stream_handle)(l0rt_stream *stream); /* ze_command_list_handle_t */
  int (*stream_synchronize)(l0rt_stream *stream);
  int (*device_synchronize)(int device);
  void *(*malloc)(size_t nbytes, int device, l0rt_stream *stream); /* 0 bytes: NULL, and no error */
  int (*free)(void *ptr); /* what malloc returned; what an object owns is refused */
  int (*free_async)(void *ptr, l0rt_stream *stream);
  int (*record_stream)(void *ptr, l0rt_stream *stream);
  /* both in the order of this stream alone, between two devices too; NULL: the current one */
  int (*memcpy_async)(void *dst, const void *src, size_t nbytes, l0rt_stream *stream);
  int (*memset_async)(void *dst, int value, size_t nbytes, l0rt_stream *stream);
  int (*last_error)(char *text, size_t size); /* the code of this thread's last failure, 0: none */
  int (*record_use)(void *ptr, l0rt_stream *stream); /* as record_stream, by what the stream has been given until now */
  const l0rt_guard_impl *(*guard_impl_of)(const char *type); /* what guards of a device type are written against */
} l0rt_api;

#ifdef PYTHON_API_VERSION
static inline const l0rt_api *l0rt_import(void) {
  const l0rt_api *api = (const l0rt_api *)PyCapsule_Import("l0rt.capi._C_API", 0);
  if (api != NULL && (api->version != L0RT_API_VERSION || api->size < sizeof(l0rt_api))) {
    PyErr_Format(PyExc_ImportError, "this extension needs version %d of l0rt's C API, the installed l0rt has %d",
                 L0RT_API_VERSION, (int)api->version);
    return NULL;
  }
  return api;
}
#endif

#ifdef __cplusplus
}
#endif

#endif
