# SPDX-License-Identifier: Apache-2.0
"""A second accelerator: two devices of plain host memory, whose streams are threads that work through a queue."""

import ctypes
import queue
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import l0rt
from l0rt.interface import DeviceInterface, register_allocator, register_interface_for_device
from l0rt.runtime.alloc.allocator import Allocator
from l0rt.runtime.lazy import LazyInit

from helpers.plain import PlainMemory

DEVICES = 2
CAPACITY = 64 << 20
_local = threading.local()
_workers = {}  # (device index, number) -> what its thread has to do
opened = []  # one entry each time the device type was opened


def _open():
    opened.append(True)
    for _ in range(DEVICES):
        _allocators.append(Allocator(PlainMemory(CAPACITY)))


def _work_through(work):
    while True:
        work.get()()


def index_of(named):
    """The index in an int, a name or a device."""
    return named if isinstance(named, int) else l0rt.device(named).index or 0


_allocators = []
lazy = LazyInit("demo", _open)


class DemoStream:
    """A thread that does one thing after the other; the object is one of any number of handles to it."""

    def __init__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        lazy.init()
        named = device_index if device is None else device
        self.device_index = _current().index if named is None else index_of(named)
        self.stream_id = len(_workers) + 1 if stream_id is None else stream_id
        self.device_type, self.device = "demo", l0rt.device("demo", self.device_index)
        self.work = _workers.get((self.device_index, self.stream_id))
        if self.work is None:
            self.work = _workers[self.device_index, self.stream_id] = queue.SimpleQueue()
            threading.Thread(target=_work_through, args=(self.work,), daemon=True).start()

    def __eq__(self, other):
        return isinstance(other, DemoStream) and self.work is other.work

    def __hash__(self):
        return hash((self.device_index, self.stream_id))

    def submit(self, function):
        """Run ``function`` after everything given so far."""
        self.work.put(function)

    def record_event(self, event=None):
        event = event or DemoEvent()
        event.record(self)
        return event

    def wait_event(self, event):
        self.submit(event.flag.wait)

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def query(self):
        return self.work.empty()

    def synchronize(self):
        self.record_event().synchronize()

    def __enter__(self):
        _stack().append((_current().index, dict(_current().streams)))
        set_stream(self)
        return self

    def __exit__(self, *failure):
        _current().index, _current().streams = _stack().pop()


class DemoEvent:
    """A flag that a stream raises when it comes by."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        self.flag = threading.Event()
        self.flag.set()  # nothing was recorded: complete

    def record(self, stream=None):
        self.flag = threading.Event()
        (stream or current_stream()).submit(self.flag.set)

    def wait(self, stream=None):
        (stream or current_stream()).wait_event(self)

    def query(self):
        return self.flag.is_set()

    def synchronize(self):
        self.flag.wait()


class DemoGenerator:
    """A seed, and nothing that would use it."""

    def __init__(self):
        self.state = 0

    def manual_seed(self, seed):
        self.state = seed
        return self

    def seed(self):
        self.state = 4711
        return self.state

    def initial_seed(self):
        return self.state

    def get_state(self):
        return self.state.to_bytes(8, "little")

    def set_state(self, state):
        self.state = int.from_bytes(bytes(state), "little")


_generators = [DemoGenerator() for _ in range(DEVICES)]


def _current():
    if not hasattr(_local, "now"):
        _local.now = SimpleNamespace(index=0, streams={})
    return _local.now


def _stack():
    return _local.__dict__.setdefault("stack", [])


def default_stream(device=None):
    return DemoStream(_current().index if device is None else device, stream_id=0)


def current_stream(device=None):
    lazy.init()
    index = _current().index if device is None else device
    return _current().streams.get(index) or default_stream(index)


def set_stream(stream):
    _current().streams[stream.device_index] = stream
    _current().index = stream.device_index


def exchange_device(index):
    before = _current().index
    if index >= 0:
        lazy.init()
        _current().index = index
    return before


def synchronize(device=None):
    index = _current().index if device is None else device
    for owner, number in list(_workers):
        if owner == index:
            DemoStream(owner, stream_id=number).synchronize()


def allocator(index=None):
    lazy.init()
    return _allocators[_current().index if index is None else index]


@contextmanager
def device_guard(index):
    before = exchange_device(index)
    try:
        yield
    finally:
        exchange_device(before)


class DemoAllocator:
    """Opens the device type at the first use of its memory."""

    def __init__(self, index):
        self.index = index

    def malloc(self, nbytes, stream=0):
        return allocator(self.index).malloc(nbytes, stream)

    def free(self, ptr, stream=None):
        allocator(self.index).free(ptr, stream)

    def record_stream(self, ptr, stream):
        allocator(self.index).record_stream(ptr, stream)


def register():
    """Register the device type, and an allocator for each of its devices."""
    register_interface_for_device("demo", DemoInterface)
    for index in range(DEVICES):
        register_allocator("demo", index, DemoAllocator(index))


class DemoInterface(DeviceInterface):
    """Plain functions as class attributes, as the registry wants them."""

    Stream = DemoStream
    Event = DemoEvent
    device = device_guard
    init = lazy.init
    current_stream = current_stream
    default_stream = default_stream
    set_stream = set_stream
    exchange_device = exchange_device
    maybe_exchange_device = exchange_device
    set_device = exchange_device
    synchronize = synchronize

    def device_count():
        return DEVICES

    def current_device():
        return _current().index

    def stream(stream):
        return stream

    def default_generator(device=None):
        return _generators[_current().index if device is None else device]

    def memory_stats(device=None):
        return allocator(device).stats()

    def reset_peak_memory_stats(device=None):
        allocator(device).reset_peak_stats()

    def reset_accumulated_memory_stats(device=None):
        allocator(device).reset_accumulated_stats()

    def empty_cache():
        for each in _allocators:
            each.empty_cache()

    def empty_host_cache():
        """There is none."""

    def mem_get_info(device=None):
        return CAPACITY - allocator(device).memory.counters["used"], CAPACITY

    def set_memory_limit(limit, device=None):
        allocator(device).set_limit(limit)

    def get_device_properties(device=None):
        return SimpleNamespace(name="a demonstration")

    def supported_dtypes(device=None):
        return {"uint8"}

    def can_device_access_peer(device=None, peer=None):
        return True

    def copy_memory(target, source, nbytes, stream):
        stream.submit(lambda: ctypes.memmove(target, source, nbytes))

    def fill_memory(target, pattern, nbytes, stream):
        stream.submit(lambda: ctypes.memmove(target, pattern * (nbytes // len(pattern)), nbytes))
