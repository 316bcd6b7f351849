/* SPDX-License-Identifier: Apache-2.0 */
/* share.h: memory that another process can map: a file without a name, and a record that says where it is. */
#ifndef L0RT_CPU_SHARE_H
#define L0RT_CPU_SHARE_H

#include <stddef.h>

#include "base/object.h"

/* What an IPC handle holds. Its first four bytes are a descriptor of the exporting process, as with drivers before 25.18,
 * whose clients send it with SCM_RIGHTS and put in its place the number that it has on arrival. Otherwise the file is
 * found through /proc, so the processes must see each other there and belong to the same user. */
typedef struct {
  int32_t file;
  uint32_t magic;
  cpu_kind kind;
  int32_t process;
  uint64_t inode; /* distinguishes a stale record from a valid one, and the right file from others */
  uint64_t size;
  uint32_t flags;
  uint32_t count;
} cpu_share_record;

_Static_assert(offsetof(cpu_share_record, file) == 0, "clients look for the descriptor there");
_Static_assert(sizeof(cpu_share_record) <= ZE_MAX_IPC_HANDLE_SIZE, "a record must fit a handle");

/* A new file of this size, or -1. Its name says whether memory of the host is in it. None is one of the first three
 * descriptors, which a program may have closed and open again. */
int cpu_share_make(size_t size, bool on_host);
bool cpu_share_is_on_host(int file);

/* Writes bytes into a new file, but for those that are zero anyway. */
bool cpu_share_fill(int file, const char *bytes, size_t size);

/* How long such a file is; 0 for a descriptor of anything else. */
size_t cpu_share_size(int file);

/* Another descriptor of the file, or -1. */
int cpu_share_copy(int file);

/* Writes a record into a handle of ZE_MAX_IPC_HANDLE_SIZE bytes. */
bool cpu_share_export(cpu_kind kind, int file, size_t size, uint32_t flags, uint32_t count, char *handle);

/* Reads the record in a handle; false for bytes that are none of this kind. */
bool cpu_share_describe(cpu_kind kind, const char *handle, cpu_share_record *record);

/* The file that a handle describes, opened here, or -1. */
int cpu_share_import(cpu_kind kind, const char *handle, cpu_share_record *record);

#endif
