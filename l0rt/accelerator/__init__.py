"""The accelerator, whatever it is: torch.accelerator's functions, and what it lacks."""

from l0rt.accelerator import memory
from l0rt.accelerator.memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from l0rt.runtime.devices import device_count
from l0rt.runtime.event import Event
from l0rt.runtime.guard import current_device_index, device_index, set_device_index
from l0rt.runtime.naming import accelerator_type as _accelerator_type
from l0rt.runtime.naming import device as _device
from l0rt.runtime.naming import supported_dtypes as _supported_dtypes
from l0rt.runtime.stream import (
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
    synchronize,
)
from l0rt.runtime.stream import (
    index_or_current as _index_or_current,
)

__all__ = [
    "Event",
    "Stream",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "default_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_device_capability",
    "get_device_index",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "stream",
    "synchronize",
]

get_device_index = current_device_index
current_device_idx = current_device_index
set_device_idx = set_device_index


def is_available():
    """Return whether there is at least one device. Opens no driver, never raises."""
    return device_count() > 0


def current_accelerator(check_available=False):
    """Return the accelerator's `device`, without an index; None if ``check_available`` and there is no device."""
    if check_available and not is_available():
        return None
    return _device(_accelerator_type())


def get_device_capability(device=None, /):
    """Return ``{"supported_dtypes": names}`` of ``device``: the names of the element types that it computes with."""
    return {"supported_dtypes": _supported_dtypes(_index_or_current(device))}
