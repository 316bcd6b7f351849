/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_memory.h: how the engine accesses the memory of kernels, at addresses that have been checked.
 *
 * Work-items may race for it: that is a mistake of the kernel, or none where every racing store has the same value. The
 * thread sanitizer looks for races of the engine. For it these accesses are relaxed atomics, so a kernel's race is not
 * reported as the engine's. L0RT_CPU_RACES=1 looks for races of kernels (races.c). */
#ifndef L0RT_SPIRV_KERNEL_MEMORY_H
#define L0RT_SPIRV_KERNEL_MEMORY_H

#include <stdint.h>
#include <string.h>

#ifdef __SANITIZE_THREAD__
#define KERNEL_READ(M, address) __atomic_load_n((const M *)(uintptr_t)(address), __ATOMIC_RELAXED)
#define KERNEL_WRITE(M, address, value) __atomic_store_n((M *)(uintptr_t)(address), (M)(value), __ATOMIC_RELAXED)
#define KERNEL_READ_ALL(M, to, address, count)                                                                         \
  do {                                                                                                                 \
    for (size_t i_ = 0; i_ < (count); i_++) (to)[i_] = KERNEL_READ(M, (uintptr_t)(address) + i_ * sizeof(M));          \
  } while (0)
#define KERNEL_WRITE_ALL(M, address, from, count)                                                                      \
  do {                                                                                                                 \
    for (size_t i_ = 0; i_ < (count); i_++) KERNEL_WRITE(M, (uintptr_t)(address) + i_ * sizeof(M), (from)[i_]);        \
  } while (0)
static inline void kernel_move(uint64_t to, uint64_t from, uint64_t size) {
  for (uint64_t i = 0; i < size; i++) {
    uint64_t k = to <= from ? i : size - 1 - i;
    KERNEL_WRITE(uint8_t, to + k, KERNEL_READ(uint8_t, from + k));
  }
}
#else
#define KERNEL_READ(M, address)                                                                                        \
  __extension__({                                                                                                      \
    M v_;                                                                                                              \
    memcpy(&v_, (const void *)(uintptr_t)(address), sizeof(M));                                                        \
    v_;                                                                                                                \
  })
#define KERNEL_WRITE(M, address, value)                                                                                \
  do {                                                                                                                 \
    const M v_ = (M)(value);                                                                                           \
    memcpy((void *)(uintptr_t)(address), &v_, sizeof(M));                                                              \
  } while (0)
#define KERNEL_READ_ALL(M, to, address, count) memcpy(to, (const void *)(uintptr_t)(address), (count) * sizeof(M))
#define KERNEL_WRITE_ALL(M, address, from, count) memcpy((void *)(uintptr_t)(address), from, (count) * sizeof(M))
static inline void kernel_move(uint64_t to, uint64_t from, uint64_t size) {
  memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
}
#endif

#endif
