# SPDX-License-Identifier: Apache-2.0
"""The host allocator: the caching core on pinned memory, one heap a context.

Pinned memory has no stream's order: what is freed may be handed out at once, unless work that was given to a stream
still uses it. Whoever gives such work calls block_use.
"""

import gc
import os
from _thread import allocate_lock

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.core.memory cimport memory_release, memory_reserve
from l0rt.runtime.alloc.arena_index cimport heap_arena
from l0rt.runtime.alloc.atomics cimport load, spin_lock, spin_unlock, store
from l0rt.runtime.alloc.heap cimport arena_attempt, block_find, heap_create, heap_destroy, heap_trim, heap_tune
from l0rt.runtime.alloc.history cimport guard_bytes, history_follow, history_reset, history_wanted, host_flags
from l0rt.runtime.alloc.reclaim cimport background_add, background_end, background_forget
from l0rt.runtime.alloc.share cimport private_pool_release
from l0rt.runtime.alloc.stats cimport count_oom, heap_reset_accumulated, heap_reset_peak, heap_stats
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.lazy cimport on_fork_child
from l0rt.runtime.memory.active_pool cimport pool_for
from l0rt.runtime.memory.device cimport note_oom, raise_status
from l0rt.runtime.memory.operations cimport (
    close_heap,
    forget_heap,
    machine_memory,
    mark_memory,
    shared_is_held,
    stream_ops,
    told,
)
from l0rt.runtime.memory.placing cimport *
from l0rt.runtime.streams.capture cimport capture_refuse
from l0rt.runtime.streams.devices cimport core_device, device_at, device_record, device_total
from l0rt.runtime.streams.naming cimport index_of
from l0rt.runtime.streams.stream_pool cimport streams_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport host_clock_ns, refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_ERROR_DEVICE_LOST, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, ZE_RESULT_SUCCESS, ze_result_t

from l0rt import config
from l0rt._base import callers
from l0rt.config import alloc_options
from l0rt.errors import OutOfMemoryError
from l0rt._base.integers import whole_number
from l0rt.runtime.lazy import DRAIN, MEMORY, VIEWS, on_exit
from l0rt.runtime.memory.explanation import host_text
from l0rt.runtime.memory.observers import asked, reported
from l0rt.runtime.memory.trace import figures_of, sites
from l0rt.runtime.streams.devices import lazy
from l0rt.ze import pci

cdef enum:
    HOST = -1                       # the device number for pinned memory in calls of observers


cdef l0rt_arena* host_arena(l0rt_device* device) except NULL nogil:
    return arena_on(device, NULL, False)


cdef l0rt_arena* arena_on(l0rt_device* device, l0rt_private_pool* pool, bint is_given) except NULL nogil:
    """The arena of a node's pool, if one is given, else of the node that is near the device."""
    cdef l0rt_arena* arena
    if load(&device.host_heap) == NULL:
        with gil:
            make_host_heap(device)
    if has_nodes and not is_given:
        pool = near[device.index]
    arena = heap_arena(<l0rt_heap*>load(&device.host_heap), NULL, pool)
    if arena == NULL:
        with gil:
            raise MemoryError()
    return arena


cdef int make_host_heap(l0rt_device* device) except -1:
    """Make the heap of the device's context, for all devices of that context. Nobody sees it before it behaves as it
    should. To find out how runs Python: other threads may be making one."""
    cdef l0rt_heap_options options
    cdef l0rt_host_memory* memory
    cdef l0rt_heap* heap
    cdef int i
    learn_nodes()
    mark_memory(device)
    memset(&options, 0, sizeof(options))
    memory = <l0rt_host_memory*>calloc(1, sizeof(l0rt_host_memory))     # stays as long as the heap does
    if memory == NULL:
        raise MemoryError()
    memory.device = device
    heap = heap_create(&host_ops, memory, &options)
    if heap == NULL:
        free(memory)
        raise MemoryError()
    try:
        tune_host(heap)
        if device.host_heap == NULL:
            for i in range(device_total()):
                if device_record(i).context == device.context:
                    store(&device_record(i).host_heap, heap)
            heap = NULL
    finally:
        if heap != NULL:
            with nogil:
                heap_destroy(heap)
            free(memory)
    tune_host(<l0rt_heap*>device.host_heap)      # a change meanwhile did not find it
    if history_follow(<l0rt_heap*>device.host_heap, host_flags(history_wanted()), False) != 0:
        raise MemoryError("no host memory for a history")
    return let_background(<l0rt_heap*>device.host_heap)


_changing = allocate_lock()         # starting the background thread and ending it wait for one another


cdef int let_background(l0rt_heap* heap) except -1:
    """Let the background thread look after the heap, or end it, as the configuration says."""
    cdef int failed
    if not config.alloc_conf().pinned_use_background_threads:
        end_background()
        return 0
    if not table.alive:
        return 0
    with _changing:
        failed = background_add(heap)
    if failed:
        raise OSError(failed, "no thread for pinned_use_background_threads")
    return 0


def end_background():
    """End the background thread, if there is one. False: it did not end in time, for it is in the driver."""
    cdef bint ended
    if not table.alive:
        return True
    with _changing, nogil:
        ended = background_end()
    return ended


cdef int tune_host(l0rt_heap* heap) except -1:
    """Of the configuration, what is about pinned memory."""
    cdef l0rt_tuning tuning
    conf = config.alloc_conf()
    each, together = conf.pinned_max_cached_size_mb, conf.pinned_cache_limit_mb
    memset(&tuning, 0, sizeof(tuning))
    if config.get("no_memory_caching"):
        tuning.uncached_from = 1
    elif each is not None:
        tuning.uncached_from = (<uint64_t>each << 20) + 1
    if together is None:
        together = total_ram() // (8 if os.path.exists("/dev/dxg") else 4) >> 20    # WSL pins less than there is
    tuning.cached_most = max(<uint64_t>1, <uint64_t>min(together, 1 << 40) << 20)
    tuning.rounds |= guard_bytes != 0
    cdef int status
    with nogil:
        status = heap_tune(heap, &tuning)
    return 0 if status == L0RT_OK else raise_status(status, NULL)


def total_ram():
    """Return how many bytes of memory the machine has, or the container that the process is in."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        with open("/sys/fs/cgroup/memory.max") as told:
            most = told.read().strip()
    except OSError:                 # no container, or one of the old kind
        most = "max"
    return min(whole, int(most)) if most.isdigit() else whole


def free_ram():
    """Return how many bytes of it Linux says are to be had."""
    with open("/proc/meminfo") as told:
        left = next(int(line.split()[1]) << 10 for line in told if line.startswith("MemAvailable:"))
    return min(left, total_ram())


def retune():
    """Let every heap that there is follow a configuration that has changed."""
    cdef int i
    for i in range(device_total()):
        if first_of_its_context(i):
            tune_host(<l0rt_heap*>device_record(i).host_heap)
            let_background(<l0rt_heap*>device_record(i).host_heap)


cdef l0rt_block* host_malloc(l0rt_device* device, size_t nbytes) except NULL nogil:
    return host_malloc_on(device, nbytes, NULL, False)


cdef l0rt_block* host_malloc_for(
        l0rt_stream* stream, size_t nbytes, l0rt_private_pool* pool, bint is_given) except NULL nogil:
    cdef bint is_captured
    cdef l0rt_private_pool* captured = pool_for(stream, True, &is_captured)
    if captured == NULL:
        return host_malloc_on(stream.device, nbytes, pool, is_given)
    try:
        if is_given:                # the graph's pool is on no node
            capture_refuse(stream, b"l0rt.empty(numa=...)")
        return host_malloc_on(stream.device, nbytes, captured, True)
    finally:
        private_pool_release(captured)


cdef l0rt_block* host_malloc_on(
        l0rt_device* device, size_t nbytes, l0rt_private_pool* pool, bint is_given) except NULL nogil:
    cdef l0rt_block* block = NULL
    cdef l0rt_arena* arena
    cdef bint by_limit = False
    cdef int status
    if not table.alive or device.lost:
        refuse(device)
    arena = arena_on(device, pool, is_given)
    status = arena_attempt(arena, nbytes, &block, &by_limit)
    if status == L0RT_OUT_OF_MEMORY:
        with gil:
            gc.collect()
        streams_synchronize(device, UINT64_MAX, True)
        status = arena_attempt(arena, nbytes, &block, &by_limit)
        while status == L0RT_OUT_OF_MEMORY:
            with gil:
                if not asked(HOST, nbytes, total_ram(), free_ram()):
                    raise_host_oom(device, nbytes)
            status = arena_attempt(arena, nbytes, &block, &by_limit)
    if status != L0RT_OK:
        raise_status(status, NULL)
    return block


cdef int raise_host_oom(l0rt_device* device, size_t nbytes) except -1:
    cdef l0rt_heap* heap = <l0rt_heap*>device.host_heap
    figures = figures_of(<size_t>heap, 0, nbytes)
    figures.update(free=free_ram(), total=total_ram(), source="reported by Linux")
    count_oom(heap, False)
    note_oom(heap, figures["free"], nbytes)
    raise OutOfMemoryError(f"{host_text(figures, sites(device.index, 3, True))}{reported(HOST)}",
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
    cdef int i, status
    cdef size_t pool
    cdef l0rt_heap* heap
    for i in range(device_total()):
        heap = <l0rt_heap*>device_record(i).host_heap
        for pool in [0, *_node_pools.values()]:     # 0: what is in none
            if heap == NULL:
                break
            with nogil:
                status = heap_trim(heap, NULL, <l0rt_private_pool*>pool)
            if status != L0RT_OK:
                raise_status(status, NULL)


cdef l0rt_heap* host_heap_of(device) except? NULL:
    """The heap of the pinned memory that ``device`` reaches; NULL while there is none."""
    return <l0rt_heap*>device_at(index_of(device, current_device(), lazy.device_type)).host_heap


def flat_stats(device=None):
    """Return the statistics of the pinned memory that ``device`` reaches, under torch's flat keys, sorted; empty
    before any."""
    cdef l0rt_heap* heap
    cdef l0rt_stats stats
    cdef l0rt_duration taken, given
    if not lazy.initialized:
        return {}
    heap = host_heap_of(device)
    if heap == NULL:
        return {}
    with nogil:
        durations_read(<l0rt_host_memory*>heap.self, &taken, &given)
        heap_stats(heap, &stats)
    flat = {"num_host_alloc": taken.count, "num_host_free": given.count,
            "num_alloc_retries": stats.num_alloc_retries, "num_ooms": stats.num_ooms}
    add_stat(flat, "allocations", &stats.segment.all)
    add_stat(flat, "allocated_bytes", &stats.reserved_bytes.all)
    add_stat(flat, "active_requests", &stats.active.all)
    add_stat(flat, "active_bytes", &stats.active_bytes.all)
    add_duration(flat, "host_alloc_time", &taken)
    add_duration(flat, "host_free_time", &given)
    return dict(sorted(flat.items()))


cdef int add_stat(dict flat, str name, const l0rt_stat* stat) except -1:
    flat[f"{name}.current"] = stat.current
    flat[f"{name}.peak"] = stat.peak
    flat[f"{name}.allocated"] = stat.allocated
    flat[f"{name}.freed"] = stat.freed
    return 0


cdef int add_duration(dict flat, str name, const l0rt_duration* duration) except -1:
    """In us, and kept in ns: a sum of short calls is not 0."""
    flat[f"{name}.total"] = duration.total // 1000
    flat[f"{name}.max"] = duration.most // 1000
    flat[f"{name}.min"] = duration.least // 1000
    flat[f"{name}.count"] = duration.count
    flat[f"{name}.avg"] = duration.total / 1000 / duration.count if duration.count else 0.0
    return 0


def reset_peak_stats(device=None):
    """Make every peak the current value, and forget the longest and the shortest call."""
    cdef l0rt_heap* heap = host_heap_of(device)
    if heap != NULL:
        with nogil:
            heap_reset_peak(heap)
            history_reset(heap, True)
            durations_reset(<l0rt_host_memory*>heap.self, True)


def reset_accumulated_stats(device=None):
    """Make allocated, freed and the counters 0."""
    cdef l0rt_heap* heap = host_heap_of(device)
    if heap != NULL:
        with nogil:
            heap_reset_accumulated(heap)
            history_reset(heap, False)
            durations_reset(<l0rt_host_memory*>heap.self, False)


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
    background_forget()


cdef bint _held = False             # at exit: pinned memory that is allocated has stayed


def _close():
    """At exit. Views of a Buffer, addresses of it and DLPack's capsules outlive this: other functions of `atexit` may
    read them, and so may destructors."""
    cdef int i
    for i in range(device_total()):
        if first_of_its_context(i):
            close_heap(<l0rt_heap*>device_record(i).host_heap, device_record(i), &_held)


def nothing_is_held():
    """Whether the host can read no memory of l0rt any more: a context that is destroyed takes all of its memory."""
    return not (_held or shared_is_held())


on_fork_child(_forget)
on_exit(MEMORY, _close)
on_exit(VIEWS, nothing_is_held)
on_exit(DRAIN, end_background)
config.on_change(retune, {"alloc_conf", "no_memory_caching", *alloc_options.KEYS})


# --- Pinned host memory as the caching core sees it: its table of operations, on Level Zero, and how long they take.


cdef int host_reserve(void* self, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_host_memory* memory = <l0rt_host_memory*>self
    cdef l0rt_device* device = memory.device
    cdef uint64_t start = host_clock_ns()
    cdef ze_result_t r
    if not table.alive:
        return ZE_RESULT_ERROR_DEVICE_LOST
    if nbytes > machine_memory():
        return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
    r = memory_reserve(device.context, NULL, device.info.max_alloc, device.caps.relaxed, nbytes, out)
    if r == ZE_RESULT_SUCCESS:
        duration_add(memory, &memory.taken, host_clock_ns() - start)
    return r


cdef int host_release(void* self, void* ptr, size_t nbytes) noexcept nogil:
    cdef l0rt_host_memory* memory = <l0rt_host_memory*>self
    cdef uint64_t start = host_clock_ns()
    cdef ze_result_t r
    if not table.alive:
        return 0
    r = memory_release(memory.device.context, False, ptr)
    duration_add(memory, &memory.given, host_clock_ns() - start)
    return told(memory.device, r, b"zeMemFree")


# --- The nodes of the machine. Where there are several, each has a pool, whose segments are placed on it; so cached
# blocks are of one node. The pools stay as long as the process.

cdef struct l0rt_node_memory:
    l0rt_upstream upstream
    int node

cdef bint has_nodes = False                 # the machine has several
cdef l0rt_private_pool* near[64]            # by device: of its node; NULL: unknown, or the process has a policy already
cdef dict _node_pools = {}                  # node -> address of its pool
cdef tuple _nodes = None                    # the machine's, None until they were read
sysfs = "/sys"                              # tests have another


def nodes():
    """Return the numbers of the machine's nodes that have memory."""
    global _nodes
    if _nodes is None:
        _nodes = pci.memory_nodes(sysfs)
    return _nodes


cdef int learn_nodes() except -1:
    """Find out which node is near each device."""
    global has_nodes
    cdef int i, given = 1
    if has_nodes or len(nodes()) < 2:
        return 0
    given = l0rt_placing_is_given()
    for i in range(device_total()):
        node = pci.facts(core_device(i).pci, sysfs)["numa_node"]
        near[i] = NULL if given or node not in nodes() else node_pool(node)
    has_nodes = True
    return 0


cdef l0rt_private_pool* node_pool(int node) except NULL:
    cdef l0rt_private_pool* pool
    cdef l0rt_node_memory* memory
    if node not in _node_pools:
        pool = <l0rt_private_pool*>calloc(1, sizeof(l0rt_private_pool))
        memory = <l0rt_node_memory*>calloc(1, sizeof(l0rt_node_memory))
        if pool == NULL or memory == NULL:
            free(pool)
            free(memory)
            raise MemoryError("no host memory for the pool of a node")
        memory.node = node
        memory.upstream.reserve, memory.upstream.release = node_reserve, node_release
        pool.upstream = &memory.upstream
        pool.refs = 1
        _node_pools[node] = <size_t>pool
    return <l0rt_private_pool*><size_t>_node_pools[node]


cdef l0rt_private_pool* pool_asked(l0rt_device* device, numa) except? NULL:
    """The pool for an argument ``numa``, "any" or a node; NULL: memory that is not placed."""
    cdef int node
    learn_nodes()
    if type(numa) is str:
        if numa != "any":
            raise ValueError(f"numa must be a node's number, 'any' or None, got {numa!r}")
        return NULL
    number = whole_number(numa, "numa")
    if number not in nodes():
        raise ValueError(f"numa must be a node of this machine ({', '.join(map(str, nodes()))}), got {number}")
    if not has_nodes:
        return NULL
    if l0rt_placing_is_given() < 0:
        callers.warn("numa: Linux lets this process place no memory; a container needs the capability SYS_NICE")
    node = number
    return node_pool(node)


cdef int node_reserve(l0rt_upstream* upstream, void* memory, void* stream, size_t nbytes, void** out) noexcept nogil:
    cdef l0rt_placing placing
    cdef ze_result_t r
    l0rt_placing_begin(&placing, (<l0rt_node_memory*>upstream).node)
    r = <ze_result_t>host_reserve(memory, nbytes, out)
    l0rt_placing_end(&placing, out[0] if r == ZE_RESULT_SUCCESS else NULL, nbytes)
    if r == ZE_RESULT_SUCCESS:
        return L0RT_OK
    return L0RT_OUT_OF_MEMORY if host_ops.is_oom(r) else r


cdef void node_release(l0rt_upstream* upstream, void* memory, void* stream, void* ptr, size_t nbytes) noexcept nogil:
    host_release(memory, ptr, nbytes)


cdef void duration_add(l0rt_host_memory* memory, l0rt_duration* duration, uint64_t ns) noexcept nogil:
    ns = max(ns, <uint64_t>1)
    if spin_lock(&memory.lock):
        duration.total += ns
        duration.count += 1
        duration.most = max(duration.most, ns)
        duration.least = ns if duration.least == 0 else min(duration.least, ns)
        spin_unlock(&memory.lock)


cdef void durations_read(l0rt_host_memory* memory, l0rt_duration* taken, l0rt_duration* given) noexcept nogil:
    cdef bint locked = spin_lock(&memory.lock)
    taken[0] = memory.taken
    given[0] = memory.given
    if locked:
        spin_unlock(&memory.lock)


cdef void durations_reset(l0rt_host_memory* memory, bint peaks) noexcept nogil:
    """Forget the longest and the shortest, or how many and how long all were together."""
    if not spin_lock(&memory.lock):
        return
    if peaks:
        memory.taken.most = memory.taken.least = memory.given.most = memory.given.least = 0
    else:
        memory.taken.total = memory.taken.count = memory.given.total = memory.given.count = 0
    spin_unlock(&memory.lock)


cdef l0rt_memory_ops host_ops
stream_ops(&host_ops)
host_ops.reserve = host_reserve
host_ops.release = host_release
