# SPDX-License-Identifier: Apache-2.0
"""Intel GPUs, independent of the current accelerator: the names and signatures of torch.xpu, and functions that only
Level Zero has."""

from __future__ import annotations

from l0rt import kernels as _kernels
from l0rt._base.integers import whole_number as _whole
from l0rt._base.interrupts import at_once as _at_once
from l0rt.runtime.current import generator as _generator
from l0rt.runtime.current import guard as _guard
from l0rt.runtime.current.generator import XpuGenerator as Generator
from l0rt.runtime.current.stream import current_raw_stream
from l0rt.runtime.streams import devices as _devices
from l0rt.runtime.streams import naming as _naming
from l0rt.runtime.streams.devices import device_count
from l0rt.telemetry import (
    clock_rate,
    device_memory_used,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)

# torch.xpu has `streams` beside its names
from l0rt.xpu import facts, gpu_trace, graphs, memory, native, random, streams  # noqa: F401
from l0rt.xpu.facts import *  # noqa: F403
from l0rt.xpu.graphs import *  # noqa: F403
from l0rt.xpu.memory import *  # noqa: F403
from l0rt.xpu.native import *  # noqa: F403
from l0rt.xpu.random import *  # noqa: F403
from l0rt.xpu.random import _get_rng_state_offset, _set_rng_state_offset  # noqa: F401
from l0rt.xpu.streams import *  # noqa: F403
from l0rt.xpu.streams import _set_stream_by_id  # noqa: F401

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    from l0rt.runtime.streams.naming import _Device

    default_generators: tuple[Generator, ...]
else:

    def __getattr__(name):
        if name == "default_generators":  # one a device; empty before initialisation, as in torch
            count = device_count() if is_initialized() else 0
            return tuple(_generator.default_generator(index) for index in range(count))
        if name == "_sleep":  # kernels are loaded at their first use
            return _kernels.sleep
        raise AttributeError(f"module 'l0rt.xpu' has no attribute {name!r}")


__all__ = [
    *facts.__all__,
    *graphs.__all__,
    *memory.__all__,
    *native.__all__,
    *random.__all__,
    *streams.__all__,
    "Generator",
    "clock_rate",
    "current_device",
    "current_raw_stream",
    "default_generators",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "init",
    "is_available",
    "is_initialized",
    "memory_usage",
    "power_draw",
    "set_device",
    "streams",
    "temperature",
    "utilization",
]


def init() -> None:
    """Open the driver now instead of at the first use."""
    _devices.lazy.init()


def is_initialized() -> bool:
    """Return whether this process has opened the driver and may use it.

    Returns
    -------
    bool
    """
    return _devices.lazy.initialized


def is_available() -> bool:
    """Return whether there is at least one device. It opens no driver and never raises.

    Returns
    -------
    bool
    """
    return device_count() > 0


def current_device() -> int:
    """Return the index of the calling thread's current device.

    Returns
    -------
    int
    """
    return _guard.current_device_index()


def set_device(device: _Device) -> None:
    """Make ``device`` the calling thread's current device; a negative index changes nothing.

    Parameters
    ----------
    device : int, str or device
        An index, or a name such as ``xpu:1``. A negative index changes nothing.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    index = _naming.index_to_set(device)
    if index >= 0:
        _guard.exchange_device_index(index)


def _exchange_device(device: int) -> int:
    """Make the device with this index current; return the previous index. Negative: no change, -1."""
    index = _naming.index_in(device)
    return _guard.exchange_device_index(index) if index >= 0 else -1


_exchange_at_once = _at_once(_guard.exchange_device_index)


def _maybe_exchange_device(device: int) -> int:
    """Bring the device with this index back; return the previous index. Negative: no change, -1.

    That cannot fail: a child that was forked meanwhile has no devices, and nothing to bring back.
    """
    if _devices.lazy.opened and not _devices.lazy.initialized:
        return -1
    return _exchange_device(device)


class device(_guard.xpu_device_index):
    """Make a device current inside a with block. None or a negative index changes nothing.

    Parameters
    ----------
    device : int, str, device or None
        None or a negative index changes nothing.

    Raises
    ------
    RuntimeError
        The name is malformed, or its type is unknown.
    """

    def __new__(cls, device: _Device) -> device:
        # A name of another type is refused here, as in torch; and changing nothing needs no driver.
        index = -1 if device is None else _naming.index_in(device)
        return super().__new__(cls, None if index < 0 else index)  # type: ignore[return-value]


class _DeviceGuard:
    """Make the device ``index`` current for the length of a with block."""

    def __init__(self, index: int) -> None:
        self.idx = _whole(index, "a device index")
        self.prev_idx = -1

    def __enter__(self) -> None:
        index = _naming.index_in(self.idx)
        self.prev_idx = _exchange_at_once[index] if index >= 0 else -1

    def __exit__(self, kind: object, value: object, trace: object) -> None:
        _maybe_exchange_device(self.prev_idx)


class device_of(device):
    """Make the device of ``obj`` current inside a with block.

    Other objects change nothing.

    Parameters
    ----------
    obj : object
        A Buffer, a Stream, an Event, or an object with ``__dlpack_device__``. Other objects change nothing.
    """

    def __new__(cls, obj: Any) -> device_of:
        return super().__new__(cls, _naming.index_of_object(obj))  # type: ignore[return-value]


def __dir__():
    return __all__
