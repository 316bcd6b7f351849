"""The device allocator: the caching core on Level Zero's device memory, one heap a device."""

import gc

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from cpython.exc cimport PyErr_Clear
from l0rt.core.memory cimport memory_release, memory_reserve
from l0rt.runtime.census cimport heap_reset_accumulated, heap_reset_peak, heap_stats
from l0rt.runtime.current cimport current_device
from l0rt.runtime.devices cimport core_device, device_at, device_record, device_total
from l0rt.runtime.eventcache cimport slot_release
from l0rt.runtime.heap cimport (
    arena_malloc,
    heap_arena,
    heap_close,
    heap_create,
    heap_empty_cache,
    heap_set_limit,
)
from l0rt.runtime.lane cimport lane_ticket
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.naming cimport index_of
from l0rt.runtime.records cimport *
from l0rt.runtime.streampool cimport device_synchronize
from l0rt.runtime.structs cimport *
from l0rt.runtime.waits cimport refuse, slot_poll, slot_wait
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport is_device_lost

from l0rt.errors import InvalidArgumentError, OutOfMemoryError
from l0rt.runtime.devices import lazy
from l0rt.runtime.lazy import MEMORY, on_exit
from l0rt.ze.status import error_of

# --- The core's table of memory operations, on Level Zero. `self` is the l0rt_device.


cdef int op_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_device* device = <l0rt_device*>self
    if not table.alive or device.lost:
        return ZE_RESULT_ERROR_DEVICE_LOST
    return lost_or(device, memory_reserve(
        device.context, device.handle, device.info.max_alloc, device.caps.relaxed, nbytes, out))


cdef int op_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    return memory_release((<l0rt_device*>self).context, False, ptr) if table.alive else 0


cdef int op_record(void* self, void* stream, void** ticket) noexcept nogil:
    """NULL is the ticket of a stream that is known to be idle."""
    cdef l0rt_stream* on = <l0rt_stream*>stream
    cdef l0rt_slot* slot
    ticket[0] = NULL
    if l0rt_load64(&on.done) >= on.issued and not on.shared:
        return 0
    slot = (<l0rt_slot* (*)(l0rt_stream*) noexcept nogil>lane_ticket)(on)
    if slot == NULL:
        return forget_error()
    ticket[0] = slot
    return 0


cdef int op_query(void* self, void* ticket) noexcept nogil:
    """A lost device touches memory no more."""
    if ticket == NULL or not table.alive or (<l0rt_slot*>ticket).device.lost:
        return 0
    cdef int done = slot_poll(<l0rt_slot*>ticket)
    return 0 if done == 1 else 1 if done == 0 else ZE_RESULT_ERROR_UNKNOWN


cdef int op_wait(void* self, void* ticket) noexcept nogil:
    if ticket == NULL or not table.alive or (<l0rt_slot*>ticket).device.lost:
        return 0
    if (<int (*)(l0rt_slot*, uint64_t) noexcept nogil>slot_wait)(<l0rt_slot*>ticket, UINT64_MAX) < 0:
        return forget_error()
    return 0


cdef void op_drop(void* self, void* ticket) noexcept nogil:
    slot_release(<l0rt_slot*>ticket)


cdef int op_is_oom(int code) noexcept nogil:
    return (code == ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY or code == ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
            or code == ZE_RESULT_ERROR_UNSUPPORTED_SIZE)


cdef int forget_error() noexcept nogil:
    """The core deals in codes: what was raised below is one of them here."""
    with gil:
        PyErr_Clear()
    return ZE_RESULT_ERROR_UNKNOWN


cdef int lost_or(l0rt_device* device, ze_result_t result) noexcept nogil:
    if is_device_lost(result):
        l0rt_store_int(&device.lost, 1)
    return result


cdef void stream_ops(l0rt_memory_ops* ops) noexcept:
    """Fill in what depends on streams alone: any memory that streams use has these."""
    ops.release = op_release
    ops.record = op_record
    ops.query = op_query
    ops.wait = op_wait
    ops.drop = op_drop
    ops.is_oom = op_is_oom


cdef l0rt_memory_ops _ops
stream_ops(&_ops)
_ops.reserve = op_reserve

# --- Heaps and arenas, made when they are first needed.


cdef l0rt_heap* device_heap(l0rt_device* device) except NULL nogil:
    if device.heap == NULL:
        with gil:
            make_heap(device)
    return <l0rt_heap*>device.heap


cdef int make_heap(l0rt_device* device) except -1:
    """With the GIL held throughout, so that one thread makes it."""
    cdef l0rt_heap_options options
    options.limit = UINT64_MAX
    if device.heap == NULL:
        device.heap = heap_create(&_ops, device, &options)
        if device.heap == NULL:
            raise MemoryError()
    return 0


cdef l0rt_arena* open_arena(l0rt_stream* stream) except NULL nogil:
    cdef l0rt_arena* arena = heap_arena(device_heap(stream.device), stream)
    if arena == NULL:
        with gil:
            raise MemoryError()
    stream.arena = arena        # heap_arena makes one a stream: a second writer writes the same
    return arena


cdef l0rt_block* malloc_slow(l0rt_stream* stream, size_t nbytes) except NULL nogil:
    cdef l0rt_block* block = NULL
    cdef l0rt_arena* arena = stream_arena(stream)
    cdef int status
    if not table.alive or stream.device.lost:
        refuse(stream.device)
    status = arena_malloc(arena, nbytes, &block)
    if status == L0RT_OUT_OF_MEMORY:
        # What unreachable objects hold may be enough, once the work that uses it is done.
        with gil:
            gc.collect()
        device_synchronize(stream.device, UINT64_MAX)
        status = arena_malloc(arena, nbytes, &block)
        if status == L0RT_OUT_OF_MEMORY:
            with gil:
                raise_oom(stream.device, nbytes)
    if status != L0RT_OK:
        raise_status(status, NULL)
    return block


cdef int raise_status(int status, const void* ptr) except -1 nogil:
    """Raise what a status of the core means."""
    with gil:
        if status > 0:
            raise error_of(status)
        if status == L0RT_INVALID_POINTER:
            raise InvalidArgumentError(
                f"invalid device pointer: {<size_t>ptr:#x} is not the start of an allocation of l0rt")
        if status == L0RT_DOUBLE_FREE:
            raise InvalidArgumentError(f"invalid device pointer: {<size_t>ptr:#x} was freed already")
        if status == L0RT_INVALID_SIZE:
            raise InvalidArgumentError("an allocation has at least one byte")
        if status == L0RT_CLOSED:
            lazy.init()
            raise RuntimeError("l0rt was shut down")
        raise MemoryError("no host memory for the allocator's bookkeeping")


def size_text(nbytes):
    """Return a size as people read it: bytes, KiB, MiB or GiB with two decimals."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.2f} {unit}"
    return f"{nbytes} bytes"


cdef int raise_oom(l0rt_device* device, size_t nbytes) except -1:
    cdef l0rt_stats stats
    cdef l0rt_heap* heap = <l0rt_heap*>device.heap
    heap_stats(heap, &stats)
    allocated = stats.allocated_bytes.all.current
    pending = stats.active_bytes.all.current - allocated
    reserved = stats.reserved_bytes.all.current
    free, total, source = free_memory(device.index)
    limit = "none" if heap.limit == UINT64_MAX else size_text(heap.limit)
    raise OutOfMemoryError(
        f"XPU out of memory. Tried to allocate {size_text(nbytes)}. GPU {device.index} has a total capacity of "
        f"{size_text(total)}: requested {size_text(nbytes)}, free {size_text(free)} ({source}), "
        f"allocated {size_text(allocated)}, waiting for other streams {size_text(pending)}, "
        f"cached {size_text(reserved - allocated - pending)}, limit {limit}. "
        "Please use `empty_cache` to release all unoccupied cached memory, free buffers that are no longer needed, "
        "or raise the limit.", ("ERROR_OUT_OF_DEVICE_MEMORY", <long>ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY))


# --- What Python asks. An index is checked by the caller of `heap_of`.


def free_memory(int index):
    """Return ``(free, total, source)`` in bytes for device ``index``: who says what is free."""
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_heap* heap = <l0rt_heap*>device.heap
    total = device.info.total_memory
    usable = core_device(index).usable_memory()
    if usable is not None:
        return min(usable, total), total, "reported by the driver"
    reserved = heap.reserved if heap != NULL else 0
    return max(0, total - reserved), total, "total less what this process has reserved"


cdef l0rt_heap* heap_of(device) except? NULL:
    """The heap that ``device`` names; NULL while nothing was allocated on it."""
    cdef int index = current_device() if device is None else index_of(device, current_device(), lazy.device_type)
    return <l0rt_heap*>device_at(index).heap


cdef list _keys = []
cdef int64_t[256] _offsets


def _fill_keys():
    """List the keys of the flat statistics, sorted, with the place of each value in l0rt_stats."""
    families = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
                "active_bytes", "inactive_split_bytes", "requested_bytes")
    stats = ("current", "peak", "allocated", "freed")
    pools = ("all", "small_pool", "large_pool")
    names = [f"{f}.{p}.{s}" for f in families for p in pools for s in stats]
    names += [f"{f}.{s}" for f in ("oversize_allocations", "oversize_segments") for s in stats]
    names += ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
              "max_split_size"]
    if len(names) * sizeof(int64_t) != sizeof(l0rt_stats):
        raise AssertionError("l0rt_stats has other fields than its keys")
    for place, name in sorted(enumerate(names), key=lambda entry: entry[1]):
        _offsets[len(_keys)] = place
        _keys.append(name)


def flat_stats(device=None):
    """Return the statistics of ``device``'s allocator under torch's flat keys, sorted; empty before any."""
    cdef l0rt_heap* heap
    if not lazy.initialized:
        return {}
    heap = heap_of(device)
    return stats_of(<size_t>heap) if heap != NULL else {}


def stats_of(size_t heap):
    """Return the statistics of the heap at the address ``heap``."""
    cdef l0rt_stats stats
    cdef int64_t* values = <int64_t*>&stats
    cdef int i
    cdef dict flat = {}
    with nogil:
        heap_stats(<l0rt_heap*>heap, &stats)
    for i in range(len(_keys)):
        flat[_keys[i]] = values[_offsets[i]]
    return flat


cdef int64_t allocated_bytes(device) except -1:
    cdef l0rt_heap* heap
    cdef l0rt_arena* arena
    cdef int64_t total = 0
    cdef int pool
    if device_total() == 0 or not lazy.initialized:
        return 0
    heap = heap_of(device)
    arena = heap.arenas if heap != NULL else NULL
    while arena != NULL:
        for pool in range(POOLS):
            total += arena.accounts[pool].limit.bytes - arena.accounts[pool].room.bytes
        arena = arena.next
    return total


cdef int64_t reserved_bytes(device) except -1:
    cdef l0rt_heap* heap = heap_of(device) if lazy.initialized else NULL
    return heap.reserved if heap != NULL else 0


def memory_allocated(device=None):
    """Return the bytes that allocations on ``device`` (the current one by default) hold, each rounded up to 512."""
    return allocated_bytes(device)


def memory_reserved(device=None):
    """Return the bytes that the allocator holds of ``device`` (the current one by default), cached ones too."""
    return reserved_bytes(device)


def memory_info(device=None):
    """Return ``(free, total, source)`` in bytes of ``device``: the last says who tells what is free."""
    lazy.init()
    return free_memory(index_of(device, current_device(), lazy.device_type))


def reset_peak_stats(device=None):
    """Make every peak the current value."""
    cdef l0rt_heap* heap = heap_of(device)
    if heap != NULL:
        with nogil:
            heap_reset_peak(heap)


def reset_accumulated_stats(device=None):
    """Make allocated, freed and the counters 0."""
    cdef l0rt_heap* heap = heap_of(device)
    if heap != NULL:
        with nogil:
            heap_reset_accumulated(heap)


def set_limit(limit, device=None):
    """Let ``device`` reserve at most ``limit`` bytes, None: as much as there is."""
    cdef uint64_t bytes = UINT64_MAX
    if limit is not None:
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"a memory limit is an int of bytes or None, not {type(limit).__name__}")
        if not 0 < limit < UINT64_MAX:
            raise ValueError(f"a memory limit must be positive, got {limit}")
        bytes = limit
    cdef l0rt_device* record = device_at(index_of(device, current_device(), lazy.device_type))
    cdef l0rt_heap* heap = device_heap(record)
    with nogil:
        heap_set_limit(heap, bytes)


def get_limit(device=None):
    """Return the limit of ``device`` in bytes, None if there is none."""
    cdef l0rt_heap* heap = heap_of(device)
    return None if heap == NULL or heap.limit == UINT64_MAX else heap.limit


def empty_cache():
    """Give memory that no allocation uses back to the driver, on every device."""
    cdef l0rt_heap* heap
    cdef int i
    for i in range(device_total()):
        heap = <l0rt_heap*>device_record(i).heap
        if heap != NULL:
            with nogil:
                heap_empty_cache(heap)


cdef void forget_heap(l0rt_heap* heap) noexcept nogil:
    """In a forked child: allocations fail with the reason, frees are dropped, and neither waits for a lost lock."""
    if heap != NULL:
        heap_close(heap, L0RT_CLOSED)


cdef int close_heap(l0rt_heap* heap, l0rt_device* device) except -1:
    """At exit: give the segments back. The records stay, for objects that are dropped later."""
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    if heap == NULL:
        return 0
    with nogil:
        heap_close(heap, L0RT_CLOSED)
        arena = heap.arenas
        while arena != NULL and not device.lost:
            segment = arena.segments
            while segment != NULL:
                op_release(device, segment.raw, segment.raw_size)
                segment = segment.next
            arena = arena.next
    return 0


cdef void _forget() noexcept nogil:
    cdef int i
    for i in range(device_total()):
        forget_heap(<l0rt_heap*>device_record(i).heap)


def _close():
    cdef int i
    for i in range(device_total()):
        close_heap(<l0rt_heap*>device_record(i).heap, device_record(i))


_fill_keys()
on_fork_child(_forget)
on_exit(MEMORY, _close)
