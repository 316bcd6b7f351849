# SPDX-License-Identifier: Apache-2.0
"""A sanitizer that finds races between streams: two accesses to the same memory that are not ordered.

Every stream has a clock that each of its commands moves on, and knows of every other clock how far it is ordered
behind it (a vector clock). A record takes the stream's knowledge along, a wait joins it to another stream's, a
synchronisation to the host's, and each command knows what the host knew. An access to memory that another access
touches, one of both writing, is a race unless the one's clock is known where the other is made.

A graph's commands are no accesses when they are captured. Each replay is one command of its stream, which does what all
of them do; each further stream that was captured has a clock of its own there, and knows the order of the
graph's waits.

What is seen: copies, fills, Buffers that kernels get, Buffers that are freed, views of host and shared memory at the
moment they are made, and what `host_access` announces. ``L0RT_SANITIZE=stream`` begins with the import of l0rt; `races`
has what was found.
"""

from __future__ import annotations

import bisect
import os
import sys
import threading
import traceback
from dataclasses import dataclass
from types import FrameType

from l0rt import config
from l0rt._base import callers
from l0rt.graphs.recording import accesses_at
from l0rt.runtime.current.waits import is_captured_at, name_at
from l0rt.runtime.streams import hooks

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from l0rt.buffers.buffer import Buffer

__all__ = ["StreamRaceWarning", "host_access", "start"]

HOST = 0  # the host's place among the streams, which are addresses, or (a stream that replays, which captured one)


class StreamRaceWarning(UserWarning):
    """Two accesses to the same memory that are not ordered."""


@dataclass
class Access:
    """One access: by which stream or the host, at which of its times, to which bytes."""

    stream: int | tuple[int, int]
    time: int
    low: int
    high: int
    writes: bool
    what: str
    stack: list

    def __str__(self):
        stream, branch = self.stream if isinstance(self.stream, tuple) else (self.stream, 0)
        by = "the host" if stream == HOST else name_at(stream)
        if branch:
            by = f"captured stream {branch} of the graph that {by} replays"
        where = "".join(traceback.format_list(self.stack)) or "  (no Python frame)\n"
        return f"{self.what} by {by}, {self.high - self.low} bytes at {self.low:#x}:\n{where}"


class Memory:
    """An allocation: its stream, its accesses that may still matter, and the streams whose use was announced."""

    def __init__(self, low, high, stream, is_captured):
        self.low, self.high, self.stream = low, high, stream
        self.is_captured = is_captured  # it stays the graph's, which has it again in each replay
        self.accesses = []
        self.announced = set()


class Sanitizer:
    """The clocks and the memory of one process."""

    def __init__(self, report):
        self.report = report
        self.lock = threading.RLock()
        # stream -> the times of other streams after which it is ordered: stream -> time
        self.clocks: dict = {HOST: {HOST: 0}}
        self.points = {}  # recorded slot -> knowledge
        self.memory = {}  # low -> Memory
        self.lows = []

    # What streams and events do.

    def command(self, stream):
        """Move the stream's clock on; its next command knows what the host knows."""
        mine = self.clocks.setdefault(stream, {stream: 0})
        mine[stream] += 1
        self.join(mine, self.clocks[HOST])
        return mine

    @staticmethod
    def join(mine, other):
        for stream, time in other.items():
            if mine.get(stream, 0) < time:
                mine[stream] = time

    def on_event_record(self, slot, stream):
        self.points[slot] = dict(self.command(stream))

    def on_event_wait(self, slot, stream):
        self.join(self.command(stream), self.points.get(slot, {}))

    def on_event_synchronization(self, slot):
        self.join(self.clocks[HOST], self.points.get(slot, {}))

    def on_stream_wait(self, stream, other):
        self.join(self.command(stream), self.clocks.get(other, {}))

    def on_stream_synchronization(self, stream):
        self.join(self.clocks[HOST], self.clocks.get(stream, {}))

    # What is done to memory.

    def on_memory_allocation(self, low, nbytes, stream):
        place = bisect.bisect_left(self.lows, low)
        if place and self.memory[self.lows[place - 1]].high > low:
            place -= 1
        while place < len(self.lows) and self.lows[place] < low + max(nbytes, 1):
            self.drop(self.lows[place])
        self.memory[low] = Memory(low, low + nbytes, stream, is_captured_at(stream))
        self.lows.insert(place, low)

    def on_memory_use(self, low, stream):
        if memory := self.find(low):
            memory.announced.add(stream)

    def on_memory_deallocation(self, low):
        if low in self.memory and not self.memory[low].is_captured:
            self.drop(low)

    def drop(self, low):
        memory = self.memory.pop(low)
        del self.lows[bisect.bisect_left(self.lows, low)]
        if memory.is_captured:
            return
        knows = dict(self.clocks.get(memory.stream, {}))
        self.join(knows, self.clocks[HOST])
        free = Access(memory.stream, 0, memory.low, memory.high, True, "free", _stack())
        for access in memory.accesses:
            if access.stream in (memory.stream, HOST) or knows.get(access.stream, 0) >= access.time:
                continue
            if access.stream not in memory.announced:
                self.report(access, free)

    def on_copy(self, stream, target, source, nbytes):
        knows = self.command(stream)
        self.access(stream, knows, source, nbytes, False, "copy from")
        self.access(stream, knows, target, nbytes, True, "copy to")

    def on_fill(self, stream, target, nbytes):
        self.access(stream, self.command(stream), target, nbytes, True, "fill")

    def on_kernel_launch(self, stream, kernel):
        self.command(stream)

    def on_kernel_access(self, stream, low, nbytes, how):
        knows = self.clocks.get(stream) or self.command(stream)  # none: started between the launch and this
        if how & 1:
            self.access(stream, knows, low, nbytes, False, "kernel, read")
        if how & 2:
            self.access(stream, knows, low, nbytes, True, "kernel, write")

    def on_graph_replay(self, stream, graph):
        stack, clock = _stack(), dict(self.command(stream))
        nodes = accesses_at(graph)
        awaited = {after for _, after, *_ in nodes if after is not None}
        points: dict = {}  # (branch, node that is awaited) -> knowledge
        for number, (branch, after, accesses, point) in enumerate(nodes, 1):
            on = (stream, branch) if branch else stream
            mine = self.clocks.setdefault(on, {on: 0})
            self.join(mine, clock)
            mine[on] += 1
            if after is not None:
                self.join(mine, points.get(after, clock))
            for low, nbytes, writes, what in accesses:
                self.access(on, mine, low, nbytes, writes, f"{what}, in a replay of a graph", stack)
            if (branch, number) in awaited:
                points[branch, number] = dict(mine)
            if point:
                self.points[point] = dict(mine)
        self.points[graph] = dict(self.clocks[stream])

    def on_host_access(self, low, nbytes, writes):
        knows = self.command(HOST)
        self.access(HOST, knows, low, nbytes, bool(writes), "write" if writes else "read")

    def find(self, address):
        at = bisect.bisect_right(self.lows, address) - 1
        memory = self.memory[self.lows[at]] if at >= 0 else None
        return memory if memory is not None and address < memory.high else None

    def access(self, stream, knows, low, nbytes, writes, what, stack=None):
        memory = self.find(low)
        if memory is None:
            return
        new = Access(stream, knows[stream], low, low + nbytes, writes, what, stack or _stack())
        accesses = []
        for old in memory.accesses:
            ordered = knows.get(old.stream, 0) >= old.time
            overlaps = old.low < new.high and new.low < old.high
            if overlaps and not ordered and (old.writes or writes):
                self.report(old, new)
            covered = new.low <= old.low and old.high <= new.high
            # What is ordered before a write over the same bytes, or before a like access, says nothing new.
            if not (ordered and covered and (writes or not old.writes)):
                accesses.append(old)
        memory.accesses = [*accesses, new]


races: list = []  # (earlier, later) of every race found, each place once
_seen: set[str] = set()
_sanitizer: Sanitizer | None = None


def _stack():
    """The Python frames outside of l0rt, outermost first."""
    frame: FrameType | None = sys._getframe(1)
    frames: list[traceback.FrameSummary] = []
    while frame is not None and len(frames) < 16:
        if not callers.is_ours(frame):
            frames.append(traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return frames[::-1]


def _report(old, new):
    place = tuple((a.what, [(f.filename, f.lineno) for f in a.stack[-4:]]) for a in (old, new))
    if repr(place) in _seen:
        return
    _seen.add(repr(place))
    races.append((old, new))
    callers.warn(
        f"nothing orders these two accesses to the same memory\n  first, {old}  then, {new}", StreamRaceWarning
    )


def begin():
    """Watch from now on, if the setting ``sanitize`` says so."""
    if "stream" in config.get("sanitize"):
        start()


def start() -> None:
    """Start the sanitizer. It does not know the work that streams were given before."""
    global _sanitizer
    if _sanitizer is not None:
        return
    _sanitizer = Sanitizer(_report)
    for name in hooks.NAMES:
        if handler := getattr(_sanitizer, f"on_{name}", None):
            hooks.add(name, _locked(_sanitizer, handler))


def _locked(sanitizer, handler):
    def call(*values):
        with sanitizer.lock:  # looked up each time: a forked child has another
            handler(*values)

    return call


def _after_fork():
    """Another thread of the parent may have held the lock, and never gives it back here."""
    if _sanitizer is not None:
        _sanitizer.lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


def host_access(buffer: Buffer, writes: bool = True) -> None:
    """Announce to the sanitizer that the host now writes or reads the memory of ``buffer``.

    Parameters
    ----------
    buffer : Buffer
        Of host or shared memory.
    writes : bool, optional
        True if the host writes, False if it only reads.

    Notes
    -----
    The sanitizer orders accesses by vector clocks, as ``torch.cuda._sanitizer`` does.
    """
    if not hasattr(buffer, "ptr") or not hasattr(buffer, "nbytes"):
        raise TypeError(f"host_access() takes a Buffer, not {type(buffer).__name__}")
    if _sanitizer is not None:
        with _sanitizer.lock:
            _sanitizer.on_host_access(buffer.ptr, buffer.nbytes, writes)


def __dir__():
    return __all__
