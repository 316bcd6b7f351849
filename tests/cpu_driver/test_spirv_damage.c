/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_damage.c: damaged modules are refused with a log that says where, or run within bounds; never a crash.
 * Arguments: how many of each file, and the first seed. */
#include "assembler.h"
#include "damage.h"

static void one_module(const uint32_t *whole, size_t size, uint32_t count, uint32_t seed) {
  uint32_t *words = malloc(size);
  for (uint32_t i = 0; i < count; i++) {
    state = seed + i;
    chance(2);
    memcpy(words, whole, size);
    try_module(words, damage(words, size / 4) * 4);
  }
  free(words);
}

static void one_file(const char *name, uint32_t count, uint32_t seed) {
  size_t size;
  uint32_t *whole = read_file(name, &size);
  one_module(whole, size, count, seed);
  free(whole);
}

int main(int argc, char **argv) {
  uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 400;
  uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
  memory = block(1 << 16);
  one_file("scalars.spv", count, seed);
  one_file("groups.spv", count, seed);
  one_file("language.spv", count / 4, seed); /* these are large */
  one_file("cooperation.spv", count / 4, seed);
  for (int empty = 0; empty < 2; empty++) {
    assembly copying;
    put_copying(&copying, empty, UINT64_MAX);
    one_module(copying.words, 4 * (size_t)copying.count, count / 4, seed);
  }
  CHECK(refused > count / 4 && ran > count && described >= 2 * decoded);
  free_blocks();
  printf("%u modules decoded, %u refused; %u kernels ran, %u failed\n", decoded, refused, ran, failed);
  printf("spirv_damage: ok\n");
  return 0;
}
