# SPDX-License-Identifier: Apache-2.0
"""MPI with one process a device: a device for each rank, Buffers as messages, and memory that a host's ranks share."""

from __future__ import annotations

from contextlib import contextmanager as _contextmanager

import numpy as _np
from mpi4py import MPI as _MPI

import l0rt.accelerator as _acc
from l0rt.buffers.buffer import Buffer as _Buffer
from l0rt.buffers.copies import pinned as _pinned
from l0rt.interop import worker as _worker

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Literal

    from l0rt.buffers.buffer import Buffer

__all__ = ["bcast", "recv", "send", "setup", "share", "staged"]


def setup(
    comm: Any = None,
    *,
    memory_limit: int | float | str | None = None,
    pool_size: int | float | str | None = None,
    oversubscribe: bool = False,
) -> int:
    """Give this rank the device of its place among the ranks of its host. All ranks call it, before they use a device.

    It becomes the current device of the calling thread; the others stay visible, so that ranks can share memory.

    Parameters
    ----------
    comm : mpi4py.MPI.Comm, optional
        By default ``MPI.COMM_WORLD``.
    memory_limit, pool_size : int, float, str or None, optional
        As for `l0rt.interop.worker.limit_memory`.
    oversubscribe : bool, optional
        Whether ranks may have a device together, in turn, if there are more of them.

    Returns
    -------
    int
        The index of the device.

    Raises
    ------
    RuntimeError
        The host has more ranks than devices, or no device. All ranks raise it.
    """
    comm = _communicator(comm)
    with _of_host(comm) as host:
        rank, ranks = host.Get_rank(), host.Get_size()
        fewest = comm.allreduce(
            _acc.device_count() if ranks <= _acc.device_count() or oversubscribe else 0, op=_MPI.MIN
        )
    if fewest == 0:
        raise RuntimeError(
            f"a host has fewer devices than ranks: this one has {ranks} ranks and {_acc.device_count()} devices; start "
            f"fewer ranks, or say oversubscribe=True"
        )
    index = rank % _acc.device_count()
    _acc.set_device_index(index)
    _worker.limit_memory(memory_limit, pool_size)
    return index


def _communicator(comm):
    if comm is None:
        return _MPI.COMM_WORLD
    if not isinstance(comm, _MPI.Intracomm):
        raise TypeError(f"comm must be an mpi4py.MPI.Intracomm, got {type(comm).__name__}")
    return comm


@_contextmanager
def _of_host(comm):
    """Give a communicator of the ranks that are on this host."""
    host = comm.Split_type(_MPI.COMM_TYPE_SHARED)
    try:
        yield host
    finally:
        host.Free()


@_contextmanager
def staged(buffer: Buffer, dtype: Any = "uint8", *, mode: Literal["r", "w", "rw"] = "rw") -> Iterator[Any]:
    """Give the contents of a Buffer as an array in host memory, for calls of MPI inside of a with block.

    Device memory is copied to pinned memory, and back at the end. The host's and shared memory is the array itself.

    Parameters
    ----------
    buffer : Buffer
        Or a part of one.
    dtype : dtype, optional
        What the bytes are.
    mode : str, optional
        ``"r"``: the array is only read, and is read-only; ``"w"``: it is only written, and what it has at first is
        undefined; ``"rw"``: both.

    Returns
    -------
    context manager
        Whose value is a numpy.ndarray.

    Notes
    -----
    Begin and end wait for the work of the Buffer's device.
    """
    if not isinstance(buffer, _Buffer):
        raise TypeError(f"buffer must be a Buffer, got {type(buffer).__name__}")
    if mode not in ("r", "w", "rw"):
        raise ValueError(f"mode must be 'r', 'w' or 'rw', got {mode!r}")
    kind = _np.dtype(dtype)
    if kind.itemsize == 0 or buffer.nbytes % kind.itemsize:
        raise ValueError(f"{buffer.nbytes} bytes are no whole number of {kind}")
    is_device = buffer.kind == "device"
    _acc.synchronize(buffer.device) if buffer.device.type != "cpu" else None
    if is_device:
        array = _pinned(buffer.nbytes // kind.itemsize, kind, device=buffer.device)
        if "r" in mode and buffer.nbytes:
            buffer.copy_to(array)
    else:
        array = _np.asarray(buffer).view(kind)
    view = array.view()
    view.flags.writeable = "w" in mode
    yield view
    if is_device and "w" in mode and buffer.nbytes:
        buffer.copy_from(array)


def send(buffer: Buffer, dest: int, tag: int = 0, comm: Any = None) -> None:
    """Send the contents of a Buffer to another rank, which receives them with `recv` or into any memory.

    Parameters
    ----------
    buffer : Buffer
        Or a part of one.
    dest, tag : int
        As for ``comm.Send``.
    comm : mpi4py.MPI.Comm, optional
        By default ``MPI.COMM_WORLD``.
    """
    comm = _communicator(comm)
    with staged(buffer, mode="r") as array:
        comm.Send([array, _MPI.BYTE], dest, tag)


def recv(buffer: Buffer, source: int = _MPI.ANY_SOURCE, tag: int = _MPI.ANY_TAG, comm: Any = None) -> Buffer:
    """Receive as many bytes as a Buffer has, from another rank.

    Parameters
    ----------
    buffer : Buffer
        Or a part of one.
    source, tag : int
        As for ``comm.Recv``.
    comm : mpi4py.MPI.Comm, optional
        By default ``MPI.COMM_WORLD``.

    Returns
    -------
    Buffer
        The same.

    Raises
    ------
    ValueError
        The message was shorter. A longer one is MPI's error.
    """
    comm = _communicator(comm)
    status = _MPI.Status()
    with staged(buffer, mode="w") as array:
        comm.Recv([array, _MPI.BYTE], source, tag, status)
        if status.Get_count(_MPI.BYTE) != buffer.nbytes:
            raise ValueError(f"the message has {status.Get_count(_MPI.BYTE)} bytes, and the Buffer {buffer.nbytes}")
    return buffer


def bcast(buffer: Buffer, root: int = 0, comm: Any = None) -> Buffer:
    """Send the contents of a rank's Buffer to all ranks, into Buffers of the same size.

    Parameters
    ----------
    buffer : Buffer
        What is sent, on the rank ``root``; where it arrives, on the others.
    root : int
        The rank.
    comm : mpi4py.MPI.Comm, optional
        By default ``MPI.COMM_WORLD``.

    Returns
    -------
    Buffer
        The same.
    """
    comm = _communicator(comm)
    with staged(buffer, mode="r" if comm.Get_rank() == root else "w") as array:
        comm.Bcast([array, _MPI.BYTE], root)
    return buffer


def share(buffer: Buffer | None, comm: Any = None) -> list[Buffer | None]:
    """Give Buffers of the same memory to all ranks of this host, without a copy. All of these ranks call it.

    Parameters
    ----------
    buffer : Buffer or None
        Device memory that can be shared: of a ``MemPool(interprocess=True)``, for instance. None shares nothing.
    comm : mpi4py.MPI.Comm, optional
        By default ``MPI.COMM_WORLD``. Only its ranks on this host take part.

    Returns
    -------
    list
        For each of these ranks, in their order, its Buffer or None. This rank's own is the one that it gave.

    Raises
    ------
    RuntimeError
        Some rank could not share its memory, or not open another's. All ranks raise it, with that rank's reason.

    Notes
    -----
    Nothing orders the work of ranks: synchronize, then call ``comm.Barrier()``, before another rank reads.
    """
    comm = _communicator(comm)
    if buffer is not None and not isinstance(buffer, _Buffer):
        raise TypeError(f"buffer must be a Buffer or None, got {type(buffer).__name__}")
    with _of_host(comm) as host:
        handles = _all_or_error(host, "share its memory", lambda: None if buffer is None else buffer.ipc_handle())
        own = host.Get_rank()

        def open_all():
            return [
                buffer if rank == own else None if handle is None else _Buffer.from_ipc_handle(handle)
                for rank, handle in enumerate(handles)
            ]

        # The second exchange also keeps every Buffer until all ranks have opened it.
        buffers: list = []
        _all_or_error(host, "open the others' memory", lambda: buffers.extend(open_all()))
    return buffers


def _all_or_error(host, what, function):
    """Call a function on all ranks of a host, and return what all of them return; raise on all if one raises."""
    error = result = None
    try:
        result = function()
    except Exception as wrong:
        error = wrong
    answers = host.allgather((result, None if error is None else f"{type(error).__name__}: {error}"))
    failed = [f"rank {rank}: {problem}" for rank, (_, problem) in enumerate(answers) if problem is not None]
    if failed:
        raise RuntimeError(f"on this host a rank could not {what}: {'; '.join(failed)}") from error
    return [answer for answer, _ in answers]
