/* SPDX-License-Identifier: Apache-2.0 */
/* memory_ops.h: the memory operations that the caching allocator calls for one kind of memory.
 *
 * A device type fills one l0rt_memory_ops and creates one heap for each of its memories; docs/embedding.md has the
 * smallest example. The allocator's core caches, splits, merges and counts blocks. It knows no device, no stream and no
 * Python object: it stores `stream` and `event` and passes them back.
 *
 * These rules hold for every function of the table:
 *
 * - GIL: the caller never holds the GIL.
 * - Threads: every function may be called from any thread, and from several threads at once.
 * - Locks: no spin lock is held, so a function may block. Only wait() should block for long; it is called with no lock
 *   at all. Only wait() may call back into the allocator of the same heap.
 * - Errors: 0 is success. A positive number is a code of the device type's own; the allocator returns it to its caller
 *   unchanged.
 * - `self` is the pointer that the heap was created with. Sizes are in bytes.
 *
 * docs/c-api.md is made from these comments. */
#ifndef L0RT_MEMORY_OPS_H
#define L0RT_MEMORY_OPS_H

#include <stddef.h>

typedef struct l0rt_memory_ops {
  /* Allocates a segment of `nbytes`, a multiple of 64 KiB, and writes its address to `*out`. The address should be a
   * multiple of 64 KiB too: if it is not, the heap asks for 64 KiB more and uses the aligned part. */
  int (*reserve)(void *self, size_t nbytes, void **out);
  /* Frees a segment, with the address and the size of reserve(). No work uses it any more. */
  int (*release)(void *self, void *ptr, size_t nbytes);
  /* Creates an event at the present end of the stream's work and writes it to `*event`; NULL if that work is known to
   * be complete. The allocator owns the event until drop(). For memory that no stream orders, it is called with a NULL
   * stream only if somebody says that the NULL stream uses a block of another stream. */
  int (*record)(void *self, void *stream, void **event);
  /* Returns 0 if the work before the event is complete, 1 if it is not. Any other number counts as "not complete",
   * because memory must not be reused while a device may write to it. A device type that knows that its device is lost
   * returns 0. */
  int (*query)(void *self, void *event);
  /* Waits until the work before the event is complete. Several threads may wait for one event. A failure leaves the
   * event as it was, and the allocator continues without the memory. After L0RT_INTERRUPTED the allocator stops what it
   * was doing and returns that code. */
  int (*wait)(void *self, void *event);
  /* Frees the event. It cannot fail. */
  void (*drop)(void *self, void *event);
  /* Returns 1 if this code of reserve() means out of memory, 0 if not. For 1 the allocator gives cached memory back and
   * calls reserve() again. */
  int (*is_oom)(int code);

  /* Virtual memory. These six functions are needed if the heap's options have a granule size; otherwise they may be
   * NULL. Sizes and addresses are multiples of the granule. */

  /* Reserves addresses without memory and writes the first one to `*out`. */
  int (*range_reserve)(void *self, size_t nbytes, void **out);
  /* Frees reserved addresses. Nothing is mapped there any more. */
  int (*range_release)(void *self, void *ptr, size_t nbytes);
  /* Creates physical memory, which has no address of its own, and writes its handle to `*out`. */
  int (*physical_mem_create)(void *self, size_t nbytes, void **out);
  /* Frees physical memory. It is not mapped any more. */
  int (*physical_mem_destroy)(void *self, void *physical, size_t nbytes);
  /* Maps physical memory at `ptr`; each is mapped at one place at a time. A failure must leave nothing mapped. */
  int (*physical_mem_map)(void *self, void *ptr, size_t nbytes, void *physical);
  /* Unmaps physical memory. No work uses it any more. */
  int (*physical_mem_unmap)(void *self, void *ptr, size_t nbytes, void *physical);

  /* Makes later work of the stream wait on the device for the event; the host does not wait. NULL if streams cannot do
   * that: then a block passes from one stream to another only after its work is complete. */
  int (*order)(void *self, void *stream, void *event);

  /* Returns nanoseconds since any fixed moment. Needed if the heap's options limit the time that moving memory takes
   * (`moving`); otherwise it may be NULL. */
  long long (*clock)(void *self);

  /* Gets a stream ready for `order`, which is called under a lock: what that may need of Python is made here, where no
   * lock is held. Returns 1 if the stream is ready now and was not before, else 0. NULL if there is nothing to make. */
  int (*prepare)(void *self, void *stream);
} l0rt_memory_ops;

/* The status codes of the allocator itself. Positive codes are the device type's. */
enum {
  L0RT_OK = 0,
  L0RT_OUT_OF_MEMORY = -1,   /* the device or the limit has no memory left, after all caches were given back */
  L0RT_CLOSED = -2,          /* the heap was closed, and the closer gave no code of its own */
  L0RT_INVALID_POINTER = -3, /* the address is not the start of an allocation */
  L0RT_DOUBLE_FREE = -4,     /* the block was freed before and is still cached */
  L0RT_NO_HOST_MEMORY = -5,  /* the host has no memory for the allocator's records */
  L0RT_INVALID_SIZE = -6,    /* the size is 0 */
  L0RT_UPSTREAM_FAILED = -7, /* the functions that supply the pool's memory failed; they keep the reason */
  L0RT_ASLEEP = -8,          /* the pool sleeps: it gives no memory until it wakes */
  L0RT_OWNED = -9,           /* an object or another allocator owns the allocation, and frees it itself */
  L0RT_INTERRUPTED = -10, /* a signal handler raised during a wait; the caller must raise it. A free is complete. */
  L0RT_HELD_UP = -11      /* memory cannot be mapped or unmapped at this moment, since others use what that changes */
};

#endif
