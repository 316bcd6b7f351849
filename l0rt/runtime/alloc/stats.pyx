# SPDX-License-Identifier: Apache-2.0
"""Statistics of a heap: exact sums and peaks over all its arenas, and all of them under torch's keys."""

from libc.stdint cimport INT64_MAX, int64_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

from l0rt.runtime.alloc.atomics cimport load_i64, load_int, mutex_lock, mutex_unlock, spin_lock, spin_unlock, store_i64
from l0rt.runtime.alloc.headroom cimport (
    headroom_balance,
    arena_allocated_bytes,
    arena_wake,
    inactive_bytes,
    inactive_count,
    sums_add,
)
from l0rt.runtime.alloc.share cimport (
    share_find,
    shares_copy,
    shares_reserved,
    shares_reset_accumulated,
    shares_reset_peak,
    stat_move,
)
from l0rt.runtime.alloc.types cimport (
    LARGE,
    POOLS,
    SMALL,
    l0rt_headroom,
    l0rt_arena,
    l0rt_family,
    l0rt_heap,
    l0rt_scope,
    l0rt_segment,
    l0rt_share,
    l0rt_stat,
    l0rt_stats,
    l0rt_sums,
)


cdef enum:
    SHARES_AT_FIRST = 16

KINDS = ("current", "peak", "allocated", "freed")
POOL_NAMES = ("all", "small_pool", "large_pool")     # in the order of l0rt_family
PARTS = sorted((pool, part) for part, pool in enumerate(POOL_NAMES))

cdef list _keys = []
cdef int64_t[256] _offsets
cdef dict _blank = {}                           # to be copied: filling a dictionary of a known size is faster


def _fill_keys():
    """List the keys, sorted, with the place of each value in l0rt_stats."""
    families = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
                "active_bytes", "inactive_split_bytes", "requested_bytes")
    names = [f"{f}.{p}.{k}" for f in families for p in POOL_NAMES for k in KINDS]
    names += [f"{f}.{k}" for f in ("oversize_allocations", "oversize_segments") for k in KINDS]
    names += ["num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
              "num_oom_rejections", "num_oom_fallback", "max_split_size"]
    if len(names) * sizeof(int64_t) != sizeof(l0rt_stats):
        raise AssertionError("l0rt_stats has other fields than its keys")
    for place, name in sorted(enumerate(names), key=lambda entry: entry[1]):
        _offsets[len(_keys)] = place
        _keys.append(name)
        _blank[name] = 0


cdef dict stats_of_heap(l0rt_heap* heap):
    """All of them, of one moment, sorted by key."""
    cdef l0rt_stats stats
    cdef int64_t* values = <int64_t*>&stats
    cdef l0rt_share* shares = NULL
    cdef int64_t capacity = SHARES_AT_FIRST, count
    cdef int i
    cdef dict flat = _blank.copy()
    try:
        while True:
            shares = grown(shares, capacity)
            with nogil:
                count = heap_stats_of_pools(heap, &stats, shares, capacity)
            if count <= capacity:
                break
            capacity = count + SHARES_AT_FIRST
        for i in range(len(_keys)):
            flat[_keys[i]] = values[_offsets[i]]
        return flat if count == 0 else with_pools(flat, shares, count)
    finally:
        free(shares)


cdef l0rt_share* grown(l0rt_share* shares, int64_t capacity) except NULL:
    cdef l0rt_share* more = <l0rt_share*>realloc(shares, capacity * sizeof(l0rt_share))
    if more == NULL:
        raise MemoryError("no host memory for the pools' statistics")
    return more


cdef dict with_pools(dict flat, l0rt_share* shares, int64_t count):
    """The same with what the pools have, in its place. Only their names are sorted: there may be many pools."""
    cdef l0rt_stat* stats
    cdef int i
    cdef dict whole = {}
    names = sorted([f"reserved_bytes_by_private_pools.{shares[i].id[0]}_{shares[i].id[1]}.", i] for i in range(count))
    for key, value in flat.items():
        if names and key > names[0][0]:
            for name, i in names:
                stats = <l0rt_stat*>&shares[i].reserved
                for pool, part in PARTS:
                    whole[f"{name}{pool}.allocated"] = stats[part].allocated
                    whole[f"{name}{pool}.current"] = stats[part].current
                    whole[f"{name}{pool}.freed"] = stats[part].freed
                    whole[f"{name}{pool}.peak"] = stats[part].peak
            names = ()
        whole[key] = value
    return whole


_fill_keys()


# --- The recount of a heap: all arenas of one moment, exact peaks, and statistics.


# What is handed out below the peaks.
cdef enum:
    COUNT = 0
    BYTES = 1
    REQUESTED = 2
    INACTIVE = 3
    INACTIVE_BYTES = 4
    UNITS = 5
    # of the small pool, the large one, and
    ALL = 2


cdef enum:
    LOCKED = 0                      # results of lock_more
    MORE = 1
    SHUT = 2


cdef int lock_more(l0rt_heap* heap) noexcept nogil:
    """Lock the arenas that became active since. LOCKED: there are none, and all others are counted."""
    cdef l0rt_arena* head
    cdef l0rt_arena* arena
    cdef l0rt_arena* first
    spin_lock(&heap.rest_lock)
    head = arena = heap.awake
    if head == heap.locked:
        memcpy(heap.rested, heap.resting, sizeof(heap.rested))
    spin_unlock(&heap.rest_lock)
    if head == heap.locked:
        return LOCKED
    while arena != heap.locked and spin_lock(&arena.lock):
        arena = arena.next_awake
    if arena == heap.locked:
        heap.locked = head
        return MORE
    first = head                    # closed: those that were locked are let go
    while first != arena:
        spin_unlock(&first.lock)
        first = first.next_awake
    arenas_unlock(heap.locked)
    heap.locked = NULL
    return SHUT


cdef bint recount_lock(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Lock this arena, NULL: none in particular, and all others that may have changed since they were counted; False
    when the heap is closed."""
    if load_int(&heap.closed) != 0:
        return False
    mutex_lock(&heap.recount)
    heap.locked = NULL
    if arena != NULL:
        wake(arena)
    return recount_lock_awake(heap)


cdef bint recount_lock_all(l0rt_heap* heap) noexcept nogil:
    """Lock all arenas; False when the heap is closed."""
    cdef l0rt_arena* arena
    if load_int(&heap.closed) != 0:
        return False
    mutex_lock(&heap.recount)
    heap.locked = NULL
    arena = heap.arenas
    while arena != NULL:
        wake(arena)
        arena = arena.next
    return recount_lock_awake(heap)


cdef inline void wake(l0rt_arena* arena) noexcept nogil:
    if spin_lock(&arena.lock):
        arena_wake(arena)
        spin_unlock(&arena.lock)


cdef bint recount_lock_awake(l0rt_heap* heap) noexcept nogil:
    cdef int found = MORE
    while found == MORE:
        found = lock_more(heap)
    if found == SHUT:
        mutex_unlock(&heap.recount)
    return found == LOCKED


cdef void recount_unlock(l0rt_heap* heap) noexcept nogil:
    """Unlock the arenas. Those that were found idle rest, with no headroom, so that they cannot change unnoticed."""
    cdef l0rt_arena* arena = heap.locked
    cdef l0rt_arena* next
    cdef l0rt_arena* kept = NULL
    cdef l0rt_arena* resting = NULL
    cdef l0rt_arena** link = &heap.awake
    spin_lock(&heap.rest_lock)
    while link[0] != arena:         # those that woke meanwhile are in front
        link = &link[0].next_awake
    while arena != NULL:
        next = arena.next_awake
        if arena.may_rest:
            arena.may_rest = False
            sums_add(heap.resting, arena, 1)
            arena.headroom[SMALL].resting = arena.headroom[LARGE].resting = arena
            arena.next_awake = resting
            resting = arena
        else:
            arena.next_awake = kept
            kept = arena
        arena = next
    link[0] = kept
    spin_unlock(&heap.rest_lock)
    arenas_unlock(resting)
    arenas_unlock(kept)
    mutex_unlock(&heap.recount)


cdef inline void arenas_unlock(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_arena* next
    while arena != NULL:
        next = arena.next_awake     # of one that rests, the next waker's to set as soon as it is unlocked
        spin_unlock(&arena.lock)
        arena = next


cdef void sums_of(l0rt_heap* heap, l0rt_sums* sums) noexcept nogil:
    """All that there was when the arenas were locked, and what has become of it in those that are."""
    cdef l0rt_arena* arena = heap.locked
    memcpy(sums, heap.rested, POOLS * sizeof(l0rt_sums))
    while arena != NULL:
        sums_add(sums, arena, 1)
        arena = arena.next_awake


cdef inline void level(l0rt_family* family, int64_t small, int64_t large, int64_t* slack) noexcept nogil:
    """Set a family's current values, raise its peaks, and lower ``slack`` to what is left below them."""
    cdef l0rt_stat* stat = &family.all
    cdef int64_t now = small + large
    cdef int i
    for i in range(3):
        if i == 0:
            stat, now = &family.small_pool, small
        elif i == 1:
            stat, now = &family.large_pool, large
        else:
            stat, now = &family.all, small + large
        stat.current = now
        if stat.peak < now:
            stat.peak = now
        if slack[i] > stat.peak - now:
            slack[i] = stat.peak - now


cdef inline int64_t moves(l0rt_headroom* headroom) noexcept nogil:
    """Allocations and frees ever."""
    return 2 * headroom.freed.count + headroom.limit.count - headroom.left.count


cdef inline bint is_busy(l0rt_headroom* headroom) noexcept nogil:
    """Has the headroom moved since the last recount?"""
    return headroom.seen != moves(headroom)


cdef inline int64_t share(int64_t slack, int64_t busy, bint is_busy, bint is_eager) noexcept nogil:
    """A part of what is left below a peak. All that are busy get the same, and the one that ran out what does not
    divide; the idle get nothing, and find out when they need some."""
    if not is_busy:
        return 0
    return slack // busy + (slack % busy if is_eager else 0)


cdef inline void headroom_own(l0rt_headroom* headroom, int64_t[3]* slack, int pool, int64_t busy,
                             bint eager) noexcept nogil:
    cdef bint some = eager or is_busy(headroom)
    headroom.own_limit.count = headroom.limit.count - headroom.left.count + share(slack[COUNT][pool], busy, some, eager)
    headroom.own_limit.bytes = headroom.limit.bytes - headroom.left.bytes + share(slack[BYTES][pool], busy, some, eager)
    headroom.own_limit.requested = (
        headroom.limit.requested - headroom.left.requested + share(slack[REQUESTED][pool], busy, some, eager))
    headroom.own_inactive_limit.count = inactive_count(headroom) + share(slack[INACTIVE][pool], busy, some, eager)
    headroom.own_inactive_limit.bytes = inactive_bytes(headroom) + share(slack[INACTIVE_BYTES][pool], busy, some, eager)


cdef inline void arena_own(l0rt_arena* arena, int64_t[3]* slack, int64_t busy, bint some, bint eager) noexcept nogil:
    cdef l0rt_headroom* a = &arena.headroom[SMALL]
    cdef l0rt_headroom* b = &arena.headroom[LARGE]
    arena.limit.count = (
        a.limit.count - a.left.count + b.limit.count - b.left.count + share(slack[COUNT][ALL], busy, some, eager))
    arena.limit.bytes = (
        a.limit.bytes - a.left.bytes + b.limit.bytes - b.left.bytes + share(slack[BYTES][ALL], busy, some, eager))
    arena.limit.requested = (
        a.limit.requested - a.left.requested + b.limit.requested - b.left.requested
        + share(slack[REQUESTED][ALL], busy, some, eager))
    arena.inactive_limit.count = inactive_count(a) + inactive_count(b) + share(slack[INACTIVE][ALL], busy, some, eager)
    arena.inactive_limit.bytes = (
        inactive_bytes(a) + inactive_bytes(b) + share(slack[INACTIVE_BYTES][ALL], busy, some, eager))


cdef void recount_all(l0rt_heap* heap, l0rt_arena* eager, int eager_pool) noexcept nogil:
    """Raise the peaks to what is so, and hand out new headroom: to none of those that rest. The arenas are locked."""
    cdef l0rt_sums[POOLS] sums
    cdef l0rt_sums* a = &sums[SMALL]
    cdef l0rt_sums* b = &sums[LARGE]
    cdef l0rt_stats* stats = &heap.stats
    cdef int64_t[UNITS][3] slack
    cdef int64_t[3] busy
    cdef l0rt_arena* arena
    cdef int pool
    cdef bint is_eager, some
    sums_of(heap, sums)
    memset(slack, 0x3f, sizeof(slack))          # more than any memory has
    level(&stats.allocation, a.allocated, b.allocated, slack[COUNT])
    level(&stats.active, a.allocated + a.pending, b.allocated + b.pending, slack[COUNT])
    level(&stats.allocated_bytes, a.allocated_bytes, b.allocated_bytes, slack[BYTES])
    level(&stats.active_bytes, a.allocated_bytes + a.pending_bytes, b.allocated_bytes + b.pending_bytes, slack[BYTES])
    level(&stats.requested_bytes, a.requested, b.requested, slack[REQUESTED])
    level(&stats.inactive_split, a.inactive, b.inactive, slack[INACTIVE])
    level(&stats.inactive_split_bytes, a.inactive_bytes, b.inactive_bytes, slack[INACTIVE_BYTES])
    memset(busy, 0, sizeof(busy))
    arena = heap.locked
    while arena != NULL:
        some = arena == eager
        for pool in range(POOLS):
            if is_busy(&arena.headroom[pool]) or (arena == eager and pool == eager_pool):
                busy[pool] += 1
                some = True
        busy[ALL] += some
        arena = arena.next_awake
    arena = heap.locked
    while arena != NULL:
        is_eager = arena == eager
        some = is_eager or is_busy(&arena.headroom[SMALL]) or is_busy(&arena.headroom[LARGE])
        arena.may_rest = not some
        arena_own(arena, slack, busy[ALL], some, is_eager)
        for pool in range(POOLS):
            headroom_own(&arena.headroom[pool], slack, pool, busy[pool], is_eager and pool == eager_pool)
        for pool in range(POOLS):
            arena.headroom[pool].seen = moves(&arena.headroom[pool])
        headroom_balance(arena, eager_pool)
        arena = arena.next_awake


cdef int64_t heap_private_bytes(l0rt_heap* heap) noexcept nogil:
    """What private pools have reserved."""
    mutex_lock(&heap.recount)
    cdef int64_t bytes = shares_reserved(heap)
    mutex_unlock(&heap.recount)
    return bytes


cdef void count_reserved(l0rt_heap* heap, l0rt_segment* segment, int64_t bytes, int segments, int calls) noexcept nogil:
    """So many bytes came or went, in that many calls, and with them that many segments like this one."""
    cdef l0rt_stats* stats = &heap.stats
    cdef l0rt_share* share
    cdef bint is_small = segment.pool == SMALL
    mutex_lock(&heap.recount)
    share = segment.arena.share
    if segments != 0:
        stat_move(&stats.segment.all, segments)
        stat_move(&stats.segment.small_pool if is_small else &stats.segment.large_pool, segments)
    stat_move(&stats.reserved_bytes.all, bytes)
    stat_move(&stats.reserved_bytes.small_pool if is_small else &stats.reserved_bytes.large_pool, bytes)
    if share != NULL:
        stat_move(&share.reserved.all, bytes)
        stat_move(&share.reserved.small_pool if is_small else &share.reserved.large_pool, bytes)
    if bytes > 0:
        stats.num_device_alloc += calls
    else:
        stats.num_device_free += calls
    store_i64(&heap.reserved, heap.reserved + bytes)
    mutex_unlock(&heap.recount)


cdef int64_t pool_available(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """What the pool's own limit leaves. The growth mutex is held."""
    cdef l0rt_share* share
    if private_pool == NULL or private_pool.limit == 0 or private_pool.limit > <uint64_t>INT64_MAX:
        return INT64_MAX
    share = share_find(heap, private_pool)
    return <int64_t>private_pool.limit - (share.reserved.all.current if share != NULL else 0)


cdef int64_t heap_available(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    return min(heap_limit(heap) - load_i64(&heap.reserved), pool_available(heap, private_pool))


cdef void count_up(l0rt_heap* heap, int64_t* counter) noexcept nogil:
    mutex_lock(&heap.recount)
    counter[0] += 1
    mutex_unlock(&heap.recount)


cdef void count_oom(l0rt_heap* heap, bint by_limit) noexcept nogil:
    """Count a failed request: there was no memory, or the limit left none and the driver was not asked."""
    mutex_lock(&heap.recount)
    heap.stats.num_ooms += 1
    heap.stats.num_oom_rejections += by_limit
    mutex_unlock(&heap.recount)


cdef inline void flow(l0rt_family* family, int64_t small_freed, int64_t large_freed) noexcept nogil:
    """What was ever freed, and from it what was ever allocated."""
    family.small_pool.freed = small_freed
    family.large_pool.freed = large_freed
    family.all.freed = small_freed + large_freed
    family.small_pool.allocated = family.small_pool.current + small_freed
    family.large_pool.allocated = family.large_pool.current + large_freed
    family.all.allocated = family.all.current + family.all.freed


cdef void totals(l0rt_heap* heap) noexcept nogil:
    """Bring heap.stats up to date, counted since the heap was made. All arenas are locked."""
    cdef l0rt_sums[POOLS] sums
    cdef l0rt_sums* a = &sums[SMALL]
    cdef l0rt_sums* b = &sums[LARGE]
    cdef l0rt_stats* stats = &heap.stats
    recount_all(heap, NULL, SMALL)
    sums_of(heap, sums)
    flow(&stats.allocation, a.freed, b.freed)
    flow(&stats.allocated_bytes, a.freed_bytes, b.freed_bytes)
    flow(&stats.active, a.freed - a.pending, b.freed - b.pending)
    flow(&stats.active_bytes, a.freed_bytes - a.pending_bytes, b.freed_bytes - b.pending_bytes)
    flow(&stats.requested_bytes, a.freed_requested, b.freed_requested)
    # inactive split is told from what it gained: freed memory, and what splits left over
    flow(&stats.inactive_split, a.freed + a.inactive_gained - a.inactive, b.freed + b.inactive_gained - b.inactive)
    flow(&stats.inactive_split_bytes, a.freed_bytes + a.inactive_gained_bytes - a.inactive_bytes,
         b.freed_bytes + b.inactive_gained_bytes - b.inactive_bytes)


cdef void heap_stats(l0rt_heap* heap, l0rt_stats* out) noexcept nogil:
    """A consistent copy of all statistics. Of a closed heap: as they were when last looked at."""
    heap_stats_of_pools(heap, out, NULL, 0)


cdef int64_t heap_stats_of_pools(l0rt_heap* heap, l0rt_stats* out, l0rt_share* shares, int64_t capacity) noexcept nogil:
    """The same, with at most ``capacity`` private pools' shares; return how many there are (then ask again). A closed
    heap tells none."""
    cdef l0rt_stat* stat = <l0rt_stat*>out
    cdef l0rt_stat* base = <l0rt_stat*>&heap.base
    cdef bint locked = recount_lock(heap, NULL)
    cdef int64_t count = 0
    cdef int i
    if locked:
        totals(heap)
        count = shares_copy(heap, shares, capacity)
    spin_lock(&heap.oversize)
    out[0] = heap.stats
    spin_unlock(&heap.oversize)
    for i in range(ACCUMULATED):
        stat[i].allocated -= base[i].allocated
        stat[i].freed -= base[i].freed
        stat[i].peak = max(stat[i].peak, base[i].peak)
    out.num_alloc_retries -= heap.base.num_alloc_retries
    out.num_ooms -= heap.base.num_ooms
    out.num_oom_rejections -= heap.base.num_oom_rejections
    out.num_oom_fallback -= heap.base.num_oom_fallback
    out.num_sync_all_streams -= heap.base.num_sync_all_streams
    out.num_device_alloc -= heap.base.num_device_alloc
    out.num_device_free -= heap.base.num_device_free
    if locked:
        recount_unlock(heap)
    return count


cdef void heap_reset_peak(l0rt_heap* heap) noexcept nogil:
    """Let every peak be what is so now."""
    cdef l0rt_stat* base = <l0rt_stat*>&heap.base
    cdef int i
    if not recount_lock(heap, NULL):
        return
    peaks_begin(heap)
    for i in range(ACCUMULATED):
        base[i].peak = 0
    shares_reset_peak(heap)
    recount_unlock(heap)


cdef void peaks_begin(l0rt_heap* heap) noexcept nogil:
    """Begin new peaks; the statistics and the open scopes keep those so far."""
    cdef l0rt_stat* stat = <l0rt_stat*>&heap.stats
    cdef l0rt_stat* base = <l0rt_stat*>&heap.base
    cdef l0rt_stat* kept
    cdef l0rt_scope* scope = heap.scopes
    cdef int i
    totals(heap)
    spin_lock(&heap.oversize)
    while scope != NULL:
        kept = <l0rt_stat*>&scope.peaks
        for i in range(ACCUMULATED):
            kept[i].peak = max(kept[i].peak, stat[i].peak)
        scope = scope.next
    for i in range(ACCUMULATED):
        base[i].peak = max(base[i].peak, stat[i].peak)
        stat[i].peak = stat[i].current
    spin_unlock(&heap.oversize)
    recount_all(heap, NULL, SMALL)  # less headroom is left below lower peaks


cdef void heap_rest(l0rt_heap* heap) noexcept nogil:
    """Recount, so that arenas that nothing uses rest: they are no more looked at until something does."""
    if recount_lock(heap, NULL):
        recount_all(heap, NULL, SMALL)
        recount_unlock(heap)


cdef void heap_reset_accumulated(l0rt_heap* heap) noexcept nogil:
    """Let everything that only grows start at zero."""
    cdef l0rt_stats peaks
    cdef int i
    if not recount_lock(heap, NULL):
        return
    peaks_begin(heap)
    peaks = heap.base
    heap.base = heap.stats
    for i in range(ACCUMULATED):
        (<l0rt_stat*>&heap.base)[i].peak = (<l0rt_stat*>&peaks)[i].peak
    shares_reset_accumulated(heap)
    recount_unlock(heap)


cdef int64_t heap_allocated_bytes(l0rt_heap* heap) noexcept nogil:
    """allocated_bytes.all.current, for a few ns: no arena is locked, so that each one's part is of its own moment."""
    cdef bint locked = spin_lock(&heap.rest_lock)
    cdef l0rt_arena* arena = heap.awake
    cdef int64_t bytes = heap.resting[SMALL].allocated_bytes + heap.resting[LARGE].allocated_bytes
    while arena != NULL:
        bytes += arena_allocated_bytes(arena)
        arena = arena.next_awake
    if locked:
        spin_unlock(&heap.rest_lock)
    return bytes


cdef int64_t heap_reserved_bytes(l0rt_heap* heap) noexcept nogil:
    return load_i64(&heap.reserved)


cdef int64_t heap_cached_bytes(l0rt_heap* heap) noexcept nogil:
    """reserved_bytes less active_bytes, in the same way: what is held and in no use."""
    cdef bint locked = spin_lock(&heap.rest_lock)
    cdef l0rt_arena* arena = heap.awake
    cdef int64_t bytes = load_i64(&heap.reserved)
    cdef int pool
    for pool in range(POOLS):
        bytes -= heap.resting[pool].allocated_bytes + heap.resting[pool].pending_bytes
    while arena != NULL:
        bytes -= arena_allocated_bytes(arena)
        for pool in range(POOLS):
            bytes -= load_i64(&arena.headroom[pool].pending.bytes)
        arena = arena.next_awake
    if locked:
        spin_unlock(&heap.rest_lock)
    return bytes
