/* SPDX-License-Identifier: Apache-2.0 */
/* space.h: address spaces of the GPU ("VMs"): which memory is bound where, and access by those addresses. */
#ifndef XE_DEVICE_SPACE_H
#define XE_DEVICE_SPACE_H

#include <stdbool.h>

#include "buffer.h"

typedef struct {
  uint64_t address, size, offset;
  xe_buffer *buffer; /* holds a reference; NULL for the program's own memory */
  uint8_t *memory; /* of the program */
  bool null; /* reads are zero, writes are lost */
  bool mirror; /* the program's memory at the same address */
} xe_binding;

typedef struct {
  xe_binding *bindings; /* by address, and none overlaps another */
  int number, capacity;
  int queues; /* that run in it; guarded by `xe_lock` */
  bool live;
  pthread_rwlock_t lock;
} xe_space;

/* A new space's number, or 0. */
uint32_t xe_space_create(void);

/* The space of a number, or NULL. */
xe_space *xe_space_get(uint32_t number);

/* False if queues still run in it. */
bool xe_space_destroy(xe_space *space);

/* In a forked child: releases the locks of threads that it does not have. */
void xe_space_after_fork(void);

/* Callers of these three hold `xe_lock` and have locked the space for writing. */
void xe_space_bind(xe_space *space, xe_binding binding); /* takes over the buffer's reference */
void xe_space_unbind(xe_space *space, uint64_t address, uint64_t size);
void xe_space_unbind_buffer(xe_space *space, const xe_buffer *buffer);

/* The binding that an address is in, or NULL. Callers have locked the space. */
const xe_binding *xe_space_at(const xe_space *space, uint64_t address);

/* The memory at an address and how many bytes are bound from there; NULL if none is, or a null binding.
 * Callers have locked the space, and have set `*available` to 0. */
uint8_t *xe_space_find(const xe_space *space, uint64_t address, uint64_t *available);

/* Access to memory, which may cross bindings; words are read and written as one. False if something is not bound:
 * `*address` is then where. */
bool xe_space_read(xe_space *space, uint64_t *address, void *bytes, uint64_t size);
bool xe_space_write(xe_space *space, uint64_t *address, const void *bytes, uint64_t size);

#endif
