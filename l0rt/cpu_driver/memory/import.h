/* SPDX-License-Identifier: Apache-2.0 */
/* import.h: memory that the program has anyway, and that devices are to reach as they reach allocations. */
#ifndef L0RT_CPU_IMPORT_H
#define L0RT_CPU_IMPORT_H

#include "memory/reservation.h"

enum { CPU_IMPORT_PAGE = 4096 }; /* what pointers and sizes are multiples of */

/* Imports what the structure describes, for an allocation of `size` bytes. */
ze_result_t cpu_import_add(cpu_context *context, const ze_external_memmap_sysmem_ext_desc_t *desc, size_t size,
                           void **out);

/* Is the pointer in imported memory of this context, or of any if it is NULL? */
bool cpu_import_find(const cpu_context *context, const void *pointer, cpu_mapping *mapping);

/* Intel's functions, found by name only: copies reach these bytes, whatever context they are of, and nothing else does. */
ze_result_t zexDriverImportExternalPointer(ze_driver_handle_t driver, void *pointer, size_t size);
ze_result_t zexDriverReleaseImportedPointer(ze_driver_handle_t driver, void *pointer);

/* With the defect of a cache: imported memory that was freed, for an allocation of so many bytes; NULL: none fits. */
void *cpu_import_reuse(const cpu_context *context, size_t size);

/* Forgets what begins there; false when nothing of this context does. */
bool cpu_import_end(const cpu_context *context, const void *pointer);

/* Forgets all that is left of a context. */
void cpu_import_end_all(const cpu_context *context);

#endif
