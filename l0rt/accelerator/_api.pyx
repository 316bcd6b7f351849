# SPDX-License-Identifier: Apache-2.0
"""The names of l0rt.accelerator: the built-in accelerator's own code, or a call of the chosen one's interface.

They are compiled because a Python frame alone would cost as much as what they do. Each takes the chosen interface into
a local name before it runs anything of Python's: another thread may choose anew at any time.
"""

from contextlib import nullcontext

from cpython.object cimport PyObject

from l0rt.runtime.current.thread cimport (
    current_device,
    current_stream_object,
    exchange_device,
    exchange_stream,
    thread_peek,
)
from l0rt.runtime.memory.device cimport allocated_bytes, reserved_bytes
from l0rt.runtime.streams.devices cimport device_total
from l0rt.runtime.streams.naming cimport (
    current_type,
    existing_index_in,
    interface_of_stream,
    other,
    other_index,
    settable_index,
)
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt._base.described import documented_as, takes_device
from l0rt.runtime.streams import devices

from l0rt.runtime.current import generator as generators, stream as built_in
from l0rt.runtime.memory import device as memory
from l0rt.runtime.streams.devices import lazy


def device_count():
    """Return the number of devices, 0 if there is none. It opens no driver and never raises.

    Returns
    -------
    int
    """
    if other == NULL:
        return devices.device_count()
    try:
        return int((<object>other).device_count())
    except Exception:
        return 0


def current_device_index():
    """Return the index of the calling thread's current device.

    Returns
    -------
    int
    """
    cdef l0rt_thread* thread
    if other != NULL:
        return (<object>other).current_device()
    thread = thread_peek()
    if thread != NULL:
        return thread.device
    if device_total() == 0:
        lazy.init()
    return current_device()


@takes_device
def set_device_index(device, /):
    """Make ``device`` the thread's current device. A negative index changes nothing."""
    cdef int index = settable_index(device, current_type())
    if index < 0:
        return
    if other != NULL:
        interface = <object>other
        interface.set_device(other_index(interface, index))
    else:
        exchange_device(index)


cdef object other_device(interface, what):
    """The index of the chosen accelerator's device that ``what`` names; None for its current one."""
    return existing_index_in(what, interface, current_type())


def device_or_current(what):
    """Return what an interface understands: an index that exists, or, from another than the built-in one, None."""
    return built_in.index_or_current(what) if other == NULL else other_device(<object>other, what)


@takes_device
def current_stream(device=None, /):
    """Return the calling thread's current stream on ``device`` (the current one by default).

    Returns
    -------
    Stream
    """
    cdef PyObject* stream
    if other != NULL:
        interface = <object>other
        return interface.current_stream(other_device(interface, device))
    if device is None:
        stream = current_stream_object()
        if stream != NULL:
            return <object>stream
    return built_in.current_stream(device)


@takes_device
def default_stream(device=None, /):
    """Return the default stream of ``device``, which the pool never hands out.

    Returns
    -------
    Stream
    """
    if other != NULL:
        interface = <object>other
        return interface.default_stream(other_device(interface, device))
    return built_in.default_stream(device)


def set_stream(stream):
    """Make ``stream`` the calling thread's current stream, and its device the current device.

    Parameters
    ----------
    stream : Stream
        The stream.

    Raises
    ------
    TypeError
        It is not a Stream.
    """
    if isinstance(stream, Queue):
        exchange_stream((<Queue>stream).ptr)
    else:
        interface_of_stream(stream).set_stream(stream)


def stream(stream=None, /):
    """Return a context manager that makes ``stream`` and its device current. None changes nothing.

    Parameters
    ----------
    stream : Stream or None, optional
        None changes nothing.

    Returns
    -------
    context manager
    """
    if isinstance(stream, Queue):
        return stream
    return nullcontext() if stream is None else interface_of_stream(stream).stream(stream)


@takes_device
def synchronize(device=None, /, *, timeout=None):
    """Wait until the work of all streams of ``device`` is complete.

    Before the first use of a device it returns at once.

    Parameters
    ----------
    timeout : float or None, optional
        Seconds, not negative. None waits without a limit, and the call returns None.

    Returns
    -------
    bool or None
        With ``timeout``, whether the work was complete in time.
    """
    if other == NULL:
        return built_in.synchronize(device, timeout=timeout)
    interface = <object>other
    limit = {} if timeout is None else {"timeout": timeout}
    return interface.synchronize(other_device(interface, device), **limit)


def raise_without_device():
    """Raise the error of opening the driver if there is no device; otherwise leave the driver closed."""
    if not lazy.initialized and not devices.device_count():
        lazy.init()


@documented_as(memory.memory_allocated, device="device_index")
def memory_allocated(device_index=None, /):
    if other != NULL:
        interface = <object>other
        return interface.memory_allocated(other_device(interface, device_index))
    if device_total() == 0:
        raise_without_device()
    return allocated_bytes(device_index)


@documented_as(memory.memory_reserved, device="device_index")
def memory_reserved(device_index=None, /):
    if other != NULL:
        interface = <object>other
        return interface.memory_stats(other_device(interface, device_index)).get("reserved_bytes.all.current", 0)
    if device_total() == 0:
        raise_without_device()
    return reserved_bytes(device_index)


@takes_device
def default_generator(device=None, /):
    """Return the default generator of ``device`` (the current one by default).

    Returns
    -------
    Generator
    """
    if other != NULL:
        type, interface = current_type(), <object>other
        index = other_device(interface, device)
        if not getattr(interface.default_generator, "is_missing", False):
            return interface.default_generator(index)
        return generators.default_generator_of(type, interface.current_device() if index is None else index)
    return generators.default_generator(built_in.index_or_current(device))
