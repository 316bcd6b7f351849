# SPDX-License-Identifier: Apache-2.0
"""The objects that a hostile program has, what it does to them, and what it knows of them: see `helpers.hostile`."""

import contextlib
import copy
import os
import pickle
import random
import sys
import threading
import traceback
import types
import warnings
import weakref

import l0rt
import l0rt.accelerator as acc
from l0rt import config, memory

from helpers import hostile_oracle as oracle
from helpers.hostile_door import OWNING
from helpers.hostile_surface import Target, surface
from helpers.hostile_values import Injected, Values, harm

DEPTH = 4  # of calls inside of calls
MOST = 60  # calls of one step
KEPT = 8  # objects of a class
DRAWS = ("uniform_", "normal_", "randint_", "exponential_", "bernoulli_")
MOST_DRAWN = 1 << 26  # bytes: where no kernel runs, the host takes a minute for two gigabytes
FREES = {"free", "unregister", "caching_allocator_delete", "free_async"}
METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)
COMPILED = (l0rt.Buffer, l0rt.Stream, l0rt.Event, l0rt.Generator, acc.device_index)
FAULTS = os.environ.get("L0RT_CPU_FAIL", "")


class Here(threading.local):
    """What belongs to one thread: where it is in its program."""

    rng = random.Random(0)
    depth = 0
    disturbed = 0
    left = MOST  # calls that this step may still make: callbacks make calls that call back
    step = -1
    armed = False  # whether a signal's handler may do what it does: on the main thread, inside of a call


class World:
    """The objects that there are, and what is known of them."""

    def __init__(self, seed, contexts, log, patience):
        self.seed, self.contexts, self.patience = seed, contexts, patience
        self.local = Here()
        self.surface = surface()
        self.values = Values(self)
        self.instances = {}  # class name -> objects
        self.blocks = []  # entered by hand
        self.raw = {}  # address -> size: allocated without an owner
        self.records = oracle.Records(self)
        self.hosts, self.threads, self.detachers = [], [], []
        self.watching = []  # (kind, callback)
        self.findings, self.interrupts = [], {}
        self.calls = self.performs = self.forks = self.number = 0
        self.is_child = self.is_leaving = False
        self.log_file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.texts = {path: setting.text for path, setting in config._SETTINGS.items()}
        self.door = None
        self.unraised = []
        sys.unraisablehook = self.unraised.append  # runs no byte code: an interrupt that comes into a hook is lost
        warnings.simplefilter("always")
        warnings.showwarning = self.warned

    @property
    def rng(self):
        return self.local.rng

    @property
    def class_names(self):
        return sorted({cls.__name__ for cls in self.surface.classes})

    def log(self, text):
        line = f"{os.getpid()} {threading.current_thread().name} {self.local.step} {'  ' * self.local.depth}{text}\n"
        os.write(self.log_file, line.encode("utf-8", "backslashreplace"))

    def finding(self, text):
        self.log(f"FINDING {text}")
        if len(self.findings) < 200:
            self.findings.append(f"step {self.local.step}: {text}")

    def unraisable(self, told):
        """Nobody could catch this exception: as it should be in a finalizer of our own, and for our own exceptions."""
        error, where = told.exc_value, told.object
        name = getattr(where, "__qualname__", type(where).__qualname__)
        if isinstance(error, KeyboardInterrupt):
            pythons = getattr(where, "__name__", "") == "__del__" or getattr(where, "is_finalizer", False)
            if not pythons:
                self.finding(f"an interrupt ended in sys.unraisablehook: {told.err_msg} {name}")
            oracle.heard(self, error)
        elif not isinstance(error, Injected):
            oracle.judge(self, f"unraisable in {name}", error, None)

    def warned(self, message, category, *where):
        if category.__name__ == "StreamRaceWarning" or "synchronizes implicitly" in str(message):
            return
        dropped = ("pinned", "register", "a profile was dropped")  # as the program may do
        if category is ResourceWarning and (FAULTS or any(words in str(message) for words in dropped)):
            return
        if category is RuntimeWarning and "has no effect any more" in str(message):
            return
        if category is DeprecationWarning and ("returned non-int" in str(message) or "use of fork()" in str(message)):
            return  # Python's word on a hostile __index__; and, since 3.12, on a fork beside threads
        self.finding(f"{category.__name__}: {message} [{':'.join(map(str, where[:2]))}]")

    # --- Objects.

    def keep(self, value, depth=0):
        """Remember what a call returned."""
        cls = type(value)
        if isinstance(value, (tuple, list)) and depth < 2:
            for each in (tuple if isinstance(value, tuple) else list).__getitem__(value, slice(4)):
                self.keep(each, depth + 1)
            return
        if not cls.__module__.startswith("l0rt") or isinstance(value, BaseException):
            return
        self.surface.meet(cls)
        if isinstance(value, l0rt.Buffer):
            if oracle.is_part(value):  # who writes to it writes to another Buffer, which is looked at
                return
            self.records.add(value)
        name = next((c.__name__ for c in cls.__mro__ if c in self.surface.classes), cls.__name__)
        self.put(name, value)

    def put(self, name, value):
        found = self.instances.setdefault(name, [])
        if any(each is value for each in found):
            return
        self.records.stamps.pop(id(value), None)
        found.append(value)
        if len(found) > KEPT:
            self.forget(found.pop(self.rng.randrange(len(found))))

    def forget(self, value):
        if isinstance(value, l0rt.Buffer):
            self.records.remove(value)

    def instance_of(self, name):
        """Return an object of the class of that name; one that is fit for use, or not."""
        rng = self.rng
        found = list(self.instances.get(name, ()))  # a finalizer may change the list while it is read
        if found and rng.random() > 0.15:
            return rng.choice(found)
        try:
            made = self.make(name)
        except (RuntimeError, ValueError, IndexError, MemoryError, TypeError, OSError, AttributeError, Injected):
            made = rng.choice(found) if found else None
        if made is not None:
            self.keep(made)
        return made

    def make(self, name):
        """Make an object the way it is meant to be made; None if there is no class of that name."""
        rng = self.rng
        if name == "Buffer":
            kind = rng.choice(("device", "device", "device", "host", "shared"))
            return l0rt.empty(rng.choice((0, 1, 100, 512, 4096, 65536, 1 << 20)), device=rng.randrange(2), kind=kind)
        if name in ("Stream", "XpuStream"):
            return l0rt.xpu.Stream(rng.randrange(2), rng.choice((-1, 0, 1)))
        if name == "Lease":
            return acc.stream_pool.lease(rng.randrange(2))
        if name == "Registration":
            return memory.register(bytearray(8192))
        if name == "MemPool":
            return memory.MemPool(use_on_oom=rng.random() < 0.3, no_split=rng.random() < 0.2)
        classes = [cls for cls in self.surface.classes if cls.__name__ == name]
        if not classes:
            return None
        cls = rng.choice(classes)
        target = next((t for t in self.surface.classes[cls] if t.kind == "new"), None)
        args, kwargs = self.arguments(target.parameters, 0) if target else ((), {})
        return cls(*args, **kwargs)

    def good(self, name):
        return self.make(name)

    def view(self):
        """Return a memoryview of a host or shared Buffer, or of other memory."""
        for buffer in self.instances.get("Buffer", ()):
            try:
                if buffer.kind != "device" and self.rng.random() < 0.5:
                    return memoryview(buffer)
            except (ValueError, BufferError):
                pass
        return memoryview(bytearray(self.rng.choice((0, 1, 512, 4096))))

    def free_in_use(self):
        for buffer in list(self.instances.get("Buffer", ()))[-3:]:
            with self.records.set_aside(buffer), contextlib.suppress(ValueError, BufferError):
                buffer.free()

    def drop(self, count):
        for _ in range(count):
            names = [name for name in list(self.instances) if self.instances.get(name)]
            if names:
                found = self.instances.get(self.rng.choice(names), [])
                with contextlib.suppress(IndexError, ValueError):  # another thread was faster
                    self.forget(found.pop(self.rng.randrange(len(found))))

    # --- Hostile code.

    def injected(self):
        return Injected("injected")

    @property
    def may_interrupt(self):
        """Whether a KeyboardInterrupt may be raised here: inside of a call, and one at a time, so that none comes while
        the harness takes care of another."""
        wanted = self.contexts["interrupts"] or self.contexts["hangs"]
        return self.local.armed and not self.interrupts and not self.is_leaving and wanted

    def interrupt(self):
        """Raise KeyboardInterrupt, which has to come out; where that may not be, something else."""
        if not self.may_interrupt:
            raise self.injected()
        raise self.new_interrupt()

    def new_interrupt(self):
        self.number += 1
        number = self.number
        self.interrupts[number] = ()
        try:
            self.interrupts[number] = traceback.extract_stack(limit=6)
        except BaseException:  # another came meanwhile, and this one is not raised
            del self.interrupts[number]
            raise
        return KeyboardInterrupt(number)

    @contextlib.contextmanager
    def shielded(self):
        """Lines of the harness: no signal strikes in them."""
        here = self.local
        was_armed, here.armed = here.armed, False
        try:
            yield
        finally:
            here.armed = was_armed

    def disturb(self, chance, in_destructor=False):
        """Maybe do harm."""
        here = self.local
        if here.depth > DEPTH or here.left <= 0 or here.rng.random() >= chance:
            return
        here.left -= 1
        here.disturbed += 1
        here.depth += 1
        try:
            harm(self)
        finally:
            here.depth -= 1

    def callback(self, what, chance=0.4, is_finalizer=False):
        """Return a function for l0rt to call."""
        # Who says that memory is free is asked again: an observer that always does never lets an allocation end.
        answers = [self.rng.choice((None, None, True, False, 1))] * 3

        def function(*args, **kwargs):
            self.disturb(chance)
            return answers.pop() if answers else None

        function.__name__ = function.__qualname__ = what
        function.is_finalizer = is_finalizer
        return function

    # --- Calls.

    def arguments(self, parameters, hostility):
        """Return args and kwargs; each is odd with this probability."""
        rng = self.rng
        args, kwargs = [], {}
        if parameters is None:
            return [self.values.anything() for _ in range(rng.randrange(3))], {}
        is_open = True
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                if p.kind == p.VAR_POSITIONAL and is_open:
                    args += [self.argument(p.name, hostility) for _ in range(rng.randrange(3))]
                elif p.kind == p.VAR_KEYWORD and rng.random() < hostility:
                    kwargs["odd"] = self.argument("odd", hostility)
                continue
            if p.default is not p.empty and rng.random() < 0.5:
                is_open = False
                continue
            if p.kind != p.KEYWORD_ONLY and is_open:
                args.append(self.argument(p.name, hostility))
            elif p.kind != p.POSITIONAL_ONLY:
                kwargs[p.name] = self.argument(p.name, hostility)
        if rng.random() < hostility / 10:
            args.append(self.values.anything())
        if args and rng.random() < hostility / 10:
            args.pop()
        return args, kwargs

    def argument(self, name, hostility):
        if self.rng.random() < hostility:
            return self.values.odd(name)
        fits = self.values.by_name.get(name)
        return fits() if fits else self.values.anything()

    def step(self):
        """Make one random call, and look at what comes of it."""
        here = self.local
        if here.depth > DEPTH or here.left <= 0:
            return
        here.left -= 1
        self.calls += 1
        here.depth += 1
        try:
            rng = here.rng
            hostility = rng.choice((0, 0, 0.3, 0.6))
            kind = rng.randrange(20) if not self.contexts["table"] or rng.random() < 0.1 else 2
            if kind == 0:
                self.operate()
            elif kind == 1:
                self.enter_or_leave()
            elif kind == 2 and self.door:
                self.door.step(hostility)
            else:
                if kind < 8:  # what everything else needs
                    cls = l0rt.Buffer if kind < 5 else rng.choice((l0rt.Stream, l0rt.Event, memory.MemPool))
                    target = rng.choice(self.surface.classes[cls])
                    if kind == 3:
                        target = next(t for t in self.surface.targets if t.path == "l0rt.empty")
                else:
                    target = rng.choice(self.surface.targets)
                self.call(target, hostility)
        finally:
            here.depth -= 1

    def call(self, target: Target, hostility):
        args, kwargs = self.arguments(target.parameters, hostility)
        function, receiver, rng = target.function, None, self.rng
        if target.owner is not None and target.kind in ("method", "attribute"):
            receiver = self.instance_of(target.owner.__name__)
            wrong = hostility and isinstance(function, METHODS)  # a function in Python takes any object for its self
            if wrong and rng.random() < 0.05:
                receiver = self.values.odd("self")
            elif not isinstance(receiver, target.owner):
                receiver = None
        if target.kind == "raw_new":
            if "__module__" in vars(target.owner) and not issubclass(target.owner, COMPILED):
                return  # a class in Python, whose __init__ makes the object
            function, args, kwargs = target.owner.__new__, [target.owner], {}
        elif target.kind == "subclass":
            function = self.make_subclass
            args = [target.owner, *args]
        elif target.kind == "attribute":
            if receiver is None:
                return
            way = rng.choice((getattr, getattr, getattr, setattr, delattr)) if hostility else getattr
            function, kwargs = way, {}
            args = [receiver, target.name] + ([self.values.odd("value")] if way is setattr else [])
        elif target.kind == "method":
            if receiver is None and not wrong:
                return
            args = [receiver, *args]
        self.perform(target.path, function, args, kwargs, target)

    def make_subclass(self, cls, *args, **kwargs):
        world = self

        def finalize(made):
            world.disturb(0.3, in_destructor=True)

        finalize.__name__ = finalize.__qualname__ = "__del__"
        return type(f"Sub{cls.__name__}", (cls,), {"__del__": finalize})(*args, **kwargs)

    def operate(self):
        """Use an object as programs use any object."""
        rng = self.rng
        name = rng.choice(self.class_names)
        value, other = self.instance_of(name), self.values.anything()
        if value is None:
            return
        ways = {
            "repr": repr, "str": str, "hash": hash, "bool": bool, "len": len, "iter": iter, "copy": copy.copy,
            "deepcopy": copy.deepcopy, "pickle": pickle.dumps, "memoryview": memoryview, "bytes": bytes, "dir": dir,
            "eq": lambda x: x == other, "lt": lambda x: x < other, "in": lambda x: other in x, "int": int,
            "weakref": lambda x: weakref.ref(x, self.callback("weakref", is_finalizer=True)), "call": lambda x: x(),
            "with": self.in_block, "init": lambda x: x.__init__(), "sizeof": sys.getsizeof, "vars": vars,
        }  # fmt: skip
        way = rng.choice(sorted(ways))
        if way == "bytes" and not 0 <= (getattr(value, "nbytes", 0) or 0) < 1 << 26:
            return
        self.perform(f"{way} of {name}", ways[way], [value], {}, None)

    def in_block(self, value):
        with value:
            self.step()

    def enter_or_leave(self):
        """Enter a block by hand, or leave one, in any order and by any thread."""
        rng = self.rng
        if self.blocks and rng.random() < 0.6:
            value = self.blocks.pop(rng.randrange(len(self.blocks)))
            self.perform(f"leave {type(value).__name__}", type(value).__exit__, [value, None, None, None], {}, None)
            return
        names = [n for n in list(self.instances) if any(hasattr(x, "__enter__") for x in self.instances.get(n, ())[:1])]
        if not names:
            return
        value = self.instance_of(rng.choice(sorted(names)))
        enter = getattr(type(value), "__enter__", None)
        if enter and self.perform(f"enter {type(value).__name__}", enter, [value], {}, None):
            self.blocks.append(value)

    def perform(self, path, function, args, kwargs, target):
        """Call, and look at the result, the error and what became of the state."""
        with self.shielded():
            return self.performed(path, function, args, kwargs, target)

    def performed(self, path, function, args, kwargs, target):
        here = self.local
        self.performs += 1
        last = path.rpartition(".")[2]
        if last in DRAWS and any(isinstance(each, l0rt.Buffer) and each.nbytes > MOST_DRAWN for each in args):
            return False
        self.log(f"{path} {oracle.told(args)} {oracle.told(kwargs)}")
        self.records.touch(args, kwargs)
        if last == "sleep":  # what was written there is lost
            self.records.stamps.clear()
        freed = [each for each in args if isinstance(each, l0rt.Buffer)] if last in FREES else []
        addresses = {each: self.raw.pop(each, None) for each in args if type(each) is int} if last in FREES else {}
        disturbed = here.disturbed
        before = oracle.state()
        failed = False
        try:
            with self.records.set_aside(*freed):
                # An address that nobody owns is lost when an interrupt comes before the caller has it.
                fits = FAULTS or last not in ("caching_allocator_alloc", "malloc")
                fits = fits and not (path.startswith("door.") and last in OWNING)
                on_main = threading.current_thread() is threading.main_thread()
                try:
                    here.armed = on_main and fits
                    result = function(*args, **kwargs)
                finally:
                    here.armed = False
        except BaseException as error:
            after = oracle.state()
            failed = True
            self.raw.update({each: size for each, size in addresses.items() if size is not None})
            oracle.judge(self, path, error, target)
            del error
        else:
            if last in ("caching_allocator_alloc", "malloc") and type(result) is int and result:
                self.raw[result] = args[0] if args and type(args[0]) is int else 1
                self.log(f"memory at {result:#x}")
            if last.startswith("register_callback_for_"):
                self.watching.append((last.removeprefix("register_callback_for_"), args[0]))
            if last == "attach_oom_observer":
                self.detachers.append(result)
            self.keep(result)
            del result
        calm = here.disturbed == disturbed and not self.contexts["signals"] and not self.contexts["hangs"]
        is_capture = path == "leave graph" or path.endswith("graph.__exit__")  # it fails, but ends with its streams
        if failed and calm and not is_capture and before is not None and after != before:
            self.finding(f"{path} failed and left the current device and streams changed: {before} -> {after}")
        return not failed
