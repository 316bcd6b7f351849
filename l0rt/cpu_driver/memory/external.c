/* SPDX-License-Identifier: Apache-2.0 */
/* external.c: reading what is to be exported and imported, and doing it. */
#include "memory/external.h"

#include <unistd.h>

#include "base/knobs.h"
#include "memory/share.h"
#include "sync/failure.h"

enum { ALL_TYPES = 0xff };

ze_external_memory_type_flags_t cpu_external_types(void) { return cpu_knobs.neo_22_43 ? 0 : CPU_EXTERNAL_TYPES; }

static ze_result_t check_types(ze_external_memory_type_flags_t flags) {
  CPU_REFUSE_IF(flags > ALL_TYPES, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((flags & ~cpu_external_types()) != 0, ERROR_UNSUPPORTED_ENUMERATION);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_external_read(const void *next, bool is_external, cpu_external *external) {
  *external = (cpu_external){.file = -1};
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (const ze_base_desc_t *d = next; d != NULL && result == ZE_RESULT_SUCCESS; d = d->pNext) {
    external->is_for_ipc |= d->stype == ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC;
    bool exports = d->stype == ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC;
    bool imports = d->stype == ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD;
    if (!exports && !imports) continue;
    CPU_REFUSE_IF(!is_external || cpu_knobs.neo_22_43, ERROR_UNSUPPORTED_ENUMERATION);
    /* The structure of an import begins as that of an export. */
    ze_external_memory_type_flags_t flags = ((const ze_external_memory_export_desc_t *)d)->flags;
    result = check_types(flags);
    if (exports) {
      external->exports |= (uint8_t)flags;
      continue;
    }
    CPU_REFUSE_IF(flags == 0, ERROR_UNSUPPORTED_ENUMERATION);
    external->file = ((const ze_external_memory_import_fd_t *)d)->fd;
    if (external->file < 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the file descriptor is negative");
  }
  return result;
}

ze_result_t cpu_external_check(const cpu_external *external, size_t size) {
  size_t there = cpu_share_size(external->file);
  if (there == 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the file descriptor is none of exported memory");
  return size > there ? CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the exported memory has fewer bytes") : ZE_RESULT_SUCCESS;
}

int cpu_external_take(const cpu_external *external) {
  int file = cpu_share_copy(external->file);
  if (file >= 0) close(external->file);
  return file;
}

ze_external_memory_export_fd_t *cpu_external_export_in(void *next) {
  ze_base_properties_t *p = next;
  while (p != NULL && p->stype != ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD) p = p->pNext;
  return (ze_external_memory_export_fd_t *)p;
}

ze_result_t cpu_external_check_export(const ze_external_memory_export_fd_t *export, uint8_t exports) {
  ze_result_t result = check_types(export->flags);
  if (result != ZE_RESULT_SUCCESS) return result;
  return export->flags == 0 || (export->flags & ~(uint32_t)exports) != 0
             ? CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory was not allocated to be exported as this type")
             : ZE_RESULT_SUCCESS;
}

ze_result_t cpu_external_export(ze_external_memory_export_fd_t *export, int file) {
  int copy = cpu_share_copy(file);
  CPU_REFUSE_IF(copy < 0, ERROR_OUT_OF_HOST_MEMORY);
  export->fd = copy;
  return ZE_RESULT_SUCCESS;
}
