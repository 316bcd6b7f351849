# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.core.event cimport EventPool
from l0rt.runtime.streams.ledger cimport l0rt_peer, l0rt_told
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_slot


# An event of another process that was opened.
cdef struct l0rt_foreign:
    l0rt_device* device         # on whose streams it is used
    l0rt_peer* peer             # with a use
    l0rt_told* told

cdef int check_shares_events(l0rt_device* device) except -1
# Take the gate of an event's slot, to record it again. False: not yet.
cdef bint event_take(l0rt_slot* slot) except -1
cdef bytes event_export(EventPool pool, l0rt_slot* slot)
# No handle of the slot's event is good any more.
cdef void event_export_end(l0rt_slot* slot) noexcept
cdef tuple event_identity(device, what)
cdef bint event_is_current(l0rt_slot* slot, uint64_t generation) except -1
cdef EventPool event_import(device, what, l0rt_foreign* out)
