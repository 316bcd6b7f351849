# SPDX-License-Identifier: Apache-2.0
"""What calls are given: what fits the parameter's name, and what nobody should give."""

import ctypes
import gc
import time
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
from l0rt import config, interface
from l0rt.memory import PluggableAllocator

from helpers.hostile_surface import ADDRESSES

SIZES = (0, 1, 4, 100, 511, 512, 513, 4096, 65536, 1 << 20, (1 << 20) + 1, 3 << 20, 20 << 20)
HUGE = (1 << 31, 1 << 32, 1 << 40, (1 << 62) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 64, 1 << 200)
ODD = (
    None, True, False, -1, -2, 2, 127, -(1 << 31), -(1 << 63), -(1 << 70), 1.5, -0.0, float("nan"), float("inf"),
    -float("inf"), 1e308, 1j, "", "x", "xpu:99", "xpu:-1", "xpu:٣", "cpu", "cpu:0", "demo:1", "meta", "\0", "a\0b",
    "\ud800", "\x1b[31m\n", "é" * 300, b"", b"ab", b"\0" * 16, bytearray(16), [], {}, (), (1, 2), set(), {"a": 1},
    {1: 2}, object, int, Ellipsis, ValueError("x"), range(3), type,
)  # fmt: skip
SPECIAL = (
    "__index__", "__int__", "__float__", "__bool__", "__len__", "__iter__", "__getitem__", "__contains__", "__call__",
    "__enter__", "__exit__", "__eq__", "__hash__", "__str__", "__repr__", "__fspath__", "__buffer__", "__del__",
    "__dlpack_device__", "__lt__", "__array_interface__", "device", "index", "type", "record_use", "_as_parameter_",
    "__class__", "device_index", "__get__",
)  # fmt: skip
PROPERTIES = {"device", "index", "type", "_as_parameter_", "device_index", "__array_interface__"}
CONF = ("max_split_size_mb:20", "garbage_collection_threshold:0.5", "expandable_segments:False", "backend:async",
        "expandable_segments:True", "roundup_power2_divisions:4", "fill_uninitialized:True", "segments:torch",
        "pinned_max_cached_size_mb:1", "", "x:y", "max_split_size_mb:")  # fmt: skip
LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype = ctypes.c_void_p
LIBC.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


class Injected(Exception):
    """What a hostile object raises."""


def arrays(rng):
    """Return a NumPy array of some odd kind."""
    n = rng.choice((0, 1, 4, 100, 512, 4096))
    made = rng.choice((
        lambda: np.zeros(n, "u1"),
        lambda: np.arange(n, dtype=">i4"),
        lambda: np.zeros((n, 2), "u1")[:, 0],
        lambda: np.array([object()] * n, dtype=object),
        lambda: np.zeros(n, [("a", "i4"), ("b", "O")]),
        lambda: np.zeros(n, [("a", "i4"), ("b", "u1")]),
        lambda: np.zeros(n, "c16"),
        lambda: np.zeros(n, "S3"),
        lambda: np.zeros(n, "U2"),
        lambda: np.zeros(n, "M8[s]"),
        lambda: np.asfortranarray(np.zeros((n, 3), "f4")),
        lambda: np.float64(1.5),
        lambda: np.int64(n),
        lambda: np.uint8(7),
        lambda: np.bool_(True),
        lambda: np.array(3),
        lambda: np.zeros((1, 0, 3)),
    ))()  # fmt: skip
    if isinstance(made, np.ndarray) and rng.random() < 0.2:
        made.flags.writeable = False
    return made


KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
SPIRV = KERNELS.read_bytes()


class Host:
    """Functions of a pluggable allocator over host memory, which do odd things on the way."""

    def __init__(self, world):
        self.world, self.live = world, {}

    def alloc(self, nbytes, device, stream):
        rng = self.world.rng
        self.world.disturb(0.3)
        odd = rng.random()
        if odd < 0.1:
            return rng.choice((None, 0, -1, "x", 1.5, 1 << 70, [], b"x"))
        if odd < 0.15:
            raise self.world.injected()
        ptr = LIBC.aligned_alloc(1 << 16, -(-nbytes // 65536) * 65536) if nbytes < 1 << 28 else None
        if ptr:
            self.live[ptr] = nbytes
        return ptr

    def free(self, ptr, nbytes, device, stream):
        if self.live.pop(ptr, None) != nbytes:
            self.world.finding(f"a pluggable free() of what its alloc() did not give: {ptr:#x}, {nbytes} bytes")
        self.world.disturb(0.3)
        LIBC.free(ptr)
        if self.world.rng.random() < 0.1:
            raise self.world.injected()

    def allocator(self):
        return PluggableAllocator(self.alloc, self.free)


class Values:
    """Makes arguments from the objects of a `World`."""

    def __init__(self, world):
        self.world = world
        self.by_name = {
            "device": self.device, "peer": self.device, "device_index": self.device, "index": self.device,
            "stream": self.stream, "event": self.event, "end_event": self.event, "nbytes": self.size,
            "size": self.size, "count": lambda: self.rng.choice((0, 1, 4, 7, 4096)), "increment": self.size,
            "source": self.memory, "dst": self.side, "src": self.side, "array": lambda: arrays(self.rng),
            "shape": lambda: self.rng.choice((0, 3, 64, (2, 3), (0, 5), -1, (-1, 4))),
            "width": lambda: self.rng.choice((0, 1, 16, 100)), "height": lambda: self.rng.choice((0, 1, 3, 10)),
            "dst_pitch": lambda: self.rng.choice((1, 16, 100, 128)),
            "src_pitch": lambda: self.rng.choice((1, 16, 100, 128)),
            "target": self.memory, "memory": self.memory, "buffer": self.buffer, "pattern": self.pattern,
            "function": self.function, "callback": self.function, "observer": self.function, "report": self.function,
            "on_oom": lambda: self.rng.choice((None, self.function())), "allocator": self.allocator,
            "alloc": lambda: self.host().alloc, "free": lambda: self.host().free, "pool": lambda: self.of("MemPool"),
            "mempool_id": self.mempool_id, "pool_id": self.mempool_id,
            "generator": lambda: self.rng.choice((None, self.of("Generator"))),
            "ptr": self.pointer, "mem_ptr": self.pointer, "seed": self.whole, "offset": self.whole, "low": self.whole,
            "high": self.whole, "priority": lambda: self.rng.choice((-1, 0, 1, 5)), "mean": self.real,
            "std": self.real, "timeout": lambda: self.rng.choice((None, 0, 0.001, 0.1, 1e9)),
            "dtype": lambda: self.rng.choice(("float32", "float16", "bfloat16", "float64", "int64", "uint8", "bool")),
            "kind": lambda: self.rng.choice(("device", "device", "host", "shared")), "path": self.path,
            "code": self.code, "constants": lambda: self.rng.choice((None, {}, {1: 2}, {2: 0.5}, {7: 1})),
            "name": self.path, "values": lambda: {self.path(): self.setting()}, "text": lambda: self.rng.choice(CONF),
            "limit": lambda: self.rng.choice((None, 1 << 20, 8 << 20, 64 << 20)),
            "fraction": lambda: self.rng.choice((0.1, 0.5, 1.0)),
            "engine": lambda: self.rng.choice(("compute", "copy")),
            "mode": lambda: self.rng.choice(("default", "warn", 0, 1, 0, 0)), "obj": self.anything,
            "streams": lambda: [self.of("Stream") for _ in range(self.rng.randrange(4))],
            "events": lambda: [self.of("Event") for _ in range(self.rng.randrange(4))],
            "devices": lambda: self.rng.choice((None, [0], [0, 1], [])), "new_state": self.state, "state": self.state,
            "new_states": lambda: [self.state(), self.state()], "saved": self.state,
            "policy": lambda: self.rng.choice((None, "block", "yield", "spin")), "value": self.setting,
            "device_name": lambda: self.rng.choice(("z", "z9", "z:1")), "device_interface": self.interface,
            "interface": self.interface, "methods": lambda: dict.fromkeys(interface.StreamMethodContainer.KEYS, len),
            "stream_id": lambda: self.rng.randrange(40), "handle": self.handle, "data_ptr": self.handle,
            "path_to_lib_file": lambda: self.rng.choice(("libc.so.6", "/nowhere.so", "")),
            "owner": self.anything, "rounds": lambda: self.rng.randrange(12),
            "counter": lambda: np.zeros(4, "u4"), "key": lambda: self.rng.choice((np.zeros(2, "u4"), self.slice())),
            "repeats": lambda: self.rng.choice((None, 0, 1, 5)), "warmup": lambda: self.rng.choice((-1, 0, 3)),
            "seconds": lambda: self.rng.choice((0.0, 1e-6, 0.01)),
            "device_type": lambda: self.rng.choice((None, "xpu")),
        }  # fmt: skip

    @property
    def rng(self):
        return self.world.rng

    # --- What fits.

    def of(self, name):
        return self.world.instance_of(name)

    def device(self):
        rng = self.rng
        return rng.choice((None, 0, 1, "xpu", "xpu:0", "xpu:1", l0rt.device("xpu", 1), -1, self.of("Stream")))

    def stream(self):
        return self.rng.choice((None, self.of("Stream"), self.of("Stream"), self.of("Stream")))

    def event(self):
        return self.of("Event")

    def size(self):
        return self.rng.choice(SIZES)

    def whole(self):
        return self.rng.choice((0, 1, 4, 7, 100, 1 << 31, (1 << 63) - 1))

    def real(self):
        return self.rng.choice((0.0, 1.0, -1.5, 1e30))

    def buffer(self):
        return self.of("Buffer") if self.rng.random() < 0.7 else self.part()

    def part(self):
        """A slice of a Buffer, for one call only; or the Buffer if it has none."""
        whole = self.of("Buffer")
        try:
            made = whole[self.slice()]
        except (TypeError, ValueError, RuntimeError):
            return whole
        self.world.records.touch(whole)
        return made

    def slice(self):
        bounds = (None, 0, 1, 7, 100, 512, -1, -100, 1 << 70)
        return slice(self.rng.choice(bounds), self.rng.choice(bounds), self.rng.choice((None, None, None, 1, 2, -1)))

    def side(self):
        """What memcpy takes, but for addresses: an address is the caller's word."""
        made = self.memory() if self.rng.random() < 0.6 else self.part()
        return made if not hasattr(type(made), "__index__") or isinstance(made, np.ndarray) else None

    def memory(self):
        """A Buffer, or host memory of a Buffer's size."""
        rng = self.rng
        kind = rng.randrange(5)
        if kind == 0:
            return arrays(rng)
        if kind == 1:
            return self.world.view()
        peer = self.of("Buffer")
        if kind < 4:
            return peer
        size = getattr(peer, "nbytes", 16)
        return bytearray(size) if isinstance(size, int) and size <= 32 << 20 else bytearray(16)

    def pattern(self):
        return bytes(self.rng.choice((1, 2, 4, 8, 16, 3)))

    def code(self):
        """A module, whole or damaged."""
        damaged = bytearray(SPIRV)
        damaged[self.rng.randrange(len(damaged))] ^= 1 << self.rng.randrange(8)
        return self.rng.choice((SPIRV, KERNELS, str(KERNELS), bytes(damaged), SPIRV[: self.rng.randrange(400)], b""))

    def host(self):
        world = self.world
        made = Host(world)
        world.hosts.append(made)
        return made

    def allocator(self):
        rng = self.rng
        return self.host().allocator() if rng.random() < 0.3 else None

    def function(self):
        return self.world.callback("callback")

    def mempool_id(self):
        return self.rng.choice((None, (0, 0), (0, 1), self.of("MemPool")))

    def pointer(self):
        """An address: allocated raw, of a Buffer, inside of one, or of nothing."""
        rng, world = self.rng, self.world
        raw = list(world.raw)
        return rng.choice((0, rng.choice(raw) if raw else 0, rng.choice(raw) + 1 if raw else 1, 4096, 1 << 47))

    def state(self):
        rng = self.rng
        return rng.choice((bytes(16), bytes(8), np.zeros(16, "u1"), (0, 0), self.of("Generator")))

    def path(self):
        return self.rng.choice(sorted(config._SETTINGS))

    def setting(self):
        return self.rng.choice((0, 1, 7, 255, "0", "1", "none", "", "auto", "block", "tf32", "20", None))

    def interface(self):
        return self.rng.choice((interface.DeviceInterface, interface.XpuInterface))

    def handle(self):
        """Never a plain address: whoever gives one to adopt vouches for it."""
        return self.rng.choice((0, -1, 1 << 64, None, "x"))

    def anything(self):
        rng, world = self.rng, self.world
        if rng.random() < 0.5:
            return world.instance_of(rng.choice(world.class_names))
        return rng.choice(ODD)

    # --- What does not.

    def odd(self, name):
        """Return something that nobody should give for the parameter ``name``."""
        rng = self.rng
        kind = rng.randrange(10)
        if kind < 3:
            made = rng.choice(ODD)
        elif kind == 3:
            made = rng.choice(HUGE)
        elif kind == 4:
            made = arrays(rng)
        elif kind < 7:
            made = self.hostile()
        elif kind == 7:
            made = [self.anything() for _ in range(rng.randrange(4))]
        else:
            made = self.anything()
        if name in ADDRESSES and hasattr(type(made), "__index__") and not isinstance(made, bool):
            return None
        if name in ("rounds", "count", "repeats", "warmup") and isinstance(made, int) and made > 4096:
            return 17  # so much work was asked for
        if name == "seconds" and isinstance(made, (int, float)) and made > 0.1:
            return 0.01
        return made

    def hostile(self):
        """Return an object whose methods do what no method should."""
        rng, world = self.rng, self.world
        base = rng.choice((object, object, object, object, int, str, float, bytes, list, dict, tuple))
        body = {}
        for name in rng.sample(SPECIAL, rng.randrange(1, 6)):
            body[name] = self.special(name, rng.random() < 0.5)
            if name == "__eq__" and "__hash__" not in body:
                body["__hash__"] = base.__hash__
        body.pop("__class__", None)
        try:
            made = type(f"Hostile{base.__name__.title()}", (base,), body)
            return made(7) if base is int else made("x") if base is str else made()
        except TypeError:
            return world.injected()

    def special(self, name, acts):
        """Return a method of that name which first does harm, if it ``acts``, and then answers."""
        world = self.world
        answers = {
            "__index__": 1, "__int__": 1, "__float__": 0.5, "__bool__": True, "__len__": 2, "__iter__": iter(()),
            "__getitem__": 0, "__contains__": True, "__call__": None, "__enter__": None, "__exit__": False,
            "__eq__": True, "__hash__": 7, "__str__": "xpu", "__repr__": "odd", "__fspath__": "/nowhere/at/all",
            "__buffer__": memoryview(b"abcd"), "__dlpack_device__": (14, 1), "__lt__": True, "device": None,
            "index": 1, "type": "xpu", "_as_parameter_": 0, "device_index": 1,
        }  # fmt: skip
        answer = answers.get(name)
        if world.rng.random() < 0.15:
            answer = world.rng.choice(ODD)

        def method(self, *args, **kwargs):
            if acts:
                world.disturb(1.0, in_destructor=name == "__del__")
            return answer

        method.__name__ = method.__qualname__ = name
        return property(method) if name in PROPERTIES else method


def harm(world):
    """Do one thing that the caller of a hostile object's method does not expect."""
    kind = world.rng.randrange(12)
    if kind == 0:
        raise world.injected()
    if kind == 1:
        world.interrupt()
    else:
        with world.shielded():
            do(world, kind)


def do(world, kind):
    rng = world.rng
    if kind == 2:
        world.free_in_use()
    elif kind == 3:
        world.drop(rng.randrange(1, 4))
    elif kind == 4:
        l0rt.xpu.set_device(rng.randrange(2))
    elif kind == 5:
        acc.set_stream(world.good("Stream"))
    elif kind == 6:
        world.fork(2)
    elif kind == 7:
        world.thread(2)
    elif kind == 8:
        kind = rng.choice(("device", "host", "shared"))
        world.perform("l0rt.empty", l0rt.empty, [rng.choice(SIZES)], {"kind": kind}, None)
    elif kind == 9:
        gc.collect()
    elif kind == 10:
        time.sleep(0)
    else:
        world.step()
