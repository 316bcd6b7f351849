/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h: what tests of the SPIR-V engine share: modules from kernels/, launches, and a map of memory. */
#ifndef L0RT_CPU_TEST_KERNELS_H
#define L0RT_CPU_TEST_KERNELS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "spirv/spirv.h"

static char last_log[512];

static inline void note_log(void *context, const char *line) {
  (void)context;
  snprintf(last_log, sizeof(last_log), "%s", line);
}

static inline void *read_file(const char *name, size_t *size) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/%s", KERNELS, name);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void *bytes = malloc(*size);
  CHECK(bytes != NULL && fread(bytes, 1, *size, file) == *size);
  fclose(file);
  return bytes;
}

static inline spirv_program *decode(const void *bytes, size_t size) {
  spirv_binary binary = {.bytes = bytes, .size = size};
  return spirv_program_new(&(spirv_build){.binaries = &binary, .binary_count = 1, .log = note_log});
}

static inline spirv_program *program_of(const char *name) {
  size_t size;
  void *bytes = read_file(name, &size);
  spirv_program *program = decode(bytes, size);
  if (program == NULL) fprintf(stderr, "%s: %s\n", name, last_log);
  CHECK(program != NULL);
  free(bytes);
  return program;
}

/* The memory that kernels may touch: what block() gave. */
enum { BLOCKS = 64 };
static struct {
  uint64_t begin, end;
} blocks[BLOCKS];
static int block_count;

static inline void *block(size_t size) {
#ifdef __SANITIZE_THREAD__
  char *memory = calloc(1,
                        size + 64); /* its allocator puts blocks side by side: one must not begin where another ends */
#else
  char *memory = calloc(1, size);
#endif
  CHECK(memory != NULL && block_count < BLOCKS);
  blocks[block_count].begin = (uint64_t)(uintptr_t)memory;
  blocks[block_count++].end = (uint64_t)(uintptr_t)memory + size;
  return memory;
}

static inline void free_blocks(void) {
  while (block_count > 0) free((void *)(uintptr_t)blocks[--block_count].begin);
}

static inline bool find_block(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end,
                              int64_t *shift) {
  (void)context, (void)write;
  for (int i = 0; i < block_count; i++) {
    if (address < blocks[i].begin || address >= blocks[i].end) continue;
    *begin = blocks[i].begin;
    *end = blocks[i].end;
    *shift = 0;
    return true;
  }
  return false;
}

static inline spirv_launch launch_of(const spirv_program *program, const char *name, const void *const *arguments) {
  spirv_launch launch = {.kernel = spirv_program_kernel(program, name),
                         .arguments = arguments,
                         .group_size = {1, 1, 1},
                         .group_count = {1, 1, 1},
                         .memory = {.find = find_block}};
  CHECK(launch.kernel != NULL);
  return launch;
}

static inline void run_well(const spirv_launch *launch) {
  spirv_result result;
  bool good = spirv_run(launch, &result);
  if (!good) fprintf(stderr, "%s\n", result.text);
  CHECK(good);
}

/* A number that looks random; the same in every run. */
static inline uint32_t scrambled(uint32_t v) {
  v = (v ^ v >> 16) * 0x7feb352du;
  v = (v ^ v >> 15) * 0x846ca68bu;
  return v ^ v >> 16;
}

#endif
