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
    """
    void KEEP "keep_value"(void*) noexcept nogil
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
