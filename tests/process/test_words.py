# SPDX-License-Identifier: Apache-2.0
"""What users read is in their own words: errors, signatures, variables, and what a name leads to."""

import contextlib
import inspect
import re

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory, xpu

from helpers.process import run_python

# Names of modules and classes that no user calls by these names.
INNER = re.compile(r"__cinit__|l0rt\.runtime|XpuStream|xpu_device_index|l0rt\.buffers")


def public():
    """Yield (name, value) of each public function, class and method."""
    for place, module in {"l0rt": l0rt, "acc": acc, "xpu": xpu, "memory": memory}.items():
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.ismodule(value) or not callable(value):
                continue
            yield f"{place}.{name}", value
            for member in dir(value) if isinstance(value, type) else ():
                if not member.startswith("_"):
                    yield f"{place}.{name}.{member}", getattr(value, member)


@pytest.mark.parametrize("name", dict(public()))
def test_help_names_nothing_of_the_inside(name):
    value = dict(public())[name]
    told = inspect.getdoc(value) or ""
    with contextlib.suppress(TypeError, ValueError):  # a property, or a class that takes nothing
        told += str(inspect.signature(value))
    assert not INNER.search(told), told


@pytest.mark.parametrize(
    "name", ["Stream", "Event", "Generator", "device", "memory.MemPool", "memory.PluggableAllocator", "xpu.Stream"]
)
def test_a_class_goes_by_its_public_name(name):
    module, _, last = f"l0rt.{name}".rpartition(".")
    kind = getattr(memory if "memory" in module else xpu if "xpu" in module else l0rt, last)
    assert repr(kind) == f"<class '{module}.{last}'>"
    with pytest.raises(TypeError, match=rf"^{last}\(\) got an unexpected keyword argument 'foo'"):
        kind(**({"type": "xpu"} if last == "device" else {}), foo=1)


def test_errors_about_arguments_name_public_classes():
    buffer = l0rt.empty(64)
    for call in (
        lambda: buffer.copy_from(bytes(64), stream=3),
        lambda: buffer.free(3),
        lambda: buffer.record_stream("x"),
        lambda: l0rt.Event().record(3),
        lambda: acc.current_stream().wait_event(3),
        lambda: acc.current_stream().wait_stream(None),
        lambda: acc.set_stream(3),
        lambda: l0rt.empty(64, stream=3),
        lambda: acc.device_index(),
        lambda: acc.device_index(0, 1),
    ):
        with pytest.raises(TypeError) as told:
            call()
        assert not INNER.search(str(told.value)), told.value


def test_an_unknown_device_is_told_with_those_there_are():
    with pytest.raises(ValueError, match=r"UUID, PCI address or DRM node 'nope'; there is xpu:0 \(UUID [0-9a-f]{32}"):
        xpu.find_device("nope")


def test_modules_that_need_more_are_there_when_they_are_asked_for():
    result = run_python(
        """
import sys, l0rt
assert "l0rt.xpu.gpu_trace" not in sys.modules
assert l0rt.xpu.gpu_trace.register_callback_for_event_creation
assert {"tinygrad", "torch"} <= set(dir(l0rt.interop)) and "l0rt.interop.torch" not in sys.modules
try:
    l0rt.interop.torch
except ModuleNotFoundError as e:
    assert e.name == "torch", e
try:
    l0rt.interop.nothing
except AttributeError as e:
    assert "l0rt.interop" in str(e)
else:
    raise AssertionError
""",
        fresh=True,
    )
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_wrong_variable_of_the_cpu_driver_is_named():
    code = "import l0rt\ntry:\n    l0rt.empty(1)\nexcept l0rt.DriverNotFoundError as e:\n    print(e)\n"
    for name, value, allowed in (
        ("L0RT_CPU_MEMORY", "8GB", "a number with KiB, MiB, GiB or TiB"),
        ("L0RT_CPU_DEVICES", "0", "a number from 1 to 64"),
    ):
        result = run_python(code, {"L0RT_DRIVER": "cpu", name: value})
        assert f"{name}={value}: expected" in result.stdout, result
        assert allowed in result.stdout, result
        assert "No Level Zero device" not in result.stdout


def test_an_unknown_variable_is_told_once():
    code = "import l0rt, l0rt.accelerator, l0rt.memory\nl0rt.accelerator.device_count()\n"
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_DRIVR": "cpu", "L0RT_ZZZ": "1"})
    assert result.stderr.count("L0RT_DRIVR is no environment variable of l0rt, and has no effect") == 1, result
    assert "did you mean L0RT_DRIVER" in result.stderr
    assert result.stderr.count("L0RT_ZZZ is no environment variable") == 1
    assert run_python(code, {"L0RT_DRIVER": "cpu"}).stderr == ""


def test_a_configuration_holds_whichever_module_is_there():
    result = run_python(
        """
import sys, l0rt
from l0rt import config
x = l0rt.empty(1 << 20)
assert "l0rt.memory" not in sys.modules
config.set("alloc_conf", "per_process_memory_fraction:0.5")
try:
    l0rt.empty(9 << 30)
except l0rt.OutOfMemoryError as e:
    print(e)
""",
        {"L0RT_DRIVER": "cpu"},
        fresh=True,
    )
    assert "limit 8.00 GiB" in result.stdout, result


# torch.cuda.memory's of torch 2.13, with their parameters; ours may have more behind them.
CUDA = {
    "caching_allocator_alloc": ["size", "device", "stream"],
    "caching_allocator_delete": ["mem_ptr"],
    "caching_allocator_disabled": [],
    "caching_allocator_enable": ["value"],
    "change_current_allocator": ["allocator"],
    "empty_cache": [],
    "get_allocator_backend": [],
    "get_per_process_memory_fraction": ["device"],
    "host_memory_stats": [],
    "host_memory_stats_as_nested_dict": [],
    "max_memory_allocated": ["device"],
    "max_memory_reserved": ["device"],
    "mem_get_info": ["device"],
    "memory_allocated": ["device"],
    "memory_reserved": ["device"],
    "memory_snapshot": ["mempool_id"],
    "memory_stats": ["device"],
    "memory_stats_as_nested_dict": ["device"],
    "memory_summary": ["device", "abbreviated"],
    "reset_accumulated_host_memory_stats": [],
    "reset_accumulated_memory_stats": ["device"],
    "reset_peak_host_memory_stats": [],
    "reset_peak_memory_stats": ["device"],
    "set_per_process_memory_fraction": ["fraction", "device"],
    "use_mem_pool": ["pool", "device"],
}


@pytest.mark.parametrize("name", CUDA)
def test_memory_takes_torch_cudas_keywords(name):
    function = getattr(memory, name)
    assert name in memory.__all__
    found = list(inspect.signature(function).parameters.values())
    assert [p.name for p in found][: len(CUDA[name])] == CUDA[name]
    assert not any(p.kind is p.POSITIONAL_ONLY for p in found)
    for p in found:
        if p.name == "device" and p.default is None and len(CUDA[name]) == 1:
            function(device=0)
            function(device="xpu:0")


def test_a_block_without_caching():
    l0rt.empty(4096).free()
    with memory.caching_allocator_disabled():
        before = memory.memory_stats()["num_device_alloc"]
        l0rt.empty(4096).free()
        assert memory.memory_stats()["num_device_alloc"] == before + 1
    l0rt.empty(4096).free()
    before = memory.memory_stats()["num_device_alloc"]
    l0rt.empty(4096).free()
    assert memory.memory_stats()["num_device_alloc"] == before
