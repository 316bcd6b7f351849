# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of private pools: what is allocated there at one moment, to be allocated again later."""

from __future__ import annotations

from l0rt._base.arguments import address_of
from l0rt._base.described import takes_device
from l0rt.buffers.buffer import Buffer, is_own
from l0rt.buffers.empty import restore
from l0rt.errors import InvalidArgumentError
from l0rt.runtime.memory.pools import MemPool, index_or_current, keep_addresses, pool_of
from l0rt.runtime.memory.trace import segments
from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.naming import device as device_name

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import SupportsIndex

    from l0rt.runtime.streams.naming import _Device


class PoolCheckpoint:
    """What is allocated in a private pool on one device at one moment. `get_checkpoint_state` makes it.

    As long as it is there, the pool is, and gives no memory back.
    """

    _pool: MemPool
    _device: int
    _record: int  # the allocator's, of the pool
    _live: dict  # address: size and requested size

    def __init__(self):
        raise TypeError("get_checkpoint_state() makes a PoolCheckpoint")

    @classmethod
    def _of(cls, pool, device):
        self = cls.__new__(cls)
        self._pool, self._device = pool, device
        self._record = keep_addresses(pool, True)
        self._live = _live(pool, device)
        return self

    def __del__(self):
        if hasattr(self, "_record"):
            keep_addresses(self._pool, False)

    @property
    def device(self) -> device_name:
        """The device."""
        return device_name(lazy.device_type, self._device)

    @property
    def pool_id(self) -> tuple[int, int]:
        """The ``id`` of the pool."""
        return self._pool.id

    @property
    def live_addresses(self) -> frozenset[int]:
        """The addresses of what was allocated, a frozenset."""
        return frozenset(self._live)

    def __repr__(self):
        return f"<PoolCheckpoint of pool {self.pool_id} on device {self._device}: {len(self._live)} allocations>"


@takes_device
def get_checkpoint_state(device: _Device, pool_id: tuple[int, int] | MemPool) -> PoolCheckpoint:
    """Return what is allocated in a private pool on a device, for `set_checkpoint_pool_state`.

    Freed memory that other streams still use counts as free.

    Parameters
    ----------
    pool_id : tuple of two int or MemPool
        The pool, or its id: what `graph_pool_handle` or `Graph.pool` returned.

    Returns
    -------
    PoolCheckpoint

    Raises
    ------
    InvalidArgumentError
        There is no such pool.

    Notes
    -----
    torch's counterpart is ``torch._C._cuda_getCheckpointState``.
    """
    return PoolCheckpoint._of(_pool(pool_id), index_or_current(device))


def set_checkpoint_pool_state(
    device: _Device, state: PoolCheckpoint, stale: Iterable[Buffer | SupportsIndex] = ()
) -> list[Buffer]:
    """Bring a private pool back to a checkpoint, and return Buffers of what is allocated again.

    What is allocated now at a place and with a size of the checkpoint stays as it is, with its contents. All else that
    is allocated has to be in ``stale``, and is freed. What the checkpoint has and what is then not allocated is
    allocated again at the same addresses. Its contents are what the memory has. It is in the order of the stream whose
    segment it is in, and is freed with its new Buffer.

    Parameters
    ----------
    device : int, str, device or None
        The device of the checkpoint.
    state : PoolCheckpoint
        What `get_checkpoint_state` returned.
    stale : iterable of Buffer or int, optional
        What is allocated in the pool and not wanted any more: Buffers, and addresses of what has no Buffer.

    Returns
    -------
    list of Buffer
        In the order of addresses. A Buffer that is dropped frees its memory.

    Raises
    ------
    InvalidArgumentError
        Something is allocated that the checkpoint has not, and that is not in ``stale``; or ``stale`` has what is not
        allocated in the pool; or the checkpoint is of another device. Nothing has changed.
    RuntimeError
        The pool is asleep, or memory of the checkpoint is in use, because another thread allocates from the pool; or
        the device is being captured.

    Notes
    -----
    torch's counterpart is ``torch._C._cuda_setCheckpointPoolState``. It takes the storages that own from then on what
    is allocated again; l0rt makes new Buffers.
    """
    if not isinstance(state, PoolCheckpoint):
        raise TypeError(f"state must be what get_checkpoint_state() returned, not {type(state).__name__}")
    if index_or_current(device) != state._device:
        raise InvalidArgumentError(f"the checkpoint is of device {state._device}, not of {device}")
    saved, live = state._live, _live(state._pool, state._device)
    buffers, addresses = {}, set()
    for item in _items(stale, "stale", "Buffers and addresses"):
        address = item.ptr if isinstance(item, Buffer) else address_of(item)
        if address not in live:
            raise InvalidArgumentError(f"stale has {address:#x}, where nothing is allocated in pool {state.pool_id}")
        if isinstance(item, Buffer) and is_own(item):
            buffers[address] = item
        elif isinstance(item, Buffer):
            raise InvalidArgumentError(f"stale has a Buffer at {address:#x} that does not own its memory")
        else:
            addresses.add(address)
    others = live.keys() - buffers.keys() - addresses
    unknown = [address for address in others if address not in saved or saved[address][0] != live[address][0]]
    if unknown:
        raise InvalidArgumentError(
            "Any stale tensors which are being manually freed must be passed to set checkpoint: "
            f"{', '.join(map(hex, sorted(unknown)[:8]))} of {len(unknown)} are not in stale")
    places = [(address, *saved[address]) for address in sorted(saved.keys() - others)]
    return restore(state._record, state._device, [*buffers.values(), *addresses], places)


@takes_device
def check_pool_live_allocations(
    device: _Device, pool_id: tuple[int, int] | MemPool, expected_live_allocations: Iterable[SupportsIndex]
) -> bool:
    """Return whether just these addresses are allocated in a private pool on a device.

    Parameters
    ----------
    pool_id : tuple of two int or MemPool
        The pool, or its id.
    expected_live_allocations : iterable of int
        Addresses at which allocations begin.

    Returns
    -------
    bool

    Raises
    ------
    InvalidArgumentError
        There is no such pool.

    Notes
    -----
    torch's counterpart is ``torch._C._cuda_checkPoolLiveAllocations``.
    """
    items = _items(expected_live_allocations, "expected_live_allocations", "addresses")
    expected = {address_of(address) for address in items}
    return _live(_pool(pool_id), index_or_current(device)).keys() == expected


def _items(values, name, kind):
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{name} must be an iterable of {kind}, not {type(values).__name__}") from None


def _pool(pool_id):
    pool = pool_id if isinstance(pool_id, MemPool) else None
    if pool is None:
        if not isinstance(pool_id, tuple):
            raise TypeError(f"pool_id must be a MemPool or its id, two numbers, got {pool_id!r}")
        pool = pool_of(pool_id)
    if pool is None:
        raise InvalidArgumentError(f"Could not find pool of id {pool_id}: there is none, or it was dropped")
    return pool


def _live(pool, device):
    """Return address -> (size, requested size) of what is allocated."""
    return {block["address"]: (block["size"], block["requested_size"])
            for segment in segments(pool.id, device) for block in segment["blocks"]
            if block["state"] == "active_allocated"}
