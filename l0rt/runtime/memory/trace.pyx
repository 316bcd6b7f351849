# SPDX-License-Identifier: Apache-2.0
"""What is recorded of all memory: started, stopped, and told in torch's schema, together with all segments and blocks.

A name that entries mention, such as a tag or an annotation, is known by a number. Numbers are never used again.
"""

from operator import itemgetter

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport load, mutex_lock, mutex_unlock
from l0rt.runtime.alloc.block cimport heap_largest_free, heap_snapshot, l0rt_block_info
from l0rt.runtime.alloc.history cimport *
from l0rt.runtime.alloc.stats cimport heap_limit, heap_private_bytes, heap_stats, heap_tuning, pool_available
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.memory.pluggable cimport functions_behind
from l0rt.runtime.streams.devices cimport device_record, device_total
from l0rt.runtime.streams.types cimport l0rt_device

from l0rt.runtime.alloc.allocator import STATES
from l0rt.runtime.alloc.stacks import forget, frames_of
from l0rt.runtime.memory.explanation import adaptors_of
from l0rt.ze import obstacles

ACTIONS = ("", "alloc", "free", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
           "segment_unmap", "snapshot", "oom")

cdef enum:
    MOST_NAMES = 1 << 20
    MOST_TAGS = 1 << 16

cdef list _notes = [""]
cdef dict _note_numbers = {"": 0}
cdef list _tags = [""]
cdef dict _tag_numbers = {"": 0}


cdef uint32_t number_of(str name, list names, dict numbers, int most, str what) except? 0xffffffff:
    found = numbers.get(name)
    if found is None:
        if len(names) >= most:
            raise ValueError(f"there are {most} {what} already, and no more are kept")
        found = len(names)
        names.append(name)
        numbers[name] = found
    return found


# --- Recording.


def record(int64_t flags, uint64_t capacity, skipped, bint clears):
    """Let every heap, and each that there will be, record by these flags of history.pxd. 0 stops."""
    cdef uint32_t bits = 0
    cdef int64_t before = history_wanted()
    cdef int i
    for action in skipped:
        bits |= <uint32_t>1 << ACTIONS.index(action)
    flags |= before & RECORDS_TAGS
    history_want(flags, capacity, bits)
    for i in range(device_total()):
        follow(<l0rt_heap*>load(&device_record(i).heap), flags & ~RECORDS_PINNED, clears)
        follow(<l0rt_heap*>load(&device_record(i).host_heap), host_flags(flags), clears)
    if flags & ~RECORDS_TAGS == 0 and clears:
        forget()


cdef int follow(l0rt_heap* heap, int64_t flags, bint clears) except -1:
    cdef int status = 0
    if heap != NULL:
        with nogil:
            status = history_follow(heap, flags, clears)
    if status != 0:
        raise MemoryError("no host memory for a history")
    return 0


def recorded():
    """Return the flags by which memory is recorded now."""
    return history_wanted()


def numbers_of_tags(tags):
    """Return the numbers of some tags, or of one; ValueError if nothing had one of them yet."""
    names = (tags,) if isinstance(tags, str) else tuple(tags)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a tag must be a str, got {type(name).__name__}")
        if name not in _tag_numbers:
            known = ", ".join(map(repr, filter(None, _tags)))
            raise ValueError(f"there is no tag {name!r}: those in use are {known or 'none'}")
    return frozenset([_tag_numbers[name] for name in names])


def tag_exchange(tag):
    """Let what the thread allocates have this tag from now on; return the number of the tag that it had. A number is a
    tag too, and "" is none."""
    cdef uint32_t before = thread_tag()
    cdef uint32_t number = tag if isinstance(tag, int) else number_of(tag, _tags, _tag_numbers, MOST_TAGS, "tags")
    if number != 0 and not history_wanted() & RECORDS_TAGS:
        begin_tags()
    thread_set_tag(number)
    return before


cdef int begin_tags() except -1:
    """From here on allocations have their tags; what is allocated already has none."""
    cdef int64_t flags = history_wanted() | RECORDS_TAGS
    cdef int i
    flags_add(RECORDS_TAGS)
    for i in range(device_total()):
        follow(<l0rt_heap*>load(&device_record(i).heap), flags & ~RECORDS_PINNED, False)
        follow(<l0rt_heap*>load(&device_record(i).host_heap), host_flags(flags), False)
    return 0


def metadata():
    """Return the annotation of what this thread does."""
    return _notes[thread_note()]


def set_metadata(str text):
    """Annotate the entries of what this thread does from now on."""
    thread_set_note(number_of(text, _notes, _note_numbers, MOST_NAMES, "annotations"))


def tag_sums(int index, bint of_host):
    """Return tag -> (current, peak, allocated, freed): bytes of a device's memory, or of pinned memory."""
    cdef l0rt_heap* heap = <l0rt_heap*>load(&device_record(index).host_heap if of_host else &device_record(index).heap)
    cdef l0rt_stat* sums = NULL
    cdef uint32_t capacity = len(_tags) + 1, count, i
    if heap == NULL or heap.history == NULL or capacity == 2:
        return {}
    sums = <l0rt_stat*>malloc(capacity * sizeof(l0rt_stat))
    if sums == NULL:
        raise MemoryError("no host memory for the tags' statistics")
    memset(sums, 0, capacity * sizeof(l0rt_stat))
    try:
        with nogil:
            count = history_sums(heap, sums, capacity)
        count = min(count, <uint32_t>len(_tags))
        return {_tags[i]: (sums[i].current, sums[i].peak, sums[i].allocated, sums[i].freed)
                for i in range(1, count) if sums[i].allocated or sums[i].freed or sums[i].peak}
    finally:
        free(sums)


# --- Snapshots.


def segments(pool=None, device=None):
    """Return the segments of the pool with this id or of all, on one device or all, in torch's schema."""
    return [segment for i in range(device_total()) if device is None or i == device
            for segment in told_heap(i, False, pool, None, {})]


def snapshot(device=None, bint include_traces=True, last=None, bint with_threads=False):
    """Return ``(segments, traces, host segments, host traces)``: one list of entries for each device. With ``last``, no
    more entries each than that, the last ones; ``with_threads`` adds Linux's number of the thread to each."""
    cdef list found = [], traces = [], host_found = [], host_traces = []
    cdef int i
    lines = {}
    most = max(history_limit(), 1)      # a free is one entry of the ring, and two of torch's
    if last is not None:
        most = min(most, last)
    for i in range(device_total()):
        trace, host_trace = [], []
        if device is None or i == device:
            found += told_heap(i, False, None, trace if include_traces else None, lines, with_threads)
            if is_first(i):
                host_found += told_heap(i, True, None, host_trace if include_traces else None, lines, with_threads)
        traces.append(trace[-most:])
        host_traces.append(host_trace[-most:])
    return found, traces, host_found, host_traces


cdef bint is_first(int index) noexcept nogil:
    """Is it the first device that reaches this pinned memory?"""
    cdef int i
    for i in range(index):
        if device_record(i).host_heap == device_record(index).host_heap:
            return False
    return True


cdef list told_heap(int index, bint of_host, tuple pool, list trace, dict lines, bint with_threads=False):
    """A heap's segments; ``trace`` is filled with its history until the same moment."""
    cdef l0rt_device* device = device_record(index)
    cdef l0rt_heap* heap = <l0rt_heap*>load(&device.host_heap if of_host else &device.heap)
    cdef l0rt_block_info* blocks = NULL
    cdef l0rt_block_info* more
    cdef l0rt_entry* entries
    cdef l0rt_trace copied
    cdef int64_t capacity = 1024, count
    memset(&copied, 0, sizeof(copied))
    if heap == NULL:
        return []
    try:
        while True:
            more = <l0rt_block_info*>realloc(blocks, capacity * sizeof(l0rt_block_info))
            if more == NULL:
                raise MemoryError("no host memory for a snapshot")
            blocks = more
            with nogil:
                count = heap_snapshot(heap, blocks, capacity, NULL if trace is None else &copied)
            if count <= capacity and copied.count <= copied.capacity:
                break
            capacity = max(capacity, count + count // 4)
            if copied.count > copied.capacity:
                copied.capacity = copied.count + copied.count // 8 + 1024
                entries = <l0rt_entry*>realloc(copied.entries, copied.capacity * sizeof(l0rt_entry))
                if entries == NULL:
                    raise MemoryError("no host memory for a snapshot")
                copied.entries = entries
        if trace is not None:
            tell(&copied, trace, lines, with_threads)
        return described(blocks, max(count, 0), index, pool, lines)
    finally:
        free(blocks)
        free(copied.entries)


def figures_of(size_t heap_address, size_t pool_address, nbytes):
    """Return what an out-of-memory error says of a heap and of a private pool, or 0: `explanation` has the meaning."""
    cdef l0rt_heap* heap = <l0rt_heap*>heap_address
    cdef l0rt_private_pool* private_pool = <l0rt_private_pool*>pool_address
    cdef l0rt_stats stats
    cdef l0rt_upstream* upstream = heap.upstream
    cdef uint64_t largest, releasable, asleep
    cdef int64_t most = heap_limit(heap), left
    cdef bint is_limited = private_pool != NULL and private_pool.limit not in (0, UINT64_MAX)
    if private_pool != NULL and private_pool.upstream != NULL:
        upstream = private_pool.upstream
    heap_stats(heap, &stats)
    with nogil:
        largest = heap_largest_free(heap, &releasable, &asleep)
        mutex_lock(&heap.growth)
        left = pool_available(heap, private_pool)
        mutex_unlock(&heap.growth)
    functions = functions_behind(upstream)
    allocator = None
    if functions is not None:
        allocator = "The pool's own allocator" if upstream != heap.upstream else "The current allocator"
    allocated = stats.allocated_bytes.all.current
    pending = stats.active_bytes.all.current - allocated
    return {
        "requested": nbytes, "allocated": allocated, "pending": pending, "asleep": asleep,
        "cached": max(0, stats.reserved_bytes.all.current - allocated - pending + <int64_t>asleep),
        "largest": largest, "releasable": releasable,
        "private": heap_private_bytes(heap), "limit": None if most == INT64_MAX else most,
        "pool_limit": private_pool.limit if is_limited else None, "pool_left": left,
        "adaptors": adaptors_of(functions), "allocator": allocator, "address_space": obstacles.address_space(),
        "is_async": bool(heap_tuning(heap).is_async),
        "is_expandable": bool(heap.has_ranges),
    }


def sites(int index, int most=3, bint of_host=False):
    """Return ``(place, bytes, blocks)`` of the places that have allocated most of what is allocated on a device, or of
    pinned memory; nothing where stacks are not kept."""
    flags = host_flags(history_wanted()) if of_host else history_wanted()
    if not flags & RECORDS_BLOCKS:
        return []
    lines, sums = {}, {}
    for segment in told_heap(index, of_host, None, None, lines):
        for block in segment["blocks"]:
            if block["frames"] and block["state"] == "active_allocated":
                place = site_of(block["frames"][0])
                size, count = sums.get(place, (0, 0))
                sums[place] = size + block["size"], count + 1
    found = sorted(sums.items(), key=itemgetter(1), reverse=True)[:most]
    return [(place, size, count) for place, (size, count) in found]


cdef str site_of(dict frame):
    return f"{frame['filename']}:{frame['line']} ({frame['name']})"


cdef list described(l0rt_block_info* blocks, int64_t count, int index, tuple pool, dict lines):
    cdef l0rt_block_info* block
    cdef int64_t i
    cdef list found = []
    cdef dict segment = None, told
    for i in range(count):
        block = &blocks[i]
        id = (block.pool_id[0], block.pool_id[1])
        if pool is not None and id != pool:
            continue
        if segment is None or segment["address"] != block.segment:
            segment = {
                "device": index,
                "address": block.segment,
                "total_size": block.segment_size,
                "stream": <uintptr_t>block.stream,
                "segment_type": "small" if block.pool == SMALL else "large",
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "is_expandable": bool(block.is_expandable),
                "segment_pool_id": id,
                "frames": [],
                "blocks": [],
            }
            found.append(segment)
        state = STATES[block.state][1]
        told = {"address": block.address, "size": block.size, "requested_size": block.requested, "state": state,
                "frames": frames_of(block.stack, lines) if block.stack != 0 else []}
        if block.tag != 0:
            told["category"] = _tags[block.tag]
        segment["blocks"].append(told)
        if state != "inactive":
            segment["active_size"] += block.size
            segment["requested_size"] += block.requested
        if state == "active_allocated":
            segment["allocated_size"] += block.size
    found.sort(key=itemgetter("address"))
    return found


cdef int tell(l0rt_trace* trace, list out, dict lines, bint with_threads) except -1:
    """Entries in torch's schema, which has no threads."""
    cdef uint64_t i, before
    cdef l0rt_entry* entry
    history_read_clock()
    for i in range(trace.count):
        entry = &trace.entries[i]
        before = len(out)
        if entry.action == FREE:
            out.append(told_of(entry, "free_requested", lines))
            out.append(told_of(entry, "free_completed", lines))
        else:
            out.append(told_of(entry, ACTIONS[entry.action], lines))
        if with_threads:
            for told in out[before:]:
                told["thread"] = entry.thread
    return 0


cdef dict told_of(l0rt_entry* entry, str action, dict lines):
    cdef dict told = {
        "action": action,
        "device_free" if entry.action == OOM else "addr": entry.address,
        "size": entry.size,
        "stream": <uintptr_t>entry.stream,
        "time_us": history_time(entry.ticks) // 1000,
        "pool_id": (entry.pool_id[0], entry.pool_id[1]),
        "compile_context": "N/A",
        "user_metadata": _notes[entry.note],
    }
    if entry.stack != 0:
        told["frames"] = frames_of(entry.stack, lines)
    if entry.tag != 0:
        told["category"] = _tags[entry.tag]
    return told
