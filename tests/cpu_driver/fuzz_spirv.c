/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_spirv.c: libFuzzer's modules, decoded and run; half of its changes are those of damage.h, to whole words. */
#include "damage.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t capacity, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t capacity);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (memory == NULL) memory = block(1 << 16);
  try_module(bytes, size);
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t capacity, unsigned seed) {
  state = seed;
  if (size < 40 || chance(2) == 0) return LLVMFuzzerMutate(bytes, size, capacity);
  uint32_t *words = malloc(size);
  CHECK(words != NULL);
  memcpy(words, bytes, size / 4 * 4);
  size = damage(words, size / 4) * 4;
  memcpy(bytes, words, size);
  free(words);
  return size;
}
