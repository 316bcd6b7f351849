# SPDX-License-Identifier: Apache-2.0
"""What the machine itself costs: an empty loop, a pair of glibc's malloc and free, a memcpy.

It imports nothing of l0rt, so that a child process without threads can load this file alone: glibc's malloc takes a
faster path until a process has had a second thread. Every loop returns the nanoseconds that ``n`` rounds took.
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

cdef extern from *:
    """
    #include <string.h>
    /* The compiler may neither drop a loop whose result nobody reads nor unroll it into nothing. */
    #define keep_value(value) __asm__ volatile("" : : "r"(value) : "memory")

    #include <stddef.h>
    #include <stdint.h>

    /* Philox4x32-10 as it is written down, one block after another: 4 numbers from [0, 1) of each. */
    #if defined(__GNUC__) && !defined(__clang__)
    __attribute__((optimize("no-tree-vectorize", "no-tree-slp-vectorize")))
    #endif
    static void philox_scalar(float *out, size_t blocks, uint64_t seed) {
      for (size_t block = 0; block < blocks; block++) {
        uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
        uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
        for (int round = 0; round < 10; round++) {
          uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;
          uint32_t c1 = c[1], c3 = c[3];
          c[0] = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
          c[1] = (uint32_t)p1;
          c[2] = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
          c[3] = (uint32_t)p0;
          k0 += 0x9E3779B9u;
          k1 += 0xBB67AE85u;
        }
        for (int i = 0; i < 4; i++) out[4 * block + i] = (float)(c[i] >> 8) * 0x1p-24f;
      }
    }
    """
    void KEEP "keep_value"(void*) noexcept nogil
    void philox_scalar(float* out, size_t blocks, uint64_t seed) noexcept nogil
    void* memcpy(void*, const void*, size_t) noexcept nogil


cdef uint64_t now_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <uint64_t>t.tv_sec * 1000000000 + <uint64_t>t.tv_nsec


def empty(uint64_t n):
    """The loop that stands around every C row."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            KEEP(NULL)
        spent = now_ns() - start
    return spent


def malloc_free(size_t nbytes, uint64_t n):
    """glibc's malloc and free."""
    cdef uint64_t _i, start, spent
    cdef void* ptr
    with nogil:
        start = now_ns()
        for _i in range(n):
            ptr = malloc(nbytes)
            KEEP(ptr)
            free(ptr)
        spent = now_ns() - start
    return spent


def copy(size_t nbytes, uint64_t n):
    """memcpy between two buffers that have been written before."""
    cdef uint64_t _i, start, spent
    cdef char* source = <char*>malloc(2 * nbytes)
    if source == NULL:
        raise MemoryError()
    with nogil:
        memset(source, 1, 2 * nbytes)
        start = now_ns()
        for _i in range(n):
            memcpy(source + nbytes, source, nbytes)
            KEEP(source)
        spent = now_ns() - start
        free(source)
    return spent


def philox(size_t nbytes, uint64_t n):
    """Philox in scalar C on one thread: ``nbytes`` of floats, a multiple of 16."""
    cdef uint64_t _i, start, spent
    cdef float* out = <float*>malloc(nbytes)
    if out == NULL:
        raise MemoryError()
    with nogil:
        memset(out, 1, nbytes)
        start = now_ns()
        for _i in range(n):
            philox_scalar(out, nbytes // 16, _i)
            KEEP(out)
        spent = now_ns() - start
        free(out)
    return spent
