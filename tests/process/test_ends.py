# SPDX-License-Identifier: Apache-2.0
"""Programs that end in the midst of everything, in any order, under a timer's signals: silently, and in time."""

import random

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
SETTINGS = [{}, {"L0RT_CPU_CHAOS": "7"}, {"L0RT_DISABLE": "inorder,list_sync"}, {"L0RT_DISABLE": "vmm"}]

HEAD = """
import atexit, builtins, gc, random, signal, threading, time, weakref
atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)    # last of all: Python gives the signal back at its end
import l0rt, l0rt.accelerator as acc
kept, inside = [], []

def tolerated(error):
    "What a handler or finalizer may be told that comes at a moment when there is no device yet, or no more."
    return any(words in str(error) for words in ("shut down", "being initialised now", "start new thread"))

class Late:
    def __init__(self, *what):
        self.what = what

    def __del__(self):
        try:
            self.what[1].add_callback(kept.append, 1)
            self.what[0].fill(1)
            self.what[0].free()
        except RuntimeError as error:
            assert tolerated(error), error

def late():
    try:
        l0rt.empty(4096).fill(1)
        acc.synchronize()
        e = l0rt.Event(enable_timing=True)
        e.record()
        e.synchronize()
        e.host_time()
    except RuntimeError as error:
        assert tolerated(error), error

def guarded():
    with acc.device_index(1), acc.Stream(), acc.StreamGuard(acc.Stream()):
        l0rt.empty(64).fill(2)
        acc.synchronize()
        time.sleep(random.random() / 20)

def dies():
    with acc.stream_pool.lease() as s, s, acc.DeviceGuard(1):
        l0rt.empty(64).fill(2)
        raise SystemExit

def work():
    "A daemon thread may run for a moment after l0rt has ended, and is told so."
    try:
        while True:
            x, e = l0rt.empty(4096).fill(3), l0rt.Event()
            e.record()
            e.synchronize(timeout=1)
    except RuntimeError as error:
        assert tolerated(error), error

count = 0
def handler(*_):
    global count
    count += 1
    if inside or count > 300:
        return
    inside.append(1)
    try:
        s = acc.Stream()
        if len(kept) < 200:
            s.add_callback(kept.append, 0)
        s.record_event().query()
        l0rt.empty(1 << count % 20).fill(1)
        l0rt.Event(interprocess=True).record()
        if count % 7 == 0:
            acc.empty_cache()
    except RuntimeError as error:
        assert tolerated(error), error
    finally:
        inside.pop()
signal.signal(signal.SIGALRM, handler)
"""
PIECES = [
    "kept.append(l0rt.empty(1 << 16))",
    "kept.append(acc.Stream())",
    "e = l0rt.Event(); e.record(); kept.append(e)",
    "e = l0rt.Event(enable_timing=True); e.record(acc.Stream()); kept.append(e)",
    "e = l0rt.Event(interprocess=True); e.record(); kept.append(e)",
    "s = acc.Stream(); l0rt.empty(1 << 20).fill(1, stream=s); s.add_callback(kept.append, s)",
    "s = acc.Stream(); s.add_callback(lambda s=s: s.add_callback(kept.append, 1))",
    "s = acc.Stream(); s.add_callback(lambda s=s: (s.synchronize(), acc.synchronize()))",
    "s = acc.Stream(); s.add_callback(lambda: time.sleep(0.2))",
    "threading.Thread(target=guarded, daemon=True).start()",
    "threading.Thread(target=guarded).start()",
    "t = threading.Thread(target=dies); t.start(); t.join()",
    "threading.Thread(target=work, daemon=True).start()",
    "guard = acc.StreamGuard(acc.Stream()); guard.__enter__(); kept.append(guard)",
    "acc.device_index(1).__enter__()",
    "acc.Stream().__enter__()",
    "kept.append(acc.stream_pool.lease()); kept[-1].__enter__()",
    "pool = l0rt.memory.MemPool(); kept.append((pool, l0rt.memory.use_mem_pool(pool))); kept[-1][1].__enter__()",
    "kept.append(Late(l0rt.empty(4096), acc.Stream()))",
    "atexit.register(late)",
    "builtins.kept = kept",
    "kept.append(l0rt.empty(4096, kind='host'))",
    "kept.append(l0rt.empty(4096, kind='shared'))",
    "kept.append(l0rt.Generator())",
    "c = Late(l0rt.empty(64), acc.Stream()); c.c = c; del c",
    "acc.synchronize()",
    "gc.collect()",
    "weakref.finalize(Late, late)",
    "signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)",
    "signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0003)",
]


def program(seed):
    chance = random.Random(seed)
    return HEAD + "\n".join(chance.choices(PIECES, k=chance.randint(2, 14))), chance.choice(SETTINGS)


@pytest.mark.parametrize("part", range(8))
def test_programs_end_silently(part, extent):
    for seed in range(part, extent(8, 24, 1000), 8):
        code, settings = program(seed)
        result = run_python(code, {**CPU, **settings}, timeout=120, fresh=True)
        assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), code


def test_a_signal_handler_that_comes_into_the_initialisation_is_told():
    """And the first use that it interrupted goes on."""
    code = """
import sys
import l0rt, l0rt.accelerator as acc
from l0rt import config
told = []
def trace(frame, event, argument):      # a handler would come here, between two byte codes
    if frame.f_code.co_filename == config.__file__ and not told:
        try:
            acc.Stream()
            told.append("worked")
        except RuntimeError as error:
            told.append(str(error))
acc.device_count()
sys.settrace(trace)
acc.current_stream()
sys.settrace(None)
print(told[0])
l0rt.empty(64).fill(1)
acc.synchronize()
"""
    result = run_python(code, CPU)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("XPU is being initialised now: a signal handler"), result
