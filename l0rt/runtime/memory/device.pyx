# SPDX-License-Identifier: Apache-2.0
"""The device allocator: the caching core on Level Zero's device memory, one heap a device."""

import gc

from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t, uintptr_t

from l0rt._base.arguments cimport checked_size, is_whole, whole
from l0rt._base.interrupts cimport interrupt_raise
from l0rt.runtime.alloc.allocator cimport tuning_of
from l0rt.runtime.alloc.arena_index cimport heap_arena, heap_poll, heap_reclaim
from l0rt.runtime.alloc.atomics cimport load, load_int, store
from l0rt.runtime.alloc.deferred_free cimport block_use
from l0rt.runtime.alloc.growth cimport least_growth, least_move, moving
from l0rt.runtime.alloc.heap cimport (
    arena_attempt,
    block_find,
    block_raw,
    heap_create,
    heap_destroy,
    heap_set_limit,
    heap_trim,
    heap_tune,
    raw_free,
)
from l0rt.runtime.alloc.history cimport (
    OOM,
    RECORDS_PINNED,
    context_begin,
    context_end,
    guard_bytes,
    history_follow,
    history_note,
    history_reset,
    history_wanted,
)
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_hold, private_pool_release
from l0rt.runtime.alloc.stats cimport (
    count_oom,
    heap_allocated_bytes,
    heap_limit,
    heap_reserved_bytes,
    heap_reset_accumulated,
    heap_reset_peak,
    heap_tuning,
    stats_of_heap,
)
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.current.failure cimport attach, note_failure
from l0rt.runtime.current.guard cimport xpu_impl
from l0rt.runtime.current.thread cimport current_device, stream_or_current, thread_peek
from l0rt.runtime.lazy cimport LazyInit, on_fork_child
from l0rt.runtime.memory.active_pool cimport (
    active_pool_keep,
    arena_asked,
    fill_block,
    filling,
    pool_for,
    set_filling,
)
from l0rt.runtime.memory.operations cimport (
    close_heap,
    device_ops,
    device_options,
    forget_heap,
    mark_memory,
    shared_malloc,
)
from l0rt.runtime.memory.pluggable cimport current_upstream, raise_failure
from l0rt.runtime.streams.devices cimport core_device, device_at, device_record, device_total
from l0rt.runtime.streams.naming cimport index_of, needed
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.stream_pool cimport streams_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport *

from l0rt import config
from l0rt._base.described import takes_device
from l0rt.config import alloc_options
from l0rt.errors import InvalidArgumentError, L0Error, OutOfMemoryError
from l0rt.runtime.lazy import MEMORY, on_exit
from l0rt.runtime.memory.explanation import device_text
from l0rt.runtime.memory.observers import ask, asked, reported
from l0rt.runtime.memory.trace import figures_of, segments, sites
from l0rt.runtime.streams.devices import lazy, memory_on_card, other_processes
from l0rt.ze.fdinfo import used_bytes
from l0rt.ze.status import error_of


cdef LazyInit xpu = lazy     # typed: whether it is ready costs no look-up

# --- Heaps and arenas, made when they are first needed.


cdef l0rt_heap* device_heap(l0rt_device* device) except NULL nogil:
    if load(&device.heap) == NULL:
        with gil:
            make_heap(device)
    return <l0rt_heap*>load(&device.heap)


cdef int make_heap(l0rt_device* device) except -1:
    """Make it complete before it becomes visible. Reading the configuration runs Python, so other threads may be
    making one."""
    cdef l0rt_heap_options options
    cdef l0rt_heap* heap
    mark_memory(device)
    device_options(device, &options)
    heap = heap_create(&device_ops, device, &options)
    if heap == NULL:
        raise MemoryError()
    heap.upstream = current_upstream()
    try:
        tune(heap, device)
        if device.heap == NULL:
            store(&device.heap, heap)
            heap = NULL
    finally:
        if heap != NULL:
            with nogil:
                heap_destroy(heap)
    if history_follow(<l0rt_heap*>device.heap, history_wanted() & ~<int64_t>RECORDS_PINNED, False) != 0:
        raise MemoryError("no host memory for a history")
    return tune(<l0rt_heap*>device.heap, device)    # a change meanwhile did not find it


cdef int tune(l0rt_heap* heap, l0rt_device* device) except -1:
    """Let the heap behave as the configuration says."""
    cdef l0rt_tuning tuning
    conf = config.alloc_conf(index=device.index)
    tuning_of(conf, 1 if config.get("no_memory_caching") or heap.upstream != NULL else 0, &tuning)
    named = config.alloc_conf_keys(index=device.index)
    tuning.has_choice = "segments" in named or (
        "expandable_segments" in named and (device.caps.vmm or not conf.expandable_segments))
    # Measured, and not asked for: maps bind nothing here, and calls are few with torch's segments.
    if not conf.expandable_segments and "segments" not in named and config.is_measured("expandable_segments"):
        tuning.torch_segments = True
    tuning.rounds |= guard_bytes != 0
    cdef uint64_t limit = limit_of(device)
    cdef int status
    with nogil:
        heap_set_limit(heap, limit)
        status = heap_tune(heap, &tuning)
    if status != L0RT_OK:
        raise_status(status, NULL)
    return set_filling(conf.fill_uninitialized)


def retune():
    """Let every heap that there is follow a configuration that has changed."""
    cdef int i
    if lazy.opened:
        lazy.init()                 # raises in a forked child, with the reason
    set_filling(config.alloc_conf().fill_uninitialized)
    for i in range(device_total()):
        if device_record(i).heap != NULL:
            tune(<l0rt_heap*>device_record(i).heap, device_record(i))


_limits = {}    # device index -> bytes, as `set_limit` was called


cdef uint64_t limit_of(l0rt_device* device) except 0:
    """The limit of `set_limit`, or else the configuration's limit, if that is less than all of the memory."""
    if device.index in _limits:
        return _limits[device.index]
    fraction = config.alloc_conf(index=device.index).per_process_memory_fraction
    return UINT64_MAX if fraction >= 1 else max(1, int(fraction * device.info.total_memory))


cdef l0rt_block* malloc_slow(l0rt_stream* stream, size_t nbytes) except NULL nogil:
    cdef l0rt_arena* arena = <l0rt_arena*>load(&stream.arena)
    cdef l0rt_heap* heap
    cdef l0rt_private_pool* private_pool
    cdef l0rt_thread* thread
    cdef bint is_captured
    if arena != NULL:
        return malloc_from(arena, stream, nbytes)
    thread = thread_peek()
    arena = arena_asked(thread, stream)
    # The pool is held, whatever observers, functions and finalizers do to it meanwhile.
    if arena != NULL:
        heap, private_pool = arena.heap, arena.private_pool
        if private_pool != NULL:
            private_pool_hold(private_pool)
    else:
        heap = device_heap(stream.device)
        private_pool = pool_for(stream, False, &is_captured)
    try:
        if arena == NULL:
            if is_asleep(private_pool):
                raise_status(L0RT_ASLEEP, NULL)
            arena = heap_arena(heap, stream, private_pool)
            if arena == NULL:
                with gil:
                    raise MemoryError()
            if not is_captured:
                active_pool_keep(thread, stream, arena)
        return malloc_from(arena, stream, nbytes)
    finally:
        if private_pool != NULL and private_pool_release(private_pool):
            heap_reclaim(heap)


cdef l0rt_block* malloc_from(l0rt_arena* arena, l0rt_stream* stream, size_t nbytes) except NULL nogil:
    cdef l0rt_block* block = NULL
    cdef bint by_limit = False
    cdef int status, byte
    if not table.alive or stream.device.lost:
        refuse(stream.device)
    status = arena_attempt(arena, nbytes, &block, &by_limit)
    if status == L0RT_OUT_OF_MEMORY:
        # What unreachable objects hold may be enough, once the work that uses it is done.
        with gil:
            gc.collect()
        if not heap_tuning(arena.heap).is_async:
            streams_synchronize(stream.device, UINT64_MAX, True)
        status = arena_attempt(arena, nbytes, &block, &by_limit)
        while status == L0RT_OUT_OF_MEMORY:
            if not ask_observers(stream.device, arena.private_pool, nbytes):
                count_oom(arena.heap, by_limit)
                raise_oom(stream.device, arena.private_pool, nbytes)
            status = arena_attempt(arena, nbytes, &block, &by_limit)
    if status != L0RT_OK:
        raise_status(status, NULL)
    byte = load_int(&filling)
    if byte >= 0:
        fill_block(stream, block, <unsigned char>byte)
    return block


cdef void* shared_take(l0rt_device* device, size_t nbytes) except NULL:
    """Allocate shared memory, which is not cached. Cached memory is given back to the driver before this fails."""
    cdef l0rt_heap* heap
    while True:
        for attempt in range(2):
            try:
                return shared_malloc(device, nbytes)
            except L0Error as error:
                if error.code is None or not device_ops.is_oom(error.code[1]):
                    raise
                refused = error
            if attempt == 0:
                gc.collect()
                empty_cache(device.index)
        figures = driver_figures(device)
        if not asked(device.index, nbytes, figures["total"], figures["free"]):
            heap = device_heap(device)
            count_oom(heap, False)
            figures.update(figures_of(<size_t>heap, 0, nbytes), limit=None, refused=refused.code[0])   # it has none
            raise_explained(device, figures)


_pools = {}     # by the address of their record: functions that return those pools that observe themselves


cdef bint ask_observers(l0rt_device* device, l0rt_private_pool* private_pool, size_t nbytes) except -1 with gil:
    """Call the observers, the pool's first; True if one has freed memory, so that trying again is
    worth it."""
    cdef l0rt_heap* heap = <l0rt_heap*>device.heap
    pool = _pools[<size_t>private_pool]() if <size_t>private_pool in _pools else None
    if pool is not None and ask([pool.on_oom], nbytes):
        return True
    free, total, _, _ = free_memory(device.index)
    return asked(device.index, nbytes, min(total, heap_limit(heap)), free)


def attach_pool(size_t private_pool, pool):
    """Call ``pool().on_oom(nbytes)`` before an allocation from the pool of this record fails; None: no more."""
    if pool is None:
        _pools.pop(private_pool, None)
    else:
        _pools[private_pool] = pool


cdef int raise_status(int status, const void* ptr) except -1 nogil:
    """Raise what a status of the core means."""
    with gil:
        if status > 0:
            raise error_of(status)
        if status == L0RT_INVALID_POINTER:
            raise InvalidArgumentError(
                f"invalid device pointer: {<size_t>ptr:#x} is not the start of an allocation of l0rt")
        if status == L0RT_OWNED:
            raise InvalidArgumentError(f"invalid device pointer: {<size_t>ptr:#x} is a Buffer's memory, or another "
                                       "allocator's: it is freed there")
        if status == L0RT_DOUBLE_FREE:
            raise InvalidArgumentError(f"invalid device pointer: {<size_t>ptr:#x} was freed already")
        if status == L0RT_ASLEEP:
            raise RuntimeError("the memory pool is asleep: wake() it before allocating from it")
        if status == L0RT_INVALID_SIZE:
            raise InvalidArgumentError("an allocation must have at least one byte, got 0")
        if status == L0RT_UPSTREAM_FAILED:
            raise_failure()
        if status == L0RT_INTERRUPTED:
            interrupt_raise()
        if status == L0RT_CLOSED:
            lazy.init()
            raise RuntimeError("l0rt was shut down")
        raise MemoryError("no host memory for the allocator's bookkeeping")


cdef int raise_oom(l0rt_device* device, l0rt_private_pool* private_pool, size_t nbytes) except -1 with gil:
    cdef dict figures = figures_of(<size_t>device.heap, <size_t>private_pool, nbytes)
    figures.update(driver_figures(device))
    return raise_explained(device, figures)


cdef int raise_wake_oom(l0rt_device* device, l0rt_private_pool* private_pool) except -1:
    """There is not enough memory on this device to wake the pool."""
    cdef l0rt_heap* heap = <l0rt_heap*>device.heap
    id = (private_pool.id[0], private_pool.id[1])
    wanted = sum([segment["total_size"] for segment in segments(id, device.index)])
    count_oom(heap, False)
    figures = figures_of(<size_t>heap, <size_t>private_pool, wanted)
    return raise_explained(device, {**figures, **driver_figures(device), "wakes": True})


cdef dict driver_figures(l0rt_device* device):
    """Of the figures of an out-of-memory error, what a driver tells."""
    free, total, source, is_trusted = free_memory(device.index)
    return {"index": device.index, "free": free, "total": total, "source": source, "is_trusted": is_trusted,
            "users": other_processes(device.index)}


cdef int raise_explained(l0rt_device* device, dict figures) except -1:
    note_oom(<l0rt_heap*>device.heap, figures["free"], figures["requested"])
    raise OutOfMemoryError(f"{device_text(figures, sites(device.index))}{reported(device.index)}",
                           ("ERROR_OUT_OF_DEVICE_MEMORY", <long>ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY))


cdef int note_oom(l0rt_heap* heap, uint64_t free, uint64_t nbytes) except -1:
    """The history has that an allocation failed, and whose it was."""
    cdef uint32_t before
    if heap.arenas != NULL:
        before = context_begin(heap.arenas, NULL)
        history_note(heap, OOM, free, nbytes)
        context_end(before)
    return 0


# --- What Python asks. An index is checked by the caller of `heap_of`.


def free_memory(int index):
    """Return ``(free, total, source, is_trusted)`` for device ``index``: bytes, the source of the first number, and
    whether that source knows of all processes."""
    cdef l0rt_device* device = device_at(index)
    cdef l0rt_heap* heap = <l0rt_heap*>device.heap
    total = device.info.total_memory
    usable = core_device(index).usable_memory()
    if usable is not None:
        return min(usable, total), total, "reported by the driver", True
    told = memory_on_card(index)
    if told is not None:
        return min(told[0], total), total, "reported by system management", True
    reserved = heap_reserved_bytes(heap) if heap != NULL else 0
    used = used_bytes(core_device(index).pci)
    if used is not None:
        return max(0, total - max(used, reserved)), total, "total less what fdinfo of processes shows", False
    return max(0, total - reserved), total, "total less what this process has reserved", False


def memory_policy(int index):
    """Return how device ``index``'s allocator takes memory from the driver: ``kind`` (ranges, fit, torch), and sizes in
    bytes and times in nanoseconds that it goes by."""
    cdef l0rt_heap* heap
    cdef l0rt_device* device = device_at(index)
    with nogil:
        heap = device_heap(device)
    kind = "ranges" if heap.has_ranges else "torch" if heap.tuning.torch_segments else "fit"
    small = heap.tuning.small_segment or (0 if kind == "torch" else heap.small_segment)
    return {"kind": kind, "growth": max(least_growth(heap), heap.granule), "growth_share": heap.growth_share,
            "least_move": least_move(heap), "moving": moving(heap), "moves": heap.moves,
            "small_segment": small or (0 if kind == "ranges" else SMALL_SEGMENT)}


cdef l0rt_heap* heap_of(device) except? NULL:
    """The heap that ``device`` names; NULL while nothing was allocated on it."""
    cdef int index = current_device() if device is None else index_of(device, current_device(), lazy.device_type)
    return <l0rt_heap*>device_at(index).heap


def flat_stats(device=None):
    """Return the statistics of ``device``'s allocator under torch's flat keys, sorted; empty before any."""
    cdef l0rt_heap* heap
    if not xpu.is_ready():
        return {}
    heap = heap_of(device)
    return stats_of(<size_t>heap) if heap != NULL else {}


def stats_of(size_t heap):
    """Return the statistics of the heap at the address ``heap``."""
    heap_poll(<l0rt_heap*>heap)
    return stats_of_heap(<l0rt_heap*>heap)


cdef int64_t allocated_bytes(device) except -1:
    cdef l0rt_heap* heap
    if device_total() == 0 or not xpu.is_ready():
        return 0
    heap = heap_of(device)
    return heap_allocated_bytes(heap) if heap != NULL else 0


cdef int64_t reserved_bytes(device) except -1:
    cdef l0rt_heap* heap = heap_of(device) if xpu.is_ready() else NULL
    if heap == NULL:
        return 0
    heap_poll(heap)
    return heap_reserved_bytes(heap)


@takes_device
def memory_allocated(device=None):
    """Return the size of all allocated blocks of ``device`` in bytes.

    Returns
    -------
    int
        Bytes.
    """
    return allocated_bytes(device)


@takes_device
def memory_reserved(device=None):
    """Return how many bytes of ``device`` the allocator has reserved, in use and cached.

    Returns
    -------
    int
        Bytes.
    """
    return reserved_bytes(device)


def memory_info(device=None):
    """Return what `free_memory` does of ``device``."""
    lazy.init()
    return free_memory(index_of(device, current_device(), lazy.device_type))


def reset_peak_stats(device=None):
    """Set every peak to the current value."""
    cdef l0rt_heap* heap = heap_of(device)
    if heap != NULL:
        heap_poll(heap)
        with nogil:
            heap_reset_peak(heap)
            history_reset(heap, True)


def reset_accumulated_stats(device=None):
    """Make allocated, freed and the counters 0."""
    cdef l0rt_heap* heap = heap_of(device)
    if heap != NULL:
        heap_poll(heap)
        with nogil:
            heap_reset_accumulated(heap)
            history_reset(heap, False)


def set_limit(limit, device=None):
    """Let ``device`` reserve at most ``limit`` bytes, None: as much as the configuration says."""
    cdef uint64_t bytes
    if limit is not None:
        if not is_whole(limit):
            raise TypeError(f"a memory limit must be an int (bytes) or None, got {type(limit).__name__}")
        limit = whole(limit, "a memory limit")
        if not 0 < limit < UINT64_MAX:
            raise ValueError(f"a memory limit must be from 1 to 2**64 - 2 bytes, got {limit}")
    cdef l0rt_device* record = device_at(index_of(device, current_device(), lazy.device_type))
    cdef l0rt_heap* heap = device_heap(record)
    if limit is not None:
        _limits[record.index] = limit
    else:
        _limits.pop(record.index, None)
    bytes = limit_of(record)
    with nogil:
        heap_set_limit(heap, bytes)


def get_limit(device=None):
    """Return the memory limit of ``device`` in bytes, or None if there is none."""
    lazy.init()
    cdef uint64_t limit = limit_of(device_at(index_of(device, current_device(), lazy.device_type)))
    return None if limit == UINT64_MAX else limit


cdef int trim(int index, l0rt_stream* stream, l0rt_private_pool* private_pool) except -1 nogil:
    cdef l0rt_heap* heap = <l0rt_heap*>load(&device_record(index).heap)
    cdef int status = heap_trim(heap, stream, private_pool) if heap != NULL else L0RT_OK
    return 0 if status == L0RT_OK else raise_status(status, NULL)


cdef list _keepers = []     # functions that drop what they kept for work that may be over


def let_go_before_trim(function):
    """Call ``function`` before cached memory is given back: it drops the pools that it kept for work that is over."""
    _keepers.append(function)


def let_go():
    """Call these functions."""
    for function in _keepers:
        function()


def empty_cache(device=None):
    """Give memory outside of live pools that no allocation uses back to the driver, of one device or of all."""
    cdef l0rt_heap* heap
    cdef int i, status, only = -1
    let_go()
    if device is not None:
        only = index_of(device, current_device(), lazy.device_type)
        device_at(only)
    for i in range(device_total()):
        if only >= 0 and i != only:
            continue
        heap = <l0rt_heap*>device_record(i).heap
        if heap != NULL:
            with nogil:
                status = heap_trim(heap, NULL, NULL)
            if status != L0RT_OK:
                raise_status(status, NULL)


cdef void _forget() noexcept nogil:
    cdef int i
    for i in range(device_total()):
        forget_heap(<l0rt_heap*>device_record(i).heap)


def _close():
    cdef int i
    for i in range(device_total()):
        close_heap(<l0rt_heap*>device_record(i).heap, device_record(i), NULL)


on_fork_child(_forget)
on_exit(MEMORY, _close)
config.on_change(retune, {"alloc_conf", "no_memory_caching", *alloc_options.KEYS})


cdef int impl_record_data_ptr(void* ptr, void* stream) except -1 nogil:
    cdef l0rt_block* block = block_find(ptr)
    cdef int status = L0RT_INVALID_POINTER
    needed(stream, b"a stream")
    if block != NULL:
        status = block_use(block, stream)
    return raise_status(status, ptr) if status != 0 else 0


cdef int table_record_data_ptr(void* ptr, void* stream) noexcept nogil:
    attach()
    if (<int (*)(void*, void*) noexcept nogil>impl_record_data_ptr)(ptr, stream) < 0:
        return (<int (*)() noexcept nogil>note_failure)()
    return 0


xpu_impl.record_data_ptr_on_stream = table_record_data_ptr


# --- Device memory by its address, which nothing owns.


def malloc(nbytes, device=None, Queue stream=None):
    """Return the address of ``nbytes`` bytes in a stream's order; 0 for 0 bytes."""
    cdef size_t size = checked_size(nbytes)
    cdef l0rt_block* block
    cdef void* ptr
    cdef l0rt_stream* on = stream_or_current(device, stream)
    if size == 0:
        return 0
    with nogil:
        block = malloc_slow(on, size)
        ptr = block_raw(block, RAW)
    return <uintptr_t>ptr


def free(size_t address):
    """Free the allocation that starts at ``address``."""
    cdef int status = L0RT_OK
    with nogil:
        if address != 0:
            status = raw_free(<void*>address, RAW)
    if status != L0RT_OK:
        raise_status(status, <void*>address)
