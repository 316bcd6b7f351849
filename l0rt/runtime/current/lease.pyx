# SPDX-License-Identifier: Apache-2.0
"""Streams for one holder: leases, and the copy engine's."""

cimport cython

from l0rt._base.arguments cimport clamped_priority
from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.current.stream cimport stream_object
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.streams.devices cimport device_at
from l0rt.runtime.streams.naming cimport index_of, only_built_in
from l0rt.runtime.streams.stream_pool cimport lease_stream, return_stream
from l0rt.runtime.streams.types cimport *

from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.stream_pool import pool_state

cdef str POOL = "stream pool: l0rt.Stream(device) makes a stream"
cdef tuple ENGINES = ("compute", "copy")
cdef dict _copy_streams = {}


@cython.binding(False)
cdef class Lease:
    """A stream with one holder. A with block has the stream; its end returns the stream, with its pending work."""
    cdef l0rt_stream* ptr
    cdef int index, priority
    cdef bint copies

    def __enter__(self):
        if self.ptr != NULL:
            raise RuntimeError("the lease was entered before")
        self.ptr = lease_stream(device_at(self.index), self.priority, self.copies)
        return stream_object(self.ptr)

    def __exit__(self, kind, value, trace):
        cdef l0rt_stream* stream = self.ptr
        if stream == NULL:
            raise RuntimeError("the lease was not entered")
        self.ptr = NULL
        return_stream(stream)

    def __dealloc__(self):
        if self.ptr != NULL:
            return_stream(self.ptr)


enter_at_once((Lease,))


def lease(device=None, priority=0, *, engine="compute"):
    """Return a with block in which a stream of ``device`` belongs to the caller alone.

    ``engine="copy"`` binds it to an engine that only copies, where the device has one. Its work need not be over when
    the block ends: the next holder's comes behind it.
    """
    only_built_in(device, POOL)
    cdef Lease made = Lease.__new__(Lease)
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    made.priority = clamped_priority(priority)
    lazy.init()
    made.index = index_of(device, current_device(), lazy.device_type)
    device_at(made.index)
    made.copies = engine == "copy"
    return made


def copy_stream(device=None):
    """Return the stream of ``device`` that is bound to a copy engine, one a device; without one, it computes too."""
    only_built_in(device, POOL)
    lazy.init()
    cdef int index = index_of(device, current_device(), lazy.device_type)
    cdef l0rt_device* record = device_at(index)
    if index not in _copy_streams:
        _copy_streams[index] = stream_object(lease_stream(record, 0, True))
    return _copy_streams[index]


class StreamPool:
    """The stream pools of all devices.

    Only the built-in device type has stream pools. For another type it raises NotImplementedError.
    """

    lease = staticmethod(lease)
    copy_stream = staticmethod(copy_stream)

    @staticmethod
    def state(device=None):
        """Return the number of streams of ``device`` with a list, leased, given back and adopted, by name."""
        only_built_in(device, POOL)
        lazy.init()
        return pool_state(index_of(device, current_device(), lazy.device_type))


stream_pool = StreamPool()
