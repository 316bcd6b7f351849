# SPDX-License-Identifier: Apache-2.0
"""The streams' rows: what streams, events, guards, copies and waits cost above the bare driver."""

import functools
import os
import subprocess
import sys

import l0rt
import l0rt.accelerator as acc
import l0rt.bench.loops as loops
import l0rt.bench.reference as reference
from l0rt._base.paths import known_interpreter
from l0rt.bench.lab import Gated
from l0rt.bench.rows import KIB, MIB, Note, Skip, Work, python, suite

row = suite("streams")
COPIES = {"4KiB": 4 * KIB, "1MiB": MIB, "64MiB": 64 * MIB}
FILLS, FILL_BYTES = 8, 32 * MIB  # what keeps a device busy while its event is asked
AT_ONCE = 512  # appends before a wait: many enough for a sleeping device's wake-up to be shared, few enough to queue


@row("stream.current.python", "current_stream()", ns=20)
def current_stream(lab):
    yield Work(python("current_stream()", current_stream=acc.current_stream))


@row("stream.current.c", "l0rt_current_stream(-1)", ns=3)
def current_stream_c(lab):
    yield Work(loops.current_stream)


@row("stream.set.python", "set_stream(s)", ns=26)
def set_stream(lab):
    before = acc.current_stream()
    yield Work(python("set_stream(s)", set_stream=acc.set_stream, s=acc.Stream()))
    acc.set_stream(before)


@row("stream.with.python", "with s: pass", ns=100)
def with_stream(lab):
    yield Work(python("with s: pass", s=acc.Stream()))


@row("stream.guard.c", "a C stream guard, entered and left")
def stream_guard(lab):
    yield Work(loops.stream_guard)


@row("device.current.python", "current_device_index()", ns=18)
def current_device(lab):
    yield Work(python("current_device_index()", current_device_index=acc.current_device_index))


@row("device.current.c", "l0rt_current_device()", ns=3)
def current_device_c(lab):
    yield Work(loops.current_device)


@row("device.with.python", "with device_index(i): pass", ns=110)
def with_device(lab):
    yield Work(python("with device_index(i): pass", device_index=acc.device_index, i=lab.index))


@row("device.guard.c", "a C device guard, entered and left", ns=6)
def device_guard(lab):
    yield Work(lambda n: loops.device_guard(lab.index, n))


@row("event.create_drop.python", "Event() and dropping it; raw: EventCreate + Destroy", ns=30)
def event_create_drop(lab):
    bare = functools.partial(loops.raw_event_create_destroy, lab.context, lab.device)
    yield Work(python("Event()", Event=l0rt.Event), bare)


@row("event.record.python", "e.record(s); raw: AppendSignalEvent")
def event_record(lab):
    stream, event = acc.Stream(), l0rt.Event()
    yield Work(
        python("e.record(s)", e=event, s=stream),
        lambda n: loops.raw_signal(lab.list, lab.events, n),
        most=AT_ONCE,
        rest=stream.synchronize,
    )


@row("event.record_timed.python", "e.record(s) of an event with timing")
def event_record_timed(lab):
    stream, event = acc.Stream(), l0rt.Event(enable_timing=True)
    yield Work(python("e.record(s)", e=event, s=stream), most=AT_ONCE, rest=stream.synchronize)


@row("event.query_pending.python", "e.query() before it is complete; raw: EventQueryStatus")
def query_pending(lab):
    stream, event, target = acc.Stream(), l0rt.Event(), l0rt.empty(FILL_BYTES)
    query = python("e.query()", e=event)

    def loop(n):
        for _ in range(FILLS):
            target.fill(0, stream=stream)
        event.record(stream)
        spent = count = 0
        while count < n and not event.query():  # in portions: once complete, a query costs less
            spent += query(20)
            count += 20
        stream.synchronize()
        return spent * n / count if count else 0

    yield Work(
        loop,
        lambda n: loops.raw_query_pending(lab.list, lab.events, target.ptr, FILL_BYTES, FILLS, n),
        n=2000,
        rounds=7,
    )


def completed_event():
    event = l0rt.Event()
    event.record()
    event.synchronize()
    if not event.query():
        raise Skip("this driver executes nothing: no event completes")
    return event


@row("event.query.python", "e.query() of a complete event", ns=20)
def event_complete(lab):
    yield Work(python("e.query()", e=completed_event()), lambda n: loops.raw_query(lab.list, lab.events, n))


@row("event.synchronize.python", "e.synchronize() of a complete event", ns=20)
def synchronize_complete(lab):
    event = completed_event()
    yield Work(python("e.synchronize()", e=event), lambda n: loops.raw_event_synchronize(lab.list, lab.events, n))


@row("event.record_query_wait.python", "e.record(s); e.query(); e.synchronize(); raw: the same", over_raw=75)
def record_query_wait(lab):
    yield Work(
        python("e.record(s); e.query(); e.synchronize()", e=l0rt.Event(), s=acc.Stream()),
        lambda n: loops.raw_signal_query_synchronize(lab.list, lab.events, n),
        most=AT_ONCE,
    )


def events_alive(lab, count):
    """What an event costs while many others are kept, each with its native event."""
    stream, event = acc.Stream(), l0rt.Event()
    events = [stream.record_event() for _ in range(count)]
    stream.synchronize()
    yield Work(python("e.record(s)", e=event, s=stream), most=AT_ONCE, rest=stream.synchronize)
    del events


for count in (100, 100_000):
    budget = {"times": (1.3, "event.alive.100.python")} if count > 100 else {}
    text = f"e.record(s) while {count} recorded events are kept"
    row(f"event.alive.{count}.python", text, count, **budget)(events_alive)


@row("event.elapsed_time.python", "start.elapsed_time(end)")
def elapsed_time(lab):
    start, end = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    start.record()
    end.record()
    end.synchronize()
    if not (start.query() and end.query()):
        raise Skip("this driver executes nothing: no event completes")
    yield Work(python("start.elapsed_time(end)", start=start, end=end))


@row("stream.wait_event.python", "s.wait_event(e), e of another stream; raw: AppendWaitOnEvents", over_raw=25)
def wait_event(lab):
    stream, other, event = acc.Stream(), acc.Stream(), l0rt.Event()

    def rest():
        stream.synchronize()
        event.record(other)  # anew: for an event that is known to be complete nothing is appended

    rest()
    yield Work(
        python("s.wait_event(e)", s=stream, e=event),
        lambda n: loops.raw_wait_on(lab.list, lab.events, n),
        most=AT_ONCE,
        rest=rest,
    )
    stream.synchronize()


@row("stream.synchronize.python", "s.synchronize(), idle; raw: CommandListHostSynchronize")
def stream_synchronize(lab):
    stream = acc.Stream()
    stream.record_event()
    stream.synchronize()
    idle = (lambda n: loops.raw_idle_synchronize(lab.list, n)) if lab.capabilities["list_sync"] else None
    yield Work(python("s.synchronize()", s=stream), idle)


@row("device.synchronize.python", "acc.synchronize(), idle; raw: CommandListHostSynchronize")
def device_synchronize(lab):
    acc.synchronize()
    idle = (lambda n: loops.raw_idle_synchronize(lab.list, n)) if lab.capabilities["list_sync"] else None
    yield Work(python("synchronize()", synchronize=acc.synchronize), idle)


def append_copy(lab, language):
    """Appending a copy of 4 KiB from device to device."""
    nbytes = 4 * KIB
    with Gated(lab, acc.Stream()) as gated:
        source, target = l0rt.empty(nbytes), l0rt.empty(nbytes)
        loop = {
            "python": gated.around(python("target.copy_from(source)", target=target, source=source)),
            "c": lambda n: loops.copy(gated.gate, target.ptr, source.ptr, nbytes, n),
        }[language]
        yield Work(
            loop,
            lambda n: loops.raw_copy(lab.list, lab.events, gated.gate, target.ptr, source.ptr, nbytes, n),
            most=AT_ONCE,
        )


row("copy.append.c", "l0rt_memcpy_async, 4 KiB; raw: AppendMemoryCopy", "c", over_raw=60)(append_copy)
row("copy.append.python", "target.copy_from(source), 4 KiB on the device", "python", over_raw=60)(append_copy)


@row("fill.append.python", "target.fill(0), 4 KiB; raw: AppendMemoryFill", over_raw=60)
def append_fill(lab):
    with Gated(lab, acc.Stream()) as gated:
        target = l0rt.empty(4 * KIB)
        yield Work(
            gated.around(python("target.fill(0)", target=target)),
            lambda n: loops.raw_fill(lab.list, lab.events, gated.gate, target.ptr, target.nbytes, n),
            most=AT_ONCE,
        )


def copy(lab, direction, nbytes):
    """A copy and the wait for its end; the host's side is pinned memory."""
    stream = acc.Stream()
    with stream:
        target = l0rt.empty(nbytes, kind="host" if direction == "d2h" else "device")
        source = l0rt.empty(nbytes, kind="host" if direction == "h2d" else "device")
        for touched in (source, target):
            touched.fill(1)
        stream.synchronize()

        def notes(figures):
            if nbytes < MIB:
                return {}
            speed = {name: nbytes / figures[name].median for name in figures}
            share = speed["own"] / speed["beside"]
            noise = figures["beside"].quartiles[1] / figures["own"].quartiles[0] - share
            # On a card the link decides, and how wide that is: raw is what to compare with.
            least = 0.97 if nbytes >= 64 * MIB and lab.properties["is_software"] else None
            share = Note(share, "x", least, least=True, noise=noise)
            return {"speed": Note(speed["own"], "GB/s"), "of memcpy's": share}

        yield Work(
            python(
                "target.copy_from(source, non_blocking=True); wait()",
                target=target,
                source=source,
                wait=stream.synchronize,
            ),
            lambda n: loops.raw_copy_synchronize(lab.list, lab.events, target.ptr, source.ptr, nbytes, n),
            beside=lambda n: reference.copy(nbytes, n),
            notes=notes,
        )


for direction in ("h2d", "d2h", "d2d"):
    for size, nbytes in COPIES.items():
        text = f"copy of {size}, {direction}, and the wait for its end; host memory is pinned"
        row(f"copy.{direction}.{size}.python", text, direction, nbytes)(copy)

IMPORT = """
import sys; sys.path[:] = {}
import time, numpy
start = time.perf_counter_ns()
import l0rt.accelerator
print(time.perf_counter_ns() - start)
"""


@row("import.accelerator.python", "import l0rt.accelerator, NumPy already imported", ns=13e6)
def import_accelerator(lab):
    ask = [known_interpreter(), "-c", IMPORT.format(sys.path)]  # -c puts the working directory first: a clone, say

    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}

    def measured():
        # In a session of its own, its errors in a pipe: Ctrl-C ends the bench, not a child with a traceback.
        child = subprocess.run(
            ask, env=environment, timeout=60, start_new_session=True, capture_output=True, text=True, check=False
        )
        if child.returncode:
            raise RuntimeError(f"the importing process ended: {child.stderr.strip()[-300:]}")
        return int(child.stdout)

    yield Work(lambda n: sum(measured() for _ in range(n)), n=1, rounds=7)
