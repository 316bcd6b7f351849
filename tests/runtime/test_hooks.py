# SPDX-License-Identifier: Apache-2.0
"""Trace callbacks, the mode for implicit synchronisation, and logs."""

import signal
from collections import deque
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.runtime.streams import hooks
from l0rt.xpu import gpu_trace

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}


TORCHS = {
    "event_creation": 1, "event_deletion": 1, "event_record": 2, "event_wait": 2, "memory_allocation": 1,
    "memory_deallocation": 1, "stream_creation": 1, "device_synchronization": 0, "stream_synchronization": 1,
    "event_synchronization": 1,
}  # fmt: skip


def test_callbacks_see_what_happens_and_go():
    seen = []
    callbacks = {name: lambda *values, name=name: seen.append((name, len(values))) for name in hooks.NAMES}
    for name, callback in callbacks.items():
        getattr(gpu_trace, f"register_callback_for_{name}")(callback)
    s, t, e = acc.Stream(), acc.Stream(), l0rt.Event()
    x, h = l0rt.empty(64, stream=s), l0rt.empty(64, kind="host")
    x.fill(1, stream=s)
    e.record(s)
    e.wait(t)
    t.wait_stream(s)
    x.record_stream(t)
    h.copy_from(x, stream=s)
    bytes(memoryview(h))
    e.synchronize()
    s.synchronize()
    with acc.stream_pool.lease() as leased:
        leased.synchronize()
    with l0rt.Module(Path(__file__).parents[1] / "kernels/basic.spv") as module:
        module["store"][1, 16](x, 1)
        acc.synchronize()
    with acc.Graph() as graph:
        pass
    graph.replay()
    acc.synchronize()
    del e, x, h
    for name, callback in callbacks.items():
        hooks.remove(name, callback)
    numbers = dict(seen)
    assert set(numbers) >= set(hooks.NAMES) - {"stream_creation"}
    assert numbers["copy"] == 4
    assert numbers["event_record"] == 2
    # as many as torch hands over
    assert {**TORCHS, **numbers} == {**numbers, **TORCHS}
    before = len(seen)
    acc.Stream().record_event().synchronize()
    l0rt.empty(64).fill(1)
    assert len(seen) == before


def test_a_failing_callback_disturbs_nobody(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)

    def fail(*values):
        raise KeyError(values)

    hooks.add("event_record", fail)
    try:
        e = acc.Stream().record_event()
    finally:
        hooks.remove("event_record", fail)
    assert e.synchronize(timeout=60)
    assert [t.exc_type for t in told] == [KeyError]
    del told[:]
    with pytest.raises(TypeError, match="a callback must be callable"):
        hooks.add("copy", 3)
    with pytest.raises(ValueError, match="not in tuple"):
        hooks.add("nonsense", print)
    with pytest.raises(ValueError, match="not in list"):
        hooks.remove("copy", print)


class Stop(BaseException):
    """What a signal handler raises."""


@pytest.mark.parametrize("nth", range(10))
def test_an_interrupt_that_comes_in_a_callback_arrives_after_it(nth):
    def stop(number, frame):
        raise Stop(nth)

    def callback(*values):
        signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, stop)
    hooks.add("event_record", callback)
    s, e = acc.Stream(), l0rt.Event()
    try:
        with pytest.raises(Stop, match=str(nth)):
            deque((e.record(s) for _ in range(1000)), maxlen=0)
    finally:
        hooks.remove("event_record", callback)
        signal.signal(signal.SIGUSR1, before)
    assert e.synchronize(timeout=60)


@pytest.fixture
def mode():
    yield acc.set_sync_debug_mode
    acc.set_sync_debug_mode("default")


def test_implicit_synchronisation_warns_or_raises(mode):
    s = acc.Stream()
    x, h = l0rt.empty(64, stream=s), l0rt.empty(64, kind="host")
    implicit = [
        lambda: x.copy_to(bytearray(64), stream=s),
        lambda: x.copy_from(bytes(64), stream=s),
        lambda: h.copy_from(x, stream=s),
        lambda: x.copy_from(h, stream=s),
        lambda: x.copy_from(memoryview(h), stream=s),
    ]
    for level, word in enumerate(("default", "warn", "error")):
        for name in (level, word):
            mode(name)
            assert acc.get_sync_debug_mode() == level
    for use in implicit:
        with pytest.raises(RuntimeError, match="synchronizes implicitly"):
            use()
    x.fill(1, stream=s).copy_from(h, non_blocking=True, stream=s)
    s.record_event().synchronize()  # asked for by name
    s.synchronize()
    acc.synchronize()
    mode("warn")
    for use in implicit:
        with pytest.warns(UserWarning, match="synchronizes implicitly"):
            use()
    mode("default")
    for use in implicit:
        use()
    for wrong in ("loud", 3, -1, None, True):
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            mode(wrong)


@pytest.mark.parametrize(
    "topics", ["alloc", "stream", "event", "init", "init,alloc, event,stream", "+alloc, +stream,event"]
)
def test_logs_are_told_what_was_asked_for(topics):
    code = """
import l0rt, l0rt.accelerator as acc
s = acc.Stream()
x = l0rt.empty(64, stream=s).fill(1, stream=s)
e = s.record_event()
e.synchronize()
acc.synchronize()
x.free()
"""
    result = run_python(code, {**CPU, "L0RT_LOGS": topics})
    assert (result.returncode, result.stdout) == (0, ""), result
    told = {line.split(":")[0] for line in result.stderr.splitlines()}
    assert told == {f"l0rt.{topic.strip(' +')}" for topic in topics.split(",")}


def test_a_wrong_topic_is_named():
    for variable, right in (("L0RT_LOGS", "alloc, event, init, kernel, stream"), ("L0RT_SANITIZE", "stream")):
        result = run_python("import l0rt", {**CPU, variable: "nonsense"})
        assert f"ValueError: {variable}='nonsense' is not valid: expected a comma-separated list of {right}" in (
            result.stderr
        )
        assert run_python("import l0rt", {**CPU, variable: ""}).stderr == ""


def test_pythons_own_hook_tells_what_a_callback_raised():
    result = run_python("""
import l0rt.accelerator as acc
from l0rt.runtime.streams import hooks
def fail(*values):
    raise KeyError("told")
hooks.add("event_record", fail)
acc.Stream().record_event().synchronize()
""")
    assert result.returncode == 0, result
    assert "KeyError: 'told'" in result.stderr
    assert "TypeError" not in result.stderr


ALLOCATES = """
import faulthandler, gc, random
faulthandler.dump_traceback_later(60, exit=True)
import l0rt, l0rt.accelerator as acc
from l0rt.runtime.streams import hooks
from l0rt.xpu import gpu_trace
MIB, chance = 1 << 20, random.Random({seed})
held, depth = [], [0]
def callback(*values):
    "What a hook, and a finalizer inside it, may do: allocate and free, of every kind and on every stream."
    if depth[0] > 1 or chance.random() < 0.7:
        return
    depth[0] += 1
    try:
        held.append(l0rt.empty(chance.choice((512, MIB, 5 * MIB)), kind=chance.choice(("device", "device", "host"))))
        if len(held) > 4:
            held.pop(0).free()
    except l0rt.OutOfMemoryError:
        held.clear()
    finally:
        depth[0] -= 1
for name in hooks.NAMES:
    getattr(gpu_trace, "register_callback_for_" + name)(callback)
gc.callbacks.append(callback)
gc.set_threshold(50)
pool = l0rt.memory.MemPool(use_on_oom=True)
streams, live = [], []
for step in range(300):
    if len(streams) < 12 and chance.random() < 0.1:
        streams.append(acc.Stream(chance.randrange(2)))
    stream = chance.choice(streams or [acc.current_stream()])
    try:
        if chance.random() < 0.6:
            x = l0rt.empty(chance.choice((600, MIB, 9 * MIB, 20 * MIB)), stream=stream)
            if chance.random() < 0.6:
                x.fill(1, stream=stream)
            live.append(x)
        elif live:
            x = live.pop(chance.randrange(len(live)))
            if chance.random() < 0.3:
                x.record_stream(stream if stream.device == x.device else acc.current_stream(x.device))
            x.free()
        if chance.random() < 0.05:
            acc.empty_cache()
    except l0rt.OutOfMemoryError:
        live.clear()
print("done")
"""


SEGMENTS = "expandable_segments:False"


@pytest.mark.parametrize("conf", ["", "backend:async", SEGMENTS, f"backend:async,{SEGMENTS}"])
def test_callbacks_may_allocate_wherever_they_are_called(conf, extent):
    """No callback is called, and no object of Python is made, under a lock of the allocator's."""
    for seed in range(extent(2, 5, 40)):
        result = run_python(ALLOCATES.format(seed=seed), {**CPU, "L0RT_CPU_MEMORY": "64MiB", "L0RT_ALLOC_CONF": conf})
        assert (result.returncode, result.stdout) == (0, "done\n"), (conf, seed, result)
