# SPDX-License-Identifier: Apache-2.0
"""Random numbers on the current accelerator: the states of the default generators of its devices.

A state is ``bytes``, and setters take any bytes-like object. On the built-in accelerator, seeding opens no driver.
"""

from __future__ import annotations

from contextlib import contextmanager as _contextmanager

from l0rt._base.described import documented_as as _documented_as
from l0rt._base.described import takes_device as _takes_device
from l0rt.accelerator._api import current_device_index as _current
from l0rt.accelerator._api import default_generator
from l0rt.accelerator._api import device_count as _device_count
from l0rt.runtime.current import generator as _built_in
from l0rt.runtime.streams.naming import other_interface as _chosen
from l0rt.xpu import random as _xpu_random

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from l0rt.runtime.streams.naming import _Device

__all__ = [
    "default_generator",
    "fork_rng",
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


@_documented_as(_built_in.manual_seed)
def manual_seed(seed: int) -> None:
    if _chosen():
        default_generator(_current()).manual_seed(seed)
    else:
        _built_in.manual_seed(seed)


@_documented_as(_built_in.manual_seed_all)
def manual_seed_all(seed: int) -> None:
    if other := _chosen():
        for index in range(other.device_count()):
            default_generator(index).manual_seed(seed)
    else:
        _built_in.manual_seed_all(seed)


def seed() -> int:
    """Seed the default generator of the current device with a random seed of the system, and return the seed.

    Returns
    -------
    int
        The seed.
    """
    return default_generator().seed()


def seed_all() -> int:
    """Seed the default generators of all devices with one random seed of the system, and return the seed.

    Returns
    -------
    int
        The seed.
    """
    fresh = seed()
    manual_seed_all(fresh)
    return fresh


@_takes_device
def initial_seed(device: _Device = None, /) -> int:
    """Return the seed of the default generator of ``device`` (the current one by default).

    Returns
    -------
    int
    """
    return default_generator(device).initial_seed()


@_takes_device
def get_rng_state(device: _Device = None, /) -> bytes:
    """Return the state of the default generator of ``device`` (the current one by default).

    Returns
    -------
    bytes
        16 bytes.
    """
    return default_generator(device).get_state()


@_documented_as(_xpu_random.get_rng_state_all)
def get_rng_state_all() -> list[bytes]:
    return [get_rng_state(index) for index in range(_device_count())]


@_takes_device
def set_rng_state(new_state: bytes | bytearray | memoryview, device: _Device = None) -> None:
    """Set the state of the default generator of ``device`` (the current one by default).

    Parameters
    ----------
    new_state : bytes-like
        16 bytes: the seed and the offset, each little-endian. 8 bytes are a seed, with offset 0.

    Raises
    ------
    RuntimeError
        The size is not 16 or 8 bytes.
    """
    default_generator(device).set_state(new_state)


@_documented_as(_xpu_random.set_rng_state_all)
def set_rng_state_all(new_states: Iterable[bytes | bytearray | memoryview]) -> None:
    _built_in.set_states(new_states, _device_count(), get_rng_state, set_rng_state)


@_contextmanager
def fork_rng(devices: Iterable[_Device] | None = None, enabled: bool = True) -> Iterator[None]:
    """Restore the states of the generators of ``devices`` at the end of a with block.

    Parameters
    ----------
    devices : iterable of devices or None, optional
        The devices of the generators. None is all devices.
    enabled : bool, optional
        False makes a block that restores nothing.

    Returns
    -------
    context manager
    """
    if not enabled:
        yield
        return
    if devices is not None and (isinstance(devices, str) or not hasattr(devices, "__iter__")):
        raise TypeError(f"fork_rng() takes a list of devices or None for all, got {devices!r}")
    devices = range(_device_count()) if devices is None else list(devices)
    generators = [default_generator(device) for device in devices]
    states = [generator.get_state() for generator in generators]
    try:
        yield
    finally:  # by the generators: in a child that was forked meanwhile there are no devices
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
