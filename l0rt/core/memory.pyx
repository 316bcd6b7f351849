# SPDX-License-Identifier: Apache-2.0
"""Memory: USM allocations of every kind, their residency and release; virtual memory."""

cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memset

from l0rt.core.driver cimport Context
from l0rt.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP, DROP_LATER, is_device_lost
from l0rt.ze.table cimport ze

# What a host cache line and the widest vector want; device segments are aligned to the largest page.
cdef size_t HOST_ALIGNMENT = 64
cdef size_t DEVICE_ALIGNMENT = 1 << 16


cdef ze_result_t memory_reserve(
    ze_context_handle_t context, ze_device_handle_t device, uint64_t max_alloc, bint relaxed, size_t nbytes,
    void** out) noexcept nogil:
    """Allocate device memory (host memory if ``device`` is NULL), physically backed when it returns.

    Device memory is made resident on its owner at once, never on peers: running out is then this call's answer and
    not a lost device at first use. A driver that cannot do so (it refuses the call as such) is trusted.
    """
    cdef ze_device_mem_alloc_desc_t device_desc
    cdef ze_host_mem_alloc_desc_t host_desc
    cdef ze_relaxed_allocation_limits_exp_desc_t relaxed_desc
    cdef ze_result_t r
    memset(&relaxed_desc, 0, sizeof(relaxed_desc))
    relaxed_desc.stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC
    relaxed_desc.flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE
    cdef const void* extra = <const void*>&relaxed_desc if relaxed and max_alloc and nbytes > max_alloc else NULL
    out[0] = NULL
    if device == NULL:
        memset(&host_desc, 0, sizeof(host_desc))
        host_desc.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC
        host_desc.pNext = extra
        return ze.zeMemAllocHost(context, &host_desc, nbytes, HOST_ALIGNMENT, out)  # CHECK: the caller's
    memset(&device_desc, 0, sizeof(device_desc))
    device_desc.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
    device_desc.pNext = extra
    r = ze.zeMemAllocDevice(context, &device_desc, nbytes, DEVICE_ALIGNMENT, device, out)
    if r != ZE_RESULT_SUCCESS:
        return r
    r = ze.zeContextMakeMemoryResident(context, device, out[0], nbytes)
    if r == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY or r == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY or is_device_lost(r):
        DROP_LATER(ze.zeMemFree(context, out[0]), b"zeMemFree")     # the caller may hold locks
        out[0] = NULL
        return r
    return ZE_RESULT_SUCCESS


cdef ze_result_t memory_import(ze_context_handle_t context, void* ptr, size_t nbytes) noexcept nogil:
    """Let devices reach host memory that is there already, whole pages of it, as they reach allocations.

    `memory_release` ends that. A driver that gives another address has not done what was asked.
    """
    cdef ze_host_mem_alloc_desc_t desc
    cdef ze_external_memmap_sysmem_ext_desc_t source
    cdef void* out = NULL
    cdef ze_result_t r
    memset(&source, 0, sizeof(source))
    source.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC
    source.pSystemMemory = ptr
    source.size = nbytes
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC
    desc.pNext = &source
    r = ze.zeMemAllocHost(context, &desc, nbytes, 0, &out)
    if r == ZE_RESULT_SUCCESS and out != ptr:
        DROP(ze.zeMemFree(context, out), b"zeMemFree")
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    return r


cdef ze_result_t memory_shared(
    ze_context_handle_t context, ze_device_handle_t device, size_t nbytes, void** out) noexcept nogil:
    """Allocate memory that migrates between host and ``device``."""
    cdef ze_device_mem_alloc_desc_t device_desc
    cdef ze_host_mem_alloc_desc_t host_desc
    memset(&device_desc, 0, sizeof(device_desc))
    device_desc.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
    memset(&host_desc, 0, sizeof(host_desc))
    host_desc.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC
    out[0] = NULL
    return ze.zeMemAllocShared(context, &device_desc, &host_desc, nbytes, HOST_ALIGNMENT, device, out)


cdef ze_result_t memory_release(ze_context_handle_t context, bint blocking, void* ptr) noexcept nogil:
    """Free an allocation; ``blocking`` lets the driver wait for work that still uses it."""
    cdef ze_memory_free_ext_desc_t desc
    if blocking and ze.zeMemFreeExt != NULL:
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC
        desc.freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE
        return ze.zeMemFreeExt(context, &desc, ptr)
    return ze.zeMemFree(context, ptr)


cdef ze_memory_type_t memory_kind(ze_context_handle_t context, const void* ptr) noexcept nogil:
    """Return what the driver knows ``ptr`` to be; UNKNOWN for memory that is not this context's."""
    cdef ze_memory_allocation_properties_t properties
    memset(&properties, 0, sizeof(properties))
    properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
    if ze.zeMemGetAllocProperties(context, ptr, &properties, NULL) != ZE_RESULT_SUCCESS:
        return ZE_MEMORY_TYPE_UNKNOWN
    return properties.type


cdef ze_result_t memory_allocation(
    ze_context_handle_t context, const void* ptr, ze_memory_type_t* kind, ze_device_handle_t* device, size_t* base,
    size_t* nbytes) noexcept nogil:
    """Find the allocation that ``ptr`` is in: its kind, its device, and where it begins and ends.

    The kind is UNKNOWN for memory that is not this context's.
    """
    cdef ze_memory_allocation_properties_t properties
    cdef ze_result_t r
    cdef void* begin = NULL
    memset(&properties, 0, sizeof(properties))
    properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
    kind[0], device[0], base[0], nbytes[0] = ZE_MEMORY_TYPE_UNKNOWN, NULL, 0, 0
    r = ze.zeMemGetAllocProperties(context, ptr, &properties, device)
    if r == ZE_RESULT_SUCCESS and properties.type != ZE_MEMORY_TYPE_UNKNOWN:
        r = ze.zeMemGetAddressRange(context, ptr, &begin, nbytes)
        kind[0], base[0] = properties.type, <size_t>begin
    return r


cdef ze_result_t memory_identify(ze_context_handle_t context, const void* ptr, l0rt_identity* out) noexcept nogil:
    """Ask where the allocation around ``ptr`` begins, how long it is, and which it is."""
    cdef ze_memory_allocation_properties_t properties
    cdef ze_result_t r
    memset(out, 0, sizeof(l0rt_identity))
    memset(&properties, 0, sizeof(properties))
    properties.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
    r = ze.zeMemGetAddressRange(context, ptr, &out.base, &out.nbytes)
    if r == ZE_RESULT_SUCCESS:
        r = ze.zeMemGetAllocProperties(context, ptr, &properties, NULL)
    out.id, out.type = properties.id, properties.type
    return r


cdef ze_result_t memory_share(ze_context_handle_t context, const void* ptr, ze_ipc_mem_handle_t* out) noexcept nogil:
    """A handle for other processes. It ends with the allocation."""
    memset(out, 0, sizeof(ze_ipc_mem_handle_t))
    return ze.zeMemGetIpcHandle(context, ptr, out)


cdef ze_result_t range_share(
    ze_context_handle_t context, const void* base, size_t nbytes, ze_ipc_mem_handle_t* out
) noexcept nogil:
    """A handle for other processes, of what is mapped there now."""
    cdef ze_ipc_phys_mem_handle_range_ext_desc_t desc
    memset(&desc, 0, sizeof(desc))
    memset(out, 0, sizeof(ze_ipc_mem_handle_t))
    desc.stype = ZE_STRUCTURE_TYPE_IPC_PHYS_MEM_HANDLE_RANGE_EXT_DESC
    desc.size = nbytes
    return ze.zeMemGetIpcHandleWithProperties(context, base, &desc, out)


cdef ze_result_t range_unshare(ze_context_handle_t context, const ze_ipc_mem_handle_t* handle) noexcept nogil:
    """End a handle. What was opened with it stays."""
    return ze.zeMemPutIpcHandle(context, handle[0]) if ze.zeMemPutIpcHandle != NULL else ZE_RESULT_SUCCESS


cdef ze_result_t memory_open(
    ze_context_handle_t context, ze_device_handle_t device, const ze_ipc_mem_handle_t* handle, void** out
) noexcept nogil:
    """Map an allocation of another process; `memory_close` ends that."""
    out[0] = NULL
    return ze.zeMemOpenIpcHandle(context, device, handle[0], 0, out)


cdef ze_result_t memory_close(ze_context_handle_t context, const void* ptr) noexcept nogil:
    """Unmap an allocation of another process, which no work uses any more."""
    return ze.zeMemCloseIpcHandle(context, ptr)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Allocation:
    """Memory that this object owns. Made by ``Allocation.host(context, nbytes)``."""

    def __init__(self):
        raise TypeError("core.Allocation is made by Allocation.host()")

    @staticmethod
    cdef Allocation host(Context context, size_t nbytes):
        cdef Allocation self = Allocation.__new__(Allocation)
        self.context = context
        with nogil:
            CHECK(memory_reserve(context._h, NULL, 0, False, nbytes, &self._h))
        self.nbytes = nbytes
        memset(self._h, 0, nbytes)
        return self

    @property
    def ptr(self):
        """The address, 0 once closed."""
        return <size_t>self._h

    def close(self):
        """Free the memory; closing twice is harmless."""
        Allocation_release(self)

    def __dealloc__(self):
        Allocation_release(self)


made_by(Allocation, "core.Allocation is made by Allocation.host()")


cdef void Allocation_release(Allocation self) noexcept:
    cdef void* h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(memory_release(self.context._h, False, h), b"zeMemFree")


def host_allocation(Context context, size_t nbytes):
    """Return ``nbytes`` of zeroed host memory that the devices of ``context`` can reach."""
    return Allocation.host(context, nbytes)


def context_has(Context context, size_t device):
    """Return whether the context has the device with this handle. No driver tells: memory is allocated and freed."""
    cdef void* found = NULL
    cdef ze_result_t r
    with nogil:
        r = memory_reserve(context._h, <ze_device_handle_t>device, 0, False, 1, &found)
        if found != NULL:
            DROP(memory_release(context._h, False, found), b"zeMemFree")
    return r in (ZE_RESULT_SUCCESS, ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY)


# Virtual memory: addresses and physical memory, each by itself, and one mapped at the other.

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
