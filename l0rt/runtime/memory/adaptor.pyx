# SPDX-License-Identifier: Apache-2.0
"""Adaptors: allocators that pass on what they are asked to an upstream, and limit, log, count or remember it.

An adaptor's own records change under the GIL, without a Python frame in between: a signal handler, the garbage
collector and other threads find them whole. The upstream, a callback and a log are called outside of that.
"""

import os
import sys
import time
from _thread import get_native_id

cimport cython
from libc.errno cimport EINTR, errno
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt._base.arguments cimport is_whole, known_as, whole
from l0rt.runtime.memory.pluggable cimport PluggableAllocator
from l0rt.runtime.memory.upstream cimport index_named, upstream_functions
from l0rt.runtime.streams.queue cimport Queue

from l0rt.errors import OutOfMemoryError
from l0rt._base.paths import plain_path
from l0rt.runtime.memory.explanation import adaptor_types
from l0rt._base.integers import size_text

cdef extern from "fcntl.h" nogil:
    int posix_open "open"(const char* path, int flags, int mode)
    enum:
        O_APPEND
        O_CLOEXEC
        O_CREAT
        O_TRUNC
        O_WRONLY

cdef extern from "unistd.h" nogil:
    Py_ssize_t posix_write "write"(int fd, const void* bytes, size_t count)
    int posix_close "close"(int fd)

cdef enum:
    MOST_FRAMES = 64    # of a stack


# --- What all adaptors do.


@cython.final
@cython.binding(False)
cdef class Lent:
    """An allocation that has not been freed."""
    cdef uint64_t nbytes
    cdef object device
    cdef object stream
    cdef object stack


@cython.binding(False)
cdef class Adaptor:
    """Adaptor()
--

An allocator over another one, made as one of its subclasses, such as `LimitingAdaptor`.
"""

    cdef readonly object upstream
    cdef object up_alloc
    cdef object up_free
    cdef PluggableAllocator face
    cdef dict live              # by address: what was not freed yet
    cdef int64_t bytes          # of these, and of those that the upstream is being asked for

    def __cinit__(self):
        if type(self) is Adaptor:
            raise TypeError("make one of its subclasses, such as l0rt.memory.LimitingAdaptor")
        self.live = {}

    cdef int connect(self, upstream) except -1:
        if isinstance(upstream, Adaptor):
            self.up_alloc, self.up_free = (<Adaptor>upstream)._alloc_for, (<Adaptor>upstream)._free_for
        else:
            self.up_alloc, self.up_free = upstream_functions(upstream)
        self.upstream = upstream
        self.face = PluggableAllocator(self._alloc_for, self._free_for)
        return 0

    def __getattr__(self, name):
        # What only some allocators have, and who uses them asks for.
        if name in ("record_stream", "record_use", "host_accessible") and self.upstream is not None:
            return getattr(self.upstream, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def allocator(self):
        """Return what a `MemPool` and `change_current_allocator` take, which take the adaptor itself too.

        Returns
        -------
        PluggableAllocator
        """
        return self.face

    def malloc(self, nbytes, stream=None, device=None):
        """Return the address of ``nbytes`` bytes from the upstream.

        Parameters
        ----------
        nbytes : int
            The size in bytes.
        stream : Stream, int or None, optional
            The stream in whose order the memory is used, as the upstream takes it. None is the current one.
        device : int, str, device or None, optional
            The device, for upstreams that serve several. None is the current one.

        Returns
        -------
        int
            The address; 0 for 0 bytes.

        Raises
        ------
        OutOfMemoryError
            The upstream or a limit has no memory left.
        ValueError
            The size is negative or too large.
        DeviceIndexError
            There is no device with this index.
        """
        size = whole(nbytes, "a size")
        if not 0 <= size < 1 << 62:
            raise ValueError(f"a size must be from 0 to 2**62 - 1 bytes, got {size}")
        if size == 0:
            return 0
        address = self.obtain(size, None if device is None else index_named(device), stream)
        if address == 0:
            raise OutOfMemoryError(f"out of memory: requested {size_text(size)} from {self!r}")
        return address

    def free(self, ptr, stream=None):
        """Give memory back to the upstream.

        Parameters
        ----------
        ptr : int
            What `malloc` returned. 0 does nothing.
        stream : optional
            Not used: memory is freed for the stream that it was allocated for.

        Raises
        ------
        ValueError
            The address is not that of an allocation of this adaptor, or it was freed.
        """
        address = whole(ptr, "an address")
        if address != 0:
            self.give_back(address, None, False)

    def _alloc_for(self, nbytes, device, stream):
        return self.obtain(nbytes, device, stream)

    def _free_for(self, ptr, nbytes, device, stream):
        self.give_back(ptr, stream, True)

    def get_allocated_bytes(self):
        """Return how many bytes are allocated through the adaptor.

        Returns
        -------
        int
        """
        return self.bytes

    def __repr__(self):
        return f"<l0rt.memory.{type(self).__name__} over {self.upstream!r}>"

    # What a subclass adds. `admit` may refuse; `noted` and `gone` are called outside of the adaptor's own changes, and
    # may raise.
    cdef bint admit(self, uint64_t nbytes) except -1:
        return True

    cdef bint asks_again(self, uint64_t nbytes) except -1:
        return False

    cdef int begun(self, Lent lent) except -1:
        return 0

    cdef void counted(self, int64_t nbytes) noexcept:
        pass

    cdef int noted(self, address, Lent lent) except -1:
        return 0

    cdef int gone(self, address, Lent lent) except -1:
        return 0

    cdef int refused(self, uint64_t nbytes, stream) except -1:
        return 0

    cdef object obtain(self, size, device, stream):
        """The address; 0: the upstream has no memory, or the adaptor refuses."""
        cdef uint64_t nbytes = size
        cdef Lent lent = Lent.__new__(Lent)
        cdef object address = 0
        lent.nbytes, lent.device, lent.stream = nbytes, device, stream
        self.begun(lent)
        while True:
            address = self.try_obtain(size, lent)
            if address != 0 or not self.asks_again(nbytes):
                break
        if address == 0:
            self.refused(nbytes, stream)
            return 0
        try:
            self.noted(address, lent)
        except BaseException:
            self.give_back(address, None, False)
            raise
        return address

    cdef object try_obtain(self, size, Lent lent):
        cdef bint done = False
        cdef object address = 0
        if not self.admit(lent.nbytes):
            return 0
        self.bytes += lent.nbytes
        try:
            address = self.asked(size, lent)
            if address != 0:
                if address in self.live:        # not freed: its other holder would lose it
                    raise ValueError(f"{self.upstream!r} returned {address:#x}, which is allocated already")
                self.live[address] = lent
                self.counted(lent.nbytes)
                done = True
        finally:
            if not done:
                self.bytes -= lent.nbytes
        return address

    cdef object asked(self, size, Lent lent):
        try:
            answer = self.up_alloc(size, lent.device, lent.stream)
        except MemoryError:
            return 0
        if answer is None:
            return 0
        if not is_whole(answer):
            raise TypeError(f"{self.upstream!r} must return an address, an int, got {type(answer).__name__}")
        address = whole(answer, "an address")
        if not 0 <= address <= UINT64_MAX:
            raise ValueError(f"{self.upstream!r} must return an address from 1 to 2**64 - 1, got {address:#x}")
        return address

    cdef int give_back(self, address, stream, bint has_stream) except -1:
        cdef Lent lent = self.live.pop(address, None)
        if lent is None:
            raise ValueError(f"{address:#x} is not the address of an allocation of this adaptor, or was freed already")
        try:
            self.up_free(address, lent.nbytes, lent.device, stream if has_stream else lent.stream)
        finally:
            self.bytes -= lent.nbytes
            self.counted(-<int64_t>lent.nbytes)
        return self.gone(address, lent)


# --- The adaptors.


@cython.final
@cython.binding(False)
cdef class LimitingAdaptor(Adaptor):
    """LimitingAdaptor(upstream, limit)
--

An allocator over another one that hands out at most ``limit`` bytes at a time.

Parameters
----------
upstream : Adaptor, PluggableAllocator, MemPool, object with malloc and free, or None
    Where the memory comes from. None is the driver.
limit : int
    Bytes.

Raises
------
ValueError
    ``limit`` is not positive.
"""

    cdef uint64_t limit

    def __cinit__(self, upstream, limit):
        most = whole(limit, "a limit")
        if most <= 0:
            raise ValueError(f"a limit must be positive, got {most}")
        self.limit = min(most, (1 << 63) - 1)
        self.connect(upstream)

    def get_allocation_limit(self):
        """Return the limit in bytes.

        Returns
        -------
        int
        """
        return self.limit

    cdef bint admit(self, uint64_t nbytes) except -1:
        return nbytes <= self.limit and <uint64_t>self.bytes <= self.limit - nbytes


@cython.final
@cython.binding(False)
cdef class FailureCallbackAdaptor(Adaptor):
    """FailureCallbackAdaptor(upstream, callback)
--

An allocator over another one that asks a function whether to try again, if the upstream is out of memory.

Parameters
----------
upstream : Adaptor, PluggableAllocator, MemPool, object with malloc and free, or None
    Where the memory comes from. None is the driver.
callback : callable
    It is called with the number of bytes, and returns True if it has freed something, so that the upstream is asked
    again. What it raises, the allocation raises.

Raises
------
TypeError
    ``callback`` is not callable.
"""

    cdef object callback

    def __cinit__(self, upstream, callback):
        if not callable(callback):
            raise TypeError(f"callback must be a function of the size, got {type(callback).__name__}")
        self.callback = callback
        self.connect(upstream)

    cdef bint asks_again(self, uint64_t nbytes) except -1:
        return True if self.callback(nbytes) else False


cdef struct l0rt_counters:
    int64_t current
    int64_t peak
    int64_t total


cdef inline void counters_add(l0rt_counters* counters, int64_t more) noexcept:
    counters.current += more
    counters.peak = max(counters.peak, counters.current)
    counters.total += max(more, 0)


cdef inline void counters_join(l0rt_counters* counters, const l0rt_counters* inner) noexcept:
    counters.peak = max(counters.peak, counters.current + inner.peak)
    counters.current += inner.current
    counters.total += inner.total


@cython.final
@cython.binding(False)
cdef class Counters:
    cdef l0rt_counters bytes
    cdef l0rt_counters number

    cdef dict told(self):
        return {"current_bytes": self.bytes.current, "current_count": self.number.current,
                "peak_bytes": self.bytes.peak, "peak_count": self.number.peak,
                "total_bytes": self.bytes.total, "total_count": self.number.total}


@cython.final
@cython.binding(False)
cdef class StatisticsAdaptor(Adaptor):
    """StatisticsAdaptor(upstream)
--

An allocator over another one that counts allocations and bytes: now, at the peak, and in total.

Parameters
----------
upstream : Adaptor, PluggableAllocator, MemPool, object with malloc and free, or None
    Where the memory comes from. None is the driver.
"""

    cdef list stack             # of Counters, of all threads; the innermost is the last

    def __cinit__(self, upstream):
        self.stack = [Counters.__new__(Counters)]
        self.connect(upstream)

    @property
    def allocation_counts(self):
        """The innermost counters: ``current_bytes``, ``current_count``, ``peak_bytes``, ``peak_count``,
        ``total_bytes`` and ``total_count``."""
        return (<Counters>self.stack[-1]).told()

    def push_counters(self):
        """Begin new counters, from 0, and return those so far.

        Returns
        -------
        dict
        """
        made = Counters.__new__(Counters)
        told = self.allocation_counts
        self.stack.append(made)
        return told

    def pop_counters(self):
        """End the counters of the last `push_counters`, add them to those before, and return them.

        Returns
        -------
        dict

        Raises
        ------
        IndexError
            There was no `push_counters`.
        """
        cdef Counters inner, outer
        if len(self.stack) == 1:
            raise IndexError("pop_counters() without push_counters(): the last counters stay")
        inner = self.stack.pop()
        outer = self.stack[-1]
        counters_join(&outer.bytes, &inner.bytes)
        counters_join(&outer.number, &inner.number)
        return inner.told()

    cdef void counted(self, int64_t nbytes) noexcept:
        cdef Counters counters = <Counters>self.stack[-1]
        counters_add(&counters.bytes, nbytes)
        counters_add(&counters.number, 1 if nbytes > 0 else -1)


@cython.final
@cython.binding(False)
cdef class TrackingAdaptor(Adaptor):
    """TrackingAdaptor(upstream, capture_stacks=False)
--

An allocator over another one that knows what was not freed yet, and who allocated it.

Parameters
----------
upstream : Adaptor, PluggableAllocator, MemPool, object with malloc and free, or None
    Where the memory comes from. None is the driver.
capture_stacks : bool, optional
    Keep the Python stack of each allocation, of at most 64 frames.
"""

    cdef bint captures

    def __cinit__(self, upstream, bint capture_stacks=False):
        self.captures = capture_stacks
        self.connect(upstream)

    def outstanding(self):
        """Return what was not freed yet, the oldest first.

        Returns
        -------
        list of dict
            ``address``, ``nbytes``, ``device``, ``stream``, and ``stack``, a list of lines.
        """
        return [{"address": address, "nbytes": (<Lent>lent).nbytes, "device": (<Lent>lent).device,
                 "stream": (<Lent>lent).stream, "stack": (<Lent>lent).stack.format() if (<Lent>lent).stack else []}
                for address, lent in list(self.live.items())]

    def get_outstanding_allocations_str(self):
        """Return the same as text, one line for each allocation, with its stack behind it.

        Returns
        -------
        str
        """
        return "".join(f"{each['address']:#x}: {size_text(each['nbytes'])}\n" + "".join(each["stack"])
                       for each in self.outstanding())

    cdef int begun(self, Lent lent) except -1:
        if self.captures:
            import traceback    # here, not above: few programs keep stacks, and it takes a while

            lent.stack = traceback.StackSummary.extract(
                traceback.walk_stack(sys._getframe()), limit=MOST_FRAMES, lookup_lines=False)
            lent.stack.reverse()
        return 0


@cython.final
@cython.binding(False)
cdef class LoggingAdaptor(Adaptor):
    """LoggingAdaptor(upstream, log)
--

An allocator over another one that writes a line of CSV for each allocation and each free: thread, time, action,
address, size and stream.

Parameters
----------
upstream : Adaptor, PluggableAllocator, MemPool, object with malloc and free, or None
    Where the memory comes from. None is the driver.
log : str, path or object with write
    The file, which is emptied first; or what each line is written to, as a str.

Raises
------
OSError
    The file cannot be written.
"""

    cdef object file            # its write is called; None: a descriptor
    cdef str name
    cdef int descriptor

    def __cinit__(self, upstream, log):
        cdef bytes path
        self.descriptor = -1
        if callable(getattr(log, "write", None)):
            self.file = log
        else:
            self.name = plain_path(log)
            path = self.name.encode(sys.getfilesystemencoding(), "surrogateescape")
            if b"\0" in path:
                raise ValueError("embedded null byte in the name of the log")
            # Not buffered: a forked child would write the same lines again.
            self.descriptor = posix_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o666)
            if self.descriptor < 0:
                raise_errno(self.name)
        self.connect(upstream)
        self.write_line("Thread,Time,Action,Pointer,Size,Stream\n")

    def __dealloc__(self):
        if self.descriptor >= 0:
            posix_close(self.descriptor)

    def flush(self):
        """Make what was logged visible to readers of a file object; lines to a file's name are so at once."""
        flush = getattr(self.file, "flush", None)
        if flush is not None:
            flush()

    def get_file_name(self):
        """Return the name of the file, None for an object with ``write``.

        Returns
        -------
        str or None
        """
        return self.name

    cdef int write_line(self, str line) except -1:
        cdef bytes data
        cdef const char* at
        cdef Py_ssize_t left, written
        if self.file is not None:
            self.file.write(line)
            return 0
        data = line.encode()
        at, left = data, len(data)
        while left > 0:
            with nogil:
                written = posix_write(self.descriptor, at, left)
            if written < 0 and errno != EINTR:
                raise_errno(self.name)
            if written > 0:
                at, left = at + written, left - written
        return 0

    cdef int write_row(self, str action, object address, uint64_t nbytes, stream) except -1:
        if isinstance(stream, Queue):
            stream = stream.stream_id
        cdef int64_t us = time.time_ns() // 1000
        moment = f"{time.strftime('%H:%M:%S', time.localtime(us // 1_000_000))}:{us % 1_000_000:06}"
        return self.write_line(f"{get_native_id()},{moment},{action},{address:#x},{nbytes},{stream or 0}\n")

    cdef int noted(self, address, Lent lent) except -1:
        return self.write_row("allocate", address, lent.nbytes, lent.stream)

    cdef int gone(self, address, Lent lent) except -1:
        return self.write_row("free", address, lent.nbytes, lent.stream)

    cdef int refused(self, uint64_t nbytes, stream) except -1:
        return self.write_row("allocate failure", 0, nbytes, stream)


cdef int raise_errno(str name) except -1:
    number = errno
    raise OSError(number, os.strerror(number), name)


known_as(Adaptor, b"l0rt.memory.Adaptor")
known_as(LimitingAdaptor, b"l0rt.memory.LimitingAdaptor")
known_as(LoggingAdaptor, b"l0rt.memory.LoggingAdaptor")
known_as(TrackingAdaptor, b"l0rt.memory.TrackingAdaptor")
known_as(StatisticsAdaptor, b"l0rt.memory.StatisticsAdaptor")
known_as(FailureCallbackAdaptor, b"l0rt.memory.FailureCallbackAdaptor")
adaptor_types.append(Adaptor)
