/* SPDX-License-Identifier: Apache-2.0 */
/* usm_range.h: memory that several physical memories are mapped to, as one allocation of another process. */
#ifndef L0RT_CPU_USM_RANGE_H
#define L0RT_CPU_USM_RANGE_H

#include "share.h"
#include "usm.h"

/* Makes a handle of what is mapped there now. */
ze_result_t cpu_range_export(cpu_context *context, const void *pointer, size_t size, ze_ipc_mem_handle_t *ipc);

/* Does a record describe a range? */
static inline bool cpu_is_range(const cpu_share_record *record) { return record->flags != 0; }

/* Maps a range of another process whose list is in `file`, which is closed or belongs to the block. */
ze_result_t cpu_range_open(cpu_context *context, cpu_device *device, const cpu_share_record *record, int file,
                           void **out);

/* Ends a handle that this process has made; another's is none of its. */
void cpu_range_put(const cpu_share_record *record);

#endif
