# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.ledger cimport l0rt_peer
from l0rt.runtime.streams.types cimport l0rt_device


# What a handle names, as it is reached in this process.
cdef struct l0rt_import:
    l0rt_device* device
    void* pointer           # NULL: no bytes, or they are this process's own
    size_t offset           # in the block that was exported
    size_t nbytes

# None, and `out.pointer` needs one `shared_free`; or for a handle of this process the Buffer that it was made of.
# `of_pool`: the pool that the memory has to be of: its process, when that began, its number.
cdef object import_handle(what, l0rt_import* out, of_pool=*)

# A pool of another process: its allocations stay open here once they were opened.
cdef struct l0rt_kept:
    l0rt_peer* peer
    uint64_t number         # of the pool, there
    int uses
    l0rt_kept* next

# The number of a pool of this process that a handle names; None: it is another's.
cdef object own_pool(what)
# A pool of another process, with one more use.
cdef l0rt_kept* pool_keep(what) except NULL
cdef void pool_drop(l0rt_kept* kept) noexcept
# Of its allocations that are open here.
cdef size_t pool_bytes(l0rt_kept* kept) noexcept
