# SPDX-License-Identifier: Apache-2.0
# Memory of a pool that sleeps: who is given its addresses refuses them.

from libc.stdint cimport uint64_t

from l0rt.runtime.streams.hooks cimport SLEEP, hooked

# How often a pool went to sleep. Whoever looked at addresses without the stream's lock compares it under that lock, and
# looks again. ANY_SLEEP: nothing was looked at.
cdef uint64_t sleeps
cdef enum:
    ANY_SLEEP = <uint64_t>-1

# A pool is going to sleep: nothing can be allocated from it any more; it is awake. With the GIL.
cdef void sleep_begin() noexcept
cdef void sleep_end() noexcept

# Is the address in memory of a pool that sleeps?
cdef bint sleeps_at(const void* address) noexcept nogil
cdef int refuse_asleep(const void* address, const void* other) except -1 nogil


# Does any pool sleep? While none does, this is all that a command costs.
cdef inline bint is_any_asleep() noexcept nogil:
    return hooked >> SLEEP & 1


cdef inline bint is_one_asleep(const void* address, const void* other) noexcept nogil:
    return is_any_asleep() and (sleeps_at(address) or sleeps_at(other))


# RuntimeError: one of the addresses, which may be NULL, is in memory of a pool that sleeps.
cdef inline int check_awake(const void* address, const void* other) except -1 nogil:
    return refuse_asleep(address, other) if is_one_asleep(address, other) else 0


# A replay is given to the driver in several steps, without a lock: a pool that goes to sleep waits for their end. With
# the GIL.
cdef int replay_begin() noexcept
cdef void replay_end(int generation) noexcept
cdef bint others_replay(int generation) noexcept
cdef int replays_pass() noexcept
