/* SPDX-License-Identifier: Apache-2.0 */
/* heap.h: addresses for USM allocations.
 *
 * A heap is one reserved range of addresses, cut into regions of equal size, a region for each power of two from
 * 64 KiB up; a region is an array of blocks of its size. So any pointer, interior ones too, says by arithmetic alone
 * which block it falls into, without a lock or a search, and every block is aligned to its size. Addresses are
 * plentiful and memory is committed at first touch, so rounding up to a power of two costs nothing. */
#ifndef L0RT_CPU_HEAP_H
#define L0RT_CPU_HEAP_H

#include <pthread.h>

#include "base/context.h"

enum { CPU_PAGE_SHIFT = 16, CPU_PAGE = 1 << CPU_PAGE_SHIFT, CPU_CLASSES = 25 };

/* What is known of an allocation. Memory of records is never given back. */
typedef struct {
  _Atomic uint32_t state; /* cpu_block_state */
  uint32_t next_free;     /* the next block of the class's stack, counted from 1 */
  ze_memory_type_t type;
  bool read_only;      /* for devices */
  bool is_image;       /* an image's own memory, to which no pointer points */
  bool bad;            /* injected: its first use fails */
  cpu_context *context; /* borrowed: its end frees the block */
  cpu_device *device;   /* whose memory it is; NULL for host memory */
  size_t size;          /* as asked for */
  uint64_t id;
  int file;      /* that holds it, once it is shared with other processes; 0 before */
  uint8_t origin;  /* cpu_block_origin */
  uint8_t exports; /* as which types of file descriptors it was allocated to be exported */
  _Atomic(uint8_t *)
      atomic_access; /* of shared memory: the attributes by the number of the device; NULL: none is set */
} cpu_block;

enum cpu_block_state { CPU_BLOCK_FREE, CPU_BLOCK_LIVE, CPU_BLOCK_DEFERRED };

/* An opened block is of a handle of another process, and is closed, not freed; an imported one is of a file descriptor.
 * Neither is on this process's account. */
enum cpu_block_origin { CPU_BLOCK_ALLOCATED, CPU_BLOCK_OPENED, CPU_BLOCK_IMPORTED };

typedef struct {
  cpu_block *blocks;
  _Atomic uint32_t used; /* blocks that have ever been handed out */
  uint32_t capacity;
  uint32_t first_free; /* counted from 1 */
  uintptr_t accessible; /* bytes of the region that may be touched */
} cpu_heap_class;

typedef struct {
  _Atomic uintptr_t base; /* 0 until the first allocation */
  uintptr_t view;         /* where engines see the heap; the host may not when it differs from the base */
  int file;               /* behind the view, when it differs */
  unsigned shift;         /* log2 of a region's size */
  bool hidden;            /* asked for before the first allocation: invisible to the host */
  pthread_mutex_t lock;
  cpu_heap_class classes[CPU_CLASSES];
} cpu_heap;

extern cpu_heap cpu_device_heap; /* a heap of its own, so that it can be hidden from the host */
extern cpu_heap cpu_host_heap;   /* host and shared memory */

static inline cpu_heap *cpu_heap_of(const cpu_block *block) {
  return block->type == ZE_MEMORY_TYPE_DEVICE ? &cpu_device_heap : &cpu_host_heap;
}

typedef struct {
  cpu_block *block; /* NULL: no such block */
  uintptr_t base;
} cpu_found;

/* A block of at least this size and alignment, not yet live; block NULL when there is none. */
cpu_found cpu_heap_take(cpu_heap *heap, size_t size, size_t alignment);

/* Frees a block that is no longer live. */
void cpu_heap_give(cpu_heap *heap, cpu_found found);

/* The block that a pointer falls into, in whatever state; its base. */
cpu_found cpu_heap_find(cpu_heap *heap, const void *pointer);

/* Puts a file in the place of a block's pages, and fresh pages of its own in the place of the file. */
bool cpu_heap_map_file(cpu_heap *heap, cpu_found found, int file);
/* The same for some of its pages, and for a file from an offset on. */
bool cpu_heap_map_part(cpu_heap *heap, cpu_found found, size_t at, size_t size, int file, int64_t offset);
void cpu_heap_unmap_file(cpu_heap *heap, cpu_found found);

/* Calls `visit` for every live block. */
void cpu_heap_each(cpu_heap *heap, void (*visit)(cpu_heap *heap, cpu_found found, void *argument), void *argument);

/* Are any of these addresses the heap's, allocated or not? */
static inline bool cpu_heap_overlaps(cpu_heap *heap, uintptr_t low, size_t size) {
  uintptr_t base = atomic_load_explicit(&heap->base, memory_order_acquire);
  return base != 0 && low < base + ((uintptr_t)CPU_CLASSES << heap->shift) && base < low + size;
}

static inline char *cpu_heap_view(cpu_heap *heap, const void *pointer) {
  uintptr_t base = atomic_load_explicit(&heap->base, memory_order_relaxed);
  uintptr_t offset = (uintptr_t)pointer - base;
  return base != 0 && offset >> heap->shift < CPU_CLASSES ? (char *)(heap->view + offset) : (char *)pointer;
}

#endif
