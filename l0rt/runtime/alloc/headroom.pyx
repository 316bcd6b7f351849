# SPDX-License-Identifier: Apache-2.0
"""An arena's two accounts share what is left below the peaks of both pools together."""

from libc.stdint cimport int64_t

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock, store_int
from l0rt.runtime.alloc.types cimport LARGE, POOLS, SMALL, l0rt_account, l0rt_arena, l0rt_heap, l0rt_sum, l0rt_tally

cdef enum:
    COUNT = 0                       # the fields of l0rt_sum
    BYTES = 1
    REQUESTED = 2                   # inactive split memory was requested by nobody
    VERSIONS = (1 << 30) - 1


cdef inline int64_t* fields(l0rt_sum* sum) noexcept nogil:
    return &sum.count


cdef void tally_add(l0rt_tally* sums, l0rt_arena* arena, int64_t sign) noexcept nogil:
    """Add what an arena has to the sums of both pools, or with -1 take it out."""
    cdef l0rt_account* account
    cdef l0rt_tally* sum
    cdef int pool
    for pool in range(POOLS):
        account = &arena.accounts[pool]
        sum = &sums[pool]
        sum.allocated += sign * (account.limit.count - account.room.count)
        sum.allocated_bytes += sign * (account.limit.bytes - account.room.bytes)
        sum.requested += sign * (account.limit.requested - account.room.requested)
        sum.pending += sign * account.pending.count
        sum.pending_bytes += sign * account.pending.bytes
        sum.quiet += sign * quiet_count(account)
        sum.quiet_bytes += sign * quiet_bytes(account)
        sum.freed += sign * account.freed.count
        sum.freed_bytes += sign * account.freed.bytes
        sum.freed_requested += sign * account.freed.requested
        sum.quieted += sign * account.quieted.count
        sum.quieted_bytes += sign * account.quieted.bytes


cdef void arena_wake(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_heap* heap = arena.heap
    if arena.accounts[SMALL].resting == NULL:
        return
    arena.accounts[SMALL].resting = arena.accounts[LARGE].resting = NULL
    spin_lock(&heap.rest_lock)
    tally_add(heap.resting, arena, -1)
    arena.next_awake = heap.awake
    heap.awake = arena
    spin_unlock(&heap.rest_lock)


cdef void accounts_balance(l0rt_arena* arena, int pool) noexcept nogil:
    """Halve everything between the two."""
    cdef l0rt_account* one = &arena.accounts[pool]
    cdef l0rt_account* other = &arena.accounts[POOLS - 1 - pool]
    cdef int i
    for i in range(COUNT, REQUESTED + 1):
        halve(arena, one, other, i)
    for i in range(COUNT, BYTES + 1):
        halve_quiet(arena, one, other, i)


cdef inline void halve(l0rt_arena* arena, l0rt_account* one, l0rt_account* other, int i) noexcept nogil:
    cdef int64_t now = fields(&one.limit)[i] - fields(&one.room)[i]
    cdef int64_t other_now = fields(&other.limit)[i] - fields(&other.room)[i]
    cdef int64_t left = fields(&arena.limit)[i] - now - other_now
    cdef int64_t kept = min(left // 2, fields(&other.own_limit)[i] - other_now)
    grow(arena, one, i, now + min(left - kept, fields(&one.own_limit)[i] - now) - fields(&one.limit)[i])
    grow(arena, other, i, other_now + kept - fields(&other.limit)[i])


cdef inline void halve_quiet(l0rt_arena* arena, l0rt_account* one, l0rt_account* other, int i) noexcept nogil:
    cdef int64_t now = quiet_now(one, i), other_now = quiet_now(other, i)
    cdef int64_t left = fields(&arena.quiet_limit)[i] - now - other_now
    cdef int64_t kept = min(left // 2, fields(&other.own_quiet_limit)[i] - other_now)
    grow_quiet(one, i, now + min(left - kept, fields(&one.own_quiet_limit)[i] - now) - fields(&one.quiet_limit)[i])
    grow_quiet(other, i, other_now + kept - fields(&other.quiet_limit)[i])


cdef inline int64_t quiet_now(l0rt_account* account, int i) noexcept nogil:
    return fields(&account.quiet_limit)[i] - quiet_room(account, i)


cdef inline int64_t quiet_room(l0rt_account* account, int i) noexcept nogil:
    return fields(&account.ceiling)[i] - fields(&account.room)[i]


cdef inline void grow(l0rt_arena* arena, l0rt_account* account, int i, int64_t change) noexcept nogil:
    store_int(&arena.version, arena.version + 1)
    move(&fields(&account.limit)[i], change)
    move(&fields(&account.room)[i], change)
    store_int(&arena.version, (arena.version + 1) & VERSIONS)
    fields(&account.ceiling)[i] += change       # inactive split is what it was


cdef inline void grow_quiet(l0rt_account* account, int i, int64_t change) noexcept nogil:
    fields(&account.quiet_limit)[i] += change
    fields(&account.ceiling)[i] += change


cdef bint accounts_fit(l0rt_arena* arena, int pool, l0rt_sum need, int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """Make room in ``pool``'s account from what the other has. False: it takes a census."""
    cdef l0rt_account* one = &arena.accounts[pool]
    cdef l0rt_account* other = &arena.accounts[POOLS - 1 - pool]
    return (
        (one.room.count >= need.count or borrow(arena, one, other, COUNT, need.count))
        and (one.room.bytes >= need.bytes or borrow(arena, one, other, BYTES, need.bytes))
        and (one.room.requested >= need.requested or borrow(arena, one, other, REQUESTED, need.requested))
        and (quiet_room(one, COUNT) >= quiet or borrow_quiet(arena, one, other, COUNT, quiet))
        and (quiet_room(one, BYTES) >= quiet_bytes or borrow_quiet(arena, one, other, BYTES, quiet_bytes))
    )


cdef inline bint borrow(l0rt_arena* arena, l0rt_account* one, l0rt_account* other, int i, int64_t need) noexcept nogil:
    cdef int64_t spare = fields(&arena.limit)[i] - fields(&one.limit)[i] - fields(&other.limit)[i]
    cdef int64_t short = need - fields(&one.room)[i]
    cdef int64_t loan = loan_of(short, spare + fields(&other.room)[i],
                                fields(&one.own_limit)[i] - fields(&one.limit)[i])
    grow(arena, one, i, loan)
    if loan > spare:
        grow(arena, other, i, spare - loan)
    return loan >= short


cdef inline bint borrow_quiet(l0rt_arena* arena, l0rt_account* one, l0rt_account* other,
                              int i, int64_t need) noexcept nogil:
    cdef int64_t spare = fields(&arena.quiet_limit)[i] - fields(&one.quiet_limit)[i] - fields(&other.quiet_limit)[i]
    cdef int64_t short = need - quiet_room(one, i)
    cdef int64_t loan = loan_of(short, spare + quiet_room(other, i),
                                fields(&one.own_quiet_limit)[i] - fields(&one.quiet_limit)[i])
    grow_quiet(one, i, loan)
    if loan > spare:
        grow_quiet(other, i, spare - loan)
    return loan >= short


cdef inline int64_t loan_of(int64_t short, int64_t left, int64_t most) noexcept nogil:
    """What is short or half of what is left, whichever is more, so that it is not asked for often; 0: not enough."""
    cdef int64_t loan = min(max(short, left >> 1), most)
    return loan if short <= loan <= left else 0
