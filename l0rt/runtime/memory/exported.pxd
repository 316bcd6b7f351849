# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.streams.ledger cimport l0rt_entry
from l0rt.runtime.streams.types cimport l0rt_device

# A handle for `nbytes` of what `owner` has: a Buffer that is held. `is_sent`: `owner` stays until one process has
# imported this handle.
cdef bytes export_handle(owner, l0rt_block* block, l0rt_device* device, size_t offset, size_t nbytes, bint is_sent)
# A handle for a private pool, by the number of its id.
cdef bytes export_pool(int64_t number)
# The Buffer of this process that a handle was made of.
cdef object export_own(uint32_t entry, uint64_t generation, bint is_sent)
cdef int check_shares(l0rt_device* device) except -1
cdef void exports_poll() noexcept
cdef void sent_down(l0rt_entry* entry) noexcept nogil
