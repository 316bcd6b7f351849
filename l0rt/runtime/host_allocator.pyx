"""The host allocator: the caching core on pinned memory, one heap a context.

Pinned memory has no stream's order: what is freed may be handed out at once, unless work that was given to a stream
still uses it. Whoever gives such work calls block_use.
"""

import gc

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memset

from l0rt.core.memory cimport memory_reserve
from l0rt.runtime.current cimport current_device
from l0rt.runtime.device_allocator cimport raise_status
from l0rt.runtime.device_memory cimport close_heap, forget_heap, stream_ops
from l0rt.runtime.devices cimport device_at, device_record, device_total
from l0rt.runtime.heap cimport arena_malloc, block_find, heap_arena, heap_create, heap_empty_cache, heap_tune
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.naming cimport index_of
from l0rt.runtime.records cimport *
from l0rt.runtime.streampool cimport device_synchronize
from l0rt.runtime.structs cimport *
from l0rt.runtime.waits cimport refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_ERROR_DEVICE_LOST, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY

from l0rt import config
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.device_allocator import size_text, stats_of
from l0rt.runtime.devices import lazy
from l0rt.runtime.lazy import MEMORY, on_exit


cdef int op_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive:
        return ZE_RESULT_ERROR_DEVICE_LOST
    return memory_reserve(device.context, NULL, device.info.max_alloc, device.caps.relaxed, nbytes, out)


cdef l0rt_memory_ops _ops
stream_ops(&_ops)
_ops.reserve = op_reserve


cdef l0rt_arena* host_arena(l0rt_device* device) except NULL nogil:
    cdef l0rt_arena* arena
    if device.host_heap == NULL:
        with gil:
            make_heap(device)
    arena = heap_arena(<l0rt_heap*>device.host_heap, NULL, NULL)
    if arena == NULL:
        with gil:
            raise MemoryError()
    return arena


cdef int make_heap(l0rt_device* device) except -1:
    """Make the heap of the device's context, for all devices of that context. The GIL is held throughout."""
    cdef l0rt_heap_options options
    cdef l0rt_heap* heap
    cdef int i
    memset(&options, 0, sizeof(options))
    if device.host_heap != NULL:
        return 0
    heap = heap_create(&_ops, device, &options)
    if heap == NULL:
        raise MemoryError()
    tune(heap)
    for i in range(device_total()):
        if device_record(i).context == device.context:
            device_record(i).host_heap = heap
    return 0


cdef int tune(l0rt_heap* heap) except -1:
    """Of the configuration, what is about pinned memory."""
    cdef l0rt_tuning tuning
    most = config.alloc_conf().pinned_max_cached_size_mb
    memset(&tuning, 0, sizeof(tuning))
    if config.get("no_memory_caching"):
        tuning.sole_from = 1
    elif most is not None:
        tuning.sole_from = (<uint64_t>most << 20) + 1
    with nogil:
        heap_tune(heap, &tuning)
    return 0


def retune():
    """Let every heap that there is follow a configuration that has changed."""
    cdef int i
    for i in range(device_total()):
        if first_of_its_context(i):
            tune(<l0rt_heap*>device_record(i).host_heap)


cdef l0rt_block* host_malloc(l0rt_device* device, size_t nbytes) except NULL nogil:
    cdef l0rt_block* block = NULL
    cdef l0rt_arena* arena
    cdef int status
    if not table.alive or device.lost:
        refuse(device)
    arena = host_arena(device)
    status = arena_malloc(arena, nbytes, &block)
    if status == L0RT_OUT_OF_MEMORY:
        with gil:
            gc.collect()
        device_synchronize(device, UINT64_MAX)
        status = arena_malloc(arena, nbytes, &block)
        if status == L0RT_OUT_OF_MEMORY:
            with gil:
                raise_oom(device, nbytes)
    if status != L0RT_OK:
        raise_status(status, NULL)
    return block


cdef int raise_oom(l0rt_device* device, size_t nbytes) except -1:
    cdef l0rt_heap* heap = <l0rt_heap*>device.host_heap
    stats = stats_of(<size_t>heap)
    allocated, reserved = stats["allocated_bytes.all.current"], stats["reserved_bytes.all.current"]
    raise OutOfMemoryError(
        f"pinned host memory ran out: requested {size_text(nbytes)}, free unknown, allocated {size_text(allocated)}, "
        f"cached {size_text(reserved - allocated)}, limit none. `empty_host_cache` releases what is cached.",
        ("ERROR_OUT_OF_HOST_MEMORY", <long>ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY))


cdef bint is_pinned(const void* ptr, l0rt_block** block) noexcept nogil:
    """Is ``ptr`` in memory that a host allocator gave out? Then ``block`` is its block."""
    cdef int i
    block[0] = block_find(ptr)
    if block[0] == NULL:
        return False
    for i in range(device_total()):
        if block[0].arena.heap == device_record(i).host_heap:
            return True
    return False


def empty_cache():
    """Give pinned memory that no allocation uses back to the driver."""
    cdef int i
    cdef l0rt_heap* heap
    for i in range(device_total()):
        heap = <l0rt_heap*>device_record(i).host_heap
        if heap != NULL:
            with nogil:
                heap_empty_cache(heap)


def flat_stats(device=None):
    """Return the statistics of the pinned memory that ``device`` reaches, under the device allocator's keys."""
    cdef l0rt_heap* heap
    if not lazy.initialized:
        return {}
    heap = <l0rt_heap*>device_at(index_of(device, current_device(), lazy.device_type)).host_heap
    return stats_of(<size_t>heap) if heap != NULL else {}


cdef bint first_of_its_context(int index) noexcept nogil:
    cdef int i
    for i in range(index):
        if device_record(i).host_heap == device_record(index).host_heap:
            return False
    return device_record(index).host_heap != NULL


cdef void _forget() noexcept nogil:
    cdef int i
    for i in range(device_total()):
        forget_heap(<l0rt_heap*>device_record(i).host_heap)


def _close():
    cdef int i
    for i in range(device_total()):
        if first_of_its_context(i):
            close_heap(<l0rt_heap*>device_record(i).host_heap, device_record(i))


on_fork_child(_forget)
on_exit(MEMORY, _close)
