/* SPDX-License-Identifier: Apache-2.0 */
/* damage.h: modules with a few words changed, and all kernels of a module run within bounds. */
#ifndef L0RT_CPU_TEST_DAMAGE_H
#define L0RT_CPU_TEST_DAMAGE_H

#include "kernels.h"
#include "spirv/decode/describe.h"

static uint64_t state; /* decides what chance() gives */

static inline uint32_t chance(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % below;
}

/* Makes one of the structure types empty. Nops fill the place of its members. */
static inline void empty_a_structure(uint32_t *words, size_t count) {
  enum { STRUCTURE = 30, NOP = 1 << 16 };
  size_t skip = chance(4);
  for (size_t at = 5; at < count && words[at] >> 16 != 0; at += words[at] >> 16) {
    size_t length = words[at] >> 16;
    if ((words[at] & 0xffff) != STRUCTURE || length < 2 || length > count - at || skip-- != 0) continue;
    words[at] = 2 << 16 | STRUCTURE;
    for (size_t i = 2; i < length; i++) words[at + i] = NOP;
    return;
  }
}

/* One to three words changed: to another word of the module, by one bit, to a small or a large number, or cut off. */
static inline size_t damage(uint32_t *words, size_t count) {
  uint32_t changes = 1 + chance(3);
  if (chance(8) == 0) empty_a_structure(words, count);
  for (uint32_t i = 0; i < changes; i++) {
    uint32_t at = chance(10) == 0 ? chance(5) : 5 + chance((uint32_t)count - 5);
    switch (chance(7)) {
      case 0: words[at] = words[chance((uint32_t)count)]; break;
      case 1: words[at] ^= 1u << chance(32); break;
      case 2: words[at] = chance(words[3] < 4096 ? words[3] + 2 : 4096); break;
      case 3: words[at] += chance(2) != 0 ? 1 : UINT32_MAX; break;
      case 4: words[at] = chance(2) != 0 ? UINT32_MAX : 0x80000000u; break;
      case 5: words[at] = (words[at] & 0xffff0000u) | chance(420); break;
      default:
        if (chance(8) == 0) return 5 + chance((uint32_t)count - 5);
        words[at] = words[5 + chance((uint32_t)count - 5)] & 0xffff;
    }
  }
  return count;
}

static uint32_t *memory; /* what kernels are given */
static unsigned decoded, described, refused, ran, failed;

static inline void quiet(void *context, const char *text, size_t size) { (void)context, (void)text, (void)size; }

static inline void run_kernels(const spirv_program *program, size_t size) {
  const spirv_kernel *kernel;
  for (uint32_t i = 0; (kernel = spirv_program_kernel_at(program, i)) != NULL; i++) {
    const spirv_kernel_info *info = spirv_kernel_look(kernel);
    const void *arguments[16];
    uint64_t locals[16], values[16][64];
    if (info->argument_count > 16) continue;
    for (uint32_t a = 0; a < info->argument_count; a++) {
      memset(values[a], 0, sizeof(values[a]));
      if (info->arguments[a].kind == SPIRV_VALUE) values[a][0] = 64;
      else memcpy(values[a], &memory, sizeof(memory));
      arguments[a] = info->arguments[a].size > sizeof(values[a]) ? NULL : values[a];
      locals[a] = 256;
    }
    spirv_launch launch = {.kernel = kernel,
                           .arguments = arguments,
                           .local_sizes = locals,
                           .group_size = {40, 1, 1},
                           .group_count = {2, 1, 1},
                           .memory = {.find = find_block},
                           .fuel = 300,
                           .print = quiet};
    spirv_result result;
    if (spirv_run(&launch, &result)) {
      ran++;
      continue;
    }
    failed++;
    CHECK(result.status != SPIRV_OK && result.text[0] != '\0');
    if (result.status == SPIRV_BAD_KERNEL || result.status == SPIRV_UNSUPPORTED)
      CHECK(result.offset >= 20 && result.offset < size && strstr(result.text, ": offset ") != NULL);
  }
}

/* What the module says of its kernels is within the module, or it is refused at a place in the module. */
static inline void describe_module(const void *bytes, size_t size, bool trusted) {
  bool good = false;
  spirv_description *d = spirv_describe(bytes, size, trusted, &good);
  CHECK(d != NULL && (good || (d->arena.offset <= size && d->arena.text[0] != '\0')));
  size_t told = 0;
  for (uint32_t e = 0; good && e < d->module->entry_count; e++)
    for (uint32_t i = 0; i < spirv_parameter_count(d->module, &d->module->entries[e]); i++) {
      const spirv_parameter *p = &d->parameters[e][i];
      told += strlen(p->name) + strlen(p->type_name) + (p->source == NULL ? 0 : strlen(p->source));
      CHECK(p->size <= 1 << 16 && (p->kind != SPIRV_PARAMETER_VALUE || p->type->size == p->size));
    }
  described += good;
  CHECK(told < SIZE_MAX);
  spirv_description_free(d);
}

/* A module of any bytes: it is refused with a log that says where, or its kernels run or fail within bounds. */
static inline void try_module(const void *bytes, size_t size) {
  describe_module(bytes, size, false);
  describe_module(bytes, size, true);
  last_log[0] = '\0';
  spirv_program *program = decode(bytes, size);
  if (program == NULL) {
    refused++;
    unsigned offset;
    CHECK(sscanf(last_log, "error: offset %u: ", &offset) == 1 && offset <= size);
    return;
  }
  decoded++;
  run_kernels(program, size);
  spirv_program_release(program);
}

#endif
