"""An arena's two accounts share what is left below the peaks of both pools together."""

from libc.stdint cimport int64_t

from l0rt.runtime.structs cimport POOLS, l0rt_account, l0rt_arena, l0rt_sum


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void accounts_balance(l0rt_arena* arena, int pool) noexcept nogil:
    """Halve everything between the two."""
    cdef l0rt_account* one = &arena.accounts[pool]
    cdef l0rt_account* other = &arena.accounts[POOLS - 1 - pool]
    balance_count(arena, one, other, False)
    balance_bytes(arena, one, other, False)
    balance_requested(arena, one, other, False)
    balance_quiet_count(arena, one, other, False)
    balance_quiet_bytes(arena, one, other, False)


cdef bint accounts_fit(l0rt_arena* arena, int pool, l0rt_sum need, int64_t quiet, int64_t quiet_bytes) noexcept nogil:
    """Make room in ``pool``'s account from what the other has: half of it, or all. False: it takes a census."""
    cdef l0rt_account* one = &arena.accounts[pool]
    cdef l0rt_account* other = &arena.accounts[POOLS - 1 - pool]
    cdef int greedy
    for greedy in range(2):
        if one.room.count < need.count:
            balance_count(arena, one, other, greedy)
        if one.room.bytes < need.bytes:
            balance_bytes(arena, one, other, greedy)
        if one.room.requested < need.requested:
            balance_requested(arena, one, other, greedy)
        if one.ceiling.count - one.room.count < quiet:
            balance_quiet_count(arena, one, other, greedy)
        if one.ceiling.bytes - one.room.bytes < quiet_bytes:
            balance_quiet_bytes(arena, one, other, greedy)
    return not account_is_tight(one, need, quiet, quiet_bytes)


cdef inline void balance_count(l0rt_arena* arena, l0rt_account* one, l0rt_account* other, bint greedy) noexcept nogil:
    balance(arena.limit.count, &one.limit.count, &one.room.count, &one.ceiling.count, one.own_limit.count,
            &other.limit.count, &other.room.count, &other.ceiling.count, other.own_limit.count, greedy)


cdef inline void balance_bytes(l0rt_arena* arena, l0rt_account* one, l0rt_account* other, bint greedy) noexcept nogil:
    balance(arena.limit.bytes, &one.limit.bytes, &one.room.bytes, &one.ceiling.bytes, one.own_limit.bytes,
            &other.limit.bytes, &other.room.bytes, &other.ceiling.bytes, other.own_limit.bytes, greedy)


cdef inline void balance_requested(l0rt_arena* arena, l0rt_account* one, l0rt_account* other,
                                   bint greedy) noexcept nogil:
    cdef int64_t unused = 0         # inactive split memory was requested by nobody
    balance(arena.limit.requested, &one.limit.requested, &one.room.requested, &unused, one.own_limit.requested,
            &other.limit.requested, &other.room.requested, &unused, other.own_limit.requested, greedy)


cdef inline void balance_quiet_count(l0rt_arena* arena, l0rt_account* one, l0rt_account* other,
                                     bint greedy) noexcept nogil:
    balance_quiet(arena.quiet_limit.count, quiet_count(one), &one.quiet_limit.count, &one.ceiling.count,
                  one.own_quiet_limit.count, quiet_count(other), &other.quiet_limit.count, &other.ceiling.count,
                  other.own_quiet_limit.count, greedy)


cdef inline void balance_quiet_bytes(l0rt_arena* arena, l0rt_account* one, l0rt_account* other,
                                     bint greedy) noexcept nogil:
    balance_quiet(arena.quiet_limit.bytes, quiet_bytes(one), &one.quiet_limit.bytes, &one.ceiling.bytes,
                  one.own_quiet_limit.bytes, quiet_bytes(other), &other.quiet_limit.bytes, &other.ceiling.bytes,
                  other.own_quiet_limit.bytes, greedy)


cdef inline void balance(int64_t together, int64_t* limit, int64_t* room, int64_t* ceiling, int64_t own,
                         int64_t* other_limit, int64_t* other_room, int64_t* other_ceiling, int64_t other_own,
                         bint greedy) noexcept nogil:
    cdef int64_t now = limit[0] - room[0], other_now = other_limit[0] - other_room[0]
    cdef int64_t left = together - now - other_now
    cdef int64_t kept = least(0 if greedy else left // 2, other_own - other_now)
    move(limit, room, ceiling, now + least(left - kept, own - now))
    move(other_limit, other_room, other_ceiling, other_now + kept)


cdef inline void move(int64_t* limit, int64_t* room, int64_t* ceiling, int64_t to) noexcept nogil:
    cdef int64_t change = to - limit[0]
    limit[0] += change
    room[0] += change
    ceiling[0] += change            # inactive split is what it was


cdef inline void balance_quiet(int64_t together, int64_t now, int64_t* limit, int64_t* ceiling, int64_t own,
                               int64_t other_now, int64_t* other_limit, int64_t* other_ceiling, int64_t other_own,
                               bint greedy) noexcept nogil:
    cdef int64_t left = together - now - other_now
    cdef int64_t kept = least(0 if greedy else left // 2, other_own - other_now)
    cdef int64_t to = now + least(left - kept, own - now)
    ceiling[0] += to - limit[0]
    limit[0] = to
    other_ceiling[0] += other_now + kept - other_limit[0]
    other_limit[0] = other_now + kept
