# SPDX-License-Identifier: Apache-2.0
"""The whole facade with another accelerator current: each call reaches that one, or says that it does not.

A call that went to the built-in accelerator instead would be answered, wrongly, and nobody would know.
"""

import inspect
import threading
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt import memory
from l0rt.interface import DeviceInterface, register_interface_for_device

told = []  # what the spy was asked for


class SpyStream:
    device_type, device_index = "spy", 1

    def __init__(self, *args, **kwargs):
        told.append("Stream")
        self.device = l0rt.device("spy:1")

    def wait_event(self, event):
        told.append("wait_event")

    wait_stream = wait_event

    def query(self):
        told.append("query")
        return True

    def synchronize(self):
        told.append("synchronize")

    def __enter__(self):
        told.append("enter")

    def __exit__(self, *failure):
        pass


class SpyEvent(SpyStream):
    wait_stream = None

    def record(self, stream=None):
        told.append("record")

    def __getattribute__(self, name):
        if name == "wait_stream":
            raise AttributeError(name)
        return super().__getattribute__(name)


class SpyPool(SpyStream):
    """A private pool, and the block in which it is used."""


class SpyGenerator(SpyStream):
    def initial_seed(self):
        told.append("seed")
        return 1

    seed = initial_seed

    def manual_seed(self, seed):
        told.append("seed")

    set_state = manual_seed

    def get_state(self):
        told.append("state")
        return b""


ANSWERS = {
    "device_count": 2, "current_device": 0, "exchange_device": 0, "maybe_exchange_device": 0, "memory_stats": {},
    "mem_get_info": (0, 1), "supported_dtypes": {"uint8"}, "memory_snapshot": [], "is_available": True,
    "get_device_properties": SimpleNamespace(name="a spy"),
}  # fmt: skip
MADE = dict.fromkeys(("current_stream", "default_stream", "stream"), SpyStream)
MADE |= {"default_generator": SpyGenerator, "use_mem_pool": SpyPool}


def recorder(name):
    def answer(*args, **kwargs):
        told.append(name)
        return MADE[name]() if name in MADE else ANSWERS.get(name)

    return staticmethod(answer)


def make_spy():
    members = {name: recorder(name) for name in dir(DeviceInterface) if not name.startswith("__")}
    members.update(Stream=SpyStream, Event=SpyEvent, Generator=SpyGenerator, MemPool=SpyPool)
    return type("SpyInterface", (DeviceInterface,), members)


# What is nobody's in particular: a setting of the process, a question for the choice itself.
NEUTRAL = {"set_accelerator", "current_accelerator", "get_sync_debug_mode", "set_sync_debug_mode"}
DEVICES = {"device", "device_index", "peer"}
GIVEN = {
    "stream": SpyStream, "streams": lambda: [SpyStream()], "seed": lambda: 3, "new_state": lambda: b"",
    "new_states": lambda: [b"", b""], "limit": lambda: 1 << 20, "fraction": lambda: 0.5, "observer": lambda: print,
    "pool": SpyPool, "mode": lambda: 0, "devices": lambda: [0, 1], "size": lambda: 64,
    "graph": object,
}  # fmt: skip
POOL = ("lease", "copy_stream", "state")
FACADE = {name: getattr(acc, name) for name in acc.__all__ if callable(getattr(acc, name)) and name not in NEUTRAL}
FACADE.update({f"stream_pool.{name}": getattr(acc.stream_pool, name) for name in POOL})


@pytest.fixture(autouse=True)
def spy():
    """Leave the built-in accelerator as it was found: a call that went there would have left a trace."""
    register_interface_for_device("spy", make_spy())

    def state():
        streams = [xpu.current_stream(i).stream_id for i in range(xpu.device_count())]
        peaks = {k: v for k, v in memory.memory_stats().items() if "peak" in k}
        return xpu.current_device(), streams, xpu.get_rng_state_all(), memory.get_memory_limit(), peaks

    xpu.init()
    before = state()
    acc.set_accelerator("spy")
    yield
    acc.set_accelerator("xpu")
    assert state() == before


def call(function, device=(), with_stream=True):
    """Call with what it needs, the device among it if one is given; enter what is a block."""
    positional, keywords = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            if not function.__name__.endswith("Stream"):
                positional.append(SpyEvent())
        elif p.name in DEVICES and device != ():
            (positional.append if p.kind is p.POSITIONAL_ONLY else lambda v, name=p.name: keywords.update({name: v}))(
                device)
        elif (p.default is p.empty or (with_stream and p.name == "stream")) and p.kind is not p.VAR_KEYWORD:
            given = 0 if p.name in DEVICES else GIVEN[p.name]()
            is_positional = p.kind is not p.KEYWORD_ONLY and not keywords
            (positional.append if is_positional else lambda v, name=p.name: keywords.update({name: v}))(given)
    told.clear()
    result = function(*positional, **keywords)
    if hasattr(result, "__enter__") and not isinstance(result, type):
        with result:
            pass
    return result


def outcome(*arguments, **keywords):
    """What `call` returns and None, or None and what it raises."""
    try:
        return call(*arguments, **keywords), None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def takes_device(function):
    try:
        return bool(DEVICES & set(inspect.signature(function).parameters))
    except (TypeError, ValueError):
        return False


@pytest.mark.parametrize(("name", "device"), [
    (name, device) for name, function in FACADE.items() for device in ((), 1, "spy:1", l0rt.device("cpu"))
    if device == () or takes_device(function)
])  # fmt: skip
def test_each_call_reaches_the_current_accelerator_or_names_the_type(name, device):
    function = FACADE[name]
    if device == () and name == "OptionalDeviceGuard":
        device = 0  # empty it changes nothing
    meant = "cpu" if device == l0rt.device("cpu") else "spy"
    result, error = outcome(function, device)
    if error is not None:
        assert meant in error
    elif meant == "spy":
        assert told, result
    else:
        assert str(result.device).startswith("cpu"), result


NEED_MORE = {"set_accelerator", "register", "get_stream_from_external"}  # a type, an array, a native handle
PLACES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (acc, memory, xpu) for name in module.__all__ if name not in NEED_MORE
}  # fmt: skip


@pytest.mark.parametrize("place", [place for place, function in PLACES.items() if takes_device(function)])
@pytest.mark.parametrize("device", ["cpu", "spy:0"])
def test_with_the_built_in_one_current_a_device_of_another_type_is_told(place, device, monkeypatch):
    acc.set_accelerator("xpu")
    monkeypatch.setitem(GIVEN, "pool", memory.MemPool)
    monkeypatch.setitem(GIVEN, "pool_id", memory.MemPool)
    monkeypatch.setitem(GIVEN, "state", lambda: memory.get_checkpoint_state(0, memory.MemPool()))
    monkeypatch.setitem(GIVEN, "expected_live_allocations", list)
    result, error = outcome(PLACES[place], device, with_stream=False)
    if error is None:
        assert str(result.device).startswith(device.partition(":")[0]), "silently the built-in accelerator's"
    else:
        assert device.partition(":")[0] in error


def test_a_stream_pool_lends_streams_of_the_built_in_type_only():
    for device in (None, 0, "spy:1", "cpu"):
        for function in (acc.stream_pool.lease, acc.stream_pool.copy_stream, acc.stream_pool.state):
            with pytest.raises(NotImplementedError, match="device type (spy|cpu) has no stream pool"):
                function(device)
    with acc.stream_pool.lease("xpu:0") as stream:
        assert isinstance(stream, xpu.Stream)


@pytest.fixture
def poor():
    """A type whose interface has no pools."""
    register_interface_for_device("poor", type("Poor", (DeviceInterface,), {"device_count": staticmethod(lambda: 2)}))
    acc.set_accelerator("poor")


def test_a_type_without_private_pools_says_so(poor):
    pool = memory.MemPool()
    for make in (acc.MemPool, acc.memory.MemPool, lambda: acc.MemPool(limit=1 << 20)):
        with pytest.raises(NotImplementedError, match="device type poor has no private memory pools"):
            make()
    for device in (None, 0, "poor:1", "cpu"):
        with pytest.raises(NotImplementedError, match="device type (poor|cpu) has no private memory pools"):
            acc.use_mem_pool(pool, device)


def test_a_pool_of_the_built_in_type_is_used_on_its_devices_only():
    pool = memory.MemPool()
    assert isinstance(pool, acc.MemPool)
    for device in (None, 0, "spy:1"):
        with pytest.raises(TypeError, match="a pool of device type spy, got one of xpu"):
            acc.use_mem_pool(pool, device)
    with acc.use_mem_pool(pool, "xpu:0"), memory.use_mem_pool(pool), memory.use_mem_pool(pool, 0):
        assert pool.use_count() == 4
    with pytest.raises(IndexError):
        acc.use_mem_pool(SpyPool(), 2)


def test_a_pool_is_of_the_current_accelerator():
    class Own(acc.MemPool):
        """A subclass is what it derives from: the built-in type's."""

    assert type(acc.MemPool()) is SpyPool
    assert type(acc.memory.MemPool(limit=3)) is SpyPool
    for make in (memory.MemPool, xpu.MemPool, Own):
        assert isinstance(make(limit=1 << 20), acc.MemPool)
        assert make(limit=1 << 20).limit == 1 << 20
    acc.set_accelerator("xpu")
    assert type(acc.MemPool()) is memory.MemPool
    with pytest.raises(TypeError, match="unexpected keyword argument 'limits'"):
        acc.MemPool(limits=3)


class Flag(SpyEvent):
    """An event that somebody sets."""

    def __init__(self, after=0):
        super().__init__()
        self.asked, self.after = 0, after

    def query(self):
        self.asked += 1
        return self.asked > self.after


@pytest.mark.checks_data
def test_many_of_any_type_are_waited_for():
    never = float("inf")
    own, host = l0rt.Event("xpu:0"), l0rt.Event("cpu")
    assert acc.wait_any(Flag(never), Flag(5), timeout=60) == 1
    assert acc.wait_any(Flag(never), own, host) == 1
    assert acc.wait_any(Flag(never), xpu.Stream(0)) == 1
    assert acc.wait_any(Flag(never), l0rt.Stream("cpu"), timeout=60) == 1
    assert acc.wait_any(Flag(never), timeout=0.001) is None
    assert acc.wait_all(own, host, Flag(3), SpyStream(), xpu.Stream(0), timeout=60) is True
    assert acc.wait_all(own, Flag(never), timeout=0.001) is False
    assert acc.wait_all(SpyEvent(), host) is None
    for wait in (acc.wait_all, acc.wait_any):
        for wrong in (3, None, SpyEvent, object()):
            with pytest.raises(TypeError, match="expected Events and Streams, got"):
                wait(SpyEvent(), wrong)


def test_a_stream_waits_for_events_of_its_own_type():
    told.clear()
    acc.wait_all(SpyEvent(), SpyStream(), stream=SpyStream())
    assert told.count("wait_event") == 2
    for stream, other in ((xpu.Stream(0), SpyEvent()), (SpyStream(), l0rt.Event("xpu:0")), (xpu.Stream(0), SpyStream()),
                          (SpyStream(), xpu.Stream(0)), (l0rt.Stream("cpu"), SpyEvent())):  # fmt: skip
        told.clear()
        with pytest.raises(ValueError, match=r"a stream of (\w+) cannot wait for an? \w+ of (?!\1)\w+: the host can"):
            acc.wait_all(other, stream=stream)
        assert "wait_event" not in told
    acc.wait_all(l0rt.Event("cpu"), stream=l0rt.Stream("cpu"))
    for wrong in (3, "spy", object()):
        with pytest.raises(TypeError, match="expected a Stream, got"):
            acc.wait_all(SpyEvent(), stream=wrong)


@pytest.mark.checks_data
def test_a_stream_of_the_built_in_type_makes_its_own_events():
    told.clear()
    event = xpu.Stream(0).record_event()
    assert (type(event), event.device) == (l0rt.Event, l0rt.device("xpu:0"))
    event.synchronize()
    assert "Stream" not in told


@pytest.mark.checks_data
@pytest.mark.shares_events
def test_an_event_of_another_process_is_of_the_built_in_type():
    event = l0rt.Event("xpu:0", interprocess=True)
    event.record(xpu.Stream(0))
    event.synchronize()
    handle = event.ipc_handle()
    assert type(l0rt.Event.from_ipc_handle("xpu:0", handle)) is l0rt.Event


def test_ctrl_c_ends_a_wait_for_others():
    import signal

    class Raises(Flag):
        def query(self):
            if self.asked == 0:
                signal.raise_signal(signal.SIGINT)
            return super().query() and False

    assert threading.current_thread() is threading.main_thread()
    with pytest.raises(KeyboardInterrupt):
        acc.wait_any(Raises())
