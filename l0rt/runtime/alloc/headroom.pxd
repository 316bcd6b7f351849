# SPDX-License-Identifier: Apache-2.0
"""An account: what an arena has allocated of one pool, counted so that the heap's peaks are exact and a hit is cheap.

A peak of the heap is a peak of the sum over its arenas, so no arena can see it alone. Instead each account knows
how much it may still grow before the sum could possibly pass any peak: its `room`, a share of what is left below
the peak of allocated, active and requested memory, of the pool and of both pools. Growing is one subtraction and
one sign test; an account without room is tight, and then the caller locks all arenas, grows, takes the census and
hands out new room.

What is free but part of a split segment ("inactive split") grows when memory is freed. On a hit it changes by
exactly the opposite of what is allocated, so it has no field of its own: it is at a possible peak when `room`
passes `ceiling`.

The share below the peaks of both pools together is the arena's, and its two accounts move it between them.
"""

from libc.stdint cimport int64_t

from l0rt.runtime.alloc.atomics cimport load_i64, load_int, store_i64, unlikely
from l0rt.runtime.alloc.types cimport LARGE, SMALL, l0rt_account, l0rt_arena, l0rt_sum, l0rt_tally

cdef void tally_add(l0rt_tally* sums, l0rt_arena* arena, int64_t sign) noexcept nogil
# An arena is about to change, and is counted anew. Its lock is held.
cdef void arena_wake(l0rt_arena* arena) noexcept nogil
cdef void accounts_balance(l0rt_arena* arena, int pool) noexcept nogil
cdef bint accounts_fit(l0rt_arena* arena, int pool, l0rt_sum need, int64_t quiet, int64_t quiet_bytes) noexcept nogil


cdef enum:
    LOOKS = 1000                    # at an arena that changes, at most: who changes it may have been preempted


cdef inline int64_t arena_allocated_bytes(l0rt_arena* arena) noexcept nogil:
    """What is allocated, for who does not hold the lock: of some moment, though limit and room move together."""
    cdef int64_t bytes = 0
    cdef int version, _i
    for _i in range(LOOKS):
        version = load_int(&arena.version)
        bytes = (load_i64(&arena.accounts[SMALL].limit.bytes) - load_i64(&arena.accounts[SMALL].room.bytes)
                 + load_i64(&arena.accounts[LARGE].limit.bytes) - load_i64(&arena.accounts[LARGE].room.bytes))
        if version & 1 == 0 and load_int(&arena.version) == version:
            break
    return bytes


cdef inline void move(int64_t* bytes, int64_t change) noexcept nogil:
    """Change what is read without the lock: the bytes of room, limit and pending."""
    store_i64(bytes, bytes[0] + change)


cdef inline int64_t quiet_count(l0rt_account* account) noexcept nogil:
    return account.quiet_limit.count + account.room.count - account.ceiling.count


cdef inline int64_t quiet_bytes(l0rt_account* account) noexcept nogil:
    return account.quiet_limit.bytes + account.room.bytes - account.ceiling.bytes


cdef inline bint account_is_tight(l0rt_account* account, l0rt_sum need,
                                  int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """Could taking ``need``, with this change of inactive split, pass a peak? A free needs nothing."""
    return (
        (account.room.count - need.count) | (account.room.bytes - need.bytes)
        | (account.room.requested - need.requested)
        | (account.ceiling.count - account.room.count - quiet)
        | (account.ceiling.bytes - account.room.bytes - quiet_bytes)
    ) < 0


cdef inline bint account_has_room(l0rt_arena* arena, int pool, int64_t count, int64_t bytes, int64_t requested,
                                  int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """Does it fit, if need be with the other account's room? False: it takes a census."""
    cdef l0rt_sum need
    need.count, need.bytes, need.requested = count, bytes, requested
    if unlikely(account_is_tight(&arena.accounts[pool], need, quiet, quiet_bytes)):
        return accounts_fit(arena, pool, need, quiet, quiet_bytes)
    return True


cdef inline void account_take(l0rt_account* account, int64_t bytes, int64_t requested,
                              int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    if unlikely(account.resting != NULL):
        arena_wake(account.resting)
    account.room.count -= 1
    move(&account.room.bytes, -bytes)
    account.room.requested -= requested
    account.ceiling.count -= 1 + quiet
    account.ceiling.bytes -= bytes + quiet_bytes
    account_gain(account, quiet, quiet_bytes)


cdef inline void account_give(l0rt_account* account, int64_t bytes, int64_t requested,
                              int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    if unlikely(account.resting != NULL):
        arena_wake(account.resting)
    account.room.count += 1
    move(&account.room.bytes, bytes)
    account.room.requested += requested
    account.freed.count += 1
    account.freed.bytes += bytes
    account.freed.requested += requested
    account.ceiling.count += 1 - quiet
    account.ceiling.bytes += bytes - quiet_bytes
    account.quieted.count -= 1
    account.quieted.bytes -= bytes
    account_gain(account, quiet, quiet_bytes)


cdef inline void account_park(l0rt_arena* arena, int pool, int64_t bytes, int sign) noexcept nogil:
    """Freed but still active: allocated falls and room does not grow. With a sign of -1, taken back."""
    cdef l0rt_account* account = &arena.accounts[pool]
    if unlikely(account.resting != NULL):
        arena_wake(account.resting)
    limits_lower(arena, account, sign, sign * bytes)
    account.freed.count += sign
    account.freed.bytes += sign * bytes
    account.pending.count += sign
    move(&account.pending.bytes, sign * bytes)
    account.quieted.count -= sign
    account.quieted.bytes -= sign * bytes


cdef inline void account_unpark(l0rt_arena* arena, int pool, int64_t bytes, int64_t requested,
                                int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """The last use of a parked block is over: it is active no more.

    No count and no bytes of room come of it. What is active has more room below its peak now, but what is allocated
    fell when the block was parked, and a census since then has handed that room out.
    """
    cdef l0rt_account* account = &arena.accounts[pool]
    if unlikely(account.resting != NULL):
        arena_wake(account.resting)
    account.room.requested += requested
    account.freed.requested += requested
    account.pending.count -= 1
    move(&account.pending.bytes, -bytes)
    account.ceiling.count -= quiet
    account.ceiling.bytes -= quiet_bytes
    account_gain(account, quiet, quiet_bytes)


cdef inline void limits_lower(l0rt_arena* arena, l0rt_account* account, int64_t count, int64_t bytes) noexcept nogil:
    account.limit.count -= count
    move(&account.limit.bytes, -bytes)
    account.own_limit.count -= count
    account.own_limit.bytes -= bytes
    arena.limit.count -= count
    arena.limit.bytes -= bytes


cdef inline void account_gain(l0rt_account* account, int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    if quiet > 0:
        account.quieted.count += quiet
    if quiet_bytes > 0:
        account.quieted.bytes += quiet_bytes


cdef inline void account_quiet(l0rt_account* account, int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """Inactive split changes alone. Whoever lets it grow takes a census in the end, for the peak."""
    if unlikely(account.resting != NULL):
        arena_wake(account.resting)
    account.ceiling.count -= quiet
    account.ceiling.bytes -= quiet_bytes
    account_gain(account, quiet, quiet_bytes)
