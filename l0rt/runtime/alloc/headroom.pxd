# SPDX-License-Identifier: Apache-2.0
"""The headroom: what an arena has allocated of one pool, counted so that the heap's peaks are exact and a hit is cheap.

A peak of the heap is a peak of the sum over its arenas, so no arena can see it alone. Instead each arena knows
how much it may still grow before the sum could possibly pass any peak: what is `left`, a share of the distance to the
peaks of allocated, active and requested memory, of the pool and of both pools. Growing is one subtraction and one
sign test; a headroom with nothing left is tight, and then the caller locks all arenas, grows, recounts them all and
hands out new headroom.

What is free but part of a split segment ("inactive split") grows when memory is freed. On a hit it changes by
exactly the opposite of what is allocated, so it has no field of its own: it is at a possible peak when `left`
passes `ceiling`.

The share below the peaks of both pools together is the arena's, and its two pools move it between them.
"""

from libc.stdint cimport int64_t

from l0rt.runtime.alloc.atomics cimport load_i64, load_int, store_i64, unlikely
from l0rt.runtime.alloc.types cimport LARGE, SMALL, l0rt_headroom, l0rt_arena, l0rt_sum, l0rt_sums

cdef void sums_add(l0rt_sums* sums, l0rt_arena* arena, int64_t sign) noexcept nogil
# An arena is about to change, and is counted again. Its lock is held.
cdef void arena_wake(l0rt_arena* arena) noexcept nogil
cdef void headroom_balance(l0rt_arena* arena, int pool) noexcept nogil
cdef bint headroom_borrow(l0rt_arena* arena, int pool, l0rt_sum need, int64_t inactive,
                          int64_t inactive_bytes) noexcept nogil


cdef enum:
    LOOKS = 1000                    # at an arena that changes, at most: who changes it may have been preempted


cdef inline int64_t arena_allocated_bytes(l0rt_arena* arena) noexcept nogil:
    """What is allocated, for who does not hold the lock: of some moment, though limit and headroom move together."""
    cdef int64_t bytes = 0
    cdef int version, _i
    for _i in range(LOOKS):
        version = load_int(&arena.version)
        bytes = (load_i64(&arena.headroom[SMALL].limit.bytes) - load_i64(&arena.headroom[SMALL].left.bytes)
                 + load_i64(&arena.headroom[LARGE].limit.bytes) - load_i64(&arena.headroom[LARGE].left.bytes))
        if version & 1 == 0 and load_int(&arena.version) == version:
            break
    return bytes


cdef inline void move(int64_t* bytes, int64_t change) noexcept nogil:
    """Change what is read without the lock: the bytes of headroom, limit and pending."""
    store_i64(bytes, bytes[0] + change)


cdef inline int64_t inactive_count(l0rt_headroom* headroom) noexcept nogil:
    return headroom.inactive_limit.count + headroom.left.count - headroom.ceiling.count


cdef inline int64_t inactive_bytes(l0rt_headroom* headroom) noexcept nogil:
    return headroom.inactive_limit.bytes + headroom.left.bytes - headroom.ceiling.bytes


cdef inline bint headroom_is_tight(l0rt_headroom* headroom, l0rt_sum need,
                                  int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    """Could taking ``need``, with this change of inactive split, pass a peak? A free needs nothing."""
    return (
        (headroom.left.count - need.count) | (headroom.left.bytes - need.bytes)
        | (headroom.left.requested - need.requested)
        | (headroom.ceiling.count - headroom.left.count - inactive)
        | (headroom.ceiling.bytes - headroom.left.bytes - inactive_bytes)
    ) < 0


cdef inline bint headroom_suffices(l0rt_arena* arena, int pool, int64_t count, int64_t bytes, int64_t requested,
                                  int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    """Does it fit, if need be with the other pool's headroom? False: it takes a recount."""
    cdef l0rt_sum need
    need.count, need.bytes, need.requested = count, bytes, requested
    if unlikely(headroom_is_tight(&arena.headroom[pool], need, inactive, inactive_bytes)):
        return headroom_borrow(arena, pool, need, inactive, inactive_bytes)
    return True


cdef inline void headroom_take(l0rt_headroom* headroom, int64_t bytes, int64_t requested,
                              int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    if unlikely(headroom.resting != NULL):
        arena_wake(headroom.resting)
    headroom.left.count -= 1
    move(&headroom.left.bytes, -bytes)
    headroom.left.requested -= requested
    headroom.ceiling.count -= 1 + inactive
    headroom.ceiling.bytes -= bytes + inactive_bytes
    headroom_gain(headroom, inactive, inactive_bytes)


cdef inline void headroom_give(l0rt_headroom* headroom, int64_t bytes, int64_t requested,
                              int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    if unlikely(headroom.resting != NULL):
        arena_wake(headroom.resting)
    headroom.left.count += 1
    move(&headroom.left.bytes, bytes)
    headroom.left.requested += requested
    headroom.freed.count += 1
    headroom.freed.bytes += bytes
    headroom.freed.requested += requested
    headroom.ceiling.count += 1 - inactive
    headroom.ceiling.bytes += bytes - inactive_bytes
    headroom.inactive_gained.count -= 1
    headroom.inactive_gained.bytes -= bytes
    headroom_gain(headroom, inactive, inactive_bytes)


cdef inline void headroom_park(l0rt_arena* arena, int pool, int64_t bytes, int sign) noexcept nogil:
    """Freed but still active: allocated falls and headroom does not grow. With a sign of -1, taken back."""
    cdef l0rt_headroom* headroom = &arena.headroom[pool]
    if unlikely(headroom.resting != NULL):
        arena_wake(headroom.resting)
    limits_lower(arena, headroom, sign, sign * bytes)
    headroom.freed.count += sign
    headroom.freed.bytes += sign * bytes
    headroom.pending.count += sign
    move(&headroom.pending.bytes, sign * bytes)
    headroom.inactive_gained.count -= sign
    headroom.inactive_gained.bytes -= sign * bytes


cdef inline void headroom_unpark(l0rt_arena* arena, int pool, int64_t bytes, int64_t requested,
                                int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    """The last use of a parked block is over: it is active no more.

    No count and no bytes of headroom come of it. What is active has more below its peak now, but what is allocated
    fell when the block was parked, and a recount since then has handed that headroom out.
    """
    cdef l0rt_headroom* headroom = &arena.headroom[pool]
    if unlikely(headroom.resting != NULL):
        arena_wake(headroom.resting)
    headroom.left.requested += requested
    headroom.freed.requested += requested
    headroom.pending.count -= 1
    move(&headroom.pending.bytes, -bytes)
    headroom.ceiling.count -= inactive
    headroom.ceiling.bytes -= inactive_bytes
    headroom_gain(headroom, inactive, inactive_bytes)


cdef inline void limits_lower(l0rt_arena* arena, l0rt_headroom* headroom, int64_t count, int64_t bytes) noexcept nogil:
    headroom.limit.count -= count
    move(&headroom.limit.bytes, -bytes)
    headroom.own_limit.count -= count
    headroom.own_limit.bytes -= bytes
    arena.limit.count -= count
    arena.limit.bytes -= bytes


cdef inline void headroom_gain(l0rt_headroom* headroom, int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    if inactive > 0:
        headroom.inactive_gained.count += inactive
    if inactive_bytes > 0:
        headroom.inactive_gained.bytes += inactive_bytes


cdef inline void headroom_inactive(l0rt_headroom* headroom, int64_t inactive, int64_t inactive_bytes) noexcept nogil:
    """Change only inactive split memory. Code that lets it grow makes a recount at the end, for the peak."""
    if unlikely(headroom.resting != NULL):
        arena_wake(headroom.resting)
    headroom.ceiling.count -= inactive
    headroom.ceiling.bytes -= inactive_bytes
    headroom_gain(headroom, inactive, inactive_bytes)
