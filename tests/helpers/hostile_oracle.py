# SPDX-License-Identifier: Apache-2.0
"""What may come of a call, and what must hold at all times: judged here for `helpers.hostile`."""

import gc
import os
import re
import signal
import threading
import time
import weakref
from contextlib import contextmanager, suppress

import l0rt
import numpy as np
from l0rt import memory
from l0rt.runtime.current import generator
from l0rt.runtime.current.stream import current_stream
from l0rt.runtime.streams import devices

from helpers.hostile_values import Injected

FAULTS = os.environ.get("L0RT_CPU_FAIL", "")
CLEAR = (TypeError, ValueError, IndexError, RuntimeError, BufferError, MemoryError, Injected)
INTERNALS = re.compile(
    r"__cinit__|\bNULL\b|__pyx|'NoneType' object (?:has no|is not)|'struct'|\b_frame\b|\bcdef\b"
)
OS_ERRORS = {
    "XPUPluggableAllocator", "XPUPluggableAllocator()", "Module", "Module()", "SpecializedModule",
    "SpecializedModule()", "compile", "specialize", "export_chrome_trace", "from_ipc_handle", "ipc_handle",
    "dump_history", "dump_snapshot", "_dump_snapshot", "enable_oom_snapshot", "debug_dump", "dump_state", "to_html",
}  # fmt: skip
MISSING = {"XPUPluggableAllocator", "XPUPluggableAllocator()"}


def told(value, depth=0):
    """Return a short text of a value, without asking it."""
    cls = type(value)
    if cls in (int, float, bool, type(None), str, bytes, complex, type):
        return repr(value)[:40]
    if cls in (list, tuple) and depth < 3:
        return f"{cls.__name__}({', '.join(told(each, depth + 1) for each in value[:5])})"
    if cls is dict and depth < 3:
        items = list(zip(list(value), list(value.values()), strict=False))[:5]  # asks no key for its hash
        return "{" + ", ".join(f"{told(k)}: {told(v, depth + 1)}" for k, v in items) + "}"
    if cls is np.ndarray:
        return f"array({value.dtype.str}, {value.shape})"
    if cls.__name__.startswith("Hostile"):
        return f"{cls.__name__}({', '.join(name for name in vars(cls) if name not in ('__module__', '__doc__'))})"
    return f"<{cls.__name__} {id(value) & 0xFFFFFF:x}>"


def heard(world, error):
    """An interrupt has come out, by itself or as the reason of another exception."""
    seen, todo = set(), [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, KeyboardInterrupt):
            number = each.args[0] if each.args else next(iter(world.interrupts), None)
            world.interrupts.pop(number, None)
        todo += [each.__context__, each.__cause__]


def judge(world, path, error, target):
    """Look at what a call has raised."""
    heard(world, error)
    name = path.rpartition(".")[2]
    cls = type(error)
    try:
        text = str(error)  # its arguments may be hostile objects
    except Exception:
        text = ""
    if isinstance(error, (KeyboardInterrupt, Injected)):
        return
    if isinstance(error, OSError) and name in OS_ERRORS:
        return
    if isinstance(error, AttributeError) and (name in MISSING or target is not None and target.kind == "attribute"):
        return
    if isinstance(error, AttributeError) and text.startswith("can't set attribute"):
        return
    if isinstance(error, KeyError) and name == "__getitem__":
        return
    if isinstance(error, SystemError) and text.startswith("AST constructor recursion depth mismatch"):
        return  # CPython's own, when a signal or a finalizer runs while it parses
    if isinstance(error, SystemError) and text.startswith("<class '_io."):
        return  # CPython's own, when a signal comes while it opens a file
    if path.startswith(("pickle of", "deepcopy of", "vars of", "int of", "init of")) and cls.__name__ in (
        "PicklingError", "AttributeError", "TypeError"):  # fmt: skip
        return
    if isinstance(error, l0rt.DeviceLostError) and not FAULTS:
        world.finding(f"{path}: {cls.__name__}: {text}")
    elif not isinstance(error, CLEAR):
        world.finding(f"{path}: {cls.__name__}: {text}{where(error)}")
    elif INTERNALS.search(text) and not (path.startswith("door.") and "NULL" in text):
        world.finding(f"{path}: {cls.__name__}: {text}")


def where(error):
    """Return the innermost lines of an exception's traceback."""
    trace, lines = error.__traceback__, []
    while trace is not None:
        code = trace.tb_frame.f_code
        lines.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return f" [{', '.join(lines[-3:])}]"


def state():
    """Return what is current on this thread; None where that cannot be asked."""
    if not devices.lazy.initialized:
        return None
    try:
        return (l0rt.xpu.current_device(), *(current_stream(i).stream_id for i in range(2)))
    except RuntimeError:
        return None


def is_at(buffer, address):
    """Whether a Buffer, None if it is gone, still has the memory at an address."""
    try:
        return buffer is not None and buffer.ptr == address
    except ValueError:
        return False


def is_part(buffer):
    """Whether a Buffer is a slice, whose memory is another's. Once that is freed nobody can tell, and need not."""
    return "Buffer slice" in repr(buffer)


class Records:
    """Which addresses are live, and what stands there."""

    def __init__(self, world):
        self.world = world
        self.live = {}  # address -> bytes, the Buffer weakly: an interrupt may come before it is forgotten here
        self.stamps = {}  # id of a Buffer in the world -> its bytes' value

    def add(self, buffer):
        if is_part(buffer):
            return
        try:
            start, nbytes = buffer.ptr, buffer.nbytes
        except (ValueError, RuntimeError):
            return
        if start and not is_at(self.live.get(start, (0, lambda: None))[1](), start):
            self.live[start] = nbytes, weakref.ref(buffer)
            self.world.log(f"a Buffer at {start:#x}, {nbytes} bytes")
            self.compare(start, nbytes)

    def compare(self, start, nbytes):
        for other in list(self.live):  # the keys alone: an iteration that allocates is one that finalisers interrupt
            size, buffer = self.live.get(other, (0, lambda: None))
            if other != start and other < start + nbytes and start < other + size and is_at(buffer(), other):
                self.world.finding(f"two live buffers overlap: {start:#x} + {nbytes}, {other:#x} + {size}")

    def remove(self, buffer):
        self.stamps.pop(id(buffer), None)
        if is_part(buffer):
            return
        with suppress(ValueError, RuntimeError):
            self.live.pop(buffer.ptr, None)

    @contextmanager
    def set_aside(self, *buffers):
        """What may be freed meanwhile is live only if it still is at the end."""
        for buffer in buffers:
            self.remove(buffer)
        try:
            yield
        finally:
            for buffer in buffers:
                self.add(buffer)

    def touch(self, *values):
        """Somebody else may write to these from now on."""
        for value in values:
            if isinstance(value, dict):
                self.touch(*value.values())
            elif isinstance(value, (list, tuple)) and type(value).__module__ == "builtins":
                self.touch(*value)
            elif isinstance(value, memoryview):
                self.stamps.pop(id(value.obj), None)
            else:
                self.stamps.pop(id(value), None)

    def check(self):
        """Compare what stands in the buffers with what was written last; then write to the others."""
        for buffer in list(self.world.instances.get("Buffer", ())):
            try:
                if buffer.nbytes > 1 << 20 or not buffer.nbytes or not buffer.ptr:
                    continue
                back = bytearray(buffer.nbytes)
                stamp = self.stamps.get(id(buffer))
                if stamp is None:
                    stamp = self.world.local.rng.randrange(256)
                    buffer.fill(stamp)
                    self.stamps[id(buffer)] = stamp
                else:
                    buffer.copy_to(back)
                    if back.count(stamp) != len(back):
                        wrong = next(i for i, byte in enumerate(back) if byte != stamp)
                        self.world.finding(
                            f"{buffer!r}: byte {wrong} is {back[wrong]}, and {stamp} was written last, "
                            f"{len(back) - back.count(stamp)} are wrong"
                        )
                        self.stamps.pop(id(buffer), None)
            except (RuntimeError, ValueError, BufferError, MemoryError):
                self.stamps.pop(id(buffer), None)


def settle(world):
    """After a step: threads are at their end, interrupts have come out, the bytes are right."""
    if not world.contexts["hangs"]:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
    for thread in world.threads:
        thread.join()
    world.threads.clear()
    try:
        for _ in range(200):  # an interrupt that was put off comes at a byte code
            pass
    except KeyboardInterrupt as error:
        heard(world, error)
    while world.unraised:
        world.unraisable(world.unraised.pop())
    if world.interrupts:
        for stack in world.interrupts.values():
            if any(f.name in ("npy_ctypes_check", "_format_non_nat", "_dtype") for f in stack):
                continue  # NumPy's C code, or its own bare except, has it
            places = [f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in stack]
            world.finding(f"an interrupt was lost, which was raised at {', '.join(places)}")
        world.interrupts.clear()
    if world.rng.random() < 0.1 and not FAULTS:
        depth, world.local.depth = world.local.depth, 100
        acc_sync()
        world.records.check()
        world.local.depth = depth


def acc_sync():
    for index in range(2):
        with suppress(RuntimeError):
            l0rt.xpu.synchronize(index)


def wait_for_callbacks():
    """Stream callbacks make calls, keep objects and raise errors, which keep their frames."""
    end = time.monotonic() + (0 if FAULTS else 5)
    while any(t.name.startswith("l0rt callbacks") for t in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.001)


def nothing_is_left(world):
    """Drop every object; then nothing is allocated any more."""
    world.records.stamps.clear()
    world.records.live.clear()
    world.instances.clear()
    gc.collect()
    for ptr in list(world.raw):
        try:
            world.log(f"delete {ptr:#x}")
            memory.caching_allocator_delete(ptr)
        except ValueError:
            pass
    world.raw.clear()
    generator._defaults.clear()  # they keep where kernels find their states
    gc.collect()
    if FAULTS:
        return
    for index in range(2):
        memory.set_memory_limit(None, index)
    acc_sync()
    l0rt.xpu.empty_cache()
    memory.empty_host_cache()
    for index in range(2):
        if memory.memory_allocated(index):
            blocks = [block for segment in memory.memory_snapshot(device=index) for block in segment["blocks"]]
            held = [f"{b['address']:#x}, {b['size']} bytes" for b in blocks if b["state"] != "inactive"]
            world.finding(f"device {index} has {', '.join(held)} allocated, and nobody holds it")
    held = memory.host_memory_stats().get("allocated_bytes.current", 0)
    if held:
        world.finding(f"{held} bytes of pinned memory are allocated, and nobody holds any")
