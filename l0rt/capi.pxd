# SPDX-License-Identifier: Apache-2.0
# The C API for Cython: `from l0rt.capi cimport *`. Every function may be called from any thread without the GIL. A
# return of -1 or NULL means failure: a Python exception is set (the GIL is taken only then), and l0rt_last_error tells
# the same without the GIL.

from libc.stdint cimport uint32_t

from l0rt.capiobjects cimport *
from l0rt.runtime.streams.guard_impl cimport l0rt_guard_impl

cdef extern from "l0rt/l0rt.h" nogil:
    # opaque: whoever made a module releases it; a kernel is its module's
    ctypedef struct l0rt_module:
        pass
    ctypedef struct l0rt_kernel:
        pass
    ctypedef struct l0rt_arg:
        const void* value       # NULL: local memory of `size` bytes
        size_t size
    enum: L0RT_MODULE_SPIRV
    enum: L0RT_MODULE_NATIVE
    enum: L0RT_LAUNCH_COOPERATIVE

cdef int l0rt_init() except -1 nogil
cdef int l0rt_device_count() except -1 nogil
cdef int l0rt_current_device() noexcept nogil
cdef int l0rt_exchange_device(int device) except -1 nogil
cdef l0rt_stream* l0rt_current_stream(int device) except NULL nogil
cdef l0rt_stream* l0rt_exchange_stream(l0rt_stream* stream) except NULL nogil
cdef l0rt_stream* l0rt_pool_stream(int device, int priority) except NULL nogil
cdef void* l0rt_stream_handle(l0rt_stream* stream) except NULL nogil
cdef int l0rt_stream_synchronize(l0rt_stream* stream) except -1 nogil
cdef int l0rt_device_synchronize(int device) except -1 nogil
cdef void* l0rt_malloc(size_t nbytes, int device, l0rt_stream* stream) except? NULL nogil
cdef int l0rt_free(void* ptr) except -1 nogil
cdef int l0rt_free_async(void* ptr, l0rt_stream* stream) except -1 nogil
cdef int l0rt_record_stream(void* ptr, l0rt_stream* stream) except -1 nogil
cdef int l0rt_memcpy_async(void* dst, const void* src, size_t nbytes, l0rt_stream* stream) except -1 nogil
cdef int l0rt_memset_async(void* dst, int value, size_t nbytes, l0rt_stream* stream) except -1 nogil
cdef int l0rt_record_use(void* ptr, l0rt_stream* stream) except -1 nogil
# The guard table of a device type; NULL and NotImplementedError if it has none. It lives as long as the process.
cdef const l0rt_guard_impl* l0rt_guard_impl_of(const char* type) except NULL nogil
cdef l0rt_module* l0rt_module_create(
    int device, const void* code, size_t nbytes, int format, const char* options) except NULL nogil
cdef int l0rt_module_release(l0rt_module* module) except -1 nogil
cdef l0rt_kernel* l0rt_kernel_get(l0rt_module* module, const char* name) except NULL nogil
cdef int l0rt_launch(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const l0rt_arg* args, uint32_t count,
    unsigned int flags, l0rt_stream* stream) except -1 nogil
cdef int l0rt_launch_with_offset(
    l0rt_kernel* kernel, const uint32_t* groups, const uint32_t* group_size, const uint32_t* global_offset,
    const l0rt_arg* args, uint32_t count, unsigned int flags, l0rt_stream* stream) except -1 nogil
cdef int l0rt_last_error(char* text, size_t size) noexcept nogil
