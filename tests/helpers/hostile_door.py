# SPDX-License-Identifier: Apache-2.0
"""Calls through the C table and the guard tables, with every pointer that they promise to look at.

A pointer to a stream, an event, a pool, a graph, a module or a kernel is the caller's word, and what a copy or a launch
touches is memory: these are right, or NULL. What a call takes of them it has alone: another call might end it.
"""

import contextlib
import ctypes
from collections import Counter

import l0rt

from helpers.door import PTR, Arg, Door, Failed, GuardDoor, PointerInfo
from helpers.hostile_values import SPIRV

LARGEST = 1 << 16
HUGE = (1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
NOWHERE = (-(1 << 31), -2, 2, 64, 1 << 30)  # devices that are not there
NAMES = (b"store", b"where", b"vector_add", b"no such kernel", b"", b"\xff\xfe", b"x" * 5000, None)
TYPES = (b"xpu", b"cpu", b"", b"\xff", b"no such type", None)
OPTIONS = (b"", b"-odd", b"\xff" * 100)
MADE = {
    "host_malloc": "pinned", "pool_create": "pools", "pool_enter": "scopes", "graph_create": "graphs",
    "module_create": "modules", "graph_create_with": "graphs", "graph_pool": "pools", "pool_find": "pools",
    "generator_create": "generators", "generator_default": "generators",
}  # fmt: skip
ENDED = {
    "event_destroy", "destroy_event", "host_free", "pool_release", "pool_leave", "graph_release", "module_release",
    "generator_release",
}  # fmt: skip
# What nobody would own if an interrupt came between the function's end and the next line.
OWNING = {*MADE, *ENDED, "malloc", "event_record", "record", "record_event"}
# Calls that succeed one after another, with what was made last.
RECIPES = (
    (None, ("exchange_stream", "malloc", "graph_create", "graph_begin", "memset_async", "graph_end", "graph_replay")),
    (None, ("exchange_stream", "malloc", "pool_create", "graph_create_with", "graph_begin_with", "memset_async",
            "graph_end", "graph_instantiate", "graph_dump", "graph_pool", "graph_reset")),
    (None, ("generator_create", "graph_create", "graph_register_generator", "generator_place", "generator_draw")),
    (None, ("event_record", "event_record", "device_synchronize", "event_elapsed_time", "stream_wait_event")),
    (None, ("module_create", "kernel_get", "launch", "launch_with_offset", "module_release")),
    ("xpu", ("record_event", "record_event", "synchronize_event", "elapsed_time")),
    ("cpu", ("record_event", "record_event", "elapsed_time")),
)
FAILS = {"door.cpu.stream_native_handle"}  # always: the host's stream has none
LATE = 1500  # calls after which few functions are left of which no call has succeeded
KINDS = ("events", "cpu events", "pinned", "pools", "scopes", "graphs", "modules", "generators")


def words(count):
    return (ctypes.c_uint64 * count)()


class Call:
    """The arguments of one call, and what it takes."""

    def __init__(self, walk, hostility, follows=False):
        self.walk, self.world, self.rng = walk, walk.world, walk.world.rng
        self.is_hostile = bool(hostility)
        self.follows = follows  # it goes on with what the calls before it have made
        self.after = []  # functions, which are told whether the call was done
        self.alive = []  # what the arguments point to

    def odd(self, fit, *others):
        """Return what fits, or now and then another."""
        return self.rng.choice(others) if self.is_hostile and self.rng.random() < 0.4 else fit

    def some(self, kind):
        """Return an object, which is put back; None if there is none."""
        value = self.walk.take(kind, self.follows)
        self.after.insert(0, lambda done: self.walk.put(kind, value))
        return self.odd(value, None)

    def ended(self, kind):
        """Return an object that the call ends."""
        value = self.walk.take(kind)
        self.after.append(lambda done: None if done else self.walk.put(kind, value))
        return value

    def flags(self):
        return self.odd(1 if self.follows else self.rng.choice((0, 1)), 2, (1 << 32) - 1)

    def device(self):
        return -1 if self.follows else self.odd(self.rng.choice((-1, 0, 1)), *NOWHERE)

    def priority(self):
        return self.rng.choice((-1, 0, 1, 1 << 20))

    def stream(self):
        try:
            door = self.walk.door
            if self.follows:
                return self.own_stream(door)
            return self.rng.choice((None, door.current_stream(self.rng.randrange(2)), door.pool_stream(1, 0)))
        except Failed:
            return None

    def own_stream(self, door):
        """Return the current stream of the current device, or another where that is the default stream."""
        stream, default = door.current_stream(-1), self.walk.guards["xpu"].get_default_stream(-1)
        return stream if stream != default else door.pool_stream(-1, 0)

    def memory(self):
        """Return memory that C owns, and how much of it may be touched."""
        held = [ptr for ptr, size in self.world.raw.items() if type(size) is int and size >= 16]
        inside = (held[-1] if self.follows else self.rng.choice(held)) if held else None
        return inside, self.rng.choice((0, 1, 16)) if inside else 0

    def address(self):
        """Return an address that a function promises to look at."""
        buffers = [x for x in list(self.world.instances.get("Buffer", ())) if isinstance(x, l0rt.Buffer)]
        found = [self.world.values.pointer(), id(self), (1 << 64) - 1]
        with contextlib.suppress(ValueError, RuntimeError, IndexError):
            found.append(self.rng.choice(buffers).ptr)
        pinned = self.some("pinned")
        return self.rng.choice((*found, pinned, pinned and pinned + 1))

    def place(self, made=None):
        """Return where a function writes to."""
        made = ctypes.c_uint64() if made is None else made
        self.alive.append(made)
        return self.odd(ctypes.byref(made), None)

    def event_place(self, kind):
        place = PTR(self.walk.take(kind) if self.rng.random() < 0.5 and not self.follows else None)
        self.after.append(lambda done: self.walk.put(kind, place.value))
        return self.place(place)

    def last_error(self):
        size = self.rng.choice((0, 1, 2, 64))
        text = ctypes.create_string_buffer(64)
        return self.odd(text, None), size

    def module(self):
        code = self.world.values.code() if self.is_hostile else SPIRV
        code = code if type(code) is bytes else SPIRV
        size = self.odd(len(code), 0, 3, len(code) // 2, *HUGE[1:])
        return self.device(), self.odd(code, None), size, self.odd(0, 1, 7, -1), self.odd(None, *OPTIONS)

    def launch(self):
        """A launch of `store`, with at most one thing that is wrong."""
        stream, kernel, target = self.stream(), None, None
        module = self.some("modules")
        with contextlib.suppress(Failed):
            target = self.walk.target()
            kernel = module and self.walk.door.kernel_get(module, b"store")
        groups, size = (ctypes.c_uint32 * 3)(1, 1, 1), (ctypes.c_uint32 * 3)(2, 1, 1)
        to, value = PTR(target), ctypes.c_int(7)
        args = (Arg * 3)((ctypes.addressof(to), 8), (ctypes.addressof(value), 4), (None, 0))
        self.alive += [to, value]
        given = [kernel if target else None, groups, size, args, 2, 0, stream]
        wrong = self.rng.randrange(12) if self.is_hostile else None
        if wrong == 0:
            groups[self.rng.randrange(3)] = 0
        elif wrong == 1:
            size[self.rng.randrange(3)] = self.rng.choice((0, 4096, (1 << 32) - 1))
        elif wrong == 2:
            args[self.rng.randrange(2)].size = self.rng.choice((0, 2, 1 << 40, (1 << 64) - 1))
        elif wrong == 3:
            args[1].value = None  # not of the pointer: the kernel would write to NULL
        elif wrong == 4:
            given[4] = self.rng.choice((0, 1, 3, (1 << 32) - 1))
        elif wrong == 5:
            given[5] = self.rng.choice((1, 2, (1 << 32) - 1))
        elif wrong is not None and wrong < 10:
            given[wrong - 6] = None
        return given

    def launch_with_offset(self):
        kernel, groups, size, *rest = self.launch()
        return [kernel, groups, size, self.odd((ctypes.c_uint32 * 3)(), None), *rest]  # others leave the memory

    def size(self):
        return 512 if self.follows else self.odd(self.rng.choice((0, 1, 512, LARGEST)), *HUGE)

    def fill(self):
        ptr, size = self.memory()
        return ptr, 7, size, self.stream()

    def heap(self):
        return self.odd(self.rng.choice((0, 1)), 2, -1)

    def pattern(self):
        ptr, size = self.memory()
        return ptr, self.odd(words(2), None), self.odd(1, 0, 3, 16, HUGE[-1]), size, self.stream()

    def pool_name(self):
        name, pool = words(2), self.some("pools")
        with contextlib.suppress(Failed):
            self.walk.door.pool_id(pool, name)
        return (self.odd(name, None, words(2)),)

    def copy(self):
        ptr, size = self.memory()
        return ptr, ptr, size, self.stream()

    def of_table(self):
        """Return name -> what makes the arguments, of the C table."""
        s, e, g, d = self.stream, lambda: self.some("events"), lambda: self.some("graphs"), self.device
        return {
            "init": tuple, "device_count": tuple, "current_device": tuple, "exchange_device": lambda: (d(),),
            "current_stream": lambda: (d(),), "exchange_stream": lambda: (s(),),
            "pool_stream": lambda: (d(), self.priority()), "stream_handle": lambda: (s(),),
            "stream_synchronize": lambda: (s(),), "device_synchronize": lambda: (d(),),
            "malloc": lambda: (self.size(), d(), s()), "free": lambda: (self.address(),),
            "free_async": lambda: (self.address(), s()), "record_stream": lambda: (self.address(), s()),
            "memcpy_async": self.copy, "memset_async": self.fill, "last_error": self.last_error,
            "record_use": lambda: (self.address(), s()), "guard_impl_of": lambda: (self.rng.choice(TYPES),),
            "module_create": self.module, "module_release": lambda: (self.ended("modules"),),
            "kernel_get": lambda: (self.some("modules"), NAMES[0] if self.follows else self.rng.choice(NAMES)),
            "launch": self.launch, "launch_with_offset": self.launch_with_offset,
            "stream_query": lambda: (s(),), "stream_wait_stream": lambda: (s(), s()),
            "event_record": lambda: (self.event_place("events"), s(), self.flags()),
            "stream_wait_event": lambda: (s(), e()), "event_query": lambda: (e(),), "event_synchronize": lambda: (e(),),
            "event_elapsed_time": lambda: (e(), e(), self.place()), "event_destroy": lambda: (self.ended("events"),),
            "host_malloc": lambda: (self.size(), d()), "host_free": lambda: (self.ended("pinned") or self.address(),),
            "pool_create": tuple, "pool_release": lambda: (self.ended("pools"),),
            "pool_enter": lambda: (self.some("pools"), d()), "pool_leave": lambda: (self.ended("scopes"),),
            "pointer_query": lambda: (self.address(), self.place(PointerInfo())), "graph_create": tuple,
            "graph_begin": lambda: (g(),), "graph_end": lambda: (g(),), "graph_replay": lambda: (g(),),
            "graph_release": lambda: (self.ended("graphs"),),
            "is_open": tuple, "count_devices": tuple, "exchange_device_stream": lambda: (s(),),
            "fill_async": self.pattern, "memory_allocated": lambda: (d(),),
            "get_memory_stats": lambda: (d(), self.heap(), self.place(words(124)), self.rng.choice((0, 8, 992))),
            "memory_info": lambda: (d(), self.place(), self.place()),
            "memory_reset_stats": lambda: (d(), self.heap(), self.odd(self.rng.randrange(4), 4, -1)),
            "memory_empty_cache": lambda: (self.heap(),), "memory_set_limit": lambda: (d(), HUGE[-1]),
            "pool_id": lambda: (self.some("pools"), self.place(words(2))), "pool_find": self.pool_name,
            "graph_create_with": lambda: (1 if self.follows else self.odd(0, 1, 2),),
            "graph_begin_with": lambda: (g(), self.some("pools"), self.odd(None, b"relaxed", b"odd", b"\xff")),
            "graph_instantiate": lambda: (g(),), "graph_reset": lambda: (g(),), "graph_pool": lambda: (g(),),
            "graph_dump": lambda: (g(), self.odd(b"/dev/null", None, b"/no/such/folder")),
            "graph_register_generator": lambda: (g(), self.some("generators")),
            "generator_create": lambda: (d(),), "generator_default": lambda: (d(),),
            "generator_release": lambda: (self.ended("generators"),),
            "generator_get": lambda: (self.some("generators"), self.place(), self.place()),
            "generator_set": lambda: (self.some("generators"), 7, self.odd(8, 3, HUGE[-1])),
            "generator_draw": lambda: (self.some("generators"), self.odd(4, *HUGE), self.place(), self.place()),
            "generator_place": lambda: (
                self.some("generators"), self.odd(4, *HUGE), self.place(), self.place(), self.place()),
        }  # fmt: skip

    def of_guards(self, type):
        """Return the same of a guard table."""
        kind = "events" if type == "xpu" else "cpu events"
        s, e, d = self.stream, lambda: self.some(kind), self.device
        return {
            "device_count": tuple, "get_device": tuple, "exchange_device": lambda: (d(),), "set_device": lambda: (d(),),
            "unchecked_set_device": lambda: (d(),), "get_stream": lambda: (d(),), "get_default_stream": lambda: (d(),),
            "get_stream_from_pool": lambda: (d(), self.priority()), "exchange_stream": lambda: (s(),),
            "stream_device": lambda: (s(),), "stream_native_handle": lambda: (s(),), "query_stream": lambda: (s(),),
            "synchronize_stream": lambda: (s(),), "synchronize_device": lambda: (d(),),
            "record": lambda: (self.event_place(kind), s()), "block": lambda: (e(), s()), "query_event": lambda: (e(),),
            "synchronize_event": lambda: (e(),), "destroy_event": lambda: (self.ended(kind),),
            "get_new_stream": lambda: (d(), self.priority()), "stream_priority": lambda: (s(), self.place()),
            "is_stream_capturing": lambda: (s(),),
            "record_event": lambda: (self.event_place(kind), s(), self.flags()),
            "elapsed_time": lambda: (e(), e(), self.place()),
            "record_data_ptr_on_stream": lambda: (self.address(), s()),
            "device_capability": lambda: (d(), self.place()),
        }  # fmt: skip


class HostileDoor:
    """The functions of the C table, and of the guard tables, as targets of a `World`."""

    def __init__(self, world):
        self.world, self.door = world, Door()
        self.guards = {"xpu": GuardDoor(self.door, b"xpu"), "cpu": GuardDoor(self.door, b"cpu")}
        self.held = {kind: [] for kind in KINDS}
        self.done = Counter()  # path -> calls that did not fail
        self.memory = {}  # for launches: one address

    def take(self, kind, newest=False):
        found = self.held[kind]
        with contextlib.suppress(IndexError):  # another thread was faster
            return found.pop(-1 if newest else self.world.rng.randrange(len(found))) if found else None
        return None

    def put(self, kind, value):
        if value:
            self.held[kind].append(value)

    def target(self):
        """Return memory that launches write to."""
        if not (kept := self.memory.get("launch")):
            made = self.door.malloc(64, 0, None)
            if (kept := self.memory.setdefault("launch", made)) != made:  # another thread was faster
                self.door.free(made)
        return kept

    def step(self, hostility):
        """Call one function: late in the program one that was never done, as nothing hostile."""
        rng = self.world.rng
        if self.world.calls >= LATE and (missing := self.never_done()):
            _, *type, name = rng.choice(missing).split(".")
            self.call(Call(self, 0), *(type or [None]), name)
            return
        if rng.random() < 0.05:
            type, names = rng.choice(RECIPES)
            for name in names:
                self.call(Call(self, 0, follows=True), type, name)
            return
        self.call(Call(self, hostility), rng.choice((None, None, None, "xpu", "cpu")))

    def call(self, call, type, name=None):
        functions = call.of_guards(type) if type else call.of_table()
        name = name or self.world.rng.choice(sorted(functions))
        path = f"door.{type}.{name}" if type else f"door.{name}"
        door, kind = self.guards.get(type, self.door), MADE.get(name)

        def function(*args):
            result = getattr(door, name)(*args)
            if kind:
                self.put(kind, result)
            return result

        args, is_done = list(functions[name]()), False
        try:
            is_done = self.world.perform(path, function, args, {}, None)
        finally:
            for each in call.after:
                each(is_done)
        self.done[path] += is_done

    def leave_scopes(self):
        """Leave the pools that this thread has entered, as far as blocks of Python allow."""
        scopes, self.held["scopes"] = self.held["scopes"], []
        for scope in reversed(scopes):
            try:
                self.door.pool_leave(scope)
            except Failed:  # another thread's, or below a block
                self.put("scopes", scope)

    def release(self):
        """End all that there is."""
        self.leave_scopes()
        for graph in self.held["graphs"]:
            with contextlib.suppress(Failed):
                self.door.graph_end(graph)
        self.guards["xpu"].unchecked_set_device(0)
        ends = {"graphs": "graph_release", "events": "event_destroy", "modules": "module_release",
                "pinned": "host_free", "pools": "pool_release", "generators": "generator_release"}  # fmt: skip
        for kind, name in ends.items():
            while self.held[kind]:
                getattr(self.door, name)(self.held[kind].pop())
        while self.held["cpu events"]:
            self.guards["cpu"].destroy_event(self.held["cpu events"].pop())
        memory = self.memory.pop("launch", None)
        self.door.free(memory)

    def never_done(self):
        """Return the functions of which no call has succeeded."""
        call = Call(self, 0)
        paths = [f"door.{name}" for name in call.of_table()]
        paths += [f"door.{type}.{name}" for type in self.guards for name in call.of_guards(type)]
        return [path for path in paths if not self.done[path] and path not in FAILS]
