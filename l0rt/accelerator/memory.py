# SPDX-License-Identifier: Apache-2.0
"""The names of torch.accelerator.memory and memory limits, on the current accelerator. `l0rt.memory` is for the
built-in one."""

from __future__ import annotations

from l0rt import memory as _built_in
from l0rt._base.described import documented_as as _documented_as
from l0rt._base.described import takes_device as _takes_device
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

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from l0rt.memory import use_mem_pool as _Block
    from l0rt.runtime.streams.naming import _Device

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


def use_mem_pool(pool: MemPool, device: _Device = None) -> _Block:
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


def empty_cache() -> None:
    """Give unused cached device memory back to the driver, on every device."""
    _owner_of(None)[0].empty_cache()


@_documented_as(_built_in.empty_host_cache)
def empty_host_cache() -> None:
    _owner_of(None)[0].empty_host_cache()


@_takes_device
def memory_stats(device_index: _Device = None, /) -> dict[str, int]:
    """Return the statistics of the device's allocator as a flat dict with torch's keys, sorted.

    Empty while nothing was allocated.

    Returns
    -------
    dict of str to int
        Bytes and counts. Empty before the first allocation.
    """
    owner, device = _owner_of(device_index)
    if owner is _built_in:
        _raise_without_device()
        return owner.memory_stats(device)
    return dict(sorted(owner.memory_stats(device).items()))


@_documented_as(_built_in.memory_stats_as_nested_dict, device="device_index")
def memory_stats_as_nested_dict(device_index: _Device = None, /) -> dict[str, Any]:
    return _nested(memory_stats(device_index))


@_documented_as(_built_in.memory_summary)
def memory_summary(device: _Device = None, abbreviated: bool = False) -> str:
    index = _device_or_current(device)
    index = _current() if index is None else index
    return _table(memory_stats(index), index, abbreviated)


def memory_snapshot() -> list[dict[str, Any]]:
    """Return all segments of the allocator with their blocks, in torch's format.

    Returns
    -------
    list of dict
        One dict for each segment. Sizes are in bytes.
    """
    return _owner_of(None)[0].memory_snapshot()


@_documented_as(_built_in.attach_oom_observer)
def attach_oom_observer(observer: Callable[[int, int, int, int], object]) -> Callable[[], None]:
    return _owner_of(None)[0].attach_oom_observer(observer)


@_documented_as(_built_in.max_memory_allocated, device="device_index")
def max_memory_allocated(device_index: _Device = None, /) -> int:
    return memory_stats(device_index).get("allocated_bytes.all.peak", 0)


@_documented_as(_built_in.max_memory_reserved, device="device_index")
def max_memory_reserved(device_index: _Device = None, /) -> int:
    return memory_stats(device_index).get("reserved_bytes.all.peak", 0)


@_documented_as(_built_in.reset_accumulated_memory_stats, device="device_index")
def reset_accumulated_memory_stats(device_index: _Device = None, /) -> None:
    owner, device = _owner_of(device_index)
    owner.reset_accumulated_memory_stats(device)


@_documented_as(_built_in.reset_peak_memory_stats, device="device_index")
def reset_peak_memory_stats(device_index: _Device = None, /) -> None:
    owner, device = _owner_of(device_index)
    owner.reset_peak_memory_stats(device)


@_documented_as(_built_in.get_memory_info, device="device_index")
def get_memory_info(device_index: _Device = None, /) -> tuple[int, int]:
    owner, device = _owner_of(device_index)
    return owner.mem_get_info(device)


@_documented_as(_built_in.set_memory_limit)
def set_memory_limit(limit: int | None, device: _Device = None) -> None:
    owner, device = _owner_of(device)
    owner.set_memory_limit(limit, device)


@_documented_as(_built_in.get_memory_limit)
def get_memory_limit(device: _Device = None) -> int | None:
    owner, device = _owner_of(device)
    return owner.get_memory_limit(device)


@_documented_as(_built_in.set_per_process_memory_fraction)
def set_per_process_memory_fraction(fraction: float, device: _Device = None) -> None:
    owner, device = _owner_of(device)
    owner.set_per_process_memory_fraction(fraction, device)


@_documented_as(_built_in.get_per_process_memory_fraction)
def get_per_process_memory_fraction(device: _Device = None) -> float:
    owner, device = _owner_of(device)
    return owner.get_per_process_memory_fraction(device)
