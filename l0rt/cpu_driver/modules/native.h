/* SPDX-License-Identifier: Apache-2.0 */
/* native.h: the native binary of a module: its SPIR-V, the values of its specialisation constants and its build flags, in
 * one piece that this driver takes back.
 *
 * A header, then for each module its size, its number of constants and their values, and its bytes, each part padded to
 * eight bytes. The header's checksum is of all that follows it; a version other than this one's is refused. */
#ifndef L0RT_CPU_NATIVE_H
#define L0RT_CPU_NATIVE_H

#include <stdbool.h>

#include "l0rt/ze.h"
#include "spirv/spirv.h"

/* What a program is built from. Its parts are in one block of memory, or the caller's. */
typedef struct {
  uint32_t count;
  spirv_binary *binaries; /* with their constants */
  const char *flags; /* "" for none */
  void *block;
} cpu_source;

/* What identifies the format, as nativeKernelSupported. */
extern const uint8_t cpu_native_uuid[ZE_MAX_NATIVE_KERNEL_UUID_SIZE];

/* A new block with the container, or NULL without memory. */
void *cpu_native_pack(const cpu_source *source, size_t *size);

/* Reads a container, which may be any bytes; NULL if it is good, or what is wrong with it. The source points into the
 * bytes. */
const char *cpu_native_unpack(const void *bytes, size_t size, cpu_source *source);

void cpu_source_free(cpu_source *source);

/* Of any bytes, the same in every process. */
uint64_t cpu_native_hash(const void *bytes, size_t size);

#endif
