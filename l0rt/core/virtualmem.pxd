# SPDX-License-Identifier: Apache-2.0
from l0rt.ze.api cimport ze_context_handle_t, ze_device_handle_t, ze_physical_mem_handle_t, ze_result_t


# Status in, status out, as in core/memory. Sizes and addresses are multiples of 2 MiB.
cdef ze_result_t virtual_reserve(ze_context_handle_t context, size_t nbytes, void** out) noexcept nogil
cdef ze_result_t virtual_free(ze_context_handle_t context, void* base, size_t nbytes) noexcept nogil
cdef ze_result_t physical_create(
    ze_context_handle_t context, ze_device_handle_t device, size_t nbytes, ze_physical_mem_handle_t* out) noexcept nogil
cdef ze_result_t physical_destroy(ze_context_handle_t context, ze_physical_mem_handle_t physical) noexcept nogil
cdef ze_result_t virtual_map(
    ze_context_handle_t context, void* address, size_t nbytes, ze_physical_mem_handle_t physical) noexcept nogil
cdef ze_result_t virtual_unmap(ze_context_handle_t context, void* address, size_t nbytes) noexcept nogil
