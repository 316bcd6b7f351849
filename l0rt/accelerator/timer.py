# SPDX-License-Identifier: Apache-2.0
"""The time that a block of work takes, by the device's clock and by the host's."""

from __future__ import annotations

from time import perf_counter

from l0rt.accelerator._api import current_stream
from l0rt.runtime.current.event import Event
from l0rt.runtime.current.stream import Stream
from l0rt.runtime.streams.naming import other_interface_of_stream

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self


class Timer:
    """Measure the time from the beginning to the end of a ``with`` block, on the device and on the host.

    Entering and leaving record an event each, and nothing waits until the time is asked for. A timer can be used for
    one block after another; it then has the time of the last.

    Parameters
    ----------
    stream : Stream or None, optional
        The stream in whose order the events are. None is the stream that is current when the block is entered.

    Raises
    ------
    TypeError
        ``stream`` is not a Stream.
    RuntimeError
        The timer is entered inside its own block.
    UnsupportedError
        The device's driver has no time stamps.

    Notes
    -----
    The device's time begins when the device reaches the first event. If it has nothing else to do by then, it also
    waits for the host to append the work, so that many short commands take at least as long as their appends.
    """

    def __init__(self, stream: Stream | None = None) -> None:
        if stream is not None and not isinstance(stream, Stream):
            other_interface_of_stream(stream)
        self._stream = stream
        self._on: Stream | None = None  # the stream of the block that is entered and not left
        self._events = tuple[Event, ...]()
        self._began = self._ended = 0.0

    def __repr__(self):
        if self._on is not None:
            return "<l0rt.accelerator.Timer in its block>"
        if not self._events or not self._events[1].query():
            return f"<l0rt.accelerator.Timer {'not complete' if self._events else 'without a block'}>"
        device, host = self.elapsed_time(), self.host_time()
        return f"<l0rt.accelerator.Timer {device:.3f} ms on the device, {host:.3f} ms on the host>"

    def __enter__(self) -> Self:
        if self._on is not None:
            raise RuntimeError("a Timer cannot be entered inside its own block: use another Timer")
        on = current_stream() if self._stream is None else self._stream
        start, end = Event(on.device, enable_timing=True), Event(on.device, enable_timing=True)
        start.record(on)
        self._began = perf_counter()
        self._on, self._events = on, (start, end)  # last: an interrupt before it leaves the timer as it was
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = perf_counter()
        on, self._on = self._on, None
        self._events[1].record(on)

    def elapsed_time(self) -> float:
        """Return the time of the block on the device. Wait until it is complete.

        Returns
        -------
        float
            Milliseconds, as `Event.elapsed_time` has them.

        Raises
        ------
        RuntimeError
            No block was left yet.
        """
        start, end = self._left()
        end.synchronize()
        return start.elapsed_time(end)

    def host_time(self) -> float:
        """Return the time of the block on the host: that of its Python code and of its appends.

        Returns
        -------
        float
            Milliseconds.

        Raises
        ------
        RuntimeError
            No block was left yet.
        """
        self._left()
        return (self._ended - self._began) * 1e3

    def _left(self):
        if self._on is not None or not self._events:
            raise RuntimeError("the Timer has no time yet: it measures a block, `with timer: ...`")
        return self._events
