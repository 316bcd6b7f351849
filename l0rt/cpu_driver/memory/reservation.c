/* SPDX-License-Identifier: Apache-2.0 */
/* reservation.c: reserved addresses and the physical memory mapped into them.
 *
 * Reservations are few and their pages are looked up in place: one table entry for each 64 KiB. */
#include "memory/reservation.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "lists/work.h"
#include "memory/bounds.h"
#include "memory/heap.h"
#include "simulate/latency.h"
#include "simulate/quirk.h"

enum { WALK = 2000 }; /* nanoseconds */
static const char outside[] = "the range is no part of a reservation of this context, or not all of one";

typedef struct {
  uintptr_t base;
  size_t size;
  cpu_physical *physical;
  int64_t offset; /* in the file: the common one, or its physical memory's own */
  _Atomic uint32_t pins; /* of launches under way: it must stay */
} piece; /* what one call has mapped */

typedef struct {
  piece *piece;
  uint32_t access;
  bool taken; /* some physical memory has this page's part of the file, wherever it is mapped */
} page;

typedef struct reservation {
  struct reservation *next;
  uintptr_t base;
  size_t size;
  void *range; /* as mapped: with space to align, and twice as long when a view of its own is needed */
  size_t range_size;
  size_t view; /* the distance to what engines see: 0 if the host sees the same */
  int64_t offset; /* its own part of the file, as long as it is: mapped, but closed, where nothing else is */
  cpu_context *context;
  page *pages;
  size_t pieces; /* mapped, spares freeing the look at every page */
  _Atomic uint32_t walkers, changers; /* threads, for the defect that these need no lock */
} reservation;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static reservation *first;
static _Atomic uint32_t count; /* spares everybody without reservations the lock */

/* All below that take a reservation are called with the lock held. */
static reservation *find(uintptr_t address) {
  reservation *r = first;
  while (r != NULL && address - r->base >= r->size) r = r->next;
  return r;
}

static page *page_at(const reservation *r, uintptr_t address) {
  return &r->pages[(address - r->base) / CPU_VIRTUAL_SMALL];
}

static int64_t own_offset(const reservation *r, uintptr_t address) { return r->offset + (int64_t)(address - r->base); }

/* Is the piece in the part of the common file that its addresses always show? */
static bool is_own(const reservation *r, const piece *p) {
  return p->physical->file == 0 && p->offset == own_offset(r, p->base);
}

static bool allows(const page *p, bool write) {
  return p->access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE ||
         (p->access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY && !write);
}

/* Map a part of the file for the engines, or unmap it. */
static bool show(const reservation *r, uintptr_t at, size_t size, int file, int64_t offset, int protection) {
  return mmap((void *)(at + r->view), size, protection, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file, offset) !=
         MAP_FAILED;
}

/* Where the host does not see the device's memory, it sees its own all the same. */
static bool show_host(const reservation *r, uintptr_t at, size_t size, int file, int64_t offset) {
  const int flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
  return r->view == 0 || mmap((void *)at, size, PROT_READ | PROT_WRITE, flags, file, offset) != MAP_FAILED;
}

bool cpu_reservation_find(const cpu_context *context, const void *pointer, cpu_mapping *mapping) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return false;
  pthread_rwlock_rdlock(&lock);
  const reservation *r = find((uintptr_t)pointer);
  const piece *p = r == NULL || r->context != context ? NULL : page_at(r, (uintptr_t)pointer)->piece;
  if (p != NULL)
    *mapping = (cpu_mapping){p->base,     p->size,  p->physical->id, p->physical->device, p->physical->on_host,
                             p->physical, p->offset};
  pthread_rwlock_unlock(&lock);
  return p != NULL;
}

ze_result_t cpu_reservation_check(const void *pointer, size_t size, bool written) {
  if (CPU_LIKELY(atomic_load_explicit(&count, memory_order_acquire) == 0)) return ZE_RESULT_SUCCESS;
  pthread_rwlock_rdlock(&lock);
  uintptr_t at = (uintptr_t)pointer, end = at + size;
  const reservation *r = find(at);
  bool good = r == NULL || end <= r->base + r->size;
  while (r != NULL && good && at < end) {
    const page *p = page_at(r, at);
    good = p->piece != NULL && allows(p, written);
    at += CPU_VIRTUAL_SMALL - at % CPU_VIRTUAL_SMALL;
  }
  pthread_rwlock_unlock(&lock);
  return good ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "not all of it is mapped for such an access");
}

bool cpu_reservation_holds(const void *pointer) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return false;
  pthread_rwlock_rdlock(&lock);
  bool held = find((uintptr_t)pointer) != NULL;
  pthread_rwlock_unlock(&lock);
  return held;
}

/* Looking takes longer than it does here: real reservations have a map of thousands of pieces. Others get a turn, as
 * they would from a thread that is preempted at the wrong moment. */
static void walk_on(void) {
  uint64_t end = cpu_host_ns() + WALK;
  do sched_yield();
  while (cpu_host_ns() < end);
}

ze_result_t cpu_reservation_walk(const void *pointer, bool is_target) {
  if (CPU_LIKELY(cpu_knobs.quirks == 0 && !cpu_latency_on)) return ZE_RESULT_SUCCESS;
  bool raced = false;
  size_t pieces = 0;
  reservation *r = NULL;
  if (atomic_load(&count) != 0) {
    pthread_rwlock_rdlock(&lock);
    if ((r = find((uintptr_t)pointer)) == NULL) pthread_rwlock_unlock(&lock);
  }
  if (r != NULL) {
    atomic_fetch_add(&r->walkers, 1);
    pieces = r->pieces;
    if (cpu_has_quirk(CPU_QUIRK_RACING_MAPS)) walk_on();
  }
  if (is_target) cpu_latency(CPU_COST_APPEND_COPY, 1);
  cpu_latency(CPU_COST_COPY_PER_PIECE, (double)pieces);
  if (r != NULL) {
    raced = cpu_has_quirk(CPU_QUIRK_RACING_MAPS) && atomic_load(&r->changers) != 0;
    atomic_fetch_sub(&r->walkers, 1);
    pthread_rwlock_unlock(&lock);
  }
  return raced ? cpu_quirk_race() : ZE_RESULT_SUCCESS;
}

ze_result_t cpu_reservation_look(const void *pointer) {
  if (atomic_load(&count) == 0) return ZE_RESULT_SUCCESS;
  pthread_rwlock_rdlock(&lock);
  reservation *r = find((uintptr_t)pointer);
  bool raced = false;
  if (r != NULL) {
    atomic_fetch_add(&r->walkers, 1);
    walk_on();
    raced = atomic_load(&r->changers) != 0;
    atomic_fetch_sub(&r->walkers, 1);
  }
  pthread_rwlock_unlock(&lock);
  return raced ? cpu_quirk_race() : ZE_RESULT_SUCCESS;
}

/* A mapping is about to change: the answer is whether somebody was looking. It stays there until `changed`. */
static reservation *changes(const void *pointer, bool *raced) {
  if (!cpu_has_quirk(CPU_QUIRK_RACING_MAPS)) return NULL;
  pthread_rwlock_rdlock(&lock);
  reservation *r = find((uintptr_t)pointer);
  if (r != NULL) {
    atomic_fetch_add(&r->changers, 1);
    *raced = atomic_load(&r->walkers) != 0;
  }
  pthread_rwlock_unlock(&lock);
  return r;
}

static size_t pieces_at(const void *pointer) {
  const reservation *r = find((uintptr_t)pointer);
  return r == NULL ? 0 : r->pieces;
}

static void changed(reservation *r) {
  if (r != NULL) atomic_fetch_sub(&r->changers, 1);
}

void *cpu_reservation_pin(uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return NULL;
  pthread_rwlock_rdlock(&lock);
  const reservation *r = find(address);
  const page *p = r == NULL ? NULL : page_at(r, address);
  piece *pinned = p == NULL ? NULL : p->piece;
  if (pinned != NULL && !allows(p, write)) pinned = NULL;
  if (pinned != NULL) {
    atomic_fetch_add(&pinned->pins, 1);
    *begin = address - address % CPU_VIRTUAL_SMALL;
    *end = *begin + CPU_VIRTUAL_SMALL;
    while (*begin > pinned->base && allows(page_at(r, *begin - 1), write)) *begin -= CPU_VIRTUAL_SMALL;
    while (*end < pinned->base + pinned->size && allows(page_at(r, *end), write)) *end += CPU_VIRTUAL_SMALL;
    *shift = (int64_t)r->view;
  }
  pthread_rwlock_unlock(&lock);
  return pinned;
}

void cpu_reservation_unpin(void *pin) { atomic_fetch_sub(&((piece *)pin)->pins, 1); }

/* With the lock held for writing: is any of these pages pinned? */
static bool pinned(const reservation *r, uintptr_t at, size_t size) {
  for (uintptr_t p = at; p < at + size;) {
    const piece *mapped = page_at(r, p)->piece;
    if (mapped != NULL && atomic_load(&((piece *)mapped)->pins) != 0) return true;
    p = mapped != NULL ? mapped->base + mapped->size : p + CPU_VIRTUAL_SMALL;
  }
  return false;
}

char *cpu_reservation_view(const void *pointer) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return (char *)pointer;
  pthread_rwlock_rdlock(&lock);
  const reservation *r = find((uintptr_t)pointer);
  char *view = (char *)pointer + (r == NULL ? 0 : r->view);
  pthread_rwlock_unlock(&lock);
  return view;
}

/* Fresh memory of the system's: that the table is zero costs nothing until a page of it is used. */
static void *reserve(size_t size, int protection) {
  void *range = mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? NULL : range;
}

static bool show_nothing(reservation *r) {
  return cpu_physical_take(r->size, &r->offset) && show(r, r->base, r->size, cpu_physical_file, r->offset, PROT_NONE);
}

static size_t table_size(const reservation *r) { return r->size / CPU_VIRTUAL_SMALL * sizeof(page); }

static void release(reservation *r) {
  if (r->range != NULL) munmap(r->range, r->range_size);
  if (r->pages != NULL) munmap(r->pages, table_size(r));
  free(r);
}

/* Out of the list already. */
static void end(reservation *r) {
  if (CPU_UNLIKELY(cpu_knobs.bounds)) cpu_bounds_mark(CPU_MARK_NO_RANGE, (void *)r->base, r->size, 0);
  cpu_context_let_go(r->context);
  release(r);
  cpu_count(CPU_RESERVATION, -1);
}

/* The start is a hint that this driver does not take: addresses are where the system puts them. */
CPU_EXPORT ze_result_t zeVirtualMemReserve(ze_context_handle_t context_handle, const void *start, size_t size,
                                           void **out) {
  CPU_ENTER();
  (void)start;
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(size > CPU_VIRTUAL_MAX, ERROR_OUT_OF_DEVICE_MEMORY);
  CPU_REFUSE_IF(size == 0 || size % CPU_VIRTUAL_SMALL != 0, ERROR_UNSUPPORTED_SIZE);
  reservation *r = calloc(1, sizeof(*r));
  CPU_REFUSE_IF(r == NULL, ERROR_OUT_OF_HOST_MEMORY);
  r->context = context;
  r->size = size;
  r->view = cpu_device_heap.hidden ? size : 0;
  r->range_size = size + r->view + CPU_VIRTUAL_LARGE;
  r->pages = reserve(table_size(r), PROT_READ | PROT_WRITE);
  r->range = reserve(r->range_size, PROT_NONE);
  r->base = ((uintptr_t)r->range + CPU_VIRTUAL_LARGE - 1) & ~(uintptr_t)(CPU_VIRTUAL_LARGE - 1);
  if (r->pages == NULL || r->range == NULL || !show_nothing(r)) {
    release(r);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  pthread_rwlock_wrlock(&lock);
  r->next = first;
  first = r;
  atomic_fetch_add(&count, 1);
  pthread_rwlock_unlock(&lock);
  cpu_context_hold(context);
  cpu_count(CPU_RESERVATION, 1);
  *out = (void *)r->base;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeVirtualMemFree(ze_context_handle_t context_handle, const void *pointer, size_t size) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(size == 0, ERROR_UNSUPPORTED_SIZE);
  ze_result_t result = ZE_RESULT_SUCCESS;
  pthread_rwlock_wrlock(&lock);
  reservation **place = &first;
  while (*place != NULL && (*place)->base != (uintptr_t)pointer) place = &(*place)->next;
  reservation *r = *place;
  if (r == NULL || r->context != context || r->size != size) result = CPU_REFUSED(ERROR_INVALID_ARGUMENT, outside);
  else if (r->pieces != 0 || atomic_load(&r->changers) != 0) result = CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE, NULL);
  if (result == ZE_RESULT_SUCCESS) {
    *place = r->next;
    atomic_fetch_sub(&count, 1);
    end(r);
  }
  pthread_rwlock_unlock(&lock);
  return result;
}

static int protection(ze_memory_access_attribute_t access) {
  if (access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE) return PROT_READ | PROT_WRITE;
  return access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY ? PROT_READ : PROT_NONE;
}

/* The reservation of this context that holds the whole range. */
static reservation *find_range(const cpu_context *context, const void *pointer, size_t size) {
  reservation *r = find((uintptr_t)pointer);
  return r == NULL || r->context != context || size > r->size - ((uintptr_t)pointer - r->base) ? NULL : r;
}

/* Physical memory that has no part of the file yet gets the one of these addresses, or another if that is taken. */
static bool place(reservation *r, uintptr_t at, size_t size, cpu_physical *physical) {
  if (physical->offset >= 0 || physical->file != 0) return true;
  bool is_free = size == physical->size;
  for (uintptr_t p = at; is_free && p < at + size; p += CPU_VIRTUAL_SMALL) is_free = !page_at(r, p)->taken;
  if (!is_free) return cpu_physical_take(physical->size, &physical->offset);
  physical->offset = own_offset(r, at);
  for (uintptr_t p = at; p < at + size; p += CPU_VIRTUAL_SMALL) page_at(r, p)->taken = true;
  return true;
}

void cpu_reservation_vacate(const cpu_physical *physical) {
  pthread_rwlock_wrlock(&lock);
  reservation *r = first;
  while (r != NULL && (uint64_t)(physical->offset - r->offset) >= r->size) r = r->next;
  for (size_t i = 0; r != NULL && i < physical->size; i += CPU_VIRTUAL_SMALL)
    page_at(r, r->base + (size_t)(physical->offset - r->offset) + i)->taken = false;
  pthread_rwlock_unlock(&lock);
}

static ze_result_t map(cpu_context *context, uintptr_t at, size_t size, cpu_physical *physical, size_t offset,
                       ze_memory_access_attribute_t access) {
  reservation *r = find_range(context, (void *)at, size);
  if (r == NULL) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, outside);
  for (uintptr_t p = at; p < at + size; p += CPU_VIRTUAL_SMALL)
    if (page_at(r, p)->piece != NULL) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "something is mapped there already");
  piece *new_piece = malloc(sizeof(*new_piece));
  CPU_REFUSE_IF(new_piece == NULL, ERROR_OUT_OF_HOST_MEMORY);
  if (!place(r, at, size, physical)) {
    free(new_piece);
    return CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, "the system cannot map it");
  }
  *new_piece = (piece){at, size, physical, (physical->file != 0 ? 0 : physical->offset) + (int64_t)offset, 0};
  int file = physical->file != 0 ? physical->file : cpu_physical_file;
  if (is_own(r, new_piece) ? mprotect((void *)(at + r->view), size, protection(access)) != 0
                           : !show(r, at, size, file, new_piece->offset, protection(access))) {
    free(new_piece);
    return CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, "the system cannot map it");
  }
  if (physical->on_host) show_host(r, at, size, file, new_piece->offset);
  for (uintptr_t p = at; p < at + size; p += CPU_VIRTUAL_SMALL) {
    page_at(r, p)->piece = new_piece;
    page_at(r, p)->access = access;
  }
  r->pieces++;
  atomic_fetch_add(&physical->mapped, 1);
  if (!physical->charged && !physical->on_host && !physical->imported && !physical->listed) {
    physical->listed = true;
    atomic_fetch_add(&physical->device->listed, physical->size);
    atomic_fetch_add(&physical->device->pieces, 1);
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeVirtualMemMap(ze_context_handle_t context_handle, const void *pointer, size_t size,
                                       ze_physical_mem_handle_t handle, size_t offset,
                                       ze_memory_access_attribute_t access) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_physical *physical = cpu_physical_cast(handle);
  CPU_REFUSE_IF(context == NULL || physical == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF((uint32_t)access > ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(size == 0 || size % cpu_virtual_page(size) != 0, ERROR_UNSUPPORTED_SIZE);
  CPU_REFUSE_IF((uintptr_t)pointer % cpu_virtual_page(size) != 0 || offset % CPU_VIRTUAL_SMALL != 0,
                ERROR_UNSUPPORTED_ALIGNMENT);
  if (physical->context != context || offset > physical->size || size > physical->size - offset)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory is of another context, or has no such part");
  bool raced = false;
  reservation *r = changes(pointer, &raced);
  pthread_rwlock_wrlock(&lock);
  ze_result_t result = raced ? cpu_quirk_race() : map(context, (uintptr_t)pointer, size, physical, offset, access);
  size_t pieces = pieces_at(pointer);
  pthread_rwlock_unlock(&lock);
  if (result == ZE_RESULT_SUCCESS) {
    cpu_latency_map(physical->used ? CPU_COST_MAP_MOVED : CPU_COST_MAP_FRESH, pieces);
    if (!physical->used && !physical->on_host) cpu_latency(CPU_COST_CLEAR, (double)physical->size);
    physical->used = true;
  }
  changed(r);
  return result;
}

/* The next piece of the physical memory at or behind an address of the reservation. */
static piece *next_piece(const reservation *r, const cpu_physical *physical, uintptr_t at) {
  for (; at < r->base + r->size && r->pieces != 0; at += CPU_VIRTUAL_SMALL) {
    piece *p = page_at(r, at)->piece;
    if (p != NULL && p->physical == physical) return p;
  }
  return NULL;
}

void cpu_reservation_places(const cpu_physical *physical, uintptr_t *low, uintptr_t *high) {
  *low = UINTPTR_MAX;
  *high = 0;
  pthread_rwlock_rdlock(&lock);
  for (const reservation *r = first; r != NULL; r = r->next)
    for (const piece *p = next_piece(r, physical, r->base); p != NULL; p = next_piece(r, physical, p->base + p->size)) {
      if (p->base < *low) *low = p->base;
      if (p->base + p->size > *high) *high = p->base + p->size;
    }
  pthread_rwlock_unlock(&lock);
}

/* Shows what is mapped of the physical memory as it is in a file, from an offset on. */
static bool show_all(const cpu_physical *physical, int file, int64_t offset) {
  bool good = true;
  for (const reservation *r = first; r != NULL; r = r->next)
    for (const piece *p = next_piece(r, physical, r->base); p != NULL; p = next_piece(r, physical, p->base + p->size)) {
      const int64_t start = p->offset - physical->offset + offset;
      for (size_t i = 0; i < p->size; i += CPU_VIRTUAL_SMALL)
        good = show(r, p->base + i, CPU_VIRTUAL_SMALL, file, start + (int64_t)i,
                    protection(page_at(r, p->base + i)->access)) &&
               good;
      if (physical->on_host) good = show_host(r, p->base, p->size, file, start) && good;
    }
  return good;
}

bool cpu_reservation_move(cpu_physical *physical, int file) {
  pthread_rwlock_wrlock(&lock);
  bool good = show_all(physical, file, 0);
  if (!good) show_all(physical, cpu_physical_file, physical->offset);
  for (const reservation *r = first; r != NULL && good; r = r->next)
    for (piece *p = next_piece(r, physical, r->base); p != NULL; p = next_piece(r, physical, p->base + p->size))
      p->offset -= physical->offset;
  if (good) physical->file = file;
  pthread_rwlock_unlock(&lock);
  return good;
}

static bool hide(const reservation *r, const piece *p) {
  if (is_own(r, p) ? mprotect((void *)(p->base + r->view), p->size, PROT_NONE) != 0
                   : !show(r, p->base, p->size, cpu_physical_file, own_offset(r, p->base), PROT_NONE))
    return false;
  return r->view == 0 || !p->physical->on_host ||
         mmap((void *)p->base, p->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
             MAP_FAILED;
}

static ze_result_t unmap(cpu_context *context, uintptr_t at, size_t size) {
  reservation *r = find_range(context, (void *)at, size);
  if (r == NULL) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, outside);
  for (uintptr_t p = at; p < at + size;) { /* only whole pieces */
    const piece *mapped = page_at(r, p)->piece;
    if (mapped == NULL || mapped->base != p || mapped->size > at + size - p)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "only whole mappings can be unmapped");
    p += mapped->size;
  }
  CPU_REFUSE_IF(pinned(r, at, size), ERROR_HANDLE_OBJECT_IN_USE);
  for (uintptr_t p = at; p < at + size;) {
    piece *mapped = page_at(r, p)->piece;
    CPU_REFUSE_IF(!hide(r, mapped), ERROR_OUT_OF_HOST_MEMORY);
    for (uintptr_t end = p + mapped->size; p < end; p += CPU_VIRTUAL_SMALL) {
      page_at(r, p)->piece = NULL;
      page_at(r, p)->access = 0;
    }
    r->pieces--;
    atomic_fetch_sub(&mapped->physical->mapped, 1);
    free(mapped);
  }
  return ZE_RESULT_SUCCESS;
}

bool cpu_reservations_in_use(const cpu_context *context) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return false;
  bool in_use = false;
  pthread_rwlock_rdlock(&lock);
  for (const reservation *r = first; r != NULL && !in_use; r = r->next)
    in_use = r->context == context && r->pieces != 0 &&
             (pinned(r, r->base, r->size) || cpu_engines_touch(r->base, r->base + r->size));
  pthread_rwlock_unlock(&lock);
  return in_use;
}

static void forget_pieces(reservation *r) {
  for (uintptr_t p = r->base; r->pieces != 0 && p < r->base + r->size;) {
    piece *mapped = page_at(r, p)->piece;
    p += mapped != NULL ? mapped->size : CPU_VIRTUAL_SMALL;
    if (mapped == NULL) continue;
    atomic_fetch_sub(&mapped->physical->mapped, 1);
    free(mapped);
    r->pieces--;
  }
}

void cpu_reservations_end(const cpu_context *context) {
  if (atomic_load_explicit(&count, memory_order_acquire) == 0) return;
  pthread_rwlock_wrlock(&lock);
  for (reservation **place = &first; *place != NULL;) {
    reservation *r = *place;
    if (r->context == context) {
      *place = r->next;
      atomic_fetch_sub(&count, 1);
      forget_pieces(r); /* the addresses go as a whole */
      end(r);
    } else {
      place = &r->next;
    }
  }
  pthread_rwlock_unlock(&lock);
}

static ze_result_t check_range(const void *pointer, size_t size) {
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(size == 0 || size % CPU_VIRTUAL_SMALL != 0, ERROR_UNSUPPORTED_SIZE);
  CPU_REFUSE_IF((uintptr_t)pointer % CPU_VIRTUAL_SMALL != 0, ERROR_UNSUPPORTED_ALIGNMENT);
  return ZE_RESULT_SUCCESS;
}

/* Refused while a command that uses the range is under way: a device would fault there. */
CPU_EXPORT ze_result_t zeVirtualMemUnmap(ze_context_handle_t context_handle, const void *pointer, size_t size) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = check_range(pointer, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(cpu_engines_touch((uintptr_t)pointer, (uintptr_t)pointer + size), ERROR_HANDLE_OBJECT_IN_USE);
  bool raced = false;
  reservation *r = changes(pointer, &raced);
  pthread_rwlock_wrlock(&lock);
  result = raced ? cpu_quirk_race() : unmap(context, (uintptr_t)pointer, size);
  size_t pieces = pieces_at(pointer);
  pthread_rwlock_unlock(&lock);
  if (result == ZE_RESULT_SUCCESS) cpu_latency_map(CPU_COST_UNMAP, pieces);
  changed(r);
  return result;
}

CPU_EXPORT ze_result_t zeVirtualMemSetAccessAttribute(ze_context_handle_t context_handle, const void *pointer,
                                                      size_t size, ze_memory_access_attribute_t access) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = check_range(pointer, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF((uint32_t)access > ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(cpu_engines_touch((uintptr_t)pointer, (uintptr_t)pointer + size), ERROR_HANDLE_OBJECT_IN_USE);
  pthread_rwlock_wrlock(&lock);
  reservation *r = find_range(context, pointer, size);
  if (r == NULL) result = CPU_REFUSED(ERROR_INVALID_ARGUMENT, outside);
  if (r != NULL && pinned(r, (uintptr_t)pointer, size)) {
    result = CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE, "a launch under way uses it");
    r = NULL;
  }
  uintptr_t p = (uintptr_t)pointer, end = p + size;
  while (r != NULL && p < end) { /* a run of mapped pages at a time */
    uintptr_t run = p;
    bool changes = false;
    for (; p < end && page_at(r, p)->piece != NULL; p += CPU_VIRTUAL_SMALL) {
      changes |= page_at(r, p)->access != access;
      page_at(r, p)->access = access;
    }
    if (changes) mprotect((void *)(run + r->view), p - run, protection(access));
    for (; p < end && page_at(r, p)->piece == NULL; p += CPU_VIRTUAL_SMALL) page_at(r, p)->access = access;
  }
  pthread_rwlock_unlock(&lock);
  return result;
}

/* The attribute of the first page, and how far from there it stays the same, up to `size`. */
CPU_EXPORT ze_result_t zeVirtualMemGetAccessAttribute(ze_context_handle_t context_handle, const void *pointer,
                                                      size_t size, ze_memory_access_attribute_t *access,
                                                      size_t *same_size) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = check_range(pointer, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(access == NULL || same_size == NULL, ERROR_INVALID_NULL_POINTER);
  pthread_rwlock_rdlock(&lock);
  const reservation *r = find_range(context, pointer, size);
  if (r == NULL) {
    result = CPU_REFUSED(ERROR_INVALID_ARGUMENT, outside);
  } else {
    uintptr_t start = (uintptr_t)pointer, p = start;
    uint32_t same = page_at(r, start)->access;
    while (p < start + size && page_at(r, p)->access == same) p += CPU_VIRTUAL_SMALL;
    *access = (ze_memory_access_attribute_t)same;
    *same_size = p - start;
  }
  pthread_rwlock_unlock(&lock);
  return result;
}
