# SPDX-License-Identifier: Apache-2.0
"""The sleep of memory pools, as streams see it: commands on memory that is not there are refused.

While no pool sleeps, a command looks at one bit. A pool that goes to sleep sets it first, and then waits for whoever
has not seen it: for the holders of streams' locks, for replays, and for the work that streams were given.
"""

from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_of
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.streams.hooks cimport note_sleep
from l0rt.runtime.streams.types cimport l0rt_load64, l0rt_store64

cdef extern from *:
    """
    static __thread int l0rt_replays_here[2];
    """
    int[2] replays_here "l0rt_replays_here"

cdef int _sleepers = 0      # these are the GIL's
cdef int[2] _replays        # by generation: those that began before somebody waits for them, and later ones
cdef int _generation = 0


cdef void sleep_begin() noexcept:
    global _sleepers
    _sleepers += 1
    note_sleep(True)
    l0rt_store64(&sleeps, l0rt_load64(&sleeps) + 1)


cdef void sleep_end() noexcept:
    global _sleepers
    _sleepers -= 1
    note_sleep(_sleepers != 0)


cdef bint sleeps_at(const void* address) noexcept nogil:
    cdef l0rt_block* block = map_find(address) if address != NULL else NULL
    return block != NULL and block.arena != NULL and is_asleep(private_pool_of(block.arena))


cdef int refuse_asleep(const void* address, const void* other) except -1 nogil:
    cdef const void* which = address if sleeps_at(address) else other
    with gil:
        where = f"the memory at {<size_t>which:#x}" if which != NULL else "memory of the command"
        raise RuntimeError(f"{where} is in a memory pool that is asleep: wake() the pool before using its memory")


cdef int replay_begin() noexcept:
    """Return the generation, for `replay_end`."""
    _replays[_generation] += 1
    replays_here[_generation] += 1
    return _generation


cdef void replay_end(int generation) noexcept:
    _replays[generation] -= 1
    replays_here[generation] -= 1


cdef bint others_replay(int generation) noexcept:
    """Does another thread replay, and began in this generation?"""
    return _replays[generation] != replays_here[generation]


cdef int replays_pass() noexcept:
    """Begin a new generation, as soon as no other thread is in the one that is to be used again; return the one that is
    over, or -1: not yet. Replays that begin from now on see that the pool sleeps."""
    global _generation
    if others_replay(1 - _generation):
        return -1
    _generation = 1 - _generation
    return 1 - _generation
