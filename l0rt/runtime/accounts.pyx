"""An arena's two accounts share what is left below the peaks of both pools together."""

from libc.stdint cimport int64_t

from l0rt.runtime.structs cimport POOLS, l0rt_account, l0rt_arena


cdef inline int64_t least(int64_t a, int64_t b) noexcept nogil:
    return a if a < b else b


cdef void accounts_balance(l0rt_arena* arena, int pool, bint greedy) noexcept nogil:
    """Let ``pool`` have what the other account leaves: half of it stays there, or with ``greedy`` nothing."""
    cdef l0rt_account* one = &arena.accounts[pool]
    cdef l0rt_account* other = &arena.accounts[POOLS - 1 - pool]
    balance(arena.limit.count, &one.limit.count, &one.room.count, &one.ceiling.count, one.own_limit.count,
            &other.limit.count, &other.room.count, &other.ceiling.count, other.own_limit.count, greedy)
    balance(arena.limit.bytes, &one.limit.bytes, &one.room.bytes, &one.ceiling.bytes, one.own_limit.bytes,
            &other.limit.bytes, &other.room.bytes, &other.ceiling.bytes, other.own_limit.bytes, greedy)
    balance(arena.limit.requested, &one.limit.requested, &one.room.requested, &one.ceiling.requested,
            one.own_limit.requested, &other.limit.requested, &other.room.requested, &other.ceiling.requested,
            other.own_limit.requested, greedy)
    balance_quiet(arena.quiet_limit.count, quiet_count(one), &one.quiet_limit.count, &one.ceiling.count,
                  one.own_quiet_limit.count, quiet_count(other), &other.quiet_limit.count, &other.ceiling.count,
                  other.own_quiet_limit.count, greedy)
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
