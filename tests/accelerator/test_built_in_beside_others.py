# SPDX-License-Identifier: Apache-2.0
"""`l0rt.xpu` and `l0rt.memory` are the built-in device type's, whatever accelerator is current."""

import inspect
import io

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt import memory
from l0rt.interface import DeviceInterface, register_interface_for_device

told = []  # what the other accelerator was asked for
DEVICES = {"device", "peer"}
GIVEN = {
    "stream": lambda: xpu.Stream(0), "pool": memory.MemPool, "seed": lambda: 3, "new_state": lambda: bytes(16),
    "new_states": lambda: [bytes(16)], "limit": lambda: None, "fraction": lambda: 1.0, "size": lambda: 64,
    "observer": lambda: lambda device, nbytes, allowed, free: False, "mem_ptr": lambda: 0, "ptr": lambda: 0,
    "buffer": lambda: l0rt.empty(64, device="xpu:0"), "obj": lambda: l0rt.empty(64, device="xpu:0"),
    "memory": lambda: bytearray(1 << 16), "data_ptr": xpu.current_raw_stream,
    "what": lambda: xpu.get_device_properties(0).uuid,
    "path_to_lib_file": l0rt.cpu_driver_path, "alloc_fn_name": lambda: "zeInit", "free_fn_name": lambda: "zeInit",
    "xpu_graph": xpu.XPUGraph, "callables": lambda: lambda x: None,
    "sample_args": lambda: (l0rt.empty(64, device="xpu:0"),),
    "name": lambda: "part", "metadata": lambda: "",
    "upstream": lambda: None, "callback": lambda: lambda nbytes: False, "log": io.StringIO,
    "pool_id": memory.MemPool, "state": lambda: memory.get_checkpoint_state(0, memory.MemPool()),
    "expected_live_allocations": list,
    "alloc": lambda: lambda size, device, stream: 0, "free": lambda: lambda ptr, size, device, stream: None,
}  # fmt: skip
# Nobody makes a registration or a checkpoint; an allocator can be put in place of l0rt's only before the first
# allocation, and a context before the first use; settings; a file is written, and recording goes on.
NEED_MORE = {
    "Adaptor", "LimitingAdaptor", "PoolCheckpoint", "Registration", "adopt_context", "caching_allocator_enable",
    "change_current_allocator", "dump_history", "dump_snapshot", "enable_leak_report", "enable_oom_snapshot",
    "pop_stats_scope",
    "push_stats_scope",
    "record_memory_history", "set_alloc_conf",
}  # fmt: skip
PLACES = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (memory, xpu) for name in module.__all__
    if callable(getattr(module, name)) and name not in NEED_MORE
}  # fmt: skip


def recorder(name):
    def answer(*args, **kwargs):
        told.append(name)
        return 0

    return staticmethod(answer)


@pytest.fixture(autouse=True)
def other():
    members = {name: recorder(name) for name in dir(DeviceInterface) if not name.startswith("__")}
    register_interface_for_device("beside", type("BesideInterface", (DeviceInterface,), members))
    xpu.init()
    states, stream = xpu.get_rng_state_all(), xpu.current_stream()
    acc.set_accelerator("beside")
    told.clear()
    yield
    acc.set_accelerator("xpu")
    xpu.set_rng_state_all(states)
    xpu.set_stream(stream)
    memory.set_memory_limit(None, 0)
    memory.empty_cache()


def call(function, device):
    positional, keywords = [], {}
    for p in inspect.signature(function).parameters.values():
        named = p.name in DEVICES
        if named and (device is not None or p.default is p.empty):
            value = 0 if device is None else device
        elif p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            value = GIVEN[p.name]()
        else:
            continue
        if p.kind is p.KEYWORD_ONLY or keywords:
            keywords[p.name] = value
        else:
            positional.append(value)
    result = function(*positional, **keywords)
    if hasattr(result, "__enter__"):
        with result:
            pass
    if hasattr(result, "unregister"):
        result.unregister()
    if function is memory.attach_oom_observer:
        result()
    if function is memory.caching_allocator_alloc:
        memory.caching_allocator_delete(result)
    return result


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("device", [None, 0, "xpu:0"])
def test_a_call_is_for_the_built_in_type(place, device):
    try:
        result = call(PLACES[place], device)
    except l0rt.UnsupportedError:  # by this driver: it was asked
        result = None
    assert told == []
    assert str(getattr(result, "device", "xpu")).startswith("xpu")


@pytest.mark.parametrize(
    "place", [p for p, function in PLACES.items() if DEVICES & set(inspect.signature(function).parameters)]
)
@pytest.mark.parametrize("device", ["beside:0", "cpu"])
def test_a_device_of_another_type_is_refused_by_its_name(place, device):
    with pytest.raises((ValueError, NotImplementedError, RuntimeError), match=device.partition(":")[0]):
        call(PLACES[place], device)
    assert told == []
