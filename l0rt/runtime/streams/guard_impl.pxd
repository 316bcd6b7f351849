# SPDX-License-Identifier: Apache-2.0
# Guard tables, and the guards over them: include/l0rt/guard_impl.h.
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "l0rt/guard_impl.h" nogil:
    ctypedef struct l0rt_guard_impl:
        uint32_t version
        uint32_t size
        const char* type
        int (*device_count)() noexcept nogil
        int (*get_device)() noexcept nogil
        int (*exchange_device)(int) noexcept nogil
        int (*set_device)(int) noexcept nogil
        int (*unchecked_set_device)(int) noexcept nogil
        void* (*get_stream)(int) noexcept nogil
        void* (*get_default_stream)(int) noexcept nogil
        void* (*get_stream_from_pool)(int, int) noexcept nogil
        void* (*exchange_stream)(void*) noexcept nogil
        int (*stream_device)(void*) noexcept nogil
        void* (*stream_native_handle)(void*) noexcept nogil
        int (*query_stream)(void*) noexcept nogil
        int (*synchronize_stream)(void*) noexcept nogil
        int (*synchronize_device)(int) noexcept nogil
        int (*record)(void**, void*) noexcept nogil
        int (*block)(void*, void*) noexcept nogil
        int (*query_event)(void*) noexcept nogil
        int (*synchronize_event)(void*) noexcept nogil
        void (*destroy_event)(void*) noexcept nogil
        void* (*get_new_stream)(int, int) noexcept nogil
        int (*stream_priority)(void*, int*) noexcept nogil
        int (*is_stream_capturing)(void*) noexcept nogil
        int (*record_event)(void**, void*, uint32_t) noexcept nogil
        int (*elapsed_time)(void*, void*, double*) noexcept nogil
        int (*record_data_ptr_on_stream)(void*, void*) noexcept nogil
        int (*device_capability)(int, uint64_t*) noexcept nogil
    ctypedef struct l0rt_device_guard:
        const l0rt_guard_impl* impl
        int original_device
        int current_device
    int l0rt_device_guard_enter(l0rt_device_guard*, const l0rt_guard_impl*, int)
    int l0rt_device_guard_set_index(l0rt_device_guard*, int)
    void l0rt_device_guard_reset_device(l0rt_device_guard*)
    ctypedef struct l0rt_stream_guard:
        const l0rt_guard_impl* impl
        int original_device
        void* original_stream
        void* current_stream
        void* left_stream
    int l0rt_stream_guard_enter(l0rt_stream_guard*, const l0rt_guard_impl*, void*)
    void l0rt_stream_guard_reset(l0rt_stream_guard*)
    ctypedef struct l0rt_optional_device_guard:
        l0rt_device_guard guard
        int engaged
    int l0rt_optional_device_guard_set_index(l0rt_optional_device_guard*, const l0rt_guard_impl*, int)
    void l0rt_optional_device_guard_reset(l0rt_optional_device_guard*)
    ctypedef struct l0rt_optional_stream_guard:
        l0rt_stream_guard guard
        int engaged
    int l0rt_optional_stream_guard_reset_stream(l0rt_optional_stream_guard*, const l0rt_guard_impl*, void*)
    void l0rt_optional_stream_guard_reset(l0rt_optional_stream_guard*)
    ctypedef struct l0rt_multi_stream_guard:
        const l0rt_guard_impl* impl
        int original_device
        size_t count
        void** originals
    int l0rt_multi_stream_guard_enter(
        l0rt_multi_stream_guard*, const l0rt_guard_impl*, void* const*, size_t, void**)
    void l0rt_multi_stream_guard_reset(l0rt_multi_stream_guard*)
    int L0RT_GUARD_IMPL_VERSION
    int L0RT_EVENT_TIMING

# What a function may leave as a Python exception is, for a C caller, its return value: a table's entries have no
# `except` clause, and these are their types without it.
ctypedef int (*int_int)(int) noexcept nogil
ctypedef int (*int_ptr)(void*) noexcept nogil
ctypedef int (*int_ptrs)(void*, void*) noexcept nogil
ctypedef int (*int_place_ptr)(void**, void*) noexcept nogil
ctypedef int (*int_place_ptr_flags)(void**, void*, uint32_t) noexcept nogil
ctypedef int (*int_ptrs_double)(void*, void*, double*) noexcept nogil
ctypedef int (*int_int_bits)(int, uint64_t*) noexcept nogil
ctypedef void* (*ptr_int)(int) noexcept nogil
ctypedef void* (*ptr_int_int)(int, int) noexcept nogil
ctypedef void* (*ptr_ptr)(void*) noexcept nogil
