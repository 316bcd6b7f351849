# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport l0rt_slot, l0rt_stream


cdef class Event:
    cdef l0rt_slot* slot        # the last record; NULL: none yet
    cdef int index              # the device of the first record; -1: not bound yet
    cdef readonly bint enable_timing
    cdef readonly bint blocking
    cdef readonly bint interprocess
    cdef PyObject* pool         # interprocess: the EventPool of its one native event; untyped, so that no GC is needed
    cdef object __weakref__


# A new event of the built-in type, whichever accelerator is current: Event() is that one's.
cdef Event built_in_event(bint interprocess)
cdef int Event_record(Event self, l0rt_stream* stream) except -1
cdef int Event_wait(Event self, l0rt_stream* stream) except -1
cdef l0rt_stream* stream_of(Queue queue) except NULL
cdef object slots_elapsed_ms(l0rt_slot* start, l0rt_slot* end)
