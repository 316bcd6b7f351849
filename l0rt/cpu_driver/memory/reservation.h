/* SPDX-License-Identifier: Apache-2.0 */
/* reservation.h: virtual memory: reserved addresses, and which physical memory is mapped where. */
#ifndef L0RT_CPU_RESERVATION_H
#define L0RT_CPU_RESERVATION_H

#include "base/context.h"

enum { CPU_VIRTUAL_SMALL = 64 << 10, CPU_VIRTUAL_LARGE = 2 << 20 };
#define CPU_VIRTUAL_MAX ((size_t)1 << 46) /* bytes: as many as a process has addresses, about */

/* The granule of a size, which the page-size query returns. */
static inline size_t cpu_virtual_page(size_t size) {
  return size < CPU_VIRTUAL_LARGE ? CPU_VIRTUAL_SMALL : CPU_VIRTUAL_LARGE;
}

/* Physical memory: a piece of one sparse file of the process, so that it costs no file descriptor. Where it is first
 * mapped decides which piece: every reservation has a part of the file of its own, so that mapping takes no more than
 * a change of protection. */
typedef struct {
  cpu_object base;
  cpu_context *context;
  cpu_device *device;
  bool on_host; /* it counts against no device, and may have none */
  bool imported; /* it counts for the process that it comes from */
  bool charged; /* other memory counts from the beginning; without VM_BIND never, */
  bool used;    /* it has been mapped before */
  bool listed;  /* but from its first mapping to its end submissions list it */
  size_t size;  /* that can be mapped */
  size_t asked;
  int64_t offset;          /* in the file; negative before it is mapped for the first time */
  int file;                /* of its own, since other processes may have it; 0 before */
  uint8_t exports;         /* as which types of file descriptors it was made to be exported */
  _Atomic uint32_t mapped; /* mappings of it: they must go first */
  uint64_t id;
} cpu_physical;

extern int cpu_physical_file; /* -1 before the first reservation */

/* Moves physical memory into a file of its own, which other processes can open, unless it is in one. */
bool cpu_physical_share(cpu_physical *physical);

/* A part of the file that was never used before; false if there is none. */
bool cpu_physical_take(size_t size, int64_t *offset);

static inline cpu_physical *cpu_physical_cast(ze_physical_mem_handle_t handle) {
  return cpu_cast(handle, CPU_PHYSICAL);
}

typedef struct {
  uintptr_t base; /* of the mapping, or of the allocation, that a pointer falls into */
  size_t size;
  uint64_t id;
  cpu_device *device;
  bool on_host;
  cpu_physical *physical; /* NULL of an allocation */
  int64_t offset;         /* of a mapping: where it begins in the file that has the physical memory */
} cpu_mapping;

/* Is the pointer in mapped memory of this context? */
bool cpu_reservation_find(const cpu_context *context, const void *pointer, cpu_mapping *mapping);

/* May a command use these bytes? In reserved addresses every byte must be mapped; other addresses are not checked. */
ze_result_t cpu_reservation_check(const void *pointer, size_t size, bool written);

/* Is it in any reservation? */
bool cpu_reservation_holds(const void *pointer);

/* An append of a copy or fill looks for the pointer among what is mapped. ERROR_UNKNOWN: meanwhile another thread changed
 * that, with the defect that there is no lock. Where appends cost something, the target's is paid here. */
ze_result_t cpu_reservation_walk(const void *pointer, bool is_target);

/* The same for an argument of a launch, and for what a list or a graph has that is submitted; it costs nothing. */
ze_result_t cpu_reservation_look(const void *pointer);

/* The mapped pages around an address that a launch may read or write: what mapped them stays until it is unpinned; NULL
 * for none. They are read and written at their address plus *shift. */
void *cpu_reservation_pin(uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift);
void cpu_reservation_unpin(void *pin);

/* Is a mapping of this context touched by a submitted command? Ends all its reservations, with their mappings. */
bool cpu_reservations_in_use(const cpu_context *context);
void cpu_reservations_end(const cpu_context *context);

/* Ends a context's physical memory: none of it may be mapped. */
void cpu_physical_end_all(const cpu_context *context);

/* Where it is mapped: an interval around all its places; empty if there is none. */
void cpu_reservation_places(const cpu_physical *physical, uintptr_t *low, uintptr_t *high);

/* It is in the file from now on, wherever it is mapped; what was in it is there already. With the engines held. */
bool cpu_reservation_move(cpu_physical *physical, int file);

/* This part of the file is zero again, and free for what is mapped there next. */
void cpu_reservation_vacate(const cpu_physical *physical);

/* Where an engine finds what a pointer points to, when device memory is hidden from the host. */
char *cpu_reservation_view(const void *pointer);

#endif
