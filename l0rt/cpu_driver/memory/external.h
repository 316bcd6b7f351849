/* SPDX-License-Identifier: Apache-2.0 */
/* external.h: memory by file descriptor: exported by its properties, imported by the description of an allocation.
 *
 * A descriptor of both types is of a file that every process can map by mmap. Importing takes the descriptor over, as
 * Intel's driver does; each export makes a new one, which is the program's. */
#ifndef L0RT_CPU_EXTERNAL_H
#define L0RT_CPU_EXTERNAL_H

#include "base/context.h"

/* Of memory; images are not there. */
#define CPU_EXTERNAL_TYPES (ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD | ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF)

/* Which types devices have: of an older driver none. */
ze_external_memory_type_flags_t cpu_external_types(void);

/* What a description asks for. */
typedef struct {
  uint8_t exports; /* as which types the memory may be exported */
  bool is_for_ipc; /* other processes are to open it */
  int file;        /* to import, of the program; -1: none */
} cpu_external;

/* Reads a chain of structures; where memory is not `external`, each of these is refused. */
ze_result_t cpu_external_read(const void *next, bool is_external, cpu_external *external);

/* Can so many bytes be imported? */
ze_result_t cpu_external_check(const cpu_external *external, size_t size);

/* The descriptor becomes the driver's; -1: there is no other. */
int cpu_external_take(const cpu_external *external);

/* What asks for a descriptor in a chain of properties; may it have one; and the descriptor, of a file. */
ze_external_memory_export_fd_t *cpu_external_export_in(void *next);
ze_result_t cpu_external_check_export(const ze_external_memory_export_fd_t *export, uint8_t exports);
ze_result_t cpu_external_export(ze_external_memory_export_fd_t *export, int file);

#endif
