# SPDX-License-Identifier: Apache-2.0
"""torch.xpu.memory's names, and torch.cuda.memory's of pinned memory: `l0rt.memory` with a ``device`` that may be
given by name."""

from l0rt import memory as _memory
from l0rt.memory import (
    MemPool,
    XPUPluggableAllocator,
    change_current_allocator,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    reset_accumulated_host_memory_stats,
    reset_peak_host_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from l0rt.runtime.memory.device import memory_allocated, memory_reserved
from l0rt.runtime.streams import devices as _devices

__all__ = [
    "MemPool",
    "XPUPluggableAllocator",
    "change_current_allocator",
    "empty_cache",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]

# As torch.xpu.memory has them, and torch.cuda.memory.
_dump_snapshot = _memory.dump_snapshot
_annotate_memory = _annotate_tensor = _memory.annotate_memory
_get_memory_metadata = _memory.get_memory_metadata
_record_memory_history = _memory.record_memory_history
_set_memory_metadata = _memory.set_memory_metadata
_snapshot = _memory.snapshot


def empty_cache():
    """Give unused cached device memory back to the driver. Without a device this does nothing."""
    if _devices.lazy.initialized:
        _memory.empty_cache()


def memory_stats(device=None):
    """Return the statistics of the allocator of ``device`` as a flat dict with torch's keys, sorted.

    Parameters
    ----------
    device : int, str, device or None, optional
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
    return _memory.memory_stats(device)


def memory_stats_as_nested_dict(device=None):
    """Return `memory_stats` as nested dicts, one level for each part of a key between dots.

    Parameters
    ----------
    device : int, str, device or None, optional
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
    return _memory.memory_stats_as_nested_dict(device)


def memory_snapshot(mempool_id=None):
    """Return all segments with their blocks, or those of one private pool, in torch's format.

    Parameters
    ----------
    mempool_id : MemPool, tuple of two int, or None, optional
        A pool or its ``id``. None is all memory; ``(0, 0)`` is the memory outside of pools.

    Returns
    -------
    list of dict
        One dict for each segment. Sizes are in bytes.
    """
    return _memory.memory_snapshot(mempool_id)


def max_memory_allocated(device=None):
    """Return the peak of `memory_allocated` since the last `reset_peak_memory_stats`.

    Parameters
    ----------
    device : int, str, device or None, optional
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
    return _memory.max_memory_allocated(device)


def max_memory_reserved(device=None):
    """Return the peak of `memory_reserved` since the last `reset_peak_memory_stats`.

    Parameters
    ----------
    device : int, str, device or None, optional
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
    return _memory.max_memory_reserved(device)


def reset_peak_memory_stats(device=None):
    """Set every peak to the current value.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    _memory.reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device=None):
    """Set the totals of allocated and freed memory and all counters to 0.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    _memory.reset_accumulated_memory_stats(device)


def mem_get_info(device=None):
    """Return ``(free, total)`` bytes of device memory.

    Parameters
    ----------
    device : int, str, device or None, optional
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
    return _memory.mem_get_info(device)
