# SPDX-License-Identifier: Apache-2.0
"""An arena's two pools share what is left below the peaks of both pools together."""

from libc.stdint cimport int64_t

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock, store_int
from l0rt.runtime.alloc.types cimport LARGE, POOLS, SMALL, l0rt_headroom, l0rt_arena, l0rt_heap, l0rt_sum, l0rt_sums

cdef enum:
    COUNT = 0                       # the fields of l0rt_sum
    BYTES = 1
    REQUESTED = 2                   # inactive split memory belongs to no request
    VERSIONS = (1 << 30) - 1


cdef inline int64_t* fields(l0rt_sum* sum) noexcept nogil:
    return &sum.count


cdef void sums_add(l0rt_sums* sums, l0rt_arena* arena, int64_t sign) noexcept nogil:
    """Add what an arena has to the sums of both pools, or with -1 take it out."""
    cdef l0rt_headroom* headroom
    cdef l0rt_sums* sum
    cdef int pool
    for pool in range(POOLS):
        headroom = &arena.headroom[pool]
        sum = &sums[pool]
        sum.allocated += sign * (headroom.limit.count - headroom.left.count)
        sum.allocated_bytes += sign * (headroom.limit.bytes - headroom.left.bytes)
        sum.requested += sign * (headroom.limit.requested - headroom.left.requested)
        sum.pending += sign * headroom.pending.count
        sum.pending_bytes += sign * headroom.pending.bytes
        sum.inactive += sign * inactive_count(headroom)
        sum.inactive_bytes += sign * inactive_bytes(headroom)
        sum.freed += sign * headroom.freed.count
        sum.freed_bytes += sign * headroom.freed.bytes
        sum.freed_requested += sign * headroom.freed.requested
        sum.inactive_gained += sign * headroom.inactive_gained.count
        sum.inactive_gained_bytes += sign * headroom.inactive_gained.bytes


cdef void arena_wake(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_heap* heap = arena.heap
    if arena.headroom[SMALL].resting == NULL:
        return
    arena.headroom[SMALL].resting = arena.headroom[LARGE].resting = NULL
    spin_lock(&heap.rest_lock)
    sums_add(heap.resting, arena, -1)
    arena.next_awake = heap.awake
    heap.awake = arena
    spin_unlock(&heap.rest_lock)


cdef void headroom_balance(l0rt_arena* arena, int pool) noexcept nogil:
    """Halve everything between the two."""
    cdef l0rt_headroom* one = &arena.headroom[pool]
    cdef l0rt_headroom* other = &arena.headroom[POOLS - 1 - pool]
    cdef int i
    for i in range(COUNT, REQUESTED + 1):
        halve(arena, one, other, i)
    for i in range(COUNT, BYTES + 1):
        halve_inactive(arena, one, other, i)


cdef inline void halve(l0rt_arena* arena, l0rt_headroom* one, l0rt_headroom* other, int i) noexcept nogil:
    cdef int64_t now = fields(&one.limit)[i] - fields(&one.left)[i]
    cdef int64_t other_now = fields(&other.limit)[i] - fields(&other.left)[i]
    cdef int64_t left = fields(&arena.limit)[i] - now - other_now
    cdef int64_t kept = min(left // 2, fields(&other.own_limit)[i] - other_now)
    headroom_raise(arena, one, i, now + min(left - kept, fields(&one.own_limit)[i] - now) - fields(&one.limit)[i])
    headroom_raise(arena, other, i, other_now + kept - fields(&other.limit)[i])


cdef inline void halve_inactive(l0rt_arena* arena, l0rt_headroom* one, l0rt_headroom* other, int i) noexcept nogil:
    cdef int64_t now = inactive_now(one, i), other_now = inactive_now(other, i)
    cdef int64_t left = fields(&arena.inactive_limit)[i] - now - other_now
    cdef int64_t kept = min(left // 2, fields(&other.own_inactive_limit)[i] - other_now)
    grow_inactive(
        one, i, now + min(left - kept, fields(&one.own_inactive_limit)[i] - now) - fields(&one.inactive_limit)[i])
    grow_inactive(other, i, other_now + kept - fields(&other.inactive_limit)[i])


cdef inline int64_t inactive_now(l0rt_headroom* headroom, int i) noexcept nogil:
    return fields(&headroom.inactive_limit)[i] - inactive_left(headroom, i)


cdef inline int64_t inactive_left(l0rt_headroom* headroom, int i) noexcept nogil:
    return fields(&headroom.ceiling)[i] - fields(&headroom.left)[i]


cdef inline void headroom_raise(l0rt_arena* arena, l0rt_headroom* headroom, int i, int64_t change) noexcept nogil:
    store_int(&arena.version, arena.version + 1)
    move(&fields(&headroom.limit)[i], change)
    move(&fields(&headroom.left)[i], change)
    store_int(&arena.version, (arena.version + 1) & VERSIONS)
    fields(&headroom.ceiling)[i] += change  # inactive split does not change


cdef inline void grow_inactive(l0rt_headroom* headroom, int i, int64_t change) noexcept nogil:
    fields(&headroom.inactive_limit)[i] += change
    fields(&headroom.ceiling)[i] += change


cdef bint headroom_borrow(l0rt_arena* arena, int pool, l0rt_sum need, int64_t inactive,
                          int64_t inactive_bytes) noexcept nogil:
    """Take what ``pool``'s headroom lacks from what the other has. False: it takes a recount."""
    cdef l0rt_headroom* one = &arena.headroom[pool]
    cdef l0rt_headroom* other = &arena.headroom[POOLS - 1 - pool]
    return (
        (one.left.count >= need.count or borrow(arena, one, other, COUNT, need.count))
        and (one.left.bytes >= need.bytes or borrow(arena, one, other, BYTES, need.bytes))
        and (one.left.requested >= need.requested or borrow(arena, one, other, REQUESTED, need.requested))
        and (inactive_left(one, COUNT) >= inactive or borrow_inactive(arena, one, other, COUNT, inactive))
        and (inactive_left(one, BYTES) >= inactive_bytes or borrow_inactive(arena, one, other, BYTES, inactive_bytes))
    )


cdef inline bint borrow(l0rt_arena* arena, l0rt_headroom* one, l0rt_headroom* other, int i,
                        int64_t need) noexcept nogil:
    cdef int64_t spare = fields(&arena.limit)[i] - fields(&one.limit)[i] - fields(&other.limit)[i]
    cdef int64_t short = need - fields(&one.left)[i]
    cdef int64_t loan = loan_of(short, spare + fields(&other.left)[i],
                                fields(&one.own_limit)[i] - fields(&one.limit)[i])
    headroom_raise(arena, one, i, loan)
    if loan > spare:
        headroom_raise(arena, other, i, spare - loan)
    return loan >= short


cdef inline bint borrow_inactive(l0rt_arena* arena, l0rt_headroom* one, l0rt_headroom* other,
                              int i, int64_t need) noexcept nogil:
    cdef int64_t spare = (fields(&arena.inactive_limit)[i] - fields(&one.inactive_limit)[i]
                          - fields(&other.inactive_limit)[i])
    cdef int64_t short = need - inactive_left(one, i)
    cdef int64_t loan = loan_of(short, spare + inactive_left(other, i),
                                fields(&one.own_inactive_limit)[i] - fields(&one.inactive_limit)[i])
    grow_inactive(one, i, loan)
    if loan > spare:
        grow_inactive(other, i, spare - loan)
    return loan >= short


cdef inline int64_t loan_of(int64_t short, int64_t left, int64_t most) noexcept nogil:
    """What is short or half of what is left, whichever is more, so that it is not asked for often; 0: not enough."""
    cdef int64_t loan = min(max(short, left >> 1), most)
    return loan if short <= loan <= left else 0
