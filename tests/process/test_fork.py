# SPDX-License-Identifier: Apache-2.0
"""A forked child of a process that has initialised l0rt: everything works or says so, and nothing hangs or crashes."""

from helpers.process import run_python
from helpers.source import ROOT

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")

# A parent in which something of every kind is there and in use.
PARENT = """
import gc, importlib, os, signal, sys, threading, warnings
import numpy as np
import l0rt, l0rt.accelerator as acc, l0rt.xpu, l0rt.memory, l0rt.interface
FORKED = "Cannot re-initialize XPU in forked subprocess. To use XPU with multiprocessing, you must use the 'spawn'"
x, h, shared = l0rt.empty(4096), l0rt.empty(64, kind="host"), l0rt.empty(64, kind="shared")
s, e, e2, inter = acc.Stream(), l0rt.Event(enable_timing=True), l0rt.Event(), l0rt.Event(interprocess=True)
for event in (e, e2, inter):
    event.record(s)
g, pool, held = l0rt.Generator(), l0rt.memory.MemPool(), l0rt.memory.register(np.zeros(1 << 16, "u1"))
x.fill(1, stream=s)
with l0rt.memory.use_mem_pool(pool):
    l0rt.empty(64).free()
acc.synchronize()

def in_child(name, what, seconds=30):
    "Run ``what``, which writes what it is about to do to a pipe; print how the child ended, unless that was well."
    readable, writable = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.alarm(seconds)
        try:
            what(lambda text: os.write(writable, text.encode("utf-8", "replace") + b"\\n"))
        except BaseException as error:
            os.write(writable, f"raised {error!r}".encode())
            os._exit(1)
        os._exit(0)
    os.close(writable)
    with open(readable, errors="replace") as told:
        lines = told.read().splitlines()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        print(name, "ended by", status, "in", lines[-1:], flush=True)
    return lines
"""

WALK = """
MODULES = ["l0rt", "l0rt.accelerator", "l0rt.accelerator.memory", "l0rt.accelerator.random", "l0rt.capi", "l0rt.config",
           "l0rt.interface", "l0rt.logs", "l0rt.memory", "l0rt.philox", "l0rt.sanitizer", "l0rt.xpu", "l0rt.xpu.facts",
           "l0rt.xpu.gpu_trace", "l0rt.xpu.memory", "l0rt.xpu.random", "l0rt.xpu.streams"]
OBJECTS = {"x": x, "h": h, "shared": shared, "s": s, "e": e, "e2": e2, "inter": inter, "g": g, "pool": pool,
           "held": held, "device": l0rt.device(0), "lease": acc.stream_pool.lease(),
           "device_index": acc.device_index(0), "DeviceGuard": acc.DeviceGuard(0),
           "StreamGuard": acc.StreamGuard(s),
           "MultiStreamGuard": acc.MultiStreamGuard([s]), "OptionalDeviceGuard": acc.OptionalDeviceGuard(0),
           "OptionalStreamGuard": acc.OptionalStreamGuard(s), "use_mem_pool": l0rt.memory.use_mem_pool(pool),
           "xpu.device": l0rt.xpu.device(0), "StreamContext": l0rt.xpu.StreamContext(s)}
PROTOCOLS = ("__enter__", "__exit__", "__dlpack__", "__dlpack_device__", "__l0_stream__", "__repr__", "__hash__",
             "__reduce__", "__copy__", "__eq__", "__buffer__")
TAKES_ADDRESSES = ("register_guard_impl",)      # whose caller answers for what is there
ARGUMENTS = [(), (0,), (1,), ("xpu:0",), ("mean",), (64,), (0.5,), (x,), (h,), (shared,), (s,), (e,), (inter,), (g,),
             (pool,), (bytearray(4096),), (b"abc",), (x.ptr,), ([s],), ({},), (lambda *a: None,), (0, 0), (s, s),
             (x, s), (64, s), (1 << 30,), (e, e2)]

def targets():
    seen = set()
    for module in map(importlib.import_module, MODULES):
        for name in sorted({*dir(module), *vars(module)}):
            value = getattr(module, name)
            public = not name.startswith("_") and name not in TAKES_ADDRESSES
            if public and callable(value) and getattr(value, "__module__", "").startswith("l0rt"):
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{module.__name__}.{name}", value, ARGUMENTS
    for label, thing in OBJECTS.items():
        for name in sorted(dir(thing)):
            if name.startswith("__") and name not in PROTOCOLS:
                continue
            if callable(getattr(type(thing), name, None)):
                yield f"{label}.{name}", getattr(thing, name), ARGUMENTS
            else:
                yield f"{label}.{name}", lambda thing=thing, name=name: getattr(thing, name), [()]

def call(function, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = function(*arguments)
            if hasattr(made, "__enter__") and not isinstance(made, type):
                with made:
                    pass
        except Exception as error:      # and no SystemExit or KeyboardInterrupt
            return f"{type(error).__name__}: {error}"
        return "works"
"""


def test_every_public_name_works_in_a_forked_child_or_tells_of_the_fork(extent):
    stride = 4 // extent(1, 4)
    code = f"""{PARENT}{WALK}
def walk(function, calls, tell):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    for arguments in calls:
        tell(f"{{arguments!r:.80}}")
        tell("= " + call(function, arguments).partition("\\n")[0])
    tell("collection")
    gc.collect()
count = told = 0
for name, function, calls in list(targets())[::{stride}]:
    lines = in_child(name, lambda tell: walk(function, calls, tell))
    count += 1
    told += any("= RuntimeError: " + FORKED in line for line in lines)
    for line in lines:      # no other error of the driver's, and none of Python's machinery
        if line.startswith("= ") and any(word in line for word in ("L0Error", "Level Zero", "SystemError", "Lost")):
            print(name, line)
assert count > 300 // {stride} and told > 60 // {stride}, (count, told)
x.fill(2)
assert bytes(x.copy_to(bytearray(4096))) == b"\\2" * 4096
"""
    assert run_python(code, CPU, timeout=500).stdout == ""


def test_every_block_that_was_entered_before_the_fork_is_left_in_the_child():
    code = f"""{PARENT}
from contextlib import ExitStack
BLOCKS = {{
    "stream": lambda: s, "acc.stream": lambda: acc.stream(s), "no stream": lambda: acc.stream(None),
    "device_index": lambda: acc.device_index(1), "DeviceGuard": lambda: acc.DeviceGuard(1),
    "OptionalDeviceGuard": lambda: acc.OptionalDeviceGuard(1), "StreamGuard": lambda: acc.StreamGuard(s),
    "OptionalStreamGuard": lambda: acc.OptionalStreamGuard(s), "empty": lambda: acc.OptionalStreamGuard(),
    "MultiStreamGuard": lambda: acc.MultiStreamGuard([s, acc.Stream(1)]), "fork_rng": acc.fork_rng,
    "fork_rng of one": lambda: acc.fork_rng([0]), "lease": acc.stream_pool.lease,
    "use_mem_pool": lambda: l0rt.memory.use_mem_pool(pool), "register": lambda: held,
    "patch": lambda: l0rt.config.patch({{"xpu.wait_policy": "block"}}),
    "xpu.device": lambda: l0rt.xpu.device(1), "xpu.device_of": lambda: l0rt.xpu.device_of(x),
    "xpu._DeviceGuard": lambda: l0rt.xpu._DeviceGuard(1), "xpu.stream": lambda: l0rt.xpu.stream(s),
    "interface.DeviceGuard": lambda: l0rt.interface.DeviceGuard(l0rt.interface.get_interface_for_device("xpu"), 1),
}}
def leave(entered, tell):
    tell("leaving")
    entered.close()
for name, block in BLOCKS.items():
    for again in (1, 2):
        entered = ExitStack()
        for _ in range(again):
            entered.enter_context(block())
        in_child(name, lambda tell: leave(entered, tell))
        if name != "register":
            entered.close()
# And all at once, left in turn.
entered = ExitStack()
for name, block in BLOCKS.items():
    entered.enter_context(block())
in_child("all", lambda tell: leave(entered, tell))
entered.close()
assert acc.current_device_index() == 0
"""
    assert run_python(code, CPU, timeout=300).stdout == ""


def test_a_guard_that_was_entered_before_the_fork_takes_no_other_stream_or_device_in_the_child():
    code = f"""{PARENT}
def change(calls, tell):
    for call, argument in calls:
        try:
            call(argument)
        except RuntimeError as error:
            assert "Cannot re-initialize XPU in forked subprocess" in str(error), repr(error)
        else:
            raise AssertionError(call)
t = acc.Stream(1)
for first, second in ((acc.StreamGuard, acc.DeviceGuard), (acc.OptionalStreamGuard, acc.OptionalDeviceGuard)):
    with first(s) as streams, second(1) as devices:
        in_child(first.__name__, lambda tell: change([(streams.reset_stream, t), (devices.set_index, 0)], tell))
"""
    assert run_python(code, CPU, timeout=300).stdout == ""


def test_buffers_are_dropped_in_a_child_under_the_sanitizer_whoever_was_inside_it():
    code = f"""{PARENT}
from l0rt import sanitizer
inside, go = threading.Event(), threading.Event()
def hold():
    with sanitizer._sanitizer.lock:
        inside.set()
        go.wait()
thread = threading.Thread(target=hold)
thread.start()
inside.wait()
def drop(tell):
    global x, h, shared, e
    tell("dropping")
    del x, h, shared, e
    gc.collect()
in_child("drop", drop)
go.set()
thread.join()
"""
    assert run_python(code, {**CPU, "L0RT_SANITIZE": "stream"}).stdout == ""


def test_what_still_calls_the_driver_in_a_child_is_told_of_the_fork():
    code = f"""{PARENT}
from l0rt.core import memory
from l0rt.core.driver import make_context
from l0rt.runtime.streams import devices
first = devices._devices[0]
USES = [first.values, lambda: first.is_gpu, lambda: first.can_access_peer(first),
        lambda: make_context(first.driver), lambda: memory.host_allocation(devices._contexts[0], 64), e.host_time,
        inter.ipc_handle]
def use(tell):
    for i, function in enumerate(USES):
        tell(str(i))
        try:
            function()
        except RuntimeError as error:
            assert str(error).startswith(FORKED), error
        else:
            raise AssertionError("it worked")
in_child("use", use)
"""
    assert run_python(code, CPU).stdout == ""


def test_a_child_forked_while_other_threads_work_can_end_what_it_has():
    code = f"""{PARENT}
stop = threading.Event()
def work(seed):
    stream = acc.Stream()
    while not stop.is_set():
        with stream:
            buffer = l0rt.empty(4096 << seed % 8)
            buffer.fill(1)
            event = stream.record_event()
            acc.current_stream().wait_event(event)
            seed = seed * 7 + 1
threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
for thread in threads:
    thread.start()
def end(tell):
    global x, h, e
    tell("dropping")
    x.free()
    del x, h, e
    gc.collect()
    for use in (lambda: l0rt.empty(64), acc.synchronize, lambda: s.add_callback(print), acc.empty_cache):
        tell("using")
        try:
            use()
        except RuntimeError as error:
            assert str(error).startswith(FORKED), error
for i in range(60):
    in_child(i, end)
stop.set()
for thread in threads:
    thread.join()
"""
    assert run_python(code, CPU, timeout=200).stdout == ""


def test_every_fork_handler_runs_in_the_child_however_many_there_are():
    code = f"""{PARENT}
sys.path.insert(0, {str(ROOT / "tests")!r})
from helpers import build_loops
handlers = build_loops.load("forkhandlers")
handlers.register(40)
assert in_child("handlers", lambda tell: tell(str(handlers.called()))) == ["40"]
assert handlers.called() == 0
"""
    result = run_python(code, CPU, timeout=300)
    assert (result.returncode, result.stdout, result.stderr) == QUIET, result
