# SPDX-License-Identifier: Apache-2.0
"""Objects of every extension type, made without their constructor: they refuse, they never crash."""

from helpers.process import run_python
from helpers.rings import TESTS

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}

# Every walk is in a forked child per class: what ends one ends a child, and the parent names it.
WALK = """
import gc, importlib, itertools, os, pkgutil, signal, sys, warnings
import numpy as np
import l0rt, l0rt.accelerator as acc

HEAP_TYPE = 1 << 9
HOSTILE = [None, -1, 0, 1, 2**64, -2**64, 1.5, "", "xpu", b"", (), [], {}, object(), print, int]

def modules():
    for found in pkgutil.walk_packages(l0rt.__path__, "l0rt."):
        if not found.name.startswith(("l0rt.__main__", "l0rt.interop.")):
            yield importlib.import_module(found.name)

def classes():
    found = {}
    for module in modules():
        for value in vars(module).values():
            if isinstance(value, type) and not value.__flags__ & HEAP_TYPE and value.__module__.startswith("l0rt"):
                found[value] = None
    return list(found)

def blanks(cls):
    "Objects of the class and of a subclass whose constructors did not run, as far as they can be made."
    makers = [lambda: cls.__new__(cls), lambda: object.__new__(cls)]
    try:
        heir = type(cls)("Heir", (cls,), {"__init__": lambda self: None})
    except TypeError:       # a final class
        pass
    else:
        makers += [lambda: heir.__new__(heir), lambda: heir()]
    for make in makers:
        try:
            yield make()
        except TypeError:
            pass

def poke(thing, arguments):
    for name in dir(thing):
        if name == "__class__":
            continue
        try:
            value = getattr(thing, name)
        except Exception:
            continue
        for values in arguments if callable(value) else ():
            try:
                value(*values)
            except Exception:
                pass
    for name, value in itertools.product(dir(type(thing)), (None, 1, "x")):
        try:
            setattr(thing, name, value)
        except Exception:
            pass
        try:
            delattr(thing, name)
        except Exception:
            pass

def in_child(what, *arguments):
    gc.freeze()     # the child collects what it makes, and need not look at every module
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.dup2(2, 1)
        what(*arguments)
        gc.collect()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status:
        print(what.__name__, *(getattr(a, "__qualname__", a) for a in arguments), "ended by", status, flush=True)
warnings.simplefilter("ignore")
"""


def test_no_blank_object_crashes_by_its_own_methods():
    code = f"""{WALK}
def walk(cls):
    for blank in blanks(cls):
        poke(blank, [(), *((value,) for value in [*HOSTILE, blank]), *itertools.product([None, 0, blank], repeat=2),
                     (None, None, None), (blank, blank, blank)])
        del blank
found = classes()
assert {{"Stream", "Queue", "Buffer", "Device", "TableStream", "Table"}} <= {{cls.__name__ for cls in found}}, found
for cls in found:
    in_child(walk, cls)
"""
    assert run_python(code, CPU, timeout=300).stdout == ""


def test_no_blank_object_crashes_what_it_is_passed_to(extent):
    """Every public function, and the methods of a real object of every class that has one."""
    stride = 5 // extent(1, 5)  # no multiple of the ways to make one
    code = f"""{WALK}
from l0rt.runtime.alloc import allocator
sys.path.insert(0, {str(TESTS)!r})
from helpers.plain import PlainMemory
from l0rt.runtime.streams import devices
from l0rt.runtime.current import generator, guard_table as guardtable
from l0rt.runtime.current.lease import lease

def walk(module):
    "With devices of its own: the parent opened no driver, so the child may."
    everything = [blank for cls in classes() for blank in blanks(cls)][::{stride}]
    assert len(everything) > 10
    if module is None:
        table = guardtable.Table(guardtable.built_in_table())
        stream, event = table.current_stream(), table.new_event()
        event.record(stream)
        real = [acc.Stream(), acc.Event(), l0rt.empty(64), l0rt.empty(64, kind="host"), l0rt.Generator(),
                l0rt.memory.MemPool(), l0rt.memory.register(np.zeros(1 << 16, "u1")), lease(),
                devices._devices[0], devices._devices[0].driver, devices._contexts[0], table, stream, event,
                PlainMemory()]
        real.append(allocator.Allocator(real[-1]))
        for thing in real:
            for blank in everything:
                for name in dir(thing):
                    if name in ("__class__", "close"):
                        continue
                    for values in ((blank,), (blank, None), (None, blank), (1, blank), (blank, blank)):
                        try:
                            getattr(thing, name)(*values)
                        except Exception:
                            pass
        return
    for name, function in list(vars(module).items()):  # a warning adds a name
        if not callable(function) or not getattr(function, "__module__", "").startswith("l0rt"):
            continue
        for blank in everything:
            for values in ((blank,), (blank, None), (None, blank), (1, blank), (64, None, blank), (blank, blank)):
                try:
                    made = function(*values)
                    if hasattr(made, "__enter__"):
                        with made:
                            pass
                except Exception:
                    pass
for module in [None, *modules()]:
    commands = ("l0rt.bench", "l0rt.cli", "l0rt.selftest", "l0rt.runtime.lazy")
    if module is None or not module.__name__.startswith(commands):
        in_child(walk, module)
"""
    assert run_python(code, CPU, timeout=300).stdout == ""
