# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint64_t

from l0rt.core.driver cimport Context
from l0rt.ze.api cimport (
    ze_context_handle_t,
    ze_device_handle_t,
    ze_ipc_mem_handle_t,
    ze_memory_type_t,
    ze_physical_mem_handle_t,
    ze_result_t,
)


# Status in, status out: the allocators decide what a refusal means. `device` NULL: host memory.
cdef ze_result_t memory_reserve(
    ze_context_handle_t context, ze_device_handle_t device, uint64_t max_alloc, bint relaxed, size_t nbytes,
    void** out) noexcept nogil
cdef ze_result_t memory_release(ze_context_handle_t context, bint blocking, void* ptr) noexcept nogil
cdef ze_result_t memory_import(ze_context_handle_t context, void* ptr, size_t nbytes) noexcept nogil
cdef ze_result_t memory_shared(
    ze_context_handle_t context, ze_device_handle_t device, size_t nbytes, void** out) noexcept nogil
cdef ze_memory_type_t memory_kind(ze_context_handle_t context, const void* ptr) noexcept nogil
# `device` may become NULL: host memory belongs to none.
cdef ze_result_t memory_allocation(
    ze_context_handle_t context, const void* ptr, ze_memory_type_t* kind, ze_device_handle_t* device, size_t* base,
    size_t* nbytes) noexcept nogil


# The allocation around an address; no other of this process ever has the same id.
cdef struct l0rt_identity:
    void* base
    size_t nbytes
    uint64_t id
    ze_memory_type_t type

cdef ze_result_t memory_identify(ze_context_handle_t context, const void* ptr, l0rt_identity* out) noexcept nogil
# For other processes: what they open the allocation with that begins at an address; and that, and its end.
cdef ze_result_t memory_share(ze_context_handle_t context, const void* ptr, ze_ipc_mem_handle_t* out) noexcept nogil
# The same for addresses that physical memory is mapped to, with the capability `range_ipc`; and the handle's end.
cdef ze_result_t range_share(
    ze_context_handle_t context, const void* base, size_t nbytes, ze_ipc_mem_handle_t* out) noexcept nogil
cdef ze_result_t range_unshare(ze_context_handle_t context, const ze_ipc_mem_handle_t* handle) noexcept nogil
cdef ze_result_t memory_open(ze_context_handle_t context, ze_device_handle_t device,
                             const ze_ipc_mem_handle_t* handle, void** out) noexcept nogil
cdef ze_result_t memory_close(ze_context_handle_t context, const void* ptr) noexcept nogil


@cython.final
cdef class Allocation:
    cdef void* _h
    cdef readonly size_t nbytes
    cdef readonly Context context

    @staticmethod
    cdef Allocation host(Context context, size_t nbytes)


# Status in, status out, too. Sizes and addresses are multiples of 2 MiB.
cdef ze_result_t virtual_reserve(ze_context_handle_t context, size_t nbytes, void** out) noexcept nogil
cdef ze_result_t virtual_free(ze_context_handle_t context, void* base, size_t nbytes) noexcept nogil
cdef ze_result_t physical_create(
    ze_context_handle_t context, ze_device_handle_t device, size_t nbytes, ze_physical_mem_handle_t* out) noexcept nogil
cdef ze_result_t physical_destroy(ze_context_handle_t context, ze_physical_mem_handle_t physical) noexcept nogil
cdef ze_result_t virtual_map(
    ze_context_handle_t context, void* address, size_t nbytes, ze_physical_mem_handle_t physical) noexcept nogil
cdef ze_result_t virtual_unmap(ze_context_handle_t context, void* address, size_t nbytes) noexcept nogil
