# SPDX-License-Identifier: Apache-2.0
"""Threads that Python knows nothing of, and which get no signals."""

from libc.stdint cimport uint64_t
from posix.time cimport clockid_t, timespec

cdef extern from "l0rt/threads.h" nogil:
    ctypedef unsigned long pthread_t
    # 0, or why there is no thread.
    int thread_start "l0rt_thread_start" (
        pthread_t* thread, void* (*run)(void*) noexcept nogil, void* argument) noexcept
    int pthread_join(pthread_t thread, void** result) noexcept
    # 0, or that it did not end in so many ns.
    int thread_join "l0rt_thread_join" (pthread_t thread, uint64_t ns) noexcept
    timespec time_after "l0rt_time_after" (clockid_t clock, uint64_t ns) noexcept
