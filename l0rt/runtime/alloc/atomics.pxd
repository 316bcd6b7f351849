# SPDX-License-Identifier: Apache-2.0
"""Atomics, a spin lock that can be closed for good, the one mutex that may sleep, a semaphore that wakes a thread."""

from libc.stdint cimport int64_t, uint32_t


cdef extern from "l0rt/atomics.h" nogil:
    void* load "l0rt_load" (void** where) noexcept
    void store "l0rt_store" (void** where, void* value) noexcept
    int64_t load_i64 "l0rt_load_i64" (int64_t* where) noexcept
    void store_i64 "l0rt_store_i64" (int64_t* where, int64_t value) noexcept
    int load_int "l0rt_load_int" (int* where) noexcept
    void store_int "l0rt_store_int" (int* where, int value) noexcept

    ctypedef struct l0rt_spin:
        uint32_t word

    bint spin_try "l0rt_spin_try" (l0rt_spin* lock) noexcept
    bint spin_lock "l0rt_spin_lock" (l0rt_spin* lock) noexcept
    void spin_unlock "l0rt_spin_unlock" (l0rt_spin* lock) noexcept
    void spin_close "l0rt_spin_close" (l0rt_spin* lock) noexcept

cdef extern from "pthread.h" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    int mutex_init "pthread_mutex_init" (pthread_mutex_t* mutex, void* attributes) noexcept
    int mutex_lock "pthread_mutex_lock" (pthread_mutex_t* mutex) noexcept
    int mutex_trylock "pthread_mutex_trylock" (pthread_mutex_t* mutex) noexcept
    int mutex_unlock "pthread_mutex_unlock" (pthread_mutex_t* mutex) noexcept
    int mutex_destroy "pthread_mutex_destroy" (pthread_mutex_t* mutex) noexcept

cdef extern from "semaphore.h" nogil:
    ctypedef struct sem_t:
        pass
    int wakeup_init "sem_init" (sem_t* wakeup, int shared, unsigned int value) noexcept
    int wakeup_post "sem_post" (sem_t* wakeup) noexcept
    int wakeup_wait "sem_wait" (sem_t* wakeup) noexcept

cdef extern from *:
    bint unlikely(bint condition) noexcept nogil
