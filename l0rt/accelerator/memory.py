"""torch.accelerator.memory's names, on the current accelerator; `l0rt.memory` has everything for the built-in one."""

from l0rt import memory as _built_in
from l0rt.runtime.facade import device_or_current as _device_or_current
from l0rt.runtime.facade import memory_allocated, memory_reserved
from l0rt.runtime.facade import raise_without_device as _raise_without_device
from l0rt.runtime.interfaces import chosen as _chosen

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
]


def empty_cache():
    """Give cached device memory that no allocation uses back to the driver, on every device."""
    (_chosen() or _built_in).empty_cache()


def empty_host_cache():
    """Give cached pinned memory that no allocation uses back to the driver."""
    (_chosen() or _built_in).empty_host_cache()


def memory_stats(device_index=None, /):
    """Return the statistics of the device's allocator: a sorted flat dict under torch's keys, in bytes and counts.

    Empty while nothing was allocated.
    """
    if other := _chosen():
        return dict(sorted(other.memory_stats(_device_or_current(device_index)).items()))
    _raise_without_device()
    return _built_in.memory_stats(device_index)


def max_memory_allocated(device_index=None, /):
    """Return the most bytes that allocations held at once, since the last `reset_peak_memory_stats`."""
    return memory_stats(device_index).get("allocated_bytes.all.peak", 0)


def max_memory_reserved(device_index=None, /):
    """Return the most bytes that the allocator held at once, since the last `reset_peak_memory_stats`."""
    return memory_stats(device_index).get("reserved_bytes.all.peak", 0)


def reset_accumulated_memory_stats(device_index=None, /):
    """Make every total of what was allocated and freed, and every counter, 0."""
    if other := _chosen():
        other.reset_accumulated_memory_stats(_device_or_current(device_index))
    else:
        _built_in.reset_accumulated_memory_stats(device_index)


def reset_peak_memory_stats(device_index=None, /):
    """Make every peak the current value."""
    if other := _chosen():
        other.reset_peak_memory_stats(_device_or_current(device_index))
    else:
        _built_in.reset_peak_memory_stats(device_index)


def get_memory_info(device_index=None, /):
    """Return ``(free, total)`` bytes of device memory."""
    if other := _chosen():
        return other.mem_get_info(_device_or_current(device_index))
    return _built_in.get_memory_info(device_index)
