# SPDX-License-Identifier: Apache-2.0
"""Import, fork, spawn, exit, signals: what a process sees around its use of l0rt."""

import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.process import python_path, run, run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")


def outcome(result):
    return result.returncode, result.stdout, result.stderr


def test_import_opens_no_driver_and_reads_no_setting():
    code = """
import l0rt.accelerator, l0rt.xpu, l0rt.memory, l0rt.capi
maps = open("/proc/self/maps").read()
assert "libze_" not in maps, maps
assert not l0rt.xpu.is_initialized()
"""
    assert outcome(run_python(code, {"L0RT_DRIVER": "nonsense", "L0RT_DISABLE": "nonsense"}, fresh=True)) == QUIET


def test_import_brings_no_module_that_few_programs_need():
    code = """
import sys
import l0rt.accelerator
few = {"importlib.metadata", "json", "numpy", "subprocess", "traceback", "uuid"}
print(few & sys.modules.keys())
with l0rt.accelerator.Stream(0):
    l0rt.empty(64).fill(1)
l0rt.accelerator.synchronize()
print("numpy" in sys.modules)
l0rt.from_numpy(__import__("numpy").zeros(24, "u1")).numpy()
"""
    assert outcome(run_python(code, CPU, fresh=True)) == (0, "set()\nFalse\n", "")


def test_counting_devices_opens_no_driver_in_this_process():
    code = """
import os
import l0rt.accelerator as acc
assert acc.device_count() == 2 and acc.is_available()
assert "libze_" not in open("/proc/self/maps").read()
if os.fork() == 0:
    import l0rt
    l0rt.empty(64).fill(1)
    acc.synchronize()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    assert outcome(run_python(code, CPU)) == QUIET


def test_fork_after_use_is_told_in_the_child_and_harmless_to_the_parent():
    code = """
import os, gc
import l0rt, l0rt.accelerator as acc
x, e, s = l0rt.empty(1 << 20), l0rt.Event(enable_timing=True), acc.Stream()
x.fill(1); e.record(); y = l0rt.empty(64); shared = l0rt.empty(64, kind="shared"); h = l0rt.empty(64, kind="host")
y.free()
pid = os.fork()
if pid == 0:
    told = 0
    for use in (lambda: l0rt.empty(64), lambda: l0rt.empty(1 << 30), lambda: x.fill(0), lambda: e.record(),
                lambda: acc.current_stream(), lambda: acc.synchronize(), lambda: acc.Stream(), lambda: s.synchronize(),
                lambda: l0rt.Event().record(s), lambda: l0rt.empty(64, kind="host"), lambda: s.native_handle,
                lambda: l0rt.empty(1000, stream=s), lambda: acc.set_device_index(1), lambda: s.wait_event(e)):
        try:
            use()
        except RuntimeError as error:
            assert str(error).startswith(
                "Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, "
                "you must use the 'spawn' start method"), error
            told += 1
    x.free()
    del e, h, shared
    gc.collect()
    os._exit(told)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 14
x.fill(2)
assert bytes(x.copy_to(bytearray(1 << 20))) == b"\\2" * (1 << 20)
"""
    assert outcome(run_python(code, CPU)) == QUIET


@pytest.mark.parametrize("call", [
    "pool.sleep()", "pool.wake()", "memory.set_alloc_conf('max_split_size_mb:64')",
    "memory.caching_allocator_enable(False)", "memory.empty_cache(pool=pool)", "memory.MemPool()", "del pool",
])
def test_no_call_about_pools_hangs_in_a_forked_child(call):
    """Every lock is held by a thread that the child does not have."""
    code = f"""
import os, threading
import l0rt
from l0rt import memory
inside, done = threading.Event(), threading.Event()
def alloc(nbytes, device, stream):
    inside.set()
    done.wait()
    return None
pool, slow = memory.MemPool(), memory.MemPool(memory.PluggableAllocator(alloc, print))
with memory.use_mem_pool(pool):
    l0rt.empty(1000).free()
def busy():
    while not done.is_set():
        with memory.use_mem_pool(pool):
            l0rt.empty(5 << 20).free()
        pool.empty_cache()
        inside.set()
thread = threading.Thread(target=busy)
thread.start()
inside.wait()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        try:
            {call}
        except RuntimeError as error:
            os._exit(0 if "forked subprocess" in str(error) else 3)
        os._exit(0 if {call!r} in ("memory.MemPool()", "del pool", "memory.empty_cache(pool=pool)") else 4)
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
done.set()
thread.join()
"""
    assert outcome(run_python(code, CPU)) == QUIET


def test_a_block_that_was_entered_before_the_fork_is_left_in_the_child_too():
    code = """
import os, threading
import l0rt
from l0rt.memory import MemPool, use_mem_pool
pool, inside, done = MemPool(), threading.Event(), threading.Event()
def beside():
    with use_mem_pool(pool):
        inside.set()
        done.wait()
thread = threading.Thread(target=beside)
thread.start()
inside.wait()
with use_mem_pool(pool):
    kept = l0rt.empty(1000)
    with use_mem_pool(MemPool()):
        pid = os.fork()
if pid == 0:
    os._exit(pool.use_count())
assert os.waitstatus_to_exitcode(os.wait()[1]) == 2     # of the thread that the child does not have
done.set()
thread.join()
assert pool.use_count() == 1
"""
    assert outcome(run_python(code, CPU)) == QUIET


def test_a_forked_child_exits_silently_by_itself():
    code = """
import os, sys
import l0rt, l0rt.accelerator as acc
kept = [l0rt.empty(1 << 20), l0rt.Event(), acc.Stream(), l0rt.empty(64, kind="host")]
kept[1].record()
if os.fork():
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
    assert outcome(run_python(code, CPU)) == QUIET


def test_spawned_workers_use_the_device(tmp_path):
    script = tmp_path / "spawning.py"
    script.write_text("""
import multiprocessing as mp
import l0rt, l0rt.accelerator as acc

def work(n):
    x = l0rt.empty(64)
    x.fill(n)
    return bytes(x.copy_to(bytearray(64)))[0]

if __name__ == "__main__":
    l0rt.empty(64)
    with mp.get_context("spawn").Pool(2) as pool:
        assert pool.map(work, range(8)) == list(range(8))
""")
    assert outcome(run([sys.executable, script], CPU, tmp_path, timeout=120)) == QUIET


@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise SystemExit(0)",
        "del l0rt, acc",
        "import threading; threading.Thread(target=lambda: [x.fill(i % 9) for i in range(9999)], daemon=True).start()",
        "import atexit; atexit.register(x.fill, 3)",
        "import builtins; builtins.kept = [x, e, s, h]",
        "class Late:\n    def __del__(self): x.free()\nlate = Late(); builtins_late = late",
    ],
)
def test_exit_is_silent(end):
    code = f"""
import l0rt, l0rt.accelerator as acc
x, h = l0rt.empty(64 << 20), l0rt.empty(1 << 20, kind="host")
e, s = l0rt.Event(), acc.Stream()
for i in range(5):
    x.fill(i, stream=s)
e.record(s)
shared = l0rt.empty(4096, kind="shared")
{end}
"""
    for extra in ({}, {"L0RT_DISABLE": "inorder,list_sync"}):
        assert outcome(run_python(code, {**CPU, **extra}, fresh=True)) == QUIET, end


def test_use_after_shutdown_is_told():
    code = """
import atexit
import l0rt.runtime.lazy
def late():
    import l0rt
    for use in (lambda: l0rt.empty(1 << 25), lambda: x.fill(1), lambda: l0rt.accelerator.Stream().synchronize()):
        try:
            use()
        except RuntimeError as e:
            assert "shut down" in str(e), e
            print("told")
    print(l0rt.xpu.is_initialized())
atexit.register(late)   # registered before l0rt's own hook: runs after it
import l0rt
x = l0rt.empty(64)
"""
    result = run_python(code, CPU, fresh=True)
    assert (result.returncode, result.stdout.split(), result.stderr) == (0, ["told"] * 3 + ["False"], "")


# Prints the phases of an exit that destroys what l0rt has made.
PHASES = """
import threading
from l0rt.runtime import lazy
for phase in ("CONTEXTS", "MEMORY", "EVENTS", "LISTS"):
    lazy.on_exit(getattr(lazy, phase), lambda phase=phase: print(phase))
import l0rt
x = l0rt.empty(64)
"""


def test_exit_destroys_every_object_before_those_that_it_uses():
    assert outcome(run_python(PHASES, CPU, fresh=True)) == (0, "LISTS\nEVENTS\nMEMORY\nCONTEXTS\n", "")


def test_exit_destroys_nothing_that_a_hung_device_uses():
    assert outcome(run_python(PHASES + "x.fill(1)", {**CPU, **HANG}, fresh=True)) == QUIET


def test_exit_destroys_nothing_that_a_daemon_thread_may_use():
    code = PHASES + "threading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert outcome(run_python(code, CPU, fresh=True)) == QUIET


def start(code, extra):
    environment = {**os.environ, "PYTHONPATH": python_path() or "", **CPU, **extra}
    return subprocess.Popen(
        [sys.executable, "-u", "-c", code],
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


HANG = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}


def in_time(measure, seconds, tries=5):
    """Does ``measure()`` return less than ``seconds`` in one of a few tries?

    What is promised is l0rt's own delay. A machine with more to do than processors adds to it whenever it likes, so one
    try says nothing; a wait that is deaf, or looks up too seldom, is late in every one.
    """
    return any(measure() < seconds for _ in range(tries))




WAITS = [
    "acc.synchronize()",
    "s.synchronize()",
    "e.synchronize()",
    "acc.wait_any(e)",
    "acc.wait_all(e)",
    "s.synchronize(timeout=3600)",
    *(f"s.synchronize(policy={policy!r})" for policy in ("spin", "yield", "block")),
]


@pytest.mark.parametrize("wait", WAITS)
def test_control_c_interrupts_a_wait_that_never_ends(wait):
    """Trap 24. From the signal to the end of the process: the interrupt, its handling, and the exit."""
    code = f"""
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background had it ignored
import l0rt, l0rt.accelerator as acc
s, e, x = acc.Stream(), l0rt.Event(), l0rt.empty(64)
x.fill(0, stream=s); e.record(s)
try:
    print("waiting")
    {wait}
except KeyboardInterrupt:
    print("interrupted")
import os; os._exit(0)
"""

    def from_signal_to_exit():
        with start(code, HANG) as child:
            assert child.stdout.readline() == "waiting\n"
            begun = time.monotonic()
            child.send_signal(signal.SIGINT)
            try:
                out, err = child.communicate(timeout=30)
            finally:
                child.kill()  # one that is deaf would hold up the end of the test
            took = time.monotonic() - begun
        assert (child.returncode, out, err) == (0, "interrupted\n", "")
        return took

    assert in_time(from_signal_to_exit, 1.0)


def test_a_timeout_is_kept():
    """Never too early, and late by milliseconds only: the longest nap is one. A busy machine may add to most tries."""
    code = """
import time
import l0rt, l0rt.accelerator as acc
s, e, x = acc.Stream(), l0rt.Event(), l0rt.empty(64)
x.fill(0, stream=s); e.record(s)
waits = {"s": s.synchronize, "e": e.synchronize, "acc": acc.synchronize,
         "all": lambda **k: acc.wait_all(e, s, **k), "any": lambda **k: acc.wait_any(e, s, **k) is not None}
for name, wait in waits.items():
    for policy in (None, "spin", "yield", "block") if name != "acc" else (None,):
        how = {} if policy is None else {"policy": policy}
        for limit in (0, 0.001, 0.03, 0.15):
            late = []
            while len(late) < 50 and not (late and min(late) < 0.02):
                begun = time.monotonic()
                assert wait(timeout=limit, **how) is False
                late.append(time.monotonic() - begun - limit)
                assert late[-1] >= 0, (name, policy, limit, late)
            assert min(late) < 0.02, (name, policy, limit, late)
import os; os._exit(0)
"""
    assert outcome(run_python(code, {**CPU, **HANG}, timeout=120)) == QUIET


def test_a_timeout_returns_and_a_hung_device_does_not_keep_the_process():
    code = """
import l0rt, l0rt.accelerator as acc
s, e, x = acc.Stream(), l0rt.Event(), l0rt.empty(64)
x.fill(0, stream=s); e.record(s)
assert e.synchronize(timeout=0.01) is False and s.synchronize(timeout=0) is False
assert acc.synchronize(timeout=0.01) is False
assert not e.query() and not s.query()
"""
    assert outcome(run_python(code, {**CPU, **HANG}, timeout=120)) == QUIET


def test_a_lost_device_stays_lost_and_the_process_exits():
    code = """
import l0rt, l0rt.accelerator as acc
x, s, e = l0rt.empty(64), acc.Stream(), l0rt.Event()
e.record(s); s.synchronize()
lost = 0
for use in (lambda: x.fill(0), lambda: x.fill(0), lambda: s.synchronize(), lambda: acc.synchronize(),
            lambda: e.record(s), lambda: l0rt.empty(1 << 26), lambda: acc.Stream().native_handle):
    try:
        use()
    except l0rt.DeviceLostError as error:
        lost += 1
assert lost == 7, lost
assert l0rt.empty(64, device=1).fill(1).nbytes == 64
acc.synchronize(1)
x.free()
"""
    fail = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:ERROR_DEVICE_LOST"}
    assert outcome(run_python(code, {**CPU, **fail})) == QUIET


def test_work_that_the_driver_has_no_memory_for_names_a_reset_as_the_other_cause():
    """Intel's driver answers so to the first work after an idle device was reset, and to all that follows."""
    code = """
import l0rt
x = l0rt.empty(64)
try:
    x.fill(0)
except l0rt.OutOfMemoryError as error:
    assert "there is no memory for it, or the device was reset" in str(error), error
    assert error.code[0] == "ERROR_OUT_OF_DEVICE_MEMORY"
else:
    raise AssertionError
x.fill(0)
l0rt.accelerator.synchronize()
"""
    fail = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:ERROR_OUT_OF_DEVICE_MEMORY"}
    assert outcome(run_python(code, {**CPU, **fail})) == QUIET


def test_queued_calls_run_once_in_order_and_before_anybody_elses_first_use():
    code = """
import threading
import l0rt.accelerator as acc
from l0rt.runtime.streams.devices import lazy
order, gate = [], threading.Event()
def first():
    thread.start()
    order.append("first")
    lazy.call(order.append, "nested")
    acc.current_stream()
def elsewhere():
    lazy.init()
    order.append("elsewhere")
thread = threading.Thread(target=elsewhere)
def failing(): raise KeyError("told")
lazy.call(first); lazy.call(failing); lazy.call(order.append, "last")
try:
    acc.current_stream()
except Exception as e:
    assert str(e).startswith("XPU call failed lazily at initialization with error: 'told'"), e
    assert "XPU call was originally invoked at:\\n\\n  File \\"<string>\\", line 16" in str(e), e
else:
    raise AssertionError
thread.join()
assert order == ["first", "nested", "last", "elsewhere"], order
acc.synchronize()
"""
    assert outcome(run_python(code, CPU, fresh=True)) == QUIET


def test_a_fork_while_another_thread_opens_the_driver():
    code = """
import os, threading
import l0rt.accelerator as acc
from l0rt.runtime.streams.devices import lazy
opening, go = threading.Event(), threading.Event()
def hold():
    opening.set()
    go.wait()
lazy.call(hold)
thread = threading.Thread(target=acc.current_stream)
thread.start()
opening.wait()
pid = os.fork()
if pid == 0:
    try:
        acc.current_stream()
    except RuntimeError as e:
        assert "Cannot re-initialize XPU in forked subprocess" in str(e), e
        os._exit(7)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 7
go.set()
thread.join()
acc.synchronize()
"""
    assert outcome(run_python(code, CPU)) == QUIET


def test_a_failed_opening_fails_the_same_way_again():
    code = """
import l0rt, l0rt.accelerator as acc
told = []
for _ in range(2):
    try:
        acc.current_stream()
    except l0rt.DriverNotFoundError as e:
        told.append((str(e), e.code))
assert len(told) == 2 and told[0] == told[1], told
"""
    assert outcome(run_python(code, {"L0RT_DRIVER": "/nowhere/libze.so"})) == QUIET


def test_connections_are_made_at_first_use_or_all_at_once():
    code = """
import threading
import l0rt, l0rt.accelerator as acc
acc.current_stream(); acc.current_stream(1)
print(acc.stream_pool.state(0)["open"], acc.stream_pool.state(1)["open"])
s = acc.Stream()
threads = [threading.Thread(target=lambda: l0rt.Event().record(s)) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
print(acc.stream_pool.state(0)["open"])
acc.init(lazy=False)
print(acc.stream_pool.state(0)["open"], acc.stream_pool.state(1)["open"])
"""
    assert outcome(run_python(code, CPU)) == (0, "0 0\n1\n97 97\n", "")
    assert outcome(run_python(code, {**CPU, "L0RT_LAZY_INIT": "0"})) == (0, "97 97\n97\n97 97\n", "")


def test_a_hung_device_and_a_daemon_thread_are_left_to_the_system_at_exit():
    """The thread finds the device lost between the driver's end and the process's, which waits for the thread to tell
    somebody of it. Several processes at once: load draws out the rest of the exit."""
    code = """
import atexit, threading
atexit.register(lambda: waiting.join(2))     # registered before l0rt's own hook: runs after it
import l0rt, l0rt.accelerator as acc
s, x = acc.Stream(), l0rt.empty(64)
x.fill(0, stream=s)
started = threading.Event()
def wait():
    started.set()
    s.synchronize()
waiting = threading.Thread(target=wait, daemon=True)
waiting.start()
started.wait()
"""
    children = [start(code, HANG) for _ in range(8)]
    ends = [(*child.communicate(timeout=300), child.returncode) for child in children]
    assert ends == [("", "", 0)] * 8
