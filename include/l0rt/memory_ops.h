/* SPDX-License-Identifier: Apache-2.0 */
/* memory_ops.h: what a kind of memory has to offer so that the caching allocator can serve it.
 *
 * A device type fills one l0rt_memory_ops and makes one heap for each of its memories; docs/embedding.md has the
 * smallest example. The core caches, splits, merges and counts; it knows no
 * device, no stream and no Python object: `stream` and `event` are opaque words that it only hands back.
 *
 * Every function may be called from any thread, several at once, never with the GIL held and never under a spin lock,
 * so it may block; only wait() should block for long, and it is called with no lock held at all. None but wait() may
 * call back into the allocator of the same heap. Each returns 0 or a positive code of the backend's own, which reaches
 * the caller unchanged.
 */
#ifndef L0RT_MEMORY_OPS_H
#define L0RT_MEMORY_OPS_H

#include <stddef.h>

typedef struct l0rt_memory_ops {
  /* A new segment of nbytes, a multiple of 64 KiB. Its address should be a multiple of 64 KiB too: where it is not,
   * the heap asks again for 64 KiB more and uses the aligned part. */
  int (*reserve)(void *self, size_t nbytes, void **out);
  /* Give a segment back, with the address and size that reserve() had. No work uses it any more. */
  int (*release)(void *self, void *ptr, size_t nbytes);
  /* An event at the present end of that stream's work; NULL where that is known to be complete. Not called for the
   * NULL stream of memory that no stream orders, unless somebody says that the NULL stream uses another stream's
   * block. */
  int (*record)(void *self, void *stream, void **event);
  /* 0: that work is complete; 1: not yet. Anything else counts as not yet, since memory must not be reused while a
   * device may write to it: a backend that knows that its device is gone answers 0. */
  int (*query)(void *self, void *event);
  /* Return when that work is complete; several threads may wait for one event. A failure leaves the event as it was,
   * and the allocator goes on without; after L0RT_INTERRUPTED it gives up what it was doing and returns that. */
  int (*wait)(void *self, void *event);
  /* The event will not be used again. */
  void (*drop)(void *self, void *event);
  /* Does this code of reserve() mean out of memory? Then cached memory is given back and reserve() is tried again. */
  int (*is_oom)(int code);

  /* Virtual memory, for heaps whose options say how large a granule is; else these may be NULL. Sizes are multiples of
   * the granule, and addresses too. Physical memory has no address of its own, and
   * is mapped at one place at a time. */
  int (*range_reserve)(void *self, size_t nbytes, void **out); /* addresses without memory */
  int (*range_release)(void *self, void *ptr, size_t nbytes);  /* nothing is mapped there any more */
  int (*physical_mem_create)(void *self, size_t nbytes, void **out);
  int (*physical_mem_destroy)(void *self, void *physical, size_t nbytes);
  int (*physical_mem_map)(void *self, void *ptr, size_t nbytes, void *physical); /* a failure leaves nothing mapped */
  int (*physical_mem_unmap)(void *self, void *ptr, size_t nbytes, void *physical); /* no work uses it any more */

  /* What is given to the stream from now on begins after that work is complete; the host does not wait. NULL where
   * streams cannot do that: then a block passes from one stream to another only once its work is complete. */
  int (*order)(void *self, void *stream, void *event);
} l0rt_memory_ops;

/* The allocator's own status codes. Positive ones are the backend's. */
enum {
  L0RT_OK = 0,
  L0RT_OUT_OF_MEMORY = -1,   /* neither the backend nor the limit has any left, with all caches given back */
  L0RT_CLOSED = -2,          /* the heap was closed without a code of the closer's own */
  L0RT_INVALID_POINTER = -3, /* not the start of an allocation */
  L0RT_DOUBLE_FREE = -4,     /* freed already, and still cached */
  L0RT_NO_HOST_MEMORY = -5,  /* no memory for bookkeeping */
  L0RT_INVALID_SIZE = -6,    /* 0 bytes */
  L0RT_UPSTREAM_FAILED = -7,   /* what a pool's memory comes from failed, and knows why */
  L0RT_ASLEEP = -8,          /* the pool gives no memory until it wakes */
  L0RT_OWNED = -9,           /* an object, or another allocator, owns the allocation and frees it */
  L0RT_INTERRUPTED = -10 /* a wait ended early; what a signal handler raised is the caller's to raise, a free is done */
};

#endif
