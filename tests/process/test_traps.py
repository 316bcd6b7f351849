# SPDX-License-Identifier: Apache-2.0
"""Traps of Level Zero's drivers that a test on the interface does not show: see tests/layout/test_traps.py."""

import pytest
from l0rt.ze import table

from helpers.fallbacks import USES
from helpers.process import run_python
from helpers.rings import TESTS

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")


def outcome(code, env=CPU):
    result = run_python(code, env, timeout=300)
    return result.returncode, result.stdout, result.stderr


# Who can map memory can unmap it, and the last one is the loader's: no driver answers for it.
NEVER_REFUSED = {"zeVirtualMemFree", "zeVirtualMemUnmap", "zePhysicalMemDestroy", "zelLoaderTranslateHandle"}
OPTIONAL = [name for name, _, required in table.entry_points() if not required and name not in NEVER_REFUSED]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_function_that_is_there_and_refuses_has_a_fallback(name):
    """Trap 4: the pointer is not NULL, the answer is UNSUPPORTED_FEATURE; an error where just that was asked for."""
    code = f"""
{USES}
try:
    e.host_time()
except NotImplementedError as error:
    assert "UNSUPPORTED_FEATURE" in str(error)
"""
    assert outcome(code, {**CPU, "L0RT_CPU_FAIL": f"{name}:1:ERROR_UNSUPPORTED_FEATURE"}) == QUIET


@pytest.mark.parametrize(
    ("function", "append"),
    [
        ("zeCommandListAppendMemoryFill", "x.fill(1, stream=s)"),
        ("zeCommandListAppendMemoryCopy", "x.copy_from(y, stream=s)"),
        ("zeCommandListAppendMemoryCopyRegion", "l0rt.memcpy2d(x, 8, y, 8, 4, 8, s)"),
        ("zeCommandListAppendSignalEvent", "s.record_event()"),
        ("zeCommandListAppendWaitOnEvents", "s.wait_event(e)"),
    ],
)
def test_an_append_that_blocks_lets_other_threads_run(function, append):
    """Trap 25. No thread is made to give the GIL up: that another runs means that the call was made without it."""
    code = f"""
import sys, threading, time
import l0rt, l0rt.accelerator as acc
s, t, x, y = acc.Stream(), acc.Stream(), l0rt.empty(64), l0rt.empty(64)
s.native_handle
e, begun, over = l0rt.Event(), threading.Event(), []
SLOW
def work():
    begun.set()
    {append}
    over.append(1)
sys.setswitchinterval(1000)
thread = threading.Thread(target=work)
thread.start()
begun.wait()
time.sleep(0.5)     # whatever else gave the GIL up has been done by then: now it is the append that has it, or not
assert not over
thread.join()
assert over
"""
    # To wait for something, something must have been recorded: then the wait's first call is the slow one all the same.
    prepare = "e.record(t)" if "Wait" in function else ""
    fail = {"L0RT_CPU_FAIL": f"{function}:1:slow=3000"}
    assert outcome(code.replace("SLOW", prepare), {**CPU, **fail}) == QUIET


SHORT_PATTERNS = """
import ctypes
from helpers import wrapped
COPY, INVALID_SIZE = 2, 0x78000008
copying, patterns, ordinals = set(), [], set()
def groups(device, count, properties, *rest):
    result = original["zeDeviceGetCommandQueueGroupProperties"](device, count, properties, *rest)
    for i in range(ctypes.c_uint32.from_address(count).value if properties else 0):
        group = properties + 40 * i             # flags at 16, maxMemoryFillPatternSize at 24
        if ctypes.c_uint32.from_address(group + 16).value == COPY:
            ctypes.c_size_t.from_address(group + 24).value = 1
            ordinals.add(i)
    return result
def create(context, device, desc, made, *rest):
    result = original["zeCommandListCreateImmediate"](context, device, desc, made, *rest)
    if ctypes.c_uint32.from_address(desc + 16).value in ordinals:
        copying.add(ctypes.c_size_t.from_address(made).value)
    return result
def fill(*args):
    if args[0] in copying:
        patterns.append(args[3])
        if args[3] > 1:
            return INVALID_SIZE
    return original["zeCommandListAppendMemoryFill"](*args)
original = wrapped.replace({
    "zeDeviceGetCommandQueueGroupProperties": groups, "zeCommandListCreateImmediate": create,
    "zeCommandListAppendMemoryFill": fill})

import l0rt, l0rt.accelerator as acc
with acc.stream_pool.lease(engine="copy") as s:
    for size in (1, 2, 4, 8, 16):
        for repeats in (1, 3, 1000):
            pattern, x = bytes(range(1, size + 1)), l0rt.empty(size * repeats, stream=s)
            x.fill(pattern=pattern, stream=s)
            assert bytes(x.copy_to(bytearray(size * repeats), stream=s)) == pattern * repeats, (size, repeats)
assert patterns and set(patterns) == {1}, patterns
"""


def test_an_engine_that_fills_with_short_patterns_only_fills_with_any():
    """Trap 27: Intel's copy engines take patterns of one byte, some of them."""
    assert outcome(SHORT_PATTERNS, {**CPU, "PYTHONPATH": TESTS}) == QUIET


def test_a_pool_of_no_events_is_never_asked_for():
    """Trap 26: some drivers abort on it. The CPU driver refuses it, and every way to an event goes well on it."""
    code = """
import ctypes
import l0rt, l0rt.accelerator as acc
from l0rt.runtime.streams import devices
s = acc.Stream()
s.synchronize()
class Desc(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p if name == "pNext" else ctypes.c_uint32)
                for name in ("stype", "pNext", "flags", "count")]
ze, pool, none = ctypes.CDLL(l0rt.cpu_driver_path()), ctypes.c_void_p(), Desc(0x10, None, 1, 0)
context = ctypes.c_void_p(devices._context_of[0].handle)
assert ze.zeEventPoolCreate(context, ctypes.byref(none), 0, None, ctypes.byref(pool)) != 0
for options in ({}, {"enable_timing": True}, {"interprocess": True}, {"blocking": True}):
    l0rt.Event(**options)                       # dropped without a record
    event = l0rt.Event(**options)
    event.record(s)
    s.wait_event(event)
acc.wait_all(stream=s)
s.wait_stream(acc.Stream())
s.synchronize()
"""
    for events in ("pool", "cb"):
        assert outcome(code, {**CPU, "L0RT_EVENTS": events}) == QUIET


def test_ten_thousand_streams_and_events_do_not_exhaust_the_process():
    """Trap 36: a list or a pool for each would use up the system's mappings."""
    code = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
import l0rt, l0rt.accelerator as acc
from helpers.ledger import live
def mappings():
    return sum(1 for _ in open("/proc/self/maps"))
l0rt.Event().record()
acc.synchronize()
before = mappings()
streams = [acc.Stream(priority=i % 3 - 1) for i in range(10_000)]
events = [s.record_event() for s in streams]
for s, e in zip(streams, reversed(events)):
    s.wait_event(e)
for i in range(10_000):
    with acc.stream_pool.lease() as s:
        s.record_event()
        if i % 100 == 0:        # what is in flight needs its event
            s.synchronize()
objects = live()
assert objects["list"] <= 98, objects           # 3 x 32, the default stream's, a leased one's
assert objects["event_pool"] <= 44, objects     # 256 events each
grown = mappings() - before
assert grown < 1000, grown                      # the system allows 65,530
for e in events: e.synchronize()
"""
    assert outcome(code) == QUIET


def test_a_second_interpreter_is_refused():
    """Trap 22, one of its ends: interpreters that know nothing of each other would share what is kept in C."""
    code = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import l0rt.accelerator as acc
acc.Stream().synchronize()
other = interpreters.create()
try:
    failed = interpreters.run_string(other, "import l0rt.accelerator") or ""
except interpreters.RunFailedError as error:
    failed = error
assert "interpreter" in str(failed), failed
interpreters.destroy(other)
acc.Stream().synchronize()
"""
    assert outcome(code) == QUIET


@pytest.mark.parametrize(("bits", "hz"), [(24, 8_000_000), (32, 1_000_000_000), (36, 19_200_000), (64, 1_000_000_000)])
def test_a_clock_that_wraps_in_the_middle_of_work(bits, hz):
    """Trap 5, with the driver's clock. The first one wraps every 2.1 seconds; half of that is what the host's clock may
    be off, by a device that comes late to the timestamp."""
    code = f"""
import time
import l0rt, l0rt.accelerator as acc
s, x, events = acc.Stream(), l0rt.empty(16 << 20), []
begun = time.monotonic()
while len(events) < 10 or time.monotonic() - begun < {2.5 if bits == 24 else 0}:
    events.append(l0rt.Event(enable_timing=True))
    events[-1].record(s)
    x.fill(1, stream=s)
    s.synchronize()
took = (time.monotonic() - begun) * 1e3
whole = events[0].elapsed_time(events[-1])
parts = [a.elapsed_time(b) for a, b in zip(events, events[1:])]
assert all(part >= 0 for part in parts), parts
assert abs(sum(parts) - whole) < 1e-3 * took, (sum(parts), whole)
assert 0 < whole <= took, (whole, took)
"""
    clock = {"L0RT_CPU_TIMESTAMP_BITS": bits, "L0RT_CPU_TIMESTAMP_HZ": hz}
    assert outcome(code, {**CPU, **clock}) == QUIET
