# SPDX-License-Identifier: Apache-2.0
"""The current accelerator, of any device type: the functions of torch.accelerator, and functions that torch lacks."""

from __future__ import annotations

from l0rt import xpu as _xpu
from l0rt._base.described import documented_as as _documented_as
from l0rt._base.described import takes_device as _takes_device
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
from l0rt.accelerator.graphs import *  # noqa: F403
from l0rt.accelerator.memory import *  # noqa: F403
from l0rt.accelerator.random import *  # noqa: F403
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
    *graphs.__all__,
    *memory.__all__,
    *random.__all__,
    "DeviceGuard",
    "Event",
    "Generator",
    "MultiStreamGuard",
    "OptionalDeviceGuard",
    "OptionalStreamGuard",
    "Stream",
    "StreamGuard",
    "Timer",
    "can_device_access_peer",
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "default_stream",
    "device_count",
    "device_index",
    "get_device_capability",
    "get_device_index",
    "get_device_name",
    "get_device_properties",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "mem_get_info",
    "memory",
    "random",
    "set_accelerator",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "stream_pool",
    "stuck_report",
    "synchronize",
    "wait_all",
    "wait_any",
]

get_device_index = current_device_index
current_device_idx = current_device_index
set_device_idx = set_device_index
mem_get_info = memory.get_memory_info


@_documented_as(_xpu.is_available)
def is_available() -> bool:
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


@_takes_device
def get_device_capability(device: _Device = None, /) -> dict[str, Any]:
    """Return ``{"supported_dtypes": names}``, the names of the element types that ``device`` computes with.

    Returns
    -------
    dict
    """
    return {"supported_dtypes": _interface(_naming.accelerator_type()).supported_dtypes(_device_or_current(device))}


@_takes_device
def get_device_properties(device: _Device = None, /) -> Any:
    """Return the properties of ``device``. Which properties there are depends on the accelerator.

    Returns
    -------
    object
        An object with one attribute for each property.
    """
    return _interface(_naming.accelerator_type()).get_device_properties(_device_or_current(device))


@_documented_as(_xpu.get_device_name)
def get_device_name(device: _Device = None, /) -> str:
    return get_device_properties(device).name


@_documented_as(_xpu.can_device_access_peer)
def can_device_access_peer(device: _Device, peer: _Device, /) -> bool:
    interface = _interface(_naming.accelerator_type())
    return interface.can_device_access_peer(_device_or_current(device), _device_or_current(peer))


def __dir__():
    return __all__
