# SPDX-License-Identifier: Apache-2.0
"""Types: a script that uses the whole facade passes mypy --strict, and the stubs say what the modules are."""

import ast
import importlib
import inspect
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import l0rt
import l0rt.accelerator
import l0rt.memory
import l0rt.xpu
import pytest
from l0rt.interface import DeviceInterface

from helpers.ci import skip_unless_ci
from helpers.process import run

PACKAGE = Path(l0rt.__file__).parent

SCRIPT = """
from __future__ import annotations

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
from l0rt import config, memory
from l0rt.interface import DeviceGuard, DeviceInterface, get_interface_for_device, register_interface_for_device


def switch(index: int) -> str:
    with acc.device_index(index):
        stream: l0rt.Stream = acc.Stream(priority=-1)
        event = l0rt.Event(enable_timing=True)
        with stream, acc.stream(stream):
            event.record()
        acc.current_stream("xpu:0").wait_event(event)
        done: bool | None = event.synchronize(timeout=1.0)
    acc.synchronize(index, timeout=2)
    total: int = acc.memory_allocated() + acc.get_memory_info()[1] + xpu.mem_get_info(0)[0]
    peak: int = acc.memory_stats(index)["allocated_bytes.all.peak"]
    return f"{done} {total} {peak} {stream.device.index}"


@acc.device_index(0)
def guarded(number: int) -> float:
    return number / 2


def draw(generator: l0rt.Generator) -> bytes:
    buffer = l0rt.empty(4096, kind="host").uniform_(0, 1, generator=generator)
    buffer.fill(0).copy_from(b"x" * 4096).record_stream(acc.default_stream())
    seed, offset = generator.philox_engine_inputs(4)
    acc.manual_seed_all(seed + offset + len(memoryview(buffer)))
    with acc.fork_rng(devices=[0]):
        state: bytes = acc.get_rng_state()
    return state


class Demo(DeviceInterface):
    @staticmethod
    def count() -> int:
        return 1


def registry() -> str:
    register_interface_for_device("demo", Demo)
    with DeviceGuard(get_interface_for_device("xpu"), None):
        acc.set_accelerator("xpu")
    named: l0rt.device | None = acc.current_accelerator(check_available=True)
    with config.patch({"fp32_precision": "tf32"}):
        return f"{named} {config.effective('xpu.matmul.fp32_precision')}"


def pools() -> list[int]:
    pool = acc.MemPool(use_on_oom=True)
    with acc.use_mem_pool(pool, device=0) as entered:
        inside = l0rt.empty(1 << 20)
    detach = acc.attach_oom_observer(lambda device, nbytes, allowed, free: False)
    detach()
    snapshot = xpu.memory_snapshot(entered.id)
    print(acc.memory_summary(abbreviated=True), acc.memory_stats_as_nested_dict()["allocation"], memory.memory_info())
    config.set("xpu.allocator.max_split_size_mb", 200)
    limit: int | None = memory.get_alloc_conf().max_split_size_mb
    return [segment["total_size"] for segment in snapshot] + [limit or 0, xpu.find_device(bytes(16)), inside.nbytes]


def fails() -> str:
    try:
        with xpu.device(63), xpu.device_of(3), xpu.stream(None):
            pass
    except (IndexError, l0rt.L0Error) as error:
        return str(error.code) if isinstance(error, l0rt.L0Error) else str(error)
    return xpu.get_device_name() + str(guarded(3))
"""

WRONG = """
import l0rt.accelerator as acc
x: str = acc.device_count()
acc.set_device_index()
acc.current_stream(1.5)
acc.nothing()
acc.Stream(prioritty=1)
"""


# By module of l0rt.interop, what it imports
PARTNERS = {"dask": "distributed", "dpctl": "dpctl", "mpi": "mpi4py.MPI", "ray": "ray", "tinygrad": "tinygrad",
            "torch": "torch", "torch_memory": "torch", "torch_device": "torch"}  # fmt: skip


@cache
def is_here(partner):
    """Whether a partner is installed, and works: mpi4py needs an MPI beside it."""
    there = find_spec(partner.partition(".")[0]) is not None
    return there and run([sys.executable, "-c", f"import {partner}"]).returncode == 0


@pytest.fixture
def mypy(tmp_path):
    if run([sys.executable, "-c", "import mypy"]).returncode != 0:
        skip_unless_ci("needs mypy: the extra `test`")

    def check(script, *more):
        (tmp_path / "script.py").write_text(script)
        options = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path / "cache"), *more]
        return run([sys.executable, "-m", "mypy", *options, tmp_path / "script.py"], cwd=tmp_path, timeout=300)

    return check


def test_the_whole_facade_passes_mypy_strict(mypy):
    places = {"acc": l0rt.accelerator, "xpu": l0rt.xpu, "memory": l0rt.memory, "config": l0rt.config, "l0rt": l0rt}
    more = ("bench", "interface", "ipc", "kernels", "profiler", "sanitizer", "telemetry")
    places |= {name: getattr(l0rt, name) for name in more}
    names = [f"{place}.{name}" for place, module in places.items() for name in module.__all__]
    names += [f"DeviceInterface.{name}" for name in vars(DeviceInterface) if name[0] != "_"]
    script = SCRIPT + "".join(f"from l0rt import {name}\n" for name in more)
    result = mypy(script + "\n\nEVERYTHING: list[object] = [\n" + "".join(f"    {name},\n" for name in names) + "]\n")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result


def test_no_expression_of_a_script_of_public_calls_is_any(mypy):
    script = (Path(__file__).parent / "typed_calls.py").read_text()
    calls = {ast.unparse(node.func) for node in ast.walk(ast.parse(script)) if isinstance(node, ast.Call)}
    assert len(calls) >= 60
    result = mypy(script, "--disallow-any-expr")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result
    result = mypy(script + "print(config.get('driver'))\n", "--disallow-any-expr")
    assert "Expression has type" in result.stdout, "it finds no Any"


@pytest.mark.parametrize("name", ["", *l0rt._SUBMODULES])
def test_dir_of_a_public_module_shows_public_names_only(name):
    module = importlib.import_module(f"l0rt.{name}" if name else "l0rt")
    public = {"capi": ["__pyx_capi__"], "interop": l0rt.interop._PARTNERS}.get(name) or module.__all__
    assert dir(module) == sorted(public)
    foreign = [name for name in public if not belongs(vars(module).get(name))]
    assert foreign == [], "public names that are others'"


def belongs(value):
    """Whether a name's value is l0rt's own; a figure or a tuple of its is."""
    of = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None) or "l0rt"
    return of.partition(".")[0] in ("l0rt", "builtins")


def test_mypy_sees_what_is_wrong(mypy):
    lines = mypy(WRONG).stdout.splitlines()
    assert [line.split(":")[1] for line in lines if ": error:" in line] == ["3", "4", "5", "6", "7"], lines


def test_the_stubs_say_what_the_modules_are(mypy, tmp_path):
    allowed = tmp_path / "allowed"      # what the buffer protocol is for type checkers, and in Python from 3.12 on
    cached = "l0rt.kernels.compiler._(split|own_identity)"     # mypy says that a cached function takes any arguments
    gone = "l0rt.interop.tinygrad._version.(message|error)"       # without a stub; deleted at the end of an exception
    names = ("l0rt.buffers.buffer.Buffer.__buffer__", "l0rt.buffers.buffer.Buffer.__release_buffer__", cached, gone)
    allowed.write_text("".join(f"{name}\n" for name in names))
    partners = tmp_path / "partners.ini"    # need not be installed
    partners.write_text("[mypy]\ndisable_error_code = annotation-unchecked\n"
                        "[mypy-distributed.*,l0rt.*]\nignore_missing_imports = true\n")
    options = ["--concise", "--ignore-missing-stub", "--ignore-disjoint-bases", "--mypy-config-file", partners,
               "--allowlist", allowed, "--ignore-unused-allowlist"]  # fmt: skip
    stubs = [path.relative_to(PACKAGE.parent).with_suffix("") for path in PACKAGE.rglob("*.pyi")]
    # stubtest imports what it checks: the modules of partners that are installed
    needing = {f"l0rt.interop.{name}" for name, partner in PARTNERS.items() if not is_here(partner)}
    needing.add("l0rt.interop.torch_device")  # whose import compiles it
    # A package stands for its modules. l0rt as a whole has some without a stub, and some that import torch or tinygrad.
    packages = {path.parent for path in stubs if path.name == "__init__" and len(path.parts) > 2}
    modules = [".".join(path.parts) for path in stubs if path.parent not in packages]
    modules = sorted({*modules, *(".".join(path.parts) for path in packages)} - needing)
    modules.remove("l0rt.__init__")
    assert {"l0rt.interface", "l0rt.buffers.buffer", "l0rt.runtime.current.stream"} <= set(modules)
    result = run([sys.executable, "-m", "mypy.stubtest", *modules, *options], cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result
