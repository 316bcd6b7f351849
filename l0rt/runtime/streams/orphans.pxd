# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport l0rt_slot, l0rt_stream

# How a slot is asked whether it is over; given by who keeps slots.
ctypedef bint (*over_fn)(l0rt_slot* slot, bint ask) noexcept nogil
cdef void ask_over_with(over_fn is_over) noexcept

# How many events of other processes streams may still wait for.
cdef int relied
# Did the process of an imported slot end before it was signalled? Then it is signalled, and what waits for it goes on.
cdef bint slot_is_orphaned(l0rt_slot* slot) noexcept nogil
# The stream waits for the imported slot from now on. False: for too many already. Between the other two, and with the
# slot's gate shared until the wait is appended.
cdef bint rely_on(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil
cdef int relying_begin() except -1 nogil
cdef void relying_end() noexcept nogil
# The stream waits for what another one was given up to a command.
cdef void rely_through(l0rt_stream* stream, const l0rt_stream* other, uint64_t seq) noexcept nogil
# Look whether processes have ended that streams wait for, and which waits are over.
cdef void orphans_look() noexcept nogil
# Raise, once, if the stream has relied on an orphaned event in a command up to `seq`.
cdef int orphans_tell(l0rt_stream* stream, uint64_t seq) except -1 nogil
# Raise that the slot is orphaned.
cdef int orphan_refuse(uint64_t pid) except -1 nogil
