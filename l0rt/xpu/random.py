# SPDX-License-Identifier: Apache-2.0
"""torch.xpu.random's names: the state of the devices' default generators, as bytes."""

from __future__ import annotations

from l0rt.buffers.empty import empty as _empty
from l0rt.runtime.current import generator as _generator
from l0rt.runtime.current import stream as _stream
from l0rt.runtime.current.generator import manual_seed, manual_seed_all
from l0rt.runtime.streams import devices as _devices

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable

    from l0rt.runtime.streams.naming import _Device

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _of(device=None):
    return _generator.default_generator(_stream.index_or_current(device))


def seed() -> None:
    """Seed the default generator of the current device with a random seed of the system."""
    if _devices.device_count():
        _of().seed()


def seed_all() -> None:
    """Seed the default generators of all devices with one random seed of the system."""
    if _devices.device_count():
        manual_seed_all(_of().seed())


def initial_seed() -> int:
    """Return the seed of the current device's default generator.

    Returns
    -------
    int
    """
    return _of().initial_seed()


def get_rng_state(device: _Device = "xpu") -> bytes:
    """Return the state of the default generator of ``device``.

    Parameters
    ----------
    device : int, str or device, optional
        ``xpu`` is the current device.

    Returns
    -------
    bytes
        16 bytes.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    return _of(device).get_state()


def get_rng_state_all() -> list[bytes]:
    """Return the states of the default generators of all devices.

    Returns
    -------
    list of bytes
    """
    return [get_rng_state(index) for index in range(_devices.device_count())]


def set_rng_state(new_state: bytes | bytearray | memoryview, device: _Device = "xpu") -> None:
    """Set the state of the default generator of ``device``.

    Parameters
    ----------
    new_state : bytes-like
        16 bytes: the seed and the offset, each little-endian. 8 bytes are a seed, with offset 0.
    device : int, str or device, optional
        ``xpu`` is the current device.

    Raises
    ------
    RuntimeError
        The size is not 16 or 8 bytes.
    DeviceIndexError
        There is no device with this index.
    """
    _of(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[bytes | bytearray | memoryview]) -> None:
    """Set the states of the default generators of all devices, in the order of `get_rng_state_all`.

    Parameters
    ----------
    new_states : sequence of bytes-like
        One state for each device, in the order of the indexes. Further devices keep theirs.

    Raises
    ------
    RuntimeError
        The size of one is not 16 or 8 bytes; then no state changes.
    ValueError
        There are more states than devices.
    """
    _generator.set_states(new_states, _devices.device_count(), get_rng_state, set_rng_state)


def _get_rng_state_offset(device: _Device = "xpu") -> int:
    return _of(device).get_offset()


def _set_rng_state_offset(offset: int, device: _Device = "xpu") -> None:
    _of(device).set_offset(offset)


_generator.provide_memory(_empty)
