# SPDX-License-Identifier: Apache-2.0
"""Virtual memory: addresses and physical memory, each by itself, and one mapped at the other."""

from libc.string cimport memset

from l0rt.ze.api cimport *
from l0rt.ze.table cimport ze

cdef extern from "l0rt/atomics.h" nogil:
    void* load "l0rt_load" (void** where) noexcept
    void store "l0rt_store" (void** where, void* value) noexcept

# Where the next range is asked for: behind the last one, so that they share the pointer map's leaves. Only a hint:
# threads may take the same one, and the driver refuses it to the second. Atomic.
cdef void* behind = NULL


cdef ze_result_t virtual_reserve(ze_context_handle_t context, size_t nbytes, void** out) noexcept nogil:
    """Reserve addresses without memory."""
    out[0] = NULL
    cdef ze_result_t r = ze.zeVirtualMemReserve(context, load(&behind), nbytes, out)
    if r != ZE_RESULT_SUCCESS:
        r = ze.zeVirtualMemReserve(context, NULL, nbytes, out)
    if r == ZE_RESULT_SUCCESS:
        store(&behind, <char*>out[0] + nbytes)
    return r


cdef ze_result_t virtual_free(ze_context_handle_t context, void* base, size_t nbytes) noexcept nogil:
    """Give a reservation back, the whole of it; nothing is mapped there any more."""
    return ze.zeVirtualMemFree(context, base, nbytes)


cdef ze_result_t physical_create(
    ze_context_handle_t context, ze_device_handle_t device, size_t nbytes, ze_physical_mem_handle_t* out
) noexcept nogil:
    """Make device memory without an address."""
    cdef ze_physical_mem_desc_t desc
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC
    desc.size = nbytes
    out[0] = NULL
    return ze.zePhysicalMemCreate(context, device, &desc, out)


cdef ze_result_t physical_destroy(ze_context_handle_t context, ze_physical_mem_handle_t physical) noexcept nogil:
    """Give physical memory back that is mapped nowhere."""
    return ze.zePhysicalMemDestroy(context, physical)


cdef ze_result_t virtual_map(
    ze_context_handle_t context, void* address, size_t nbytes, ze_physical_mem_handle_t physical
) noexcept nogil:
    """Map all of ``physical`` at ``address``, to be read and written; a failure leaves nothing mapped.

    Intel's driver makes the memory resident here, so that running out is this call's answer, and may have registered
    a mapping that it then refuses: it is undone, and whether there was any does not matter.
    """
    cdef ze_result_t r = ze.zeVirtualMemMap(
        context, address, nbytes, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE)
    if r != ZE_RESULT_SUCCESS:
        <void>ze.zeVirtualMemUnmap(context, address, nbytes)
    return r


cdef ze_result_t virtual_unmap(ze_context_handle_t context, void* address, size_t nbytes) noexcept nogil:
    """Take the memory away from these addresses: whole pieces as they were mapped, which no work uses any more."""
    return ze.zeVirtualMemUnmap(context, address, nbytes)
