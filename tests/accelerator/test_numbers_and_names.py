# SPDX-License-Identifier: Apache-2.0
"""Whatever is an index, a size or a seed is taken from every kind of whole number, and a device from every namer.

The whole facade is walked: a parameter that this file does not know is a failure, so that no new one escapes.
"""

import ctypes
import gc
import inspect
import io
import warnings
from pathlib import Path
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import config, interface, memory
from l0rt.runtime.streams import devices

MODULES_BY_NAME = {"l0rt": l0rt, "accelerator": acc, "xpu": xpu, "memory": memory, "interface": interface}
DEVICES = {"device", "device_index", "peer", "devices"}
NUMBERS = {
    "address": 0, "dst_pitch": 16, "height": 2, "increment": 8, "index": 0, "limit": 1 << 40, "mem_ptr": 0, "mode": 1,
    "nbytes": 64, "offset": 4, "pid": 0, "priority": 0, "ptr": 0, "seed": 3, "size": 64, "src_pitch": 16,
    "stream_id": 0, "width": 8,
}  # fmt: skip
# Names that mean a number in some functions only.
SOMETIMES = {
    ("Buffer.fill", "value"): 5, ("l0rt.memset", "value"): 5, ("Buffer.randint_", "low"): 0,
    ("Buffer.randint_", "high"): 9,
}  # fmt: skip
OTHERS = set("""
    abbreviated addressing advice alloc alloc_fn_name allocator allow_unused_input aot_mode args array
    augment_with_fx_traces backup base blocking buffer callables callback capture_error_mode capture_stacks cb
    check_available clear_history code compile_only constants context copy data_ptr debug_path device_interface
    device_name device_type dst dtype enable_timing enabled end_event engine event events expected_live_allocations
    filename filter fn format fraction free free_fn_name function generator graph handle headers high hook include_dirs
    include_traces including_emulation interprocess keep_graph kind kwargs lambd lazy log low max_entries mean memory
    mempool_id message metadata methods name new_state new_states no_split non_blocking normalized num_warmup_iters
    numa obj observer on_oom options origin owner p path path_to_lib_file pattern policy pool pool_id
    record_pinned_host_memory sample_args shape skip_actions source specialize_on src stacks stale state std stream
    streams synchronize_before_release table tags target text timeout trusted type upstream use_on_oom value values
    what where xpu_graph
""".split())  # fmt: skip
NOT_OURS = {"DeviceInterface", "CpuInterface"}  # functions that refuse everything, or every name of a GPU
TYPES_ONLY = {"set_accelerator", "get_interface_for_device", "register_interface_for_device"}
REFUSES = {"is_triton_capable", "raise_if_triton_unavailable"}  # whatever the device
HANDLES = {"adopt_context", "from_handle", "from_usm"}
HANDLES |= {"from_ipc_handle", "get_stream_from_external", "XPUPluggableAllocator", "register"}
COMPILERS = {"compile", "specialize"}


class Number:
    """A number by its ``__index__`` alone."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


class Whole(int):
    """An int of another class."""

    __repr__ = object.__repr__


def made(name):
    """An object whose methods are tried."""
    return {
        "Buffer": lambda: l0rt.empty(64),
        "Event": lambda: acc.current_stream().record_event(),
        "Generator": l0rt.Generator,
        "Stream": acc.Stream,
        "MemPool": memory.MemPool,
        "LimitingAdaptor": lambda: memory.LimitingAdaptor(None, 1 << 30),
        "StatisticsAdaptor": lambda: memory.StatisticsAdaptor(None),
        "TrackingAdaptor": lambda: memory.TrackingAdaptor(None),
        "LoggingAdaptor": lambda: memory.LoggingAdaptor(None, io.StringIO()),
        "FailureCallbackAdaptor": lambda: memory.FailureCallbackAdaptor(None, lambda nbytes: False),
        "Adaptor": lambda: memory.StatisticsAdaptor(None),
        "DeviceGuard": lambda: acc.DeviceGuard(0),
        "OptionalDeviceGuard": acc.OptionalDeviceGuard,
        "StreamGuard": lambda: acc.StreamGuard(acc.current_stream()),
        "OptionalStreamGuard": acc.OptionalStreamGuard,
        "MultiStreamGuard": lambda: acc.MultiStreamGuard([acc.current_stream()]),
    }[name]()


def parameters(function):
    try:
        return [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    except ValueError:
        return []


def callables():
    """Yield (name, how to get it) of every function, class and method of the facade."""
    for place, module in MODULES_BY_NAME.items():
        for name in sorted(module.__all__):
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value) or name in NOT_OURS:
                continue
            if isinstance(value, type) and issubclass(value, Exception):
                continue
            yield f"{place}.{name}", lambda value=value: value
            for member in dir(value) if isinstance(value, type) else ():
                found = inspect.getattr_static(value, member)
                if member.startswith("_") or isinstance(found, (property, type)):
                    continue
                if not callable(getattr(value, member)):
                    continue
                if isinstance(found, (staticmethod, classmethod)) or place == "interface":
                    yield f"{place}.{name}.{member}", lambda value=value, member=member: getattr(value, member)
                else:
                    yield f"{place}.{name}.{member}", lambda name=name, member=member: getattr(made(name), member)
    for name in ("lease", "copy_stream", "state"):
        yield f"accelerator.stream_pool.{name}", lambda name=name: getattr(acc.stream_pool, name)


def is_called(name):
    """Is it left to other tests: it needs a native handle or a compiler, or is a table of what is tried elsewhere?"""
    return not (HANDLES | COMPILERS | TYPES_ONLY | REFUSES) & set(name.split("."))


def value_of(name, parameter):
    short = ".".join(name.split(".")[-2:])
    return SOMETIMES.get((short, parameter), NUMBERS.get(parameter))


def places():
    for name in CALLABLES:
        for p in parameters(static(name)):
            if is_called(name) and (p.name in DEVICES or value_of(name, p.name) is not None):
                yield pytest.param(name, p.name, id=f"{name}({p.name})")


def static(name):
    place, *path = name.split(".")
    value = MODULES_BY_NAME[place]
    for part in path:
        value = getattr(value, part)
    return value


CALLABLES = dict(callables())
SAMPLES = {
    "type": lambda: "cpu",
    "allocator": lambda: interface.get_allocator("cpu"),
    "alloc": lambda: lambda nbytes, device, stream: 0,
    "device_interface": lambda: interface.XpuInterface,
    "dtype": lambda: "float32",
    "fraction": lambda: 0.5,
    "free": lambda: lambda ptr, nbytes, device, stream: None,
    "new_state": lambda: bytes(16),
    "array": lambda: np.zeros(4, np.uint8),
    "advice": lambda: "read_mostly",
    "buffer": lambda: l0rt.empty(64, kind="shared"),
    "code": lambda: Path(__file__).parents[1] / "kernels/add.spv",
    "dst": lambda: l0rt.empty(64),
    "shape": lambda: 4,  # is NumPy's to judge
    "src": lambda: l0rt.empty(64),
    "pool": memory.MemPool,
    "pool_id": memory.MemPool,
    "state": lambda: memory.get_checkpoint_state(0, memory.MemPool()),
    "expected_live_allocations": list,
}


def outcome(name, parameter, value):
    """Return the kind of what the call returns or raises, with ``value`` as the one parameter."""
    function = CALLABLES[name]()
    positional, keywords, has_gap = [], {}, False
    for p in parameters(function):
        if p.name == parameter:
            given = value
        elif p.default is not p.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            if p.kind is p.POSITIONAL_ONLY:
                positional.append(p.default)
            has_gap |= p.kind is p.POSITIONAL_OR_KEYWORD
            continue
        elif p.name in DEVICES:
            given = 0
        elif p.name in SAMPLES:
            given = SAMPLES[p.name]()
        else:
            given = value_of(name, p.name)
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and not keywords and not has_gap:
            positional.append(given)
        else:
            keywords[p.name] = given
    if parameter == "device_index" and name.endswith(".Stream"):
        keywords["stream_id"] = 0
    owner = getattr(function, "__self__", None)
    try:
        if name.startswith("accelerator.") and "Guard" in name and owner is not None:
            with owner:
                result = function(*positional, **keywords)
        else:
            result = function(*positional, **keywords)
        if name.endswith("push_stats_scope"):
            memory.pop_stats_scope()
        elif hasattr(result, "__enter__") and not isinstance(result, type):
            with result:
                pass
        if name.endswith("caching_allocator_alloc"):
            memory.caching_allocator_delete(result)
        if name.endswith("Adaptor.malloc"):
            owner.free(result)
        return type(result).__name__
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        acc.set_device_index(0)
        acc.set_stream(acc.default_stream(0))
        acc.set_sync_debug_mode(0)
        memory.set_memory_limit(None)
        gc.collect(0)


def test_every_parameter_is_known():
    told = {p.name for name in CALLABLES for p in parameters(static(name))}
    assert told - DEVICES - set(NUMBERS) - OTHERS == set()


@pytest.mark.parametrize(("name", "parameter"), list(places()))
def test_every_kind_of_number_and_name_is_taken(name, parameter):
    number = 0 if parameter in DEVICES else value_of(name, parameter)
    wrap = (lambda v: [v]) if parameter == "devices" else (lambda v: v)
    expected = outcome(name, parameter, wrap(number))
    lacks = "is not known: " in expected and not devices.properties(0)["is_software"]  # as a card may lack a sensor
    lacks = lacks or expected.endswith(("has no images", "has no samplers"))
    if lacks or "fdinfo" in expected:  # of a device that is no GPU the kernel tells nothing
        assert expected.startswith("UnsupportedError")
    elif "system management" not in expected or devices.card(0):  # a driver without it reads no sensors
        assert "Error" not in expected
    kinds = [np.int64(number), np.uint32(number) if number < 1 << 32 else np.uint64(number), Number(number)]
    kinds += [Whole(number), Number(Whole(number))]
    if parameter in DEVICES:
        other = SimpleNamespace(type="xpu", index=0)
        kinds += ["xpu:0", l0rt.device("xpu", 0), other]
        if parameter != "device_index" and "set_device" not in name and "Stream" not in name:
            kinds += [SimpleNamespace(type="xpu", index=None)]
    if number != 0:
        kinds.append(np.array(number))
    found = {repr(kind): outcome(name, parameter, wrap(kind)) for kind in kinds}
    assert found == dict.fromkeys(found, expected)
    for wrong in (True, Number(True), Number(1.0), Number("1")):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused = outcome(name, parameter, wrap(wrong))
        assert refused.startswith(("TypeError", "ValueError", "RuntimeError")), refused


def test_a_device_takes_them_too():
    other = SimpleNamespace(type="xpu", index=1)
    assert l0rt.device(np.int64(1)) == l0rt.device(Number(1)) == l0rt.device("xpu", np.int8(1)) == l0rt.device("xpu:1")
    assert l0rt.device(other) == l0rt.device("xpu:1")
    assert type(l0rt.device(np.int64(1)).index) is int
    with pytest.raises(RuntimeError, match="Expected one of"):
        l0rt.device(SimpleNamespace(type="cuda", index=0))
    with pytest.raises(TypeError, match="takes an index only beside"):
        l0rt.device(other, 0)
    for wrong in (True, np.True_, 1.0, np.float64(1), b"xpu"):
        with pytest.raises(TypeError):
            l0rt.device(wrong)


def test_a_device_of_another_type_is_told_as_torch_tells_it():
    cuda = SimpleNamespace(type="cuda", index=0)
    for call in (acc.current_stream, acc.synchronize, acc.memory_stats, l0rt.Stream):
        with pytest.raises((ValueError, RuntimeError), match="cuda"):
            call(cuda)


def test_the_owner_of_a_device_names_it():
    tensor = SimpleNamespace(device=SimpleNamespace(type="xpu", index=0))
    assert acc.current_stream(tensor) == acc.current_stream(0)
    with xpu.device_of(tensor):
        assert xpu.current_device() == 0


@pytest.mark.needs_two_devices
def test_the_owner_of_another_device_switches_to_it():
    with xpu.device_of(SimpleNamespace(device=SimpleNamespace(type="xpu", index=1))):
        assert xpu.current_device() == 1
    assert xpu.current_device() == 0


def test_a_conversion_that_changes_what_is_current_confuses_nobody():
    class Meddler:
        def __init__(self, act):
            self.act = act

        def __index__(self):
            self.act()
            return 0

    buffer = l0rt.empty(64)
    with pytest.raises(ValueError, match="freed"):
        buffer.fill(Meddler(buffer.free))
    stream = acc.Stream()
    assert acc.current_stream(Meddler(lambda: acc.set_stream(stream))) == stream
    acc.set_stream(acc.default_stream())
    generator = l0rt.Generator()
    generator.set_offset(Meddler(lambda: generator.manual_seed(5)))
    assert (generator.initial_seed(), generator.get_offset()) == (5, 0)

    def fail():
        raise KeyError("from __index__")

    for call in (acc.current_stream, l0rt.empty, acc.manual_seed, l0rt.Stream, acc.device_count and acc.synchronize):
        with pytest.raises(KeyError, match="from __index__"):
            call(Meddler(fail))


def test_numbers_in_settings_are_taken():
    with config.patch({"allocator.max_split_size_mb": np.int64(64)}):
        assert config.get("allocator.max_split_size_mb") == 64
    assert memory.get_alloc_conf().max_split_size_mb is None
    with config.patch({"alloc_conf": ""}):
        memory.set_alloc_conf(max_split_size_mb=Number(64))
        assert memory.get_alloc_conf().max_split_size_mb == 64
    with pytest.raises(TypeError):
        config.set("allocator.max_split_size_mb", True)


def test_addresses_are_taken():
    page = np.zeros(1 << 16, "u1")
    address = np.uint64(page.ctypes.data)
    assert not memory.is_pinned(address)
    assert not memory.is_pinned(Number(page.ctypes.data))
    assert not memory.is_pinned(np.array(7))  # arrays are memory, whatever is in them
    with pytest.raises(ValueError, match="an address"):
        memory.is_pinned(-1)
    with pytest.raises(ValueError, match="handle must be an address"):
        l0rt.Stream.from_handle(Number(0))
    with pytest.raises(ValueError, match="handle must be an address"):
        l0rt.Stream.from_handle(True)
    wanted = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: None)
    assert memory.PluggableAllocator(np.uint64(ctypes.cast(wanted, ctypes.c_void_p).value), lambda *given: None)


# Where a negative index means no change, as in torch.
NO_CHANGE = {"set_device_index", "set_device_idx", "set_device", "device_index", "device_idx", "device", "DeviceGuard"}
NO_CHANGE |= {"OptionalDeviceGuard", "exchange_device", "maybe_exchange_device", "set_index", "reset_device"}


def complaints_about_bad_indices(names):
    """Return what the calls with an index that no device has answer, where that is no `DeviceIndexError`."""
    xpu.init()  # before, an Event does not know how many devices there are
    count, complaints = acc.device_count(), {}
    above = [count, count + 1, 127, 0x7FFF, 1 << 31, 1 << 70, np.int64(count), Number(count)]
    above += [f"xpu:{count}", "xpu:99", l0rt.device("xpu", count), SimpleNamespace(type="xpu", index=count)]
    below = [-1, -2, -(1 << 31), -(1 << 70), np.int64(-1), SimpleNamespace(type="xpu", index=-1)]
    for name in names:
        for parameter in [p.name for p in parameters(static(name)) if p.name in DEVICES]:
            bads = [*below, 1 << 31, 1 << 70] if name.endswith(".Generator") else above + below  # it needs no device
            for bad in above if NO_CHANGE & set(name.split(".")) else bads:
                found = outcome(name, parameter, [bad] if parameter == "devices" else bad)
                if not found.startswith("DeviceIndexError: ") or "device index" not in found.lower():
                    complaints[f"{name}({parameter}={bad!r})"] = found
    return complaints


@pytest.mark.parametrize("place", MODULES_BY_NAME)
def test_an_index_that_no_device_has_is_one_error_everywhere(place):
    assert issubclass(l0rt.DeviceIndexError, RuntimeError)
    assert issubclass(l0rt.DeviceIndexError, IndexError)
    assert complaints_about_bad_indices([n for n in CALLABLES if n.startswith(f"{place}.") and is_called(n)]) == {}


def test_a_call_with_another_error_for_a_bad_index_is_found(monkeypatch):
    def planted(device=None):
        if device != 0:
            raise IndexError(f"The device index is out of range: {device}")

    monkeypatch.setattr(memory, "planted", planted, raising=False)
    monkeypatch.setitem(CALLABLES, "memory.planted", lambda: planted)
    assert "memory.planted(device=127)" in complaints_about_bad_indices(["memory.planted"])
