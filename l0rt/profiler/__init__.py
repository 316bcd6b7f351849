# SPDX-License-Identifier: Apache-2.0
"""A timeline of what streams do, by the devices' clocks, and of ranges that the program names.

`profile` records what streams are given inside its block: kernels, copies, fills, and waits for events. `range_push`,
`range_pop`, `range` and `mark` give parts of the program names, for the profile and, with ``L0RT_ITT=1``, for Intel's
ITT tools such as VTune. While the history of memory is recorded, ranges are annotations of it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import warnings
import weakref
from dataclasses import dataclass
from typing import Any

from l0rt._base.integers import whole_number
from l0rt.errors import L0Error
from l0rt.memory.history import begin_annotation, end_annotation
from l0rt.profiler import itt, text
from l0rt.runtime.current.waits import synchronize_at
from l0rt.runtime.streams import timeline

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import ParamSpec, SupportsIndex, TypeVar

    from typing_extensions import Self

    _P = ParamSpec("_P")
    _R = TypeVar("_R")

__all__ = ["Record", "mark", "profile", "range", "range_pop", "range_push"]

MOST = 1 << 18  # records, unless the caller says something else


@dataclass(frozen=True)
class Record:
    """What happened, and when. All times are nanoseconds of the host's CLOCK_MONOTONIC_RAW.

    Parameters
    ----------
    kind : str
        ``kernel``, ``copy``, ``fill``, ``wait`` or ``graph``, which is a replay, on a device; ``range`` or ``mark`` on
        the host.
    name : str
        The kernel's name, the range's name, or for example ``copy host to device``.
    begin_ns, end_ns : int
        The beginning and the end. For a command they are the device's times, converted.
    thread : int
        The thread that made the call, as `threading.get_native_id` has it.
    device, stream : int or None
        The index of the device, and the ``stream_id`` of the stream. None for a range.
    call_ns, return_ns : int or None
        The time in which the host appended the command. None for a range.
    nbytes : int or None
        How much was copied or filled.
    source, target : str or None
        Where a copy's bytes were and went: ``host``, ``device`` or ``shared``. None if that is not known.
    groups, group_size : tuple of int or None
        The size of a kernel's launch.
    """

    kind: str
    name: str
    begin_ns: int
    end_ns: int
    thread: int
    device: int | None = None
    stream: int | None = None
    call_ns: int | None = None
    return_ns: int | None = None
    nbytes: int | None = None
    source: str | None = None
    target: str | None = None
    groups: tuple[int, ...] | None = None
    group_size: tuple[int, ...] | None = None

    @property
    def duration_ns(self) -> int:
        """The time from the beginning to the end."""
        return self.end_ns - self.begin_ns


class profile:  # the name that torch.profiler has for it
    """Record what all streams of all devices do inside a ``with`` block.

    The end of the block waits for the commands that were given inside it. One profile runs at a time, for all threads.

    Parameters
    ----------
    max_records : int, optional
        How many commands to record, and how many ranges; what comes later is counted in `dropped`. Each takes about
        120 bytes of memory, and 16 bytes of pinned memory.

    Raises
    ------
    RuntimeError
        Another profile runs, or this one was begun before.
    UnsupportedError
        The driver of a device cannot read its clock and the host's together.

    Notes
    -----
    Before each command and behind it, the device writes its clock (Level Zero's
    ``zeCommandListAppendWriteGlobalTimestamp``), in the order of the stream. ``zeDeviceGetGlobalTimestamps``, at the
    beginning and at the end, relates that clock to the host's.
    """

    _most = MOST
    _timeline: Any = None
    _over = False
    _process = 0
    _ended: Any = None
    _left_ns = 0
    _unfinished = _dropped_ranges = 0
    _events: tuple[Record, ...] | None = None
    begin_ns = 0
    end_ns = 0

    def __init__(self, *, max_records: SupportsIndex = MOST) -> None:
        if self._timeline is not None:
            raise RuntimeError("a profile records once: make another one")
        most = whole_number(max_records, "max_records")
        if not 1 <= most <= 1 << 28:
            raise ValueError(f"max_records must be 1 to {1 << 28}, got {max_records}")
        self._most = most

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception:  # the block's own exception says more
            if kind is None:
                raise

    def start(self) -> None:
        """Begin to record, as the beginning of a ``with`` block does."""
        global _active
        if self._timeline is not None:
            raise RuntimeError("a profile records once: make another one")
        for line in list(_abandoned):
            let_go(line)
        self._clocks = dict[int, Clock]()
        self._ranges = list[Record]()
        self._threads = dict[int, str]()
        self._lock = threading.RLock()
        self._process = os.getpid()
        timelines = list[timeline.Timeline]()  # what began is in it at once, whatever a signal's handler raises
        self._ended = weakref.finalize(self, abandon, timelines, self._process)
        self._ended.atexit = False
        try:
            timeline.begin_timeline(self._most, timelines)
            for index in timeline.devices(timelines[0]):
                bits, hz = timeline.clock_facts(index)
                self._clocks[index] = Clock(bits, hz, timeline.clocks(index))
            self.begin_ns = now_ns()
            _active = weakref.ref(self)
            self._timeline = timelines[0]
        except BaseException:
            if self._timeline is None:
                for line in timelines:
                    timeline.end_timeline(line)
                self._ended()
            raise

    def stop(self) -> None:
        """End the recording and wait for the commands, as the end of a ``with`` block does."""
        global _active
        if self._timeline is None:
            raise RuntimeError("the profile was not started")
        if self._process != os.getpid():
            return
        with self._lock:
            if not self._over:  # after an interrupt the next call does all of it
                timeline.end_timeline(self._timeline)
                if running() is self:
                    _active = None
                self._left_ns = self._left_ns or now_ns()
                self._end_ranges()
            self._finish()

    def _end_ranges(self):
        ended = [
            Record("range", name, max(begin_ns, self.begin_ns), self._left_ns, stack.thread)
            for stack in list(_stacks)
            for name, begin_ns, _ in list(stack.ranges)
        ]
        self._threads.update((t.native_id, t.name) for t in threading.enumerate() if t.native_id)
        free = max(self._most - len(self._ranges), 0)
        dropped = max(len(ended) - free, 0)
        # No call from here on: no interrupt comes between.
        self._ranges += ended[:free]
        self._dropped_ranges += dropped
        self._over = True

    def _keep(self, record):
        if len(self._ranges) < self._most:
            self._ranges.append(record)
        else:
            self._dropped_ranges += 1

    def _finish(self):
        """Wait until the device has come past all stamps, and read them. Ctrl-C leaves the rest for the next call."""
        with self._lock:
            failure = self._wait() if self._events is None else None
            if self._events is None:  # else a signal handler has asked meanwhile
                self._read()
        if failure is not None:
            raise failure

    def _read(self):
        self.end_ns = now_ns()
        commands = timeline.commands(self._timeline)
        for index, clock in self._clocks.items():
            with contextlib.suppress(L0Error, RuntimeError):  # a lost device's clock runs as its properties say
                clock.finish(timeline.clocks(index))
        entries = records(commands, self._clocks)
        self._unfinished = len(commands) - len(entries)
        self._events = tuple(sorted([*entries, *self._ranges], key=lambda record: record.begin_ns))
        self._ended.detach()
        timeline.drop(self._timeline)

    def _wait(self):
        failure = None
        tries = dict[int, int]()
        while True:
            streams = timeline.unfinished_streams(self._timeline)
            if streams is None:  # a thread is just appending
                time.sleep(1e-4)
                continue
            streams = [stream for stream in streams if tries.get(stream, 0) < 2]
            if not streams:
                return failure
            for stream in streams:
                tries[stream] = tries.get(stream, 0) + 1
                try:
                    synchronize_at(stream)
                except (L0Error, RuntimeError) as error:
                    failure = failure or error

    def _complete(self):
        if self._timeline is None or (not self._over and self._process == os.getpid()):
            raise RuntimeError("the profile has no events yet: they are there when its block has ended")
        if self._events is None and self._process != os.getpid():
            raise RuntimeError(f"the profile belongs to process {self._process}, from which this one was forked")
        self._finish()

    @property
    def events(self) -> tuple[Record, ...]:
        """All records, a tuple of `Record`, in the order in which they began."""
        self._complete()
        return self._events or ()

    @property
    def dropped(self) -> int:
        """How many commands and ranges came after ``max_records``, and were not recorded."""
        self._complete()
        return timeline.dropped(self._timeline) + self._dropped_ranges

    @property
    def unfinished(self) -> int:
        """How many recorded commands have no times, because their device was lost before it came to them."""
        self._complete()
        return self._unfinished

    def table(self, limit: SupportsIndex | None = None) -> str:
        """Return a table of the time that each name took, the longest total first.

        Parameters
        ----------
        limit : int or None, optional
            How many names to show. None shows all.

        Returns
        -------
        str
        """
        self._complete()
        most = None if limit is None else whole_number(limit, "limit")
        if most is not None and most < 1:
            raise ValueError(f"limit must be at least 1, got {most}")
        return text.table(self, most)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the records as JSON that Perfetto (https://ui.perfetto.dev) and ``chrome://tracing`` open.

        There is one track for each stream of each device and one for each thread of the host. Arrows lead from a call
        to its command.

        Parameters
        ----------
        path : str or os.PathLike
            The file. One that is there is replaced.
        """
        self._complete()
        text.write_chrome_trace(self, path, self._threads)


class Clock:
    """A device's clock: how its ticks become nanoseconds of the host's."""

    def __init__(self, bits, hz, pair):
        self.period = 1 << bits
        self.begin_ns, self.begin = pair
        self.begin %= self.period
        self.ticks, self.span_ns = hz, 1_000_000_000  # so many ticks in so many nanoseconds

    def finish(self, pair):
        """Measure the clock's speed by a second pair of readings."""
        span_ns = pair[0] - self.begin_ns
        expected = span_ns * self.ticks // self.span_ns
        ticks = (pair[1] - self.begin) % self.period
        ticks += (expected - ticks + self.period // 2) // self.period * self.period
        # A short span measures the readings rather than the clock; no clock is wrong by a thousandth.
        if span_ns > 10_000_000 and abs(ticks - expected) * 1000 < expected:
            self.ticks, self.span_ns = ticks, span_ns

    def ticks_at(self, host_ns):
        """Return the ticks at a time of the host, without the loss of the bits that a counter lacks."""
        return self.begin + (host_ns - self.begin_ns) * self.ticks // self.span_ns

    def host_ns(self, ticks):
        return self.begin_ns + (ticks - self.begin) * self.span_ns // self.ticks

    def unwrap(self, ticks, least):
        """Return the first time not before ``least`` at which the counter showed ``ticks``."""
        return least + (ticks - least) % self.period


def records(commands, clocks):
    """Return the records of commands, in the order of their streams, without those whose stamps were not written.

    A counter with few bits begins anew every few minutes. The first stamp was written after the call, and after the
    stamp before it in the stream: both together say in which of the counter's periods.
    """
    entries = []
    last = dict[int, int]()
    for command in commands:
        (kind, name, device, address, stream, first, second, call, returned, thread, nbytes, source, source_device,
         target, target_device, groups, group_size) = command  # fmt: skip
        if first == second == 0:
            continue
        clock = clocks[device]
        least = clock.ticks_at(call) - clock.period // 8  # the two clocks were not read at quite the same moment
        begin = clock.unwrap(first, max(least, last.get(address, least)))
        end = last[address] = clock.unwrap(second, begin)
        if kind == "copy":
            name = copy_name(source, source_device, target, target_device)
        elif kind == "graph":
            name = f"graph of {nbytes} nodes"
        entries.append(
            Record(
                kind,
                name or kind,
                clock.host_ns(begin),
                clock.host_ns(end),
                thread,
                device,
                stream,
                call,
                returned,
                nbytes if kind in ("copy", "fill") else None,
                source,
                target,
                groups and tuple(groups),
                group_size and tuple(group_size),
            )  # fmt: skip
        )
    return entries


def copy_name(source, source_device, target, target_device):
    if source is None or target is None:
        return "copy"
    if source == target == "device" and source_device != target_device:
        return f"copy device {source_device} to device {target_device}"
    return f"copy {source} to {target}"


# --- Ranges.

_active: weakref.ref[profile] | None = None  # not to keep one that its program has dropped
_abandoned = list[timeline.Timeline]()  # of profiles that were dropped before the device had come past their stamps


def running():
    """Return the profile that records now, None if there is none."""
    return None if _active is None else _active()


def abandon(timelines, process):
    """End what a dropped profile recorded, if it had begun."""
    for line in timelines if process == os.getpid() else ():
        ends = timeline.end_timeline(line)
        let_go(line)
        if ends:
            warnings.warn("a profile was dropped while it recorded: it ends here", ResourceWarning, stacklevel=2)


def let_go(line):
    """Free what is no longer asked for; while a device may still write to it, when the next profile begins."""
    over = timeline.unfinished_streams(line) == []
    if over:
        timeline.drop(line)
    with contextlib.suppress(ValueError):
        _abandoned.remove(line)
    if not over:
        _abandoned.append(line)


class Stack:
    """The ranges that a thread is inside of: (name, begin, what ends its annotation)."""

    def __init__(self):
        self.thread = threading.get_native_id()
        self.ranges = list[tuple[str, int, Any]]()


class Local(threading.local):
    def __init__(self):
        self.stack = Stack()
        _stacks.add(self.stack)


_stacks = weakref.WeakSet[Stack]()
_local = Local()


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def checked_name(name):
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, got {type(name).__name__}")
    return name


def note(record):
    """Give a record to the profile that runs, with its thread's name, which may be gone when the profile ends."""
    active = running()
    if active is not None:
        active._keep(record)
        if record.thread not in active._threads:
            active._threads[record.thread] = threading.current_thread().name


def range_push(name: str) -> int:
    """Begin a range of this thread, inside of those that it has begun.

    Parameters
    ----------
    name : str
        What the range is called.

    Returns
    -------
    int
        How many ranges are around it.

    Notes
    -----
    As ``torch.cuda.nvtx.range_push``.
    """
    stack = _local.stack
    mark = begin_annotation(checked_name(name))
    stack.ranges.append((name, now_ns(), mark))
    if (tool := itt.collector()) is not None:
        tool.begin(name)
    return len(stack.ranges) - 1


def range_pop() -> int:
    """End the range of this thread that was begun last.

    Returns
    -------
    int
        How many ranges were around it.

    Raises
    ------
    RuntimeError
        The thread has begun no range.

    Notes
    -----
    As ``torch.cuda.nvtx.range_pop``.
    """
    stack = _local.stack
    if not stack.ranges:
        raise RuntimeError("range_pop() without a range_push() of this thread")
    name, begin_ns, mark = stack.ranges.pop()
    end_annotation(mark)
    if (tool := itt.collector()) is not None:
        tool.end()
    active = running()
    if active is not None:
        note(Record("range", name, max(begin_ns, active.begin_ns), now_ns(), stack.thread))
    return len(stack.ranges)


def mark(name: str) -> None:
    """Note a moment.

    Parameters
    ----------
    name : str
        What the moment is called.

    Notes
    -----
    As ``torch.cuda.nvtx.mark``.
    """
    checked_name(name)
    if (tool := itt.collector()) is not None:
        tool.mark(name)
    if running() is not None:
        now = now_ns()
        note(Record("mark", name, now, now, threading.get_native_id()))


class range:  # the name that torch.cuda.nvtx has for it
    """A range as a ``with`` block, or as a decorator around every call of a function.

    Parameters
    ----------
    name : str
        What the range is called.

    Notes
    -----
    As ``torch.cuda.nvtx.range``.
    """

    _name = ""

    def __init__(self, name: str) -> None:
        self._name = checked_name(name)

    def __enter__(self) -> Self:
        range_push(self._name)
        return self

    def __exit__(self, *error: object) -> None:
        range_pop()

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        if not callable(function):
            raise TypeError(f"a range decorates a function, got {type(function).__name__}")

        @functools.wraps(function)
        def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with self:
                return function(*args, **kwargs)

        return call


def _after_fork():
    """No profile runs in a forked child, and of the threads only the one that forked."""
    global _active
    _active = None
    _abandoned.clear()
    for stack in list(_stacks):
        stack.thread = threading.get_native_id()


os.register_at_fork(after_in_child=_after_fork)


def __dir__():
    return __all__
