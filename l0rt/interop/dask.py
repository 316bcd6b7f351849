# SPDX-License-Identifier: Apache-2.0
"""Dask with one worker process a device, and results that move to the host and the disk when memory is short."""

from __future__ import annotations

import logging as _logging
import os as _os
import sys as _sys
from collections.abc import MutableMapping as _MutableMapping

import dask as _dask
import numpy as _np
import zict as _zict
from dask.sizeof import sizeof as _sizeof
from distributed import LocalCluster as _LocalCluster
from distributed import WorkerPlugin as _WorkerPlugin
from distributed.protocol import dask_deserialize as _dask_deserialize
from distributed.protocol import dask_serialize as _dask_serialize
from distributed.spill import SpillBuffer as _SpillBuffer
from distributed.worker_memory import parse_memory_limit as _parse_memory_limit

import l0rt.accelerator as _acc
from l0rt.buffers.buffer import Buffer as _Buffer
from l0rt.buffers.empty import empty as _empty
from l0rt.interop import worker as _worker

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, TypeAlias

    _Size: TypeAlias = int | float | str | None

__all__ = ["DevicePlugin", "LocalDeviceCluster", "SpillingStore"]

_logger = _logging.getLogger(__name__)
_TARGET = 0.6  # Dask's own for the host's memory


class LocalDeviceCluster(_LocalCluster):
    """Start a scheduler on this machine, and a worker process for each device.

    It listens on the loopback interface alone and has no dashboard, unless ``host`` and ``dashboard_address`` say
    otherwise. A worker that ends is replaced by its nanny, and the new one takes the device that has become free.

    Parameters
    ----------
    devices : sequence of int, optional
        Which of the devices that this process may use, by their place in `l0rt.interop.worker.masks`. By default all.
    n_workers : int, optional
        How many of them; by default a worker for each.
    threads_per_worker : int, optional
        Tasks that a worker runs at a time.
    device_memory_limit : int, float, str or None, optional
        What l0rt allocates at most in a worker: bytes, a part of the device's memory, or a text such as ``"4GiB"``.
    device_target : int, float, str or None, optional
        How much of that the results of tasks may have before the least recently used move to the host: bytes, or a part
        of ``device_memory_limit``. None: they never move.
    pool_size : int, float, str or None, optional
        How much memory the allocator of a worker takes from the driver at the start.
    memory_limit : int, float, str or None, optional
        The host's memory for each worker, as Dask's workers have it. At 60 % of it (Dask's
        ``distributed.worker.memory.target``) what is least recently used moves to the disk.
    disk_limit : int, optional
        Bytes that a worker writes to the disk at most; what does not fit stays in the host's memory.
    **kwargs
        For `distributed.LocalCluster`.

    Raises
    ------
    ValueError
        There are fewer devices than workers.
    """

    def __init__(
        self,
        devices: Iterable[int] | None = None,
        *,
        n_workers: int | None = None,
        threads_per_worker: int = 1,
        device_memory_limit: _Size = None,
        device_target: _Size = _TARGET,
        pool_size: _Size = None,
        memory_limit: _Size = "auto",
        disk_limit: int | None = None,
        host: str | None = "127.0.0.1",
        dashboard_address: str | None = None,
        plugins: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        count = len(_worker.masks())
        indexes = list(range(count)) if devices is None else list(devices)
        workers = len(indexes) if n_workers is None else n_workers
        if not 0 < workers <= len(indexes):
            raise ValueError(f"n_workers must be from 1 to {len(indexes)}, the number of devices, got {workers}")
        plugin = DevicePlugin(
            devices=indexes, device_memory_limit=device_memory_limit, device_target=device_target, pool_size=pool_size
        )
        host_limit = _parse_memory_limit(memory_limit, 1, workers, logger=_logger)
        super().__init__(
            n_workers=workers,
            threads_per_worker=threads_per_worker,
            processes=True,
            memory_limit=host_limit or 0,
            host=host,
            dashboard_address=dashboard_address,
            data=(SpillingStore, {"host_limit": host_limit, "disk_limit": disk_limit}),
            plugins=[plugin, *plugins],
            **kwargs,
        )


class DevicePlugin(_WorkerPlugin):
    """Give a worker of any cluster of Dask's a device that no other worker on its machine has.

    Register it before the workers use a device: ``client.register_plugin(DevicePlugin())``.

    Parameters
    ----------
    devices : sequence of int, optional
        Places in `l0rt.interop.worker.masks` to choose from, by default all.
    device_memory_limit, device_target, pool_size
        As for `LocalDeviceCluster`. Without a `SpillingStore` for its data a worker has no use for ``device_target``.
    timeout : float, optional
        Seconds to wait for a device that another process still has.
    """

    name = "l0rt-device"

    def __init__(
        self,
        *,
        devices: Iterable[int] | None = None,
        device_memory_limit: _Size = None,
        device_target: _Size = _TARGET,
        pool_size: _Size = None,
        timeout: float = 30.0,
    ) -> None:
        for what, value in (("device_memory_limit", device_memory_limit), ("pool_size", pool_size)):
            _worker.size(value, 0, what)
        _worker.size(device_target, 0, "device_target")
        self.devices, self.timeout = devices, timeout
        self.device_memory_limit, self.device_target, self.pool_size = device_memory_limit, device_target, pool_size

    def setup(self, worker: Any) -> None:
        """Take a device; Dask calls it in the worker's process before the first task."""
        index = _worker.claim(worker.scheduler.address, devices=self.devices, timeout=self.timeout)
        most = _worker.limit_memory(self.device_memory_limit, self.pool_size)
        if isinstance(worker.data, SpillingStore):
            worker.data.device_limit = _worker.size(self.device_target, most, "device_target")
        _logger.info("worker %s has device %d", worker.address, index)


class SpillingStore(_MutableMapping):
    """The results of a worker's tasks, on the device, in the host's memory and on the disk.

    Device memory is that of Buffers, also in lists, tuples and dicts. When it exceeds the limit, the values that were
    used least recently move to the host. When the host's exceed theirs, Dask's own store writes the least recently
    used to the disk. A value comes back to the device when it is asked for.

    Parameters
    ----------
    worker_local_directory : str
        Where the files are; Dask gives the worker's own folder, and removes it with the worker.
    device_limit : int or None, optional
        Bytes. None: nothing leaves the device.
    host_limit : int or None, optional
        Bytes of host memory of which Dask's part (``distributed.worker.memory.target``) is used. None: no disk.
    disk_limit : int or None, optional
        Bytes of all files.

    Attributes
    ----------
    device, host, disk : Mapping
        What is where. Do not change them.
    """

    def __init__(
        self,
        worker_local_directory: str,
        device_limit: int | None = None,
        host_limit: int | None = None,
        disk_limit: int | None = None,
    ) -> None:
        self._host: Any = {}
        part = _dask.config.get("distributed.worker.memory.target")
        if host_limit and part:
            folder = _os.path.join(worker_local_directory, "storage")
            most = False if disk_limit is None else disk_limit
            self._host = _SpillBuffer(folder, target=int(host_limit * part), max_spill=most)
        # A value that a task still uses is on the device anyway: it is found again and not made twice.
        moved = _zict.Cache(_zict.Func(_to_host, _to_device, self._host), _zict.WeakValueMapping())
        self._sizes: dict = {}  # key -> bytes of device memory, of the values that have some, wherever they are
        self._device = _zict.Buffer({}, moved, _sys.maxsize, weight=lambda key, value: self._sizes[key])
        self.device_limit = device_limit

    @property
    def device_limit(self) -> int | None:
        """Bytes of device memory that values may have, None for no limit. A lower limit moves values at once."""
        return None if self._device.n == _sys.maxsize else self._device.n

    @device_limit.setter
    def device_limit(self, limit: int | None) -> None:
        self._device.n = _sys.maxsize if limit is None else limit
        self._free_device(0)

    def __setitem__(self, key: Any, value: Any, /) -> None:
        if key in self:
            del self[key]
        nbytes = _device_bytes(value, set())
        if nbytes == 0:
            self._host[key] = value
            return
        self._sizes[key] = nbytes
        self._device.set_noevict(key, value)
        self._free_device(0)

    def __getitem__(self, key: Any, /) -> Any:
        if key not in self._sizes:
            return self._host[key]
        nbytes = self._sizes[key]
        if key not in self._device.fast and nbytes <= self._device.n:
            self._free_device(nbytes)  # before its memory is allocated, so that both are never there at a time
        return self._device[key]

    def __delitem__(self, key: Any, /) -> None:
        if key in self._sizes:
            del self._device[key]
            del self._sizes[key]
        else:
            del self._host[key]

    def __contains__(self, key):
        return key in self._sizes or key in self._host

    def __iter__(self) -> Iterator[Any]:
        yield from list(self._sizes)
        yield from [key for key in self._host if key not in self._sizes]

    def __len__(self) -> int:
        return len(self._sizes) + sum(key not in self._sizes for key in self._host)

    def _free_device(self, nbytes):
        """Move values to the host until ``nbytes`` more fit. What fails stays on the device, and is logged."""
        try:
            self._device.evict_until_below_target(self._device.n - nbytes)
        except Exception:
            _logger.exception("results could not be moved to the host, and stay on the device")

    @property
    def device(self) -> Mapping[Any, Any]:
        return self._device.fast

    @property
    def host(self) -> Mapping[Any, Any]:
        return getattr(self._host, "fast", self._host)

    @property
    def disk(self) -> Mapping[Any, Any]:
        return getattr(self._host, "slow", {})

    # What Dask's worker looks for: to move more to the disk when the process has too much, and for its dashboard.

    @property
    def fast(self) -> Mapping[Any, Any]:
        """What `evict` could move: true if there is anything."""
        return self.host if self._host is not self.host else {}

    def evict(self) -> int:
        """Move what was used least recently from the host's memory to the disk.

        Returns
        -------
        int
            Its bytes; -1 if that failed.
        """
        return self._host.evict()

    @property
    def spilled_total(self) -> tuple[int, int]:
        """Bytes on the disk, as the values have them in memory and in the files."""
        return getattr(self._host, "spilled_total", (0, 0))


class _Spilled:
    """A value whose Buffers have moved to the host: the value with places for them, and their contents."""

    __slots__ = ("form", "frames")

    def __init__(self, form, frames):
        self.form, self.frames = form, frames

    def __reduce__(self):
        return _Spilled, (self.form, self.frames)


class _Place:
    """Where a Buffer was."""

    __slots__ = ("index",)

    def __init__(self, index):
        self.index = index

    def __reduce__(self):
        return _Place, (self.index,)


def _is_on_device(value):
    return isinstance(value, _Buffer) and value.kind == "device"


def _inner(value):
    """Return what a container of Python's own has; subclasses may mean something else by it."""
    if type(value) in (list, tuple):
        return value
    return value.values() if type(value) is dict else ()


def _device_bytes(value, visited):
    """Return how much device memory a value has, each Buffer once."""
    if id(value) in visited:
        return 0
    if _is_on_device(value):
        visited.add(id(value))
        return value.nbytes
    if inner := _inner(value):
        visited.add(id(value))
    return sum(_device_bytes(item, visited) for item in inner)


def _changed(value, change, memo):
    """Return a value with Buffers and places changed, each once; containers are made anew, others are the same."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, _Place) or _is_on_device(value):
        copy = change(value)
    elif type(value) is list:
        copy = memo[id(value)] = []
        copy.extend(_changed(item, change, memo) for item in value)
    elif type(value) is dict:
        copy = memo[id(value)] = {}
        copy.update((key, _changed(item, change, memo)) for key, item in value.items())
    elif type(value) is tuple:
        copy = tuple(_changed(item, change, memo) for item in value)
    else:
        return value
    memo[id(value)] = copy
    return copy


def _to_host(value):
    _acc.synchronize()  # tasks may have worked on other streams than this thread's
    frames = []

    def place(buffer):
        frames.append(buffer.numpy())
        return _Place(len(frames) - 1)

    return _Spilled(_changed(value, place, {}), frames)


def _to_device(spilled):
    buffers = [_on_device(frame) for frame in spilled.frames]
    return _changed(spilled.form, lambda place: buffers[place.index], {})


def _on_device(frame, kind="device", device=None):
    data = memoryview(frame)
    buffer = _empty(data.nbytes, kind=kind, device=device)
    return buffer.copy_from(data) if data.nbytes else buffer


@_sizeof.register(_Buffer)
def _size_of_buffer(buffer):
    return object.__sizeof__(buffer) + buffer.nbytes


@_sizeof.register(_Spilled)
def _size_of_spilled(spilled):
    return sum(frame.nbytes for frame in spilled.frames)


@_dask_serialize.register(_Buffer)
def _serialize(buffer):
    """Send the contents. They arrive on the receiver's own device, which may be another one."""
    return {"kind": buffer.kind, "host": buffer.device.type == "cpu"}, [buffer.numpy()]


@_dask_deserialize.register(_Buffer)
def _deserialize(header, frames):
    frame = frames[0] if frames else _np.empty(0, "u1")
    return _on_device(frame, header["kind"], "cpu" if header["host"] else None)
