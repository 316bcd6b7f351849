# SPDX-License-Identifier: Apache-2.0
"""Memory of the built-in device type: statistics, limits, caches, pools. A function that torch has too has torch's
name.

A ``device`` is an index, a name such as ``"xpu:1"``, anything with a device, or None for the current one.
"""

from __future__ import annotations

from contextlib import contextmanager as _contextmanager

from l0rt import config as _config
from l0rt._base.arguments import address_of as _address
from l0rt._base.described import takes_device as _takes_device
from l0rt._base.integers import whole_number as _whole
from l0rt.config import alloc_options as _alloc_options
from l0rt.errors import InvalidArgumentError as _InvalidArgumentError
from l0rt.memory.checkpoints import (
    PoolCheckpoint,
    check_pool_live_allocations,
    get_checkpoint_state,
    set_checkpoint_pool_state,
)
from l0rt.memory.history import (
    annotate,
    annotate_memory,
    dump_snapshot,
    enable_oom_snapshot,
    get_memory_metadata,
    record_memory_history,
    set_memory_metadata,
    snapshot,
    tag,
)
from l0rt.memory.leaks import enable_leak_report, leak_report
from l0rt.memory.library import XPUPluggableAllocator
from l0rt.memory.logs import dump_history
from l0rt.memory.metrics import openmetrics
from l0rt.memory.scopes import pop_stats_scope, push_stats_scope, reset_scope_records, scope_records, stats_scope
from l0rt.memory.stats import (
    fragmentation,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    host_shadow_bytes,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_reserved,
    memory_info,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    recommended_max_memory,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
)
from l0rt.memory.stats import is_opened as _is_opened
from l0rt.runtime.memory import device as _device
from l0rt.runtime.memory import pinned as _host
from l0rt.runtime.memory.adaptor import (
    Adaptor,
    FailureCallbackAdaptor,
    LimitingAdaptor,
    LoggingAdaptor,
    StatisticsAdaptor,
    TrackingAdaptor,
)
from l0rt.runtime.memory.device import memory_allocated, memory_reserved
from l0rt.runtime.memory.observers import attach_observer as _attach_observer
from l0rt.runtime.memory.pluggable import PluggableAllocator
from l0rt.runtime.memory.pools import MemPool as _AnyPool
from l0rt.runtime.memory.pools import XpuMemPool as MemPool
from l0rt.runtime.memory.pools import change_current_allocator, use_mem_pool
from l0rt.runtime.memory.pools import index_or_current as _index_of
from l0rt.runtime.memory.pools import pointer_info as _pointer_info
from l0rt.runtime.memory.pools import pool_of as _pool_of
from l0rt.runtime.memory.pools import record_use as _record_use
from l0rt.runtime.memory.pools import trim_pools as _trim
from l0rt.runtime.memory.registration import Registration, is_pinned, register
from l0rt.runtime.memory.trace import segments as _segments

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from l0rt.config.alloc_options import AllocConf
    from l0rt.runtime.streams.naming import _Device

__all__ = [
    "Adaptor",
    "FailureCallbackAdaptor",
    "LimitingAdaptor",
    "LoggingAdaptor",
    "MemPool",
    "PluggableAllocator",
    "PoolCheckpoint",
    "Registration",
    "StatisticsAdaptor",
    "TrackingAdaptor",
    "XPUPluggableAllocator",
    "annotate",
    "annotate_memory",
    "attach_oom_observer",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "caching_allocator_disabled",
    "caching_allocator_enable",
    "change_current_allocator",
    "check_pool_live_allocations",
    "dump_history",
    "dump_snapshot",
    "empty_cache",
    "empty_host_cache",
    "enable_leak_report",
    "enable_oom_snapshot",
    "fragmentation",
    "get_alloc_conf",
    "get_allocator_backend",
    "get_checkpoint_state",
    "get_memory_info",
    "get_memory_limit",
    "get_memory_metadata",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "host_shadow_bytes",
    "is_pinned",
    "leak_report",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_info",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "openmetrics",
    "pointer_info",
    "pop_stats_scope",
    "push_stats_scope",
    "recommended_max_memory",
    "record_memory_history",
    "record_use",
    "register",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "reset_scope_records",
    "scope_records",
    "set_alloc_conf",
    "set_checkpoint_pool_state",
    "set_memory_limit",
    "set_memory_metadata",
    "set_per_process_memory_fraction",
    "snapshot",
    "stats_scope",
    "tag",
    "use_mem_pool",
]


def empty_cache(device: _Device = None, *, stream: Any = None, pool: _AnyPool | None = None) -> None:
    """Give unused cached device memory back to the driver.

    What a private pool has cached stays, until the pool is dropped or is named: as ``pool``, or by its own
    `MemPool.empty_cache`.

    Parameters
    ----------
    device : int, str, device or None, optional
        None is every device.
    stream : Stream or None, optional
        Only memory that was allocated for this stream.
    pool : MemPool or None, optional
        This pool's memory, and no other.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.

    Notes
    -----
    The contract is that of ``torch.cuda.empty_cache``.
    """
    if not _is_opened():
        return
    if stream is None and pool is None:
        _device.empty_cache(device)
    else:
        _trim(device, stream, pool)


def memory_snapshot(
    mempool_id: _AnyPool | tuple[int, int] | None = None, include_traces: bool = True, *, device: _Device = None
) -> list[dict[str, Any]]:
    """Return all segments with their blocks, or those of one device or pool, in torch's format.

    ``frames`` of a block is the stack of its allocation, if `record_memory_history` keeps it.

    Parameters
    ----------
    mempool_id : MemPool, tuple of two int, or None, optional
        A pool or its ``id``. None is all memory; ``(0, 0)`` is the memory outside of pools.
    include_traces : bool, optional
        It has no effect: `snapshot` returns the history.
    device : int, str, device or None, optional
        None is every device.

    Returns
    -------
    list of dict
        One dict for each segment. Sizes are in bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.

    Notes
    -----
    The format is that of ``torch.cuda.memory_snapshot``.
    """
    if not isinstance(include_traces, bool):
        raise TypeError(f"include_traces must be a bool, got {type(include_traces).__name__}")
    if mempool_id is not None and not isinstance(mempool_id, _AnyPool):
        mempool_id = _id(mempool_id)
    if not _is_opened():
        return []
    if device is not None:
        device = _index_of(device)
    if isinstance(mempool_id, _AnyPool):
        mempool_id = mempool_id.id
    elif mempool_id not in (None, (0, 0)) and _pool_of(mempool_id) is None:
        return []
    return _segments(mempool_id, device)


def _id(mempool_id):
    if not isinstance(mempool_id, tuple) or len(mempool_id) != 2:
        raise TypeError(f"mempool_id must be the id of a MemPool, two numbers, got {mempool_id!r}")
    return tuple(_whole(number, "each number of a MemPool's id") for number in mempool_id)


def attach_oom_observer(observer: Callable[[int, int, int, int], object]) -> Callable[[], None]:
    """Register a function that is called before an allocation fails, and return a function that detaches it.

    No lock is held, so the observer may allocate and free. It is not called for its own allocations. If it returns
    True, the allocation is tried again. If it raises, its exception replaces the OutOfMemoryError. For pinned memory
    the index is -1, and the last two numbers are the total and the free memory of the machine.

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

    Notes
    -----
    torch's counterpart is ``torch._C._cuda_attach_out_of_memory_observer``, whose observers cannot ask for another
    try.
    """
    return _attach_observer(observer)


@_takes_device
def caching_allocator_alloc(size: int, device: _Device = None, stream: Any = None) -> int:
    """Allocate memory in the order of ``stream`` and return its address.

    No object owns the memory: free it with `caching_allocator_delete`.

    Parameters
    ----------
    size : int
        Bytes.
    stream : Stream, int or None, optional
        The stream in whose order the memory is used. None is the device's current stream.

    Returns
    -------
    int
        The address.

    Raises
    ------
    OutOfMemoryError
        The device or the limit has no memory left.
    ValueError
        The size is negative.

    Notes
    -----
    The contract is that of ``torch.cuda.caching_allocator_alloc``.
    """
    return _device.malloc(size, device, stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Free memory that `caching_allocator_alloc` returned.

    Parameters
    ----------
    mem_ptr : int
        The address. 0 does nothing.

    Raises
    ------
    InvalidArgumentError
        The address is not the start of an allocation.
    """
    _device.free(_address(mem_ptr))


def caching_allocator_enable(value: bool = True) -> None:
    """Switch the caching of memory on or off.

    Parameters
    ----------
    value : bool, optional
        False takes each allocation from the driver, and gives it back when it is freed.
    """
    if not isinstance(value, bool):
        raise TypeError(f"caching_allocator_enable() takes a bool, not {type(value).__name__}")
    _config.set("no_memory_caching", "0" if value else "1")


@_contextmanager
def caching_allocator_disabled() -> Iterator[None]:
    """Switch the caching of memory off inside a with block: see `caching_allocator_enable`.

    Returns
    -------
    context manager
    """
    with _config.patch({"no_memory_caching": "1"}):
        yield


def empty_host_cache() -> None:
    """Give unused cached pinned memory back to the driver."""
    if _is_opened():
        _host.empty_cache()


def pointer_info(ptr: int) -> dict[str, Any] | None:
    """Return a description of the allocation that contains the address ``ptr``, or None if l0rt has no such allocation.

    The dict has ``kind`` (``device``, ``host`` or ``shared``), ``device`` (the index), ``base`` (the first address),
    ``size`` (of the block), ``requested`` (the size that was asked for) and ``stream`` (the ``stream_id`` of the
    stream in whose order the memory is reused; None for host and shared memory). The driver is not called.

    Parameters
    ----------
    ptr : int
        Any address inside the allocation.

    Returns
    -------
    dict or None
        Sizes in bytes.
    """
    return _pointer_info(_address(ptr))


def record_use(buffer: Any, stream: Any = None) -> None:
    """Announce that ``stream`` has used the memory, up to the work that it has now.

    After the memory is freed, it is not reused before that work is complete. Call this right after the work was
    given to the stream.

    Parameters
    ----------
    buffer : Buffer or int
        The buffer, or any address inside an allocation.
    stream : Stream or None, optional
        The stream that uses the memory. None is the current stream.

    Raises
    ------
    InvalidArgumentError
        The address is not inside an allocation.
    """
    if hasattr(buffer, "record_use"):
        buffer.record_use(stream)
    elif hasattr(buffer, "__index__") and not isinstance(buffer, bool):
        _record_use(_address(buffer), stream)
    else:
        raise TypeError(f"record_use() takes a Buffer or an address, an int, not {type(buffer).__name__}")


@_takes_device
def get_memory_info(device: _Device = None) -> tuple[int, int]:
    """Return ``(free, total)`` bytes of device memory. `memory_info` says where the first number comes from.

    Returns
    -------
    tuple of two int
        The free bytes and the total bytes.
    """
    return _device.memory_info(device)[:2]


mem_get_info = get_memory_info


def set_alloc_conf(text: str | None = None, /, **values: Any) -> None:
    """Set the configuration of the allocators, as a text or as keys such as ``max_split_size_mb=200``.

    Keys that are not given get their defaults.

    Parameters
    ----------
    text : str, optional
        A text as `L0RT_ALLOC_CONF` takes it.
    **values : object
        The keys and their values, instead of a text.

    Raises
    ------
    ValueError
        A key or a value is not valid. The message names it, its position, and what is allowed.

    Notes
    -----
    Grammar and keys are those of torch's ``PYTORCH_ALLOC_CONF``; docs/memory.md has the keys and the differences.
    """
    if text is not None and values:
        raise TypeError("set_alloc_conf() takes a text or keys, one of the two")
    _config.set("alloc_conf", text if text is not None else _alloc_options.make(**values).text_of(values))


def get_alloc_conf() -> AllocConf:
    """Return the configuration in effect, an object with one field for each key. ``str()`` of it is its text.

    Returns
    -------
    AllocConf
    """
    return _config.alloc_conf()


def get_allocator_backend() -> str:
    """Return the allocator's backend: ``native``, or ``async``, with which no allocation waits on the host.

    Returns
    -------
    str
    """
    return _config.get("alloc_conf").backend


@_takes_device
def set_memory_limit(limit: int | None, device: _Device = None) -> None:
    """Set the limit of the memory that the allocator reserves on ``device``.

    The limit applies until it is set again, even if the configuration changes.

    Parameters
    ----------
    limit : int or None
        Bytes. None takes the limit of the configuration, which is no limit by default.

    Raises
    ------
    ValueError
        The limit is out of range.
    """
    _device.set_limit(limit, device)


@_takes_device
def get_memory_limit(device: _Device = None) -> int | None:
    """Return the memory limit of ``device`` in bytes, or None if there is none.

    Returns
    -------
    int or None
        Bytes.
    """
    return _device.get_limit(device)


@_takes_device
def set_per_process_memory_fraction(fraction: float, device: _Device = None) -> None:
    """Set the limit of the memory that the allocator reserves on ``device``, as a part of its memory.

    Parameters
    ----------
    fraction : float
        The part of the device's memory, above 0 and up to 1.

    Raises
    ------
    ValueError
        ``fraction`` is not above 0 and up to 1.
    TypeError
        It is not a float.

    Notes
    -----
    The name and the arguments are those of ``torch.cuda.set_per_process_memory_fraction``. It accepts 0, and l0rt does
    not, as ``torch.xpu.set_per_process_memory_fraction``, whose errors it raises.
    """
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 < fraction <= 1:
        raise _InvalidArgumentError(f"invalid fraction:{fraction}. Please set within (0, 1].")
    total = _device.memory_info(device)[1]
    _device.set_limit(max(1, int(total * fraction)), device)


@_takes_device
def get_per_process_memory_fraction(device: _Device = None) -> float:
    """Return the memory limit of ``device`` as a part of its memory, 1.0 if there is none.

    Returns
    -------
    float
    """
    limit = _device.get_limit(device)
    return 1.0 if limit is None else min(1.0, limit / _device.memory_info(device)[1])


def __dir__():
    return __all__
