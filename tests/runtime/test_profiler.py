# SPDX-License-Identifier: Apache-2.0
"""l0rt.profiler: every command once, in its stream's order, with times that respect what orders it; and the texts."""

import gc
import json
import random
import threading
import time
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import profiler
from l0rt.bench import loops
from l0rt.runtime.streams import devices, timeline

KIB, MIB = 1 << 10, 1 << 20
COMMANDS = ("kernel", "copy", "fill", "wait")
KERNELS = Path(__file__).parents[1] / "kernels" / "basic.spv"


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(KERNELS)
    kept = [made["vector_add"], made["axpy"]]
    yield made
    del kept
    made.close()


def commands(profile, *kinds):
    return [record for record in profile.events if record.kind in (kinds or COMMANDS)]


def by_stream(profile):
    found = {}
    for record in commands(profile):
        found.setdefault((record.device, record.stream), []).append(record)
    return found


# What is recorded.


@pytest.mark.checks_data
def test_kernels_copies_fills_and_waits_are_recorded_with_their_facts(module):
    s, t = acc.Stream(), acc.Stream()
    x, y = l0rt.empty(64 * KIB, stream=s), l0rt.empty(64 * KIB, stream=s)
    host = l0rt.pinned(16 * KIB, np.float32)
    x.fill(0, stream=s)
    with profiler.profile() as p:
        y.fill(1, stream=s)
        t.wait_stream(s)
        y.copy_from(x, stream=t)
        x.copy_from(host, stream=t, non_blocking=True)
        y.copy_to(host, stream=t, non_blocking=True)
        module["axpy"].launch(x, y, 2.0, groups=256, group_size=64, stream=t)
    x.fill(0, stream=s)
    found = {kind: commands(p, kind) for kind in COMMANDS}
    (fill,), (launch,) = found["fill"], found["kernel"]
    assert (fill.name, fill.nbytes, fill.device, fill.stream) == ("fill", 64 * KIB, 0, s.stream_id)
    assert launch.name == "axpy"
    assert launch.groups == (256, 1, 1)
    assert launch.group_size == (64, 1, 1)
    assert launch.stream == t.stream_id
    assert [(copy.name, copy.source, copy.target, copy.nbytes) for copy in found["copy"]] == [
        ("copy device to device", "device", "device", 64 * KIB),
        ("copy host to device", "host", "device", 64 * KIB),
        ("copy device to host", "device", "host", 64 * KIB),
    ]
    assert len(found["wait"]) <= 1  # none if the fill was complete by then; test_profiler_waits.py has all of them
    for record in commands(p):
        assert record.thread == threading.get_native_id()
        assert p.begin_ns <= record.call_ns <= record.return_ns <= p.end_ns
        assert record.begin_ns <= record.end_ns
        assert record.duration_ns == record.end_ns - record.begin_ns
    assert p.dropped == p.unfinished == 0


@pytest.mark.checks_data
def test_rows_shared_memory_and_the_host_are_told_apart():
    shared, x = l0rt.empty(64 * KIB, kind="shared"), l0rt.empty(64 * KIB)
    with profiler.profile() as p:
        x.copy_from(shared)
        l0rt.memcpy2d(x, 256, shared, 128, 128, 16)
        x.copy_from(np.ones(16 * KIB, np.float32))
    assert [record.name for record in commands(p, "copy")] == [
        "copy shared to device", "copy shared to device", "copy host to device"
    ]  # fmt: skip
    assert commands(p, "copy")[1].nbytes == 128 * 16


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_streams_of_two_devices_and_copies_between_them():
    x, y = l0rt.empty(KIB, device=0), l0rt.empty(KIB, device=1)
    with profiler.profile() as p:
        x.fill(1)
        y.fill(2, stream=acc.current_stream(1))
        y.copy_from(x)
    assert {record.device for record in commands(p, "fill")} == {0, 1}
    assert [record.name for record in commands(p, "copy")][-1:] == ["copy device 0 to device 1"]


@pytest.mark.checks_data
def test_what_was_given_before_and_after_is_not_recorded():
    x = l0rt.empty(KIB)
    x.fill(0)
    with profiler.profile() as p:
        pass
    x.fill(0)
    assert p.events == ()
    assert "0 commands" in p.table()


@pytest.mark.checks_data
def test_the_end_of_the_block_waits_for_the_commands():
    s = acc.Stream()
    x = l0rt.empty(64 * MIB, stream=s)
    with profiler.profile() as p:
        x.fill(1, stream=s)
    assert s.query()
    assert len(commands(p)) == 1
    assert commands(p)[0].end_ns <= p.end_ns


@pytest.mark.checks_data
def test_streams_of_copy_engines_and_adopted_streams():
    x, copies = l0rt.empty(64 * KIB), acc.stream_pool.copy_stream()
    mine = loops.open_list(devices._context_of[0], devices._devices[0])
    adopted = acc.Stream.from_handle(mine.handle, owner=mine)
    with profiler.profile() as p:
        x.fill(1, stream=copies)
        x.fill(2, stream=adopted)
        x.copy_from(np.zeros(64 * KIB, np.uint8), stream=copies)
    found = by_stream(p)
    assert [record.kind for record in found[0, copies.stream_id]] == ["fill", "copy"]
    assert [record.kind for record in found[0, adopted.stream_id]] == ["fill"]


class Program:
    """Random work on some streams: what was given to which, and what must have ended before what begins."""

    def __init__(self, seed, module):
        self.random = random.Random(seed)
        self.streams = [acc.Stream(priority=-i % 2) for i in range(3)] + [acc.stream_pool.copy_stream()]
        self.copies = self.streams[-1]
        self.memory = {s: l0rt.empty(256 * KIB, stream=s) for s in self.streams}
        self.axpy = module["axpy"]
        self.given = {s: [] for s in self.streams}  # (kind, size): no size twice
        self.after = []  # (stream, how many it had) -> (stream, its next)
        self.size = 4096

    def step(self):
        s = self.random.choice(self.streams)
        what = self.random.choice(("fill", "copy", "kernel", "order", "record"))
        self.size += 4
        x = self.memory[s]
        if what == "fill":
            x[: self.size].fill(self.size & 255, stream=s)
        elif what == "copy":
            x[: self.size].copy_from(x[self.size : 2 * self.size], stream=s)
        elif what == "kernel" and s is not self.copies:
            self.axpy.launch(x[: self.size], x[: self.size], 0.0, groups=self.size // 4, group_size=1, stream=s)
        else:
            self.order(s, what)
            return
        self.given[s].append((what, self.size))

    def order(self, s, what):
        other = self.random.choice([t for t in self.streams if t is not s])
        if what == "record":
            event = l0rt.Event(enable_timing=self.random.random() < 0.3)
            event.record(other)
            s.wait_event(event)
        else:
            s.wait_stream(other)
        self.after.append((other, len(self.given[other]), s, len(self.given[s])))


def size_of(record):
    return 4 * record.groups[0] if record.kind == "kernel" else record.nbytes


@pytest.mark.checks_data
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_on_many_streams(module, seed):
    program = Program(seed, module)
    with profiler.profile() as p:
        for _ in range(120):
            program.step()
    acc.synchronize()
    found = by_stream(p)
    assert set(found) <= {(0, s.stream_id) for s in program.streams}
    work = {s: [r for r in found.get((0, s.stream_id), []) if r.kind != "wait"] for s in program.streams}
    for s, given in program.given.items():
        assert [(record.kind, size_of(record)) for record in work[s]] == given
        everything = found.get((0, s.stream_id), [])
        for one, two in zip(everything, everything[1:], strict=False):
            assert one.begin_ns <= one.end_ns <= two.begin_ns
        assert sum(record.duration_ns for record in everything) <= p.end_ns - p.begin_ns
    ordered = 0
    for other, before, s, at in program.after:
        if before and at < len(work[s]):
            assert work[other][before - 1].end_ns <= work[s][at].begin_ns
            ordered += 1
    assert ordered


@pytest.mark.checks_data
def test_threads_are_told_apart(hasty):
    streams, go = [acc.Stream() for _ in range(4)], threading.Barrier(4)
    native = {}

    def work(s):
        native[s] = threading.get_native_id()
        x = l0rt.empty(64 * KIB, stream=s)
        go.wait()
        for _ in range(50):
            with profiler.range("step"):
                x.fill(1, stream=s)

    with profiler.profile() as p:
        threads = [threading.Thread(target=work, args=(s,), name=f"worker {s.stream_id}") for s in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = by_stream(p)
    for s in streams:
        assert len(found[0, s.stream_id]) == 50
        assert {record.thread for record in found[0, s.stream_id]} == {native[s]}
        assert sum(r.kind == "range" and r.thread == native[s] for r in p.events) == 50


@pytest.mark.checks_data
def test_a_profile_that_ends_while_other_threads_append_has_whole_records(hasty):
    streams, stop = [acc.Stream() for _ in range(2)], threading.Event()

    def work(s):
        x = l0rt.empty(KIB, stream=s)
        while not stop.is_set():
            for _ in range(20):
                x.fill(1, stream=s)
            s.synchronize()

    threads = [threading.Thread(target=work, args=(s,)) for s in streams]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with profiler.profile(max_records=500) as p:
                until = time.monotonic() + 60
                while time.monotonic() < until and timeline.counted() < 40:
                    pass
            assert p.unfinished == 0
            assert all(record.begin_ns <= record.end_ns for record in p.events)
            assert 40 <= len(p.events) <= 500
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.checks_data
def test_a_maximum_bounds_the_records_and_the_rest_is_counted():
    x = l0rt.empty(KIB)
    with profiler.profile(max_records=10) as p:
        for _ in range(25):
            x.fill(0)
            profiler.mark("again")
    assert len(commands(p)) == 10
    assert sum(record.kind == "mark" for record in p.events) == 10
    assert p.dropped == 30
    assert "30 more came after max_records" in p.table()


@pytest.mark.checks_data
def test_a_kernel_has_its_name_also_when_its_module_is_gone():
    made = l0rt.Module(KERNELS)
    x = l0rt.empty(4 * KIB).fill(0)
    with profiler.profile() as p:
        made["axpy"].launch(x, x, 1.0, groups=1024, group_size=1)
        acc.synchronize()
        made.close()
        del made
        gc.collect()
        l0rt.Module(KERNELS).close()  # destroys what was left of others
    assert [record.name for record in commands(p, "kernel")] == ["axpy"]


# The block.


@pytest.mark.checks_data
def test_a_profile_that_is_dropped_ends_with_a_warning_and_the_next_one_records():
    profile = profiler.profile()
    profile.start()
    l0rt.empty(64).fill(1)
    acc.synchronize()
    with pytest.warns(ResourceWarning, match="dropped while it recorded"):
        del profile
    with profiler.profile() as p:
        l0rt.empty(64).fill(2)
        profiler.mark("here")
    assert sorted(record.kind for record in p.events) == ["fill", "mark"]


@pytest.mark.checks_data
def test_one_profile_at_a_time():
    """Data is checked: a profile reads the clock of the device."""
    with profiler.profile():
        with pytest.raises(RuntimeError, match="one runs at a time"), profiler.profile():
            pass
        failed = []

        def other():
            try:
                profiler.profile().start()
            except RuntimeError as error:
                failed.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert failed
    with profiler.profile():
        pass


@pytest.mark.checks_data
def test_an_exception_inside_passes_and_the_records_are_there():
    p = profiler.profile()

    def fails():
        with p:
            l0rt.empty(KIB).fill(0)
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        fails()
    assert len(commands(p)) == 1


@pytest.mark.checks_data
def test_what_is_asked_too_early_or_twice():
    p = profiler.profile()
    for ask in (lambda: p.events, p.table, lambda: p.dropped, lambda: p.unfinished, p.stop):
        with pytest.raises(RuntimeError, match="when its block has ended|was not started"):
            ask()
    with p, pytest.raises(RuntimeError, match="when its block has ended"):
        p.table()
    with pytest.raises(RuntimeError, match="make another one"), p:
        pass
    p.stop()  # again is harmless


@pytest.mark.checks_data
def test_a_blank_profile_is_one_that_was_not_started_and_none_begins_anew():
    blank = profiler.profile.__new__(profiler.profile)
    with pytest.raises(RuntimeError, match="when its block has ended"):
        blank.table()
    with blank, pytest.raises(RuntimeError, match="make another one"):
        blank.__init__()
    assert blank.events == ()
    with profiler.range.__new__(profiler.range):
        pass


@pytest.mark.checks_data
def test_threads_may_end_and_read_a_profile_at_once(hasty):
    x, go, seen = l0rt.empty(KIB), threading.Barrier(4), []
    p = profiler.profile()
    p.start()
    for _ in range(200):
        x.fill(0)

    def read():
        go.wait()
        p.stop()
        seen.append(len(p.events))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [200] * 4


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(0, ValueError), (-1, ValueError), (1 << 40, ValueError), (1.5, TypeError), ("x", TypeError), (True, TypeError)],
)
def test_a_wrong_maximum(wrong, error):
    with pytest.raises(error, match="max_records"):
        profiler.profile(max_records=wrong)


@pytest.mark.checks_data
def test_start_and_stop_do_what_the_block_does():
    x, p = l0rt.empty(KIB), profiler.profile()
    p.start()
    x.fill(0)
    p.stop()
    x.fill(0)
    assert len(commands(p)) == 1


@pytest.mark.checks_data
def test_a_refused_command_is_not_recorded(module):
    x = l0rt.empty(KIB)
    with profiler.profile() as p:
        with pytest.raises(ValueError, match="groups"):
            module["axpy"].launch(x, x, 1.0, groups=0, group_size=1)
        x.fill(0)
    assert [record.kind for record in commands(p)] == ["fill"]


# Ranges.


@pytest.mark.checks_data
def test_ranges_nest_and_return_their_depth():
    with profiler.profile() as p:
        assert profiler.range_push("a") == 0
        assert profiler.range_push("b") == 1
        profiler.mark("m")
        assert profiler.range_pop() == 1
        assert profiler.range_pop() == 0
    a, b, m = p.events
    assert [(r.kind, r.name) for r in (a, b, m)] == [("range", "a"), ("range", "b"), ("mark", "m")]
    assert p.begin_ns <= a.begin_ns <= b.begin_ns <= m.begin_ns == m.end_ns <= b.end_ns <= a.end_ns <= p.end_ns
    assert a.device is a.stream is a.call_ns is a.nbytes is None


@pytest.mark.checks_data
def test_a_range_is_a_block_and_a_decorator():
    @profiler.range("called")
    def function(x, *, y):
        """Add."""
        return x + y

    with profiler.profile() as p:
        with profiler.range("block"):
            assert function(1, y=2) == 3
        with pytest.raises(ZeroDivisionError), profiler.range("fails"):
            1 / 0  # noqa: B018
    assert [record.name for record in p.events] == ["block", "called", "fails"]
    assert (function.__name__, function.__doc__) == ("function", "Add.")


@pytest.mark.checks_data
def test_ranges_across_the_ends_of_a_profile_are_cut():
    profiler.range_push("before")
    with profiler.profile() as p:
        profiler.range_pop()
        profiler.range_push("after")
    profiler.range_pop()
    assert [(r.name, r.begin_ns >= p.begin_ns, r.end_ns <= p.end_ns) for r in p.events] == [
        ("before", True, True), ("after", True, True)
    ]  # fmt: skip


@pytest.mark.checks_data
def test_ranges_without_a_profile_leave_nothing():
    with profiler.range("nobody looks"):
        profiler.mark("at this")
    with profiler.profile() as p:
        pass
    assert p.events == ()


def test_a_pop_too_many_and_names_that_are_none():
    with pytest.raises(RuntimeError, match=r"without a range_push\(\)"):
        profiler.range_pop()
    for call in (profiler.range_push, profiler.mark, profiler.range):
        with pytest.raises(TypeError, match="a name must be a str, got int"):
            call(3)
    with pytest.raises(TypeError, match="decorates a function"):
        profiler.range("x")(3)
    with pytest.raises(RuntimeError, match=r"without a range_push\(\)"):
        profiler.range_pop()  # nothing was begun


# The texts.


@pytest.mark.checks_data
def test_the_table_adds_up_and_is_sorted(module):
    x = l0rt.empty(MIB).fill(0)
    with profiler.profile() as p:
        for _ in range(5):
            x.fill(1)
        module["axpy"].launch(x, x, 1.0, groups=4096, group_size=64)
        with profiler.range("tail"):
            pass
    lines = p.table().splitlines()
    assert lines[0].split() == ["device", "time", "count", "total", "mean", "min", "max", "share"]
    rows = {line.split()[0]: line for line in lines[1:3]}
    assert rows.keys() == {"fill", "axpy"}
    assert rows["fill"].split()[1] == "5"
    assert abs(sum(float(line.split()[-2]) for line in rows.values()) - 100) < 0.2
    totals = {name: sum(r.duration_ns for r in commands(p) if r.name == name) for name in rows}
    assert list(rows) == sorted(totals, key=totals.get, reverse=True)
    assert any(line.startswith("tail") for line in lines)
    assert "6 commands on 1 streams" in lines[-1] or "6 commands on 1 stream;" in lines[-1]
    assert p.table(1).splitlines()[2] == "and 1 more"
    for wrong, error in ((0, ValueError), ("x", TypeError)):
        with pytest.raises(error, match="limit"):
            p.table(wrong)


@pytest.mark.checks_data
def test_the_trace_is_json_with_a_track_for_each_stream_and_thread(tmp_path, module):
    s, t = acc.Stream(), acc.Stream()
    x = l0rt.empty(64 * KIB, stream=s)
    with profiler.profile() as p, profiler.range("all"):
        x.fill(1, stream=s)
        t.wait_stream(s)
        module["axpy"].launch(x, x, 1.0, groups=16, group_size=64, stream=t)
        profiler.mark('a "quoted" name')
    path = tmp_path / "trace.json"
    p.export_chrome_trace(path)
    trace = json.loads(path.read_text())
    assert trace["otherData"]["begin_ns"] == p.begin_ns
    events = trace["traceEvents"]
    for event in events:
        assert {"name", "ph", "pid", "tid"} <= event.keys()
        assert event["ph"] in "XMisf"
        assert event["ph"] == "M" or event["ts"] >= -1000
        assert event["ph"] != "X" or event["dur"] >= 0
    tracks = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {f"stream {s.stream_id}", f"stream {t.stream_id}", "MainThread"} == set(tracks.values())
    assert {e["args"]["name"] for e in events if e["name"] == "process_name"} == {"host", "device 0"}
    slices = [e for e in events if e["ph"] == "X"]
    assert all((e["pid"], e["tid"]) in tracks for e in slices)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert starts.keys() == ends.keys()
    assert len(starts) == len(commands(p))
    for number, start in starts.items():
        assert tracks[start["pid"], start["tid"]] == "MainThread"
        assert tracks[ends[number]["pid"], ends[number]["tid"]].startswith("stream")
        for arrow in (start, ends[number]):  # Perfetto draws an arrow between slices
            assert any(
                e["pid"] == arrow["pid"] and e["tid"] == arrow["tid"] and e["ts"] <= arrow["ts"] <= e["ts"] + e["dur"]
                for e in slices
            )
    assert "launch axpy" in {e["name"] for e in slices}
    with pytest.raises(FileNotFoundError):
        p.export_chrome_trace(tmp_path / "missing" / "trace.json")


# The clocks.


@pytest.mark.parametrize(("bits", "hz"), [(32, 19_200_000), (36, 12_500_000), (64, 1_000_000_000)])
def test_times_survive_a_counter_that_wraps_around(bits, hz):
    period, start = 1 << bits, (1 << bits) - hz // 10  # it wraps a tenth of a second after the beginning
    clock = profiler.Clock(bits, hz, (10**12, start))

    def ticks(ns):
        return (start + ns * hz // 10**9) % period

    told, calls = [], [0, 50_000_000, 99_000_000, 101_000_000, 10**11, 3 * 10**11]
    for call in calls:
        begin, end = ticks(call + 1_000_000), ticks(call + 2_000_000)
        called = 10**12 + call
        told.append(("fill", None, 0, 7, 1, begin, end, called, called, 5, 8, None, 0, None, 0, None, None))
    found = profiler.records(told, {0: clock})
    for call, record in zip(calls, found, strict=True):
        assert abs(record.begin_ns - (10**12 + call + 1_000_000)) < 1000
        assert abs(record.duration_ns - 1_000_000) < 1000


def test_a_second_reading_corrects_the_speed_of_a_clock():
    clock = profiler.Clock(32, 10_000_000, (0, 100))
    clock.finish((10**12, (100 + 10_000_100 * 1000) % (1 << 32)))  # 10 ppm fast, after two wraps
    assert clock.host_ns(clock.ticks_at(5 * 10**11)) == pytest.approx(5 * 10**11, abs=200)
    assert clock.host_ns(100 + 10_000_100 * 1000) == pytest.approx(10**12, abs=2)
    steady = profiler.Clock(32, 10_000_000, (0, 100))
    steady.finish((10**12, 100 + 5))  # nonsense: a clock is not wrong by so much
    assert steady.host_ns(100 + 10_000_000) == 10**9


@pytest.mark.checks_data
def test_what_a_profile_holds_is_let_go():
    before = timeline.kept()
    with profiler.profile():
        assert timeline.kept() == before + 1
    assert timeline.kept() == before
