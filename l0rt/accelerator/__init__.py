# SPDX-License-Identifier: Apache-2.0
"""The current accelerator, of any device type: the functions of torch.accelerator, and functions that torch lacks."""

from __future__ import annotations

from l0rt.accelerator import graphs, memory, random  # noqa: F401 - graphs has torch's name
from l0rt.accelerator._api import (
    current_device_index,
    current_stream,
    default_stream,
    device_count,
    set_device_index,
    set_stream,
    stream,
    synchronize,
)
from l0rt.accelerator._api import device_or_current as _device_or_current
from l0rt.accelerator.graphs import (
    Graph,
    generate_graph_pool_handle,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
)
from l0rt.accelerator.memory import (
    MemPool,
    attach_oom_observer,
    empty_cache,
    empty_host_cache,
    get_memory_info,
    get_memory_limit,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
    set_memory_limit,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from l0rt.accelerator.random import (
    default_generator,
    fork_rng,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from l0rt.accelerator.timer import Timer
from l0rt.interface import get_interface_for_device as _interface
from l0rt.interface import set_accelerator
from l0rt.runtime.current.event import Event
from l0rt.runtime.current.generator import Generator
from l0rt.runtime.current.guard import device_index
from l0rt.runtime.current.guards import (
    DeviceGuard,
    MultiStreamGuard,
    OptionalDeviceGuard,
    OptionalStreamGuard,
    StreamGuard,
)
from l0rt.runtime.current.lease import stream_pool
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.current.waits import stuck_report, wait_all, wait_any
from l0rt.runtime.streams import naming as _naming
from l0rt.runtime.streams.hooks import get_sync_debug_mode, set_sync_debug_mode
from l0rt.runtime.streams.naming import device as _device
from l0rt.runtime.streams.stream_pool import open_all as _open_all

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    from l0rt.runtime.streams.naming import _Device
else:
    from l0rt._base.instead import of_accelerator as __getattr__  # noqa: F401

__all__ = [
    "DeviceGuard",
    "Event",
    "Generator",
    "Graph",
    "MemPool",
    "MultiStreamGuard",
    "OptionalDeviceGuard",
    "OptionalStreamGuard",
    "Stream",
    "StreamGuard",
    "Timer",
    "attach_oom_observer",
    "can_device_access_peer",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "default_generator",
    "default_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "fork_rng",
    "generate_graph_pool_handle",
    "get_device_capability",
    "get_device_index",
    "get_device_name",
    "get_device_properties",
    "get_memory_info",
    "get_memory_limit",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graph",
    "graph_pool_handle",
    "init",
    "initial_seed",
    "is_available",
    "is_current_stream_capturing",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_accelerator",
    "set_device_idx",
    "set_device_index",
    "set_memory_limit",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "stream_pool",
    "stuck_report",
    "synchronize",
    "use_mem_pool",
    "wait_all",
    "wait_any",
]

get_device_index = current_device_index
current_device_idx = current_device_index
set_device_idx = set_device_index
mem_get_info = get_memory_info


def is_available() -> bool:
    """Return whether there is at least one device. It opens no driver and never raises.

    Returns
    -------
    bool
    """
    return device_count() > 0


def current_accelerator(check_available: bool = False) -> _device | None:
    """Return the current accelerator as a `device` without an index.

    Parameters
    ----------
    check_available : bool, optional
        Return None if the accelerator has no device.

    Returns
    -------
    device or None
    """
    if check_available and not is_available():
        return None
    return _device(_naming.accelerator_type())


def init(*, lazy: bool = True) -> None:
    """Open the driver of the current accelerator now instead of at the first use.

    Parameters
    ----------
    lazy : bool, optional
        False also creates everything else that is created at the first use: the streams of the built-in accelerator,
        and access to peers.
    """
    _interface(_naming.accelerator_type()).init()
    if not lazy and _naming.other_interface() is None:
        _open_all()


def get_device_capability(device: _Device = None, /) -> dict[str, Any]:
    """Return ``{"supported_dtypes": names}``, the names of the element types that ``device`` computes with.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    dict

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return {"supported_dtypes": _interface(_naming.accelerator_type()).supported_dtypes(_device_or_current(device))}


def get_device_properties(device: _Device = None, /) -> Any:
    """Return the properties of ``device``. Which properties there are depends on the accelerator.

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    object
        An object with one attribute for each property.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return _interface(_naming.accelerator_type()).get_device_properties(_device_or_current(device))


def get_device_name(device: _Device = None, /) -> str:
    """Return the name of ``device`` (the current one by default).

    Parameters
    ----------
    device : int, str, device or None, optional
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.

    Returns
    -------
    str

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return get_device_properties(device).name


def can_device_access_peer(device: _Device, peer: _Device, /) -> bool:
    """Return whether ``device`` can read and write memory of ``peer`` directly.

    Parameters
    ----------
    device : int, str, device or None
        An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
    peer : int, str, device or None
        The device that owns the memory.

    Returns
    -------
    bool

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    interface = _interface(_naming.accelerator_type())
    return interface.can_device_access_peer(_device_or_current(device), _device_or_current(peer))


def __dir__():
    return __all__
