# SPDX-License-Identifier: Apache-2.0
"""The names of torch.accelerator.memory and memory limits, on the current accelerator. `l0rt.memory` is for the
built-in one."""

from l0rt import memory as _built_in
from l0rt.accelerator._api import current_device_index as _current
from l0rt.accelerator._api import device_or_current as _device_or_current
from l0rt.accelerator._api import memory_allocated, memory_reserved
from l0rt.accelerator._api import raise_without_device as _raise_without_device
from l0rt.memory.stats import nested as _nested
from l0rt.memory.stats import table as _table
from l0rt.runtime.memory.pools import WHAT as _WHAT
from l0rt.runtime.memory.pools import MemPool
from l0rt.runtime.streams.naming import accelerator_type as _current_type
from l0rt.runtime.streams.naming import existing_index as _existing
from l0rt.runtime.streams.naming import index_in as _index_in
from l0rt.runtime.streams.naming import named_type as _named_type
from l0rt.runtime.streams.naming import other_interface as _chosen
from l0rt.runtime.streams.naming import other_interface_of as _other

__all__ = [
    "MemPool",
    "attach_oom_observer",
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "get_memory_limit",
    "get_per_process_memory_fraction",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def _owner_of(device):
    """Return the module or interface of the current accelerator's memory, and the device in its form."""
    other = _chosen()
    return (other, _device_or_current(device)) if other else (_built_in, device)


def use_mem_pool(pool, device=None):
    """Make the calling thread allocate from ``pool`` inside a with block.

    The pool is of the device's type, or without a device of the current accelerator's.

    Parameters
    ----------
    pool : MemPool
        The pool.
    device : int, str, device or None, optional
        The device on which the pool is used. None is every device.

    Returns
    -------
    context manager

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    NotImplementedError
        The device type has no pools.
    TypeError
        The pool is of another device type.
    """
    type = _named_type(device) or _current_type()
    interface = _other(type)
    if interface is None:
        return _built_in.use_mem_pool(pool, device)
    enter = getattr(interface, "use_mem_pool", None)
    if enter is None:
        raise NotImplementedError(f"device type {type} has no {_WHAT}")
    if isinstance(pool, MemPool):
        raise TypeError(f"use_mem_pool() takes a pool of device type {type}, got one of xpu")
    index = _index_in(device, type)
    return enter(pool, None if index < 0 else _existing(interface, index))


def empty_cache():
    """Give unused cached device memory back to the driver, on every device."""
    _owner_of(None)[0].empty_cache()


def empty_host_cache():
    """Give unused cached pinned memory back to the driver."""
    _owner_of(None)[0].empty_host_cache()


def memory_stats(device_index=None, /):
    """Return the statistics of the device's allocator as a flat dict with torch's keys, sorted.

    Empty while nothing was allocated.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    dict of str to int
        Bytes and counts. Empty before the first allocation.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device_index)
    if owner is _built_in:
        _raise_without_device()
        return owner.memory_stats(device)
    return dict(sorted(owner.memory_stats(device).items()))


def memory_stats_as_nested_dict(device_index=None, /):
    """Return `memory_stats` as nested dicts, one level for each part of a key between dots.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    dict
        Bytes and counts.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return _nested(memory_stats(device_index))


def memory_summary(device=None, abbreviated=False):
    """Return the statistics of ``device`` as torch's table.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
    abbreviated : bool, optional
        Omit the rows of the small pool and of the large pool.

    Returns
    -------
    str

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    index = _device_or_current(device)
    index = _current() if index is None else index
    return _table(memory_stats(index), index, abbreviated)


def memory_snapshot():
    """Return all segments of the allocator with their blocks, in torch's format.

    Returns
    -------
    list of dict
        One dict for each segment. Sizes are in bytes.
    """
    return _owner_of(None)[0].memory_snapshot()


def attach_oom_observer(observer):
    """Register a function that is called before an allocation fails, and return a function that detaches it.

    If ``observer`` returns True, the allocation is tried again.

    Parameters
    ----------
    observer : callable
        It is called as ``observer(device, nbytes, allowed, free)``: the index of the device, the size of the
        request, the limit and the free memory, in bytes.

    Returns
    -------
    callable
        A function without parameters that detaches the observer.

    Raises
    ------
    TypeError
        It is not a function of four arguments.
    """
    return _owner_of(None)[0].attach_oom_observer(observer)


def max_memory_allocated(device_index=None, /):
    """Return the peak of `memory_allocated` since the last `reset_peak_memory_stats`.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return memory_stats(device_index).get("allocated_bytes.all.peak", 0)


def max_memory_reserved(device_index=None, /):
    """Return the peak of `memory_reserved` since the last `reset_peak_memory_stats`.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return memory_stats(device_index).get("reserved_bytes.all.peak", 0)


def reset_accumulated_memory_stats(device_index=None, /):
    """Set the totals of allocated and freed memory and all counters to 0.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device_index)
    owner.reset_accumulated_memory_stats(device)


def reset_peak_memory_stats(device_index=None, /):
    """Set every peak to the current value.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device_index)
    owner.reset_peak_memory_stats(device)


def get_memory_info(device_index=None, /):
    """Return ``(free, total)`` bytes of device memory.

    Parameters
    ----------
    device_index : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    tuple of two int
        The free bytes and the total bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device_index)
    return owner.mem_get_info(device)


def set_memory_limit(limit, device=None):
    """Set the limit of the memory that the allocator reserves on ``device``.

    Parameters
    ----------
    limit : int or None
        Bytes. None takes the limit of the configuration, which is no limit by default.
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    ValueError
        The limit is out of range.
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device)
    owner.set_memory_limit(limit, device)


def get_memory_limit(device=None):
    """Return the memory limit of ``device`` in bytes, or None if there is none.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    int or None
        Bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device)
    return owner.get_memory_limit(device)


def set_per_process_memory_fraction(fraction, device=None):
    """Set the limit of the memory that the allocator reserves on ``device``, as a part of its memory.

    Parameters
    ----------
    fraction : float
        The part of the device's memory, above 0 and up to 1.
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    ValueError
        ``fraction`` is not above 0 and up to 1.
    TypeError
        It is not a float.
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device)
    owner.set_per_process_memory_fraction(fraction, device)


def get_per_process_memory_fraction(device=None):
    """Return the memory limit of ``device`` as a part of its memory, 1.0 if there is none.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    float

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    owner, device = _owner_of(device)
    return owner.get_per_process_memory_fraction(device)
