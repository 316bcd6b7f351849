# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.types cimport l0rt_block, l0rt_private_pool

cdef struct l0rt_saved_bytes:         # some bytes of a pool
    uint64_t address
    uint64_t nbytes
    l0rt_block* block           # the pinned memory that has them
    int device


# What lives in a memory pool that sleeps, in pinned memory, which is freed with the object.
cdef class Backup:
    cdef l0rt_saved_bytes* saved      # in the order of devices, and of addresses
    cdef size_t count
    cdef size_t capacity


# Put a pool to sleep on every device, with its memory, or on none: then it raises. None: no backup, or the pool
# slept already. `tags`: the numbers of those of which there is a backup; None: of everything.
cdef Backup pool_sleep(l0rt_private_pool* private_pool, bint backs_up, frozenset tags)
# Take the memory of a pool that sleeps, as far as it still has some.
cdef int pool_give_back(l0rt_private_pool* private_pool) except -1
# Wake it, with the contents of the backup, which may be None; or let it sleep on, and raise.
cdef int pool_wake(l0rt_private_pool* private_pool, Backup backup) except -1
