/* SPDX-License-Identifier: Apache-2.0 */
/* heap.c: blocks of a heap: reserving addresses, handing out, taking back. */
#include "memory/heap.h"

#include <sys/mman.h>
#include <unistd.h>

enum {
  SHIFT_MAX = 40,      /* regions of 1 TiB; smaller where so many addresses are not to be had */
  SHIFT_MIN = 28,
  BLOCKS_MAX = 1 << 22,
  STEP = 16 << 20,     /* made accessible at a time, at least */
  KEEP = 1 << 20,      /* blocks from this size on give their pages back when freed */
  HUGE = 4 << 20,      /* blocks from this size on ask for huge pages */
};

cpu_heap cpu_device_heap = {.lock = PTHREAD_MUTEX_INITIALIZER};
cpu_heap cpu_host_heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uintptr_t map(size_t size, int protection, int flags, int fd) {
  void *range = mmap(NULL, size, protection, flags | MAP_NORESERVE, fd, 0);
  return range == MAP_FAILED ? 0 : (uintptr_t)range;
}

/* Reserves the range; with twice a region to spare, so that it can begin at a multiple of the region's size. */
static bool reserve(cpu_heap *heap) {
  int fd = heap->hidden ? memfd_create("l0rt-device-memory", MFD_CLOEXEC) : -1;
  if (heap->hidden && fd < 0) return false;
  uintptr_t base = 0;
  for (heap->shift = SHIFT_MAX; heap->shift >= SHIFT_MIN && base == 0; heap->shift -= base == 0) {
    size_t size = (size_t)CPU_CLASSES << heap->shift, region = (size_t)1 << heap->shift;
    uintptr_t range = map(size + region, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (range == 0) continue;
    base = (range + region - 1) & ~(region - 1);
    heap->view = base;
    if (!heap->hidden) continue;
    heap->view = ftruncate(fd, (off_t)size) == 0 ? map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd) : 0;
    if (heap->view != 0) continue;
    munmap((void *)range, size + region);
    base = 0;
  }
  if (fd >= 0 && base == 0) close(fd);
  heap->file = fd;
  atomic_store_explicit(&heap->base, base, memory_order_release);
  return base != 0;
}

static unsigned class_of(size_t size) {
  unsigned class = 0;
  while (class < CPU_CLASSES && (size_t)1 << (CPU_PAGE_SHIFT + class) < size) class++;
  return class;
}

static uintptr_t address(const cpu_heap *heap, unsigned class, uint32_t index) {
  return heap->base + ((uintptr_t)class << heap->shift) + ((uintptr_t)index << (CPU_PAGE_SHIFT + class));
}

/* The records of a class, made at its first use. */
static bool open_class(cpu_heap *heap, unsigned class) {
  cpu_heap_class *c = &heap->classes[class];
  if (c->blocks != NULL) return true;
  if (CPU_PAGE_SHIFT + class > heap->shift) return false;
  uint64_t capacity = (uint64_t)1 << (heap->shift - CPU_PAGE_SHIFT - class);
  if (capacity > BLOCKS_MAX) capacity = BLOCKS_MAX;
  uintptr_t blocks = map(capacity * sizeof(cpu_block), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  c->capacity = (uint32_t)capacity;
  c->blocks = (cpu_block *)blocks;
  return blocks != 0;
}

/* Lets the region be touched up to this offset. */
static bool open_pages(cpu_heap *heap, unsigned class, uintptr_t end) {
  cpu_heap_class *c = &heap->classes[class];
  if (heap->hidden || end <= c->accessible) return true;
  uintptr_t size = end - c->accessible;
  if (size < STEP) size = STEP;
  uintptr_t rest = ((uintptr_t)1 << heap->shift) - c->accessible;
  if (size > rest) size = rest;
  void *start = (void *)(address(heap, class, 0) + c->accessible);
  if (mprotect(start, size, PROT_READ | PROT_WRITE) != 0) return false;
  if ((size_t)1 << (CPU_PAGE_SHIFT + class) >= HUGE) madvise(start, size, MADV_HUGEPAGE);
  c->accessible += size;
  return true;
}

static cpu_found take(cpu_heap *heap, unsigned class) {
  cpu_found none = {NULL, 0};
  if (heap->base == 0 && !reserve(heap)) return none;
  if (!open_class(heap, class)) return none;
  cpu_heap_class *c = &heap->classes[class];
  uint32_t index = c->first_free;
  if (index != 0) {
    cpu_block *block = &c->blocks[index - 1];
    c->first_free = block->next_free;
    return (cpu_found){block, address(heap, class, index - 1)};
  }
  uint32_t used = atomic_load_explicit(&c->used, memory_order_relaxed);
  if (used == c->capacity) return none;
  if (!open_pages(heap, class, (uintptr_t)(used + 1) << (CPU_PAGE_SHIFT + class))) return none;
  atomic_store_explicit(&c->used, used + 1, memory_order_release);
  return (cpu_found){&c->blocks[used], address(heap, class, used)};
}

cpu_found cpu_heap_take(cpu_heap *heap, size_t size, size_t alignment) {
  unsigned class = class_of(size > alignment ? size : alignment);
  if (class == CPU_CLASSES) return (cpu_found){NULL, 0};
  pthread_mutex_lock(&heap->lock);
  cpu_found found = take(heap, class);
  pthread_mutex_unlock(&heap->lock);
  return found;
}

void cpu_heap_give(cpu_heap *heap, cpu_found found) {
  unsigned class = (unsigned)((found.base - heap->base) >> heap->shift);
  cpu_heap_class *c = &heap->classes[class];
  size_t size = (size_t)1 << (CPU_PAGE_SHIFT + class);
  if (size >= KEEP) madvise(cpu_heap_view(heap, (void *)found.base), size, heap->hidden ? MADV_REMOVE : MADV_DONTNEED);
  pthread_mutex_lock(&heap->lock);
  found.block->next_free = c->first_free;
  c->first_free = (uint32_t)(found.block - c->blocks) + 1;
  pthread_mutex_unlock(&heap->lock);
}

cpu_found cpu_heap_find(cpu_heap *heap, const void *pointer) {
  uintptr_t base = atomic_load_explicit(&heap->base, memory_order_acquire);
  if (base == 0) return (cpu_found){NULL, 0};
  uintptr_t offset = (uintptr_t)pointer - base;
  uintptr_t class = offset >> heap->shift;
  if (class >= CPU_CLASSES) return (cpu_found){NULL, 0};
  uintptr_t index = (offset & (((uintptr_t)1 << heap->shift) - 1)) >> (CPU_PAGE_SHIFT + class);
  cpu_heap_class *c = &heap->classes[class];
  if (index >= atomic_load_explicit(&c->used, memory_order_acquire)) return (cpu_found){NULL, 0};
  return (cpu_found){&c->blocks[index], address(heap, (unsigned)class, (uint32_t)index)};
}

static size_t whole_pages(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (size + page - 1) & ~(page - 1);
}

static size_t pages_of(const cpu_block *block) { return whole_pages(block->size); }

bool cpu_heap_map_part(cpu_heap *heap, cpu_found found, size_t at, size_t size, int file, int64_t offset) {
  char *place = cpu_heap_view(heap, (void *)found.base);
  int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  return mmap(place + at, whole_pages(size), PROT_READ | PROT_WRITE, flags, file, offset) != MAP_FAILED;
}

bool cpu_heap_map_file(cpu_heap *heap, cpu_found found, int file) {
  return cpu_heap_map_part(heap, found, 0, found.block->size, file, 0);
}

void cpu_heap_unmap_file(cpu_heap *heap, cpu_found found) {
  char *place = cpu_heap_view(heap, (void *)found.base);
  int flags = (heap->hidden ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) | MAP_FIXED | MAP_NORESERVE;
  off_t offset = heap->hidden ? (off_t)(found.base - heap->base) : 0;
  mmap(place, pages_of(found.block), PROT_READ | PROT_WRITE, flags, heap->file, offset);
}

void cpu_heap_each(cpu_heap *heap, void (*visit)(cpu_heap *, cpu_found, void *), void *argument) {
  for (unsigned class = 0; class < CPU_CLASSES; class++) {
    cpu_heap_class *c = &heap->classes[class];
    uint32_t used = atomic_load_explicit(&c->used, memory_order_acquire);
    for (uint32_t i = 0; i < used; i++)
      if (atomic_load_explicit(&c->blocks[i].state, memory_order_acquire) != CPU_BLOCK_FREE)
        visit(heap, (cpu_found){&c->blocks[i], address(heap, class, i)}, argument);
  }
}
