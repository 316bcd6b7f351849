# SPDX-License-Identifier: Apache-2.0
"""One process a device: which device a process gets, and how much of its memory. docs/scale-out.md."""

import hashlib as _hashlib
import os as _os
import socket as _socket
import time as _time

import l0rt.memory as _memory
from l0rt import xpu as _xpu
from l0rt._base.integers import parse_size as _parse_size
from l0rt._base.integers import real_number as _real_number
from l0rt._base.integers import whole_number as _whole_number
from l0rt.buffers.buffer import Buffer as _Buffer
from l0rt.buffers.empty import empty as _empty
from l0rt.ze import affinity as _affinity

__all__ = ["claim", "claimed", "limit_memory", "masks", "size"]

_PAUSE = 0.05  # seconds between two looks for a device that another process lets go of: it is about to end
_mine: dict = {}  # scope -> (index, the socket that holds it); a process has one scope


def masks():
    """Return the value of ``ZE_AFFINITY_MASK`` for each device that this process may use, in the driver's order.

    It opens no driver.

    Returns
    -------
    list of str
        A process that has one of them in its environment before its first use of a device has this device alone.
    """
    mask, hierarchy = _affinity.environment()
    entries = _affinity.parse(mask)
    if entries is None:
        return [str(index) for index in range(_xpu.device_count())]
    devices: dict = {}  # the tiles of a card are one device where it is a card
    for device, tile in sorted(set(entries), key=lambda entry: (entry[0], entry[1] or 0)):
        text = str(device) if tile is None else f"{device}.{tile}"
        devices.setdefault(device if hierarchy in (None, "COMPOSITE") else text, []).append(text)
    return [",".join(names) for names in devices.values()][: _xpu.device_count()]


def claim(scope, *, devices=None, timeout=30.0):
    """Take a device that no other process of ``scope`` on this machine has, and show this process no other.

    The process keeps it until it ends, however it ends: then the kernel lets go of it. A second call returns the same.

    Parameters
    ----------
    scope : str
        What the processes have in common, such as a scheduler's address. Other scopes do not count.
    devices : sequence of int, optional
        Places in `masks` to choose from; the first that is free is taken. By default all.
    timeout : float, optional
        Seconds to wait for one to become free.

    Returns
    -------
    int
        The place in `masks`. In this process the device is ``xpu:0``.

    Raises
    ------
    RuntimeError
        This process has opened the driver, so that it is too late; it has claimed in another scope; or there is no
        device.
    TimeoutError
        No device became free.
    """
    if not isinstance(scope, str):
        raise TypeError(f"scope must be a str, got {type(scope).__name__}")
    seconds = _real_number(timeout, "timeout")
    indexes = None if devices is None else [_whole_number(device, "a device") for device in devices]
    if _mine:
        if scope not in _mine:
            raise RuntimeError(f"this process has claimed a device in the scope {next(iter(_mine))!r}")
        return _mine[scope][0]
    if _xpu.is_initialized():
        raise RuntimeError("claim a device before this process uses one: its driver is open, and shows all devices")
    visible = masks()
    if indexes is None:
        indexes = list(range(len(visible)))
    if wrong := [device for device in indexes if not 0 <= device < len(visible)]:
        raise ValueError(f"there is no device {wrong[0]}: this process may use {len(visible)}")
    if not indexes:
        raise RuntimeError("there is no device to claim: `l0rt doctor` says what is missing")
    deadline = _time.monotonic() + seconds
    while True:
        for index in indexes:
            if lock := _hold(scope, visible[index]):
                _os.environ["ZE_AFFINITY_MASK"] = visible[index]
                _mine[scope] = index, lock
                return index
        if not _time.monotonic() < deadline:
            raise TimeoutError(f"the devices {indexes} of {scope!r} are all claimed by processes that still run")
        _time.sleep(_PAUSE)


def claimed():
    """Return the index that this process has claimed, None before it has.

    Returns
    -------
    int or None
    """
    return next((index for index, _ in _mine.values()), None)


def _hold(scope, mask):
    """Return a socket that no other process can have at the same time, None if one has it.

    Its name is in no file system: the kernel forgets it with the process, and nothing is left behind.
    """
    name = _hashlib.sha256(f"{_os.getuid()} {mask} {scope}".encode()).hexdigest()[:40]
    lock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_DGRAM)
    try:
        lock.bind(f"\0l0rt-{name}")
    except OSError:
        lock.close()
        return None
    return lock


def _let_go():
    """In a forked child: the device is the parent's, and free when the parent ends."""
    for _, lock in _mine.values():
        lock.close()
    _mine.clear()


def size(value, total, what):
    """Return a number of bytes.

    Parameters
    ----------
    value : int, float, str or None
        Bytes; or a part of ``whole``, above 0 and up to 1; or a text such as ``"4GiB"``; or None, which stays None.
    whole : int
        What a float is a part of.
    what : str
        The name for error messages.

    Returns
    -------
    int or None
    """
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return _parse_size(value)
        except ValueError as wrong:
            raise ValueError(f"{what} must be {wrong}; got {value!r}") from None
    if isinstance(value, float):
        if not 0 < value <= 1:
            raise ValueError(f"{what} as a float is a part, above 0 and up to 1, got {value}")
        return int(value * total)
    number = _whole_number(value, what)
    if number < 0:
        raise ValueError(f"{what} must not be negative, got {number}")
    return number


def limit_memory(memory_limit=None, pool_size=None):
    """Limit what this process allocates on its current device, and fill the allocator's cache.

    Parameters
    ----------
    memory_limit : int, float, str or None
        Bytes, a part of the device's memory, or a text such as ``"4GiB"``: for `l0rt.memory.set_memory_limit`.
    pool_size : int, float, str or None
        How much memory the cache takes from the driver now, so that the first allocations need no call of it.

    Returns
    -------
    int
        What the process may allocate: the limit, or the memory of the device.
    """
    total = _memory.get_memory_info()[1]
    limit = size(memory_limit, total, "memory_limit")
    if limit is not None:
        _memory.set_memory_limit(limit)
    if pool := size(pool_size, total if limit is None else limit, "pool_size"):
        warm: _Buffer = _empty(pool)
        warm.free()
    return total if limit is None else limit


_os.register_at_fork(after_in_child=_let_go)
