# SPDX-License-Identifier: Apache-2.0
"""Expandable segments, ranges for short: addresses that get memory where it is needed and lose it where it is not.

A range is a segment with more addresses than there is memory, so that it need not end. What has no memory is a span,
a block like any other to its neighbours, but in no bin. Growing maps memory next to what is free already, and takes
it first from where whole granules are free: memory moves, and not more of it is taken.
"""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc

from l0rt.runtime.alloc.arena cimport arena_gain, arena_resize, arena_take
from l0rt.runtime.alloc.atomics cimport load_int, spin_lock, spin_unlock
from l0rt.runtime.alloc.bins cimport bin_of
from l0rt.runtime.alloc.block cimport (
    block_bin,
    block_cut,
    block_is_split,
    block_split,
    block_unbin,
    is_settled,
    place_extend,
    place_hold,
    place_move_end,
    record_drop,
    record_take,
    records_ready,
    segment_list,
    segment_unlist,
    span_join,
    span_list,
)
from l0rt.runtime.alloc.growth cimport TIMED_MAPS, is_near, least_move, may_pay, moving, now
from l0rt.runtime.alloc.headroom cimport headroom_inactive
from l0rt.runtime.alloc.history cimport SEGMENT_MAP, SEGMENT_UNMAP, note_segment
from l0rt.runtime.alloc.page_map cimport map_forget, map_memory, map_set
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_of
from l0rt.runtime.alloc.stats cimport (
    recount_lock,
    count_reserved,
    recount_all,
    recount_unlock,
    heap_arenas,
    heap_available,
    heap_limit,
    pool_available,
)
from l0rt.runtime.alloc.types cimport (
    COLUMNS,
    HELD,
    L0RT_CLOSED,
    L0RT_HELD_UP,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    LARGE,
    PAGE,
    POOLS,
    ROWS,
    l0rt_headroom,
    l0rt_granule,
    l0rt_private_pool,
)


cdef enum:
    POOL_STEP = 6                   # a pool's first range is 1/64 of what the default pool's streams reserve
    SPARE_SHIFT = 4                 # memory moves once so much more is reserved than was ever needed at once: 1/16
    WASTE_SHIFT = 3                 # as many mappings again may move for each 1/8 of an arena that is free, and
    MOVES_SHIFT = 12                # then one for so many frees, as a power of two
    STEP_SHARE = 7                  # new memory ends at a multiple of at most 1/128 of what there is


# --- Giving memory back.


cdef l0rt_block* cut(l0rt_heap* heap, l0rt_block* block, uint64_t wanted) noexcept nogil:
    """Hold the last mappings that are completely inside a free block, for ``wanted`` bytes; NULL if there are none."""
    cdef l0rt_segment* segment = block.segment
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_granule* granules = segment.granules
    cdef uint64_t start = <uintptr_t>block.ptr - <uintptr_t>segment.base, end = start + block.size
    cdef uint64_t lowest = (start + heap.granule - 1) // heap.granule, high = end // heap.granule, low
    cdef uint64_t tail = end - high * heap.granule
    cdef int64_t inactive = -1, inactive_bytes = -<int64_t>block.size
    cdef l0rt_block* spare
    if segment.pool == LARGE and 0 < tail < PAGE:
        high -= 1                   # two blocks must not start in one page of the map
    while high > lowest and granules[high - 1].first + granules[high - 1].count != high:
        high = granules[high - 1].first
    low = high
    while low > lowest and (high - low) * heap.granule < wanted and granules[low - 1].first >= lowest:
        low = granules[low - 1].first
    if low >= high or not records_ready(arena):
        return NULL
    spare = record_take(arena)
    if not records_ready(arena):
        record_drop(spare)
        return NULL
    if not block_is_split(block):
        inactive = inactive_bytes = 0
    block_unbin(block)
    if high * heap.granule < end:
        block_bin(block_split(block, high * heap.granule - start))
        inactive += 1
        inactive_bytes += end - high * heap.granule
    if start < low * heap.granule:
        block_cut(block, low * heap.granule - start)
        block_bin(block)
        inactive += 1
        inactive_bytes += block.size
        block = block.after
    block.state = HELD
    block.previous = spare          # part_unmap may have to cut it in two, and must not fail then
    map_set(block.ptr, NULL)
    headroom_inactive(&arena.headroom[segment.pool], inactive, inactive_bytes)
    return block


cdef inline bint is_held(l0rt_block* block) noexcept nogil:
    return block != NULL and block.state == HELD


cdef uint64_t cut_bin(l0rt_heap* heap, l0rt_arena* arena, l0rt_block* block, uint64_t wanted,
                      l0rt_block** parts) noexcept nogil:
    """Hold what can be of a bin's blocks, but nothing next to where memory is about to be mapped."""
    cdef uint64_t found = 0
    cdef l0rt_block* next
    cdef l0rt_block* part
    while block != NULL and found < wanted:
        next = block.next
        if (block.segment.granules != NULL and is_settled(block)
                and not is_held(block.before) and not is_held(block.after)):
            part = cut(heap, block, wanted - found)
            if part != NULL:
                part.next = parts[0]
                parts[0] = part
                found += part.size
        block = next
    return found


cdef uint64_t collect(l0rt_heap* heap, l0rt_arena* arena, uint64_t wanted, l0rt_spare** spares) noexcept nogil:
    """Take memory out of an arena where whole mappings are free and no work uses them; how many bytes it was."""
    cdef l0rt_block* parts = NULL
    cdef l0rt_private_pool* private_pool = private_pool_of(arena)
    cdef uint64_t found = 0, unmapped = 0
    cdef int pool, row, bin
    # sleeping memory may wake, unless its pool was dropped
    if (is_asleep(private_pool) and not load_int(&private_pool.is_gone)) or not spin_lock(&arena.lock):
        return 0
    for pool in range(POOLS - 1, -1, -1):
        for row in range(ROWS - 1, <int>bin_of(heap.granule) // COLUMNS - 1, -1):
            if arena.bins[pool].columns[row] == 0:
                continue
            for bin in range(row * COLUMNS + COLUMNS - 1, row * COLUMNS - 1, -1):
                if found < wanted and arena.bins[pool].heads[bin] != NULL:
                    found += cut_bin(heap, arena, arena.bins[pool].heads[bin], wanted - found, &parts)
    spin_unlock(&arena.lock)
    while parts != NULL:
        unmapped += part_unmap(heap, &parts, spares)
    return unmapped


cdef uint64_t part_unmap(l0rt_heap* heap, l0rt_block** parts, l0rt_spare** spares) noexcept nogil:
    cdef l0rt_block* part = parts[0]
    cdef l0rt_segment* segment = part.segment
    cdef l0rt_arena* arena = part.arena
    cdef uint64_t size = physicals_unmap(heap, part, spares)
    parts[0] = part.next
    if size != 0:
        map_forget(<char*>part.ptr + (part.size - size), size)
    if not recount_lock(heap, arena):
        return 0
    record_drop(part.previous)      # for the cut
    if size != 0:
        note_segment(arena, SEGMENT_UNMAP, <char*>part.ptr + (part.size - size), size)
    if size == part.size:
        span_join(part)
    else:                           # the rest is in use, whatever the events report: it stays unchanged
        if size != 0:
            block_cut(part, part.size - size)
            span_join(part.after)
        arena_gain(part)
    segment.mapped -= size
    arena_resize(arena, -<int64_t>size)
    recount_unlock(heap)
    return size


cdef uint64_t ranges_release(l0rt_heap* heap, l0rt_arena* only, uint64_t wanted) noexcept nogil:
    """Give back memory where whole mappings are free and no work uses them: of one arena, or with NULL of any."""
    cdef l0rt_arena* arena = heap_arenas(heap) if only == NULL else only
    cdef l0rt_spare* spares = NULL
    cdef uint64_t released = 0
    while arena != NULL and heap.granule != 0 and released < wanted:
        if only != NULL or may_release(heap, arena):
            released += collect(heap, arena, wanted - released, &spares)
        arena = arena.next if only == NULL else NULL
    spares_destroy(heap, &spares)
    return released


# --- Growing.


cdef uint64_t addresses_for(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """How many addresses to reserve at once. There may be ten thousand pools, most of which stay small: an arena of a
    pool doubles what it has."""
    cdef l0rt_segment* segment = arena.segments
    cdef uint64_t nbytes = heap.range >> POOL_STEP
    if arena.private_pool == NULL:
        return heap.range
    while segment != NULL and nbytes < heap.range:
        nbytes += segment.size
        segment = segment.next
    return min(nbytes, heap.range)


cdef int range_new(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil:
    """Give the arena a new range, one unmapped span with addresses for ``size``."""
    cdef l0rt_segment* segment = <l0rt_segment*>calloc(1, sizeof(l0rt_segment))
    cdef int status = L0RT_NO_HOST_MEMORY
    if segment == NULL:
        return status
    segment.pool = pool
    segment.size = (max(size, addresses_for(heap, arena)) + heap.large_page - 1) // heap.large_page * heap.large_page
    segment.granules = <l0rt_granule*>calloc(segment.size // heap.granule, sizeof(l0rt_granule))
    if segment.granules != NULL:
        status = heap.ops.range_reserve(heap.self, segment.size, &segment.base)
        if status == L0RT_OK and <uintptr_t>segment.base % heap.large_page != 0:
            heap.ops.range_release(heap.self, segment.base, segment.size)
            status = L0RT_NO_HOST_MEMORY
    if status == L0RT_OK:
        if not spin_lock(&arena.lock):
            return L0RT_CLOSED
        if not records_ready(arena):
            spin_unlock(&arena.lock)
            heap.ops.range_release(heap.self, segment.base, segment.size)
            status = L0RT_NO_HOST_MEMORY
    if status != L0RT_OK:
        free(segment.granules)
        free(segment)
        return status
    segment.raw = segment.base
    segment.first = record_take(arena)
    segment.first.ptr = segment.base
    segment.first.size = segment.size
    segment.first.segment = segment
    segment.first.before = segment.first.after = NULL
    segment_list(arena, segment)
    span_list(segment.first)
    spin_unlock(&arena.lock)
    count_reserved(heap, segment, 0, 1, 0)
    return L0RT_OK


cdef uint64_t step_of(l0rt_heap* heap, l0rt_arena* arena, uint64_t size) noexcept nogil:
    """What new memory should end at a multiple of: more as an arena grows, so that it does not come in ever more
    parts."""
    cdef uint64_t step = heap.granule
    while step < heap.large_page and step <= (<uint64_t>arena.reserved + size) >> (STEP_SHARE + 1):
        step <<= 1
    return step


cdef int range_grow(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, size_t requested,
                    l0rt_block** out) noexcept nogil:
    """A block of ``size`` bytes, part of which gets memory for it. Without host memory for that, a range is no help:
    L0RT_NO_HOST_MEMORY."""
    cdef l0rt_block* held
    cdef l0rt_spare* spares = NULL
    cdef uint64_t extra, left
    cdef int64_t start
    cdef int status
    if heap.capacity != 0 and size > heap.capacity:     # before there are records of so many addresses
        heap.by_limit = <int64_t>size > heap_available(heap, arena.private_pool)
        return L0RT_OUT_OF_MEMORY
    held = place_hold(heap, arena, pool, size)
    if held == NULL:
        status = range_new(heap, arena, pool, size)
        held = place_hold(heap, arena, pool, size) if status == L0RT_OK else NULL
        if held == NULL:
            return status if status == L0RT_CLOSED else L0RT_NO_HOST_MEMORY
    # A call costs the same for more memory, and a heap that grows usually grows again. If ranges grew only by the
    # missing memory, they would need twice the calls, and repeated work would keep moving memory.
    extra = place_extend(heap, held, step_of(heap, arena, size))
    if may_move(arena, size, held.size):
        start = now(heap)
        collect(heap, arena, held.size, &spares)
        heap.moved += now(heap) - start
    status = physicals_map(heap, held, &spares, &left)
    if status == L0RT_OUT_OF_MEMORY and left == 0 and extra != 0 and place_move_end(held, -<int64_t>extra):
        status = physicals_map(heap, held, &spares, &left)
    spares_destroy(heap, &spares)
    if not recount_lock(heap, arena):
        return L0RT_CLOSED
    if left != 0 and left < held.size:
        if not records_ready(arena):
            recount_unlock(heap)
            return status           # it stays mapped without an owner: the driver does not take it back
        block_cut(held, left)
        span_join(held.after)
    if left == 0:
        span_join(held)
    else:
        held.segment.mapped += left
        note_segment(arena, SEGMENT_MAP, held.ptr, left)
        arena_resize(arena, left)
        arena_gain(held)
    if status == L0RT_OK:
        status = arena_take(arena, size, requested, True, out)
    recount_all(heap, arena, pool)
    recount_unlock(heap)
    return status


cdef bint may_move(l0rt_arena* arena, uint64_t size, uint64_t more) noexcept nogil:
    """Moving memory pays where it keeps a peak low: not while more is needed than ever before, ``size`` included, and
    ``more`` keeps what is reserved near that. Work whose sizes never repeat would move it for ever: that costs calls,
    and is worth some of them at first, more where much lies idle, and few in the long run."""
    cdef int64_t frees = 0, needed = size, idle
    cdef l0rt_headroom* headroom
    cdef int pool
    cdef bint is_peak
    if not spin_lock(&arena.lock):
        return False
    for pool in range(POOLS):
        headroom = &arena.headroom[pool]
        frees += headroom.freed.count
        needed += headroom.limit.bytes - headroom.left.bytes + headroom.pending.bytes
    spin_unlock(&arena.lock)
    if arena.reserved == 0:
        arena.moves = frees >> MOVES_SHIFT
        arena.needed = needed
        return False
    is_peak = needed > arena.needed
    arena.needed = max(arena.needed, needed)
    if (is_peak and arena.reserved + <int64_t>more <= arena.needed + (arena.needed >> SPARE_SHIFT)
            and <int64_t>more <= heap_available(arena.heap, arena.private_pool)):
        return False
    if moving(arena.heap) != 0:
        return may_pay(arena.heap) and (
            more >= least_move(arena.heap) or is_near(arena.heap, more, heap_limit(arena.heap)))
    idle = arena.reserved + <int64_t>size - needed
    return arena.moves < arena.heap.moves * (1 + (idle << WASTE_SHIFT) // arena.reserved) + (frees >> MOVES_SHIFT)


# --- Ends.


cdef void ranges_trim(l0rt_heap* heap, l0rt_arena* only) noexcept nogil:
    """Give up the addresses of ranges without memory: of one arena, or with NULL of all."""
    cdef l0rt_arena* arena = heap_arenas(heap) if only == NULL else only
    cdef l0rt_segment* segment
    cdef l0rt_segment* next
    while arena != NULL:
        segment = arena.segments
        while segment != NULL:
            next = segment.next
            if segment.granules != NULL and segment.mapped == 0 and spin_lock(&arena.lock):
                segment_unlist(segment)
                record_drop(segment.first)
                spin_unlock(&arena.lock)
                heap.ops.range_release(heap.self, segment.base, segment.size)
                count_reserved(heap, segment, 0, -1, 0)
                free(segment.granules)
                free(segment)
            segment = next
        arena = arena.next if only == NULL else NULL


cdef void range_close(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """Give back a range's memory and its addresses, whatever uses them; its records stay. For a closed heap."""
    cdef uint64_t i
    for i in range(segment.top):
        if segment.granules[i].count != 0 and segment.granules[i].first == i and segment.granules[i].physical != NULL:
            physical_back(heap, segment, i)
    heap.ops.range_release(heap.self, segment.base, segment.size)


cdef void range_destroy(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """The same, and its addresses are no longer ours. Its blocks' records are the caller's."""
    cdef uint64_t i
    for i in range(segment.top):
        if segment.granules[i].count != 0 and segment.granules[i].first == i:
            map_forget(<char*>segment.base + i * heap.granule, segment.granules[i].count * heap.granule)
    range_close(heap, segment)
    free(segment.granules)


# --- Physical memory: taken, mapped over a held block's addresses, unmapped. No lock but the growth mutex is held.


cdef enum:
    PHYSICAL_SHARE = 4              # one physical allocation is at most 1/16 of what is reserved, and no less than
    LEAST_SHARE = 6                 # 1/64 of it, or one granule


cdef int physicals_map(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares, uint64_t* mapped) noexcept nogil:
    """Memory for all of a held block, from what is spare first; or for nothing of it, but for what the driver does not
    unmap again: ``mapped`` bytes from its start."""
    cdef l0rt_segment* segment = held.segment
    cdef uint64_t first = (<uintptr_t>held.ptr - <uintptr_t>segment.base) // heap.granule
    cdef uint64_t total = held.size // heap.granule, at = 0
    cdef l0rt_spare physical
    cdef int64_t start
    cdef int status, calls = 0
    mapped[0] = 0
    if (<int64_t>held.size > pool_available(heap, held.arena.private_pool)
            or (spare_bytes(heap, spares[0]) < held.size and <int64_t>held.size > heap_available(heap, NULL))):
        heap.by_limit = True        # found out before anything is mapped that would have to be undone
        return L0RT_OUT_OF_MEMORY
    status = map_memory(segment.pool, held.ptr, held.size)
    if status != L0RT_OK:
        return status
    segment.top = max(segment.top, first + total)
    while status == L0RT_OK and at < total:
        status = physical_get(heap, held, at, spares, &physical)
        if status == L0RT_OK:
            start = now(heap)
            status = heap.ops.physical_mem_map(heap.self, <char*>held.ptr + at * heap.granule,
                                               physical.count * heap.granule, physical.physical)
            if physical.has_moved:
                heap.moved += now(heap) - start
            elif status == L0RT_OK and heap.judges_maps and heap.timed < TIMED_MAPS:
                heap.mapping += now(heap) - start
                heap.timed += 1
            if status == L0RT_OK:
                granules_set(&segment.granules[first + at], first + at, &physical)
                at += physical.count
                calls += 1
            else:
                heap.ops.physical_mem_destroy(heap.self, physical.physical, physical.count * heap.granule)
                if heap.ops.is_oom(status):
                    status = L0RT_OUT_OF_MEMORY
                elif status == L0RT_HELD_UP:
                    status = L0RT_NO_HOST_MEMORY
    while status != L0RT_OK and at > 0 and physical_back(heap, segment, first + at - 1):
        at = segment.granules[first + at - 1].first - first
        calls -= 1
    mapped[0] = at * heap.granule
    if at != 0:
        count_reserved(heap, segment, mapped[0], 0, calls)
    if at != total:
        map_forget(<char*>held.ptr + mapped[0], held.size - mapped[0])
    return status


cdef inline bint fits(l0rt_heap* heap, l0rt_spare* spare, uint64_t offset, uint64_t left) noexcept nogil:
    cdef uint64_t nbytes = spare.count * heap.granule
    return nbytes <= left and (nbytes < heap.large_page or offset % heap.large_page == 0)


cdef uint64_t spare_bytes(l0rt_heap* heap, l0rt_spare* spare) noexcept nogil:
    """What is spare counts as given back already."""
    cdef uint64_t granules = 0
    while spare != NULL:
        granules += spare.count
        spare = spare.next
    return granules * heap.granule


cdef bint physical_back(l0rt_heap* heap, l0rt_segment* segment, uint64_t index) noexcept nogil:
    """Unmap and destroy the physical memory of this granule. False: it stays mapped, and nothing else can be there."""
    cdef l0rt_granule* granule = &segment.granules[segment.granules[index].first]
    cdef uint64_t nbytes = granule.count * heap.granule
    if heap.ops.physical_mem_unmap(heap.self, <char*>segment.base + granule.first * heap.granule, nbytes,
                                   granule.physical) != L0RT_OK:
        return False
    heap.ops.physical_mem_destroy(heap.self, granule.physical, nbytes)
    granule.count = 0
    return True


cdef inline void granules_set(l0rt_granule* granules, uint64_t first, l0rt_spare* physical) noexcept nogil:
    cdef uint32_t i
    for i in range(physical.count):
        granules[i].physical = physical.physical
        granules[i].first = first
        granules[i].count = physical.count


cdef uint64_t part_size(l0rt_heap* heap, l0rt_block* held, uint64_t offset, uint64_t left) noexcept nogil:
    """How large the next new part of a held block's memory is, which goes there in its segment."""
    cdef uint64_t total = <uint64_t>heap.reserved + held.size, most
    if heap.whole:
        return left
    most = (total if heap.parts > 1 else <uint64_t>heap.reserved) >> PHYSICAL_SHARE
    most = max(min(most, held.size // heap.parts), total >> LEAST_SHARE, step_of(heap, held.arena, held.size))
    most = min(most // heap.granule * heap.granule, left)
    if offset % heap.large_page != 0:
        return min(most, heap.large_page - offset % heap.large_page)
    return most if most < heap.large_page else most // heap.large_page * heap.large_page


cdef int physical_get(l0rt_heap* heap, l0rt_block* held, uint64_t mapped, l0rt_spare** spares,
                      l0rt_spare* out) noexcept nogil:
    """Spare physical memory for what a held block still lacks, or else a new one."""
    cdef uint64_t offset = <uintptr_t>held.ptr - <uintptr_t>held.segment.base + mapped * heap.granule
    cdef uint64_t left = held.size - mapped * heap.granule, nbytes
    cdef l0rt_spare** link = spares
    cdef l0rt_spare* spare
    cdef int status
    while link[0] != NULL and not fits(heap, link[0], offset, left):
        link = &link[0].next
    if link[0] != NULL:
        spare = link[0]
        link[0] = spare.next
        out[0] = spare[0]
        free(spare)
        return L0RT_OK
    nbytes = part_size(heap, held, offset, left)
    out.count = nbytes // heap.granule
    out.has_moved = False
    if <int64_t>(mapped * heap.granule + spare_bytes(heap, spares[0]) + nbytes) > heap_available(heap, NULL):
        spares_destroy(heap, spares)    # else they may fit behind
    if <int64_t>(mapped * heap.granule + nbytes) > heap_available(heap, NULL):
        heap.by_limit = True
        return L0RT_OUT_OF_MEMORY
    heap.by_limit = False
    status = heap.ops.physical_mem_create(heap.self, nbytes, &out.physical)
    if status != L0RT_OK and spares[0] != NULL:
        spares_destroy(heap, spares)
        status = heap.ops.physical_mem_create(heap.self, nbytes, &out.physical)
    if status != L0RT_OK and heap.ops.is_oom(status):
        return L0RT_OUT_OF_MEMORY
    return status


cdef uint64_t physicals_unmap(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares) noexcept nogil:
    """Unmap a held block's memory from its end on, until one is refused. Of a pool that sleeps they have no memory."""
    cdef l0rt_segment* segment = held.segment
    cdef uint64_t offset = <uintptr_t>held.ptr - <uintptr_t>segment.base, size = 0
    cdef int64_t bytes = 0
    cdef l0rt_granule* granule
    cdef l0rt_spare* spare
    cdef int calls = 0
    cdef uint32_t count
    while size < held.size:
        granule = &segment.granules[(offset + held.size - size) // heap.granule - 1]
        granule = &segment.granules[granule.first]
        count = granule.count
        if granule.physical == NULL:
            granule.count = 0
            size += count * heap.granule
            continue
        if heap.ops.physical_mem_unmap(heap.self, <char*>segment.base + granule.first * heap.granule,
                                       count * heap.granule, granule.physical) != L0RT_OK:
            break
        spare = <l0rt_spare*>malloc(sizeof(l0rt_spare))
        if spare == NULL:
            heap.ops.physical_mem_destroy(heap.self, granule.physical, count * heap.granule)
        else:
            spare.physical, spare.count, spare.next = granule.physical, count, spares[0]
            spare.has_moved = True
            spares[0] = spare
        granule.count = 0
        held.arena.moves += 1
        size += count * heap.granule
        bytes += count * heap.granule
        calls += 1
    count_reserved(heap, segment, -bytes, 0, calls)
    return size


cdef void spares_destroy(l0rt_heap* heap, l0rt_spare** spares) noexcept nogil:
    cdef l0rt_spare* spare = spares[0]
    while spare != NULL:
        spares[0] = spare.next
        heap.ops.physical_mem_destroy(heap.self, spare.physical, spare.count * heap.granule)
        free(spare)
        spare = spares[0]
