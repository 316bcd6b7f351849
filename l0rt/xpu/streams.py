# SPDX-License-Identifier: Apache-2.0
"""torch.xpu's streams and events."""

from __future__ import annotations

from l0rt._base.described import takes_device as _takes_device
from l0rt.runtime.current import event as _event
from l0rt.runtime.current import stream as _stream
from l0rt.runtime.current.stream import StreamContext
from l0rt.runtime.current.stream import XpuStream as Stream

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from l0rt.runtime.current.stream import Stream as _Stream
    from l0rt.runtime.streams.naming import _Device

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_stream",
    "get_stream_from_external",
    "set_stream",
    "stream",
    "synchronize",
]


class Event(_event.Event):
    """An event, with torch.xpu.Event's positional arguments.

    Parameters
    ----------
    enable_timing : bool, optional
        The device writes its time when the event completes. `elapsed_time` and `host_time` need it.
    blocking : bool, optional
        The host sleeps at once when it waits, instead of spinning first.
    interprocess : bool, optional
        Other processes can wait for the event: see `ipc_handle`.
    """

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(cls, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)


def stream(stream: _Stream | None) -> StreamContext:
    """Return a context manager that makes ``stream`` and its device current. None changes nothing.

    Parameters
    ----------
    stream : Stream or None
        None changes nothing.

    Returns
    -------
    context manager
    """
    return StreamContext(stream)


@_takes_device
def current_stream(device: _Device = None) -> Stream:
    """Return the calling thread's current stream on ``device`` (the current one by default).

    Returns
    -------
    Stream
    """
    return _stream.current_stream(device)  # type: ignore[return-value]


def set_stream(stream: _Stream | None) -> None:
    """Make ``stream`` and its device current in this thread. None changes nothing.

    Parameters
    ----------
    stream : Stream
        The stream.

    Raises
    ------
    TypeError
        It is not a Stream.
    """
    if stream is not None:
        _stream.set_stream(stream)


@_takes_device
def synchronize(device: _Device = None) -> None:
    """Wait until the work of all streams of ``device`` is complete."""
    _stream.synchronize(device)


@_takes_device
def get_stream_from_external(data_ptr: int, device: _Device = None) -> Stream:
    """Use an immediate command list of other software as a stream.

    The caller must keep the list alive. `Stream.from_handle` can do that with ``owner``.

    Parameters
    ----------
    data_ptr : int
        The ``ze_command_list_handle_t`` of an immediate list.

    Returns
    -------
    Stream

    Raises
    ------
    InvalidArgumentError
        The driver knows no list with this handle.
    """
    return Stream.from_handle(data_ptr, device=device)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: str = "xpu") -> None:
    """Make the stream with this number and its device current."""
    _stream.set_stream(Stream(stream_id=stream_id, device_index=device_index, device_type=device_type))
