# SPDX-License-Identifier: Apache-2.0
"""`l0rt cpu-driver`: the variables work for every kind of program, by the recipes of docs/cpu-driver.md."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import l0rt as package
import pytest
from l0rt.cli import cpu_driver

from helpers.cli import complaint, l0rt
from helpers.process import run, run_python
from helpers.source import ROOT

DRIVER = package.cpu_driver_path()
STAND_IN = f"{Path(DRIVER).parent}/loader"
HEADERS = Path("/usr/include/level_zero/ze_api.h")

needs_loader = pytest.mark.skipif(
    not HEADERS.exists() or shutil.which("cc") is None,
    reason="needs the official loader to link with (Debian: apt install libze1 libze-dev)",
)


def recipe(heading):
    """Return the block of a recipe."""
    text = (ROOT / "docs/cpu-driver.md").read_text()
    section = re.search(rf"^### {heading}\n(.*?)(?=^##)", text, re.DOTALL | re.MULTILINE).group(1)
    (block,) = re.findall(r"^```(?:sh)?\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return block


def followed(text, folder, timeout=120, **env):
    """Run lines of a shell as a reader does, with nothing set and this Python's commands in the path."""
    scripts = Path(sys.executable).parent
    unset = dict.fromkeys(name for name in os.environ if name.startswith(("ZE_", "ZEL_", "L0RT_", "SYCL_", "ONEAPI_")))
    path = {"PATH": f"{scripts}:{os.environ['PATH']}", "PYTHONPATH": None}
    return run(["sh", "-e", "-c", text], {**unset, **path, **env}, folder, timeout=timeout)


def prints(result, expected):
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, ""), result


def test_it_prints_the_drivers_path():
    prints(l0rt("cpu-driver"), f"{DRIVER}\n")


def test_bad_words_are_refused_in_one_line():
    assert "--windows" in complaint(l0rt("cpu-driver", "--windows"))


def test_the_variables_are_those_of_the_loader_and_of_its_client_side(monkeypatch):
    monkeypatch.setattr(cpu_driver, "has_loader", lambda: True)
    assert cpu_driver.environment() == {"ZE_ENABLE_ALT_DRIVERS": DRIVER, "ZEL_LIBRARY_PATH": STAND_IN}


@pytest.mark.parametrize(("before", "after"), [("", STAND_IN), ("/a:/b", f"{STAND_IN}:/a:/b")])
def test_where_there_is_no_loader_the_linker_finds_the_stand_in(monkeypatch, before, after):
    monkeypatch.setattr(cpu_driver, "LOADER", "libze_loader_of_no_machine.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", before)
    assert cpu_driver.environment()["LD_LIBRARY_PATH"] == after


def test_a_shell_gets_any_path_as_it_is(monkeypatch):
    odd = "/a folder/it's $HOME/libze_l0rt_cpu.so"
    monkeypatch.setattr(package, "cpu_driver_path", lambda: odd)
    told = subprocess.run(
        ["sh", "-c", f'{cpu_driver.shell_lines()}printf %s "$ZE_ENABLE_ALT_DRIVERS"'], capture_output=True, text=True
    )
    assert (told.stdout, told.stderr) == (odd, "")


def test_the_stand_in_has_the_drivers_functions_and_a_loaders():
    """One driver in the process, whoever asks for it; the name of a table of any later version is no reason to end."""
    code = f"""
import ctypes
loader, driver = ctypes.CDLL("{STAND_IN}/libze_loader.so.1"), ctypes.CDLL("{DRIVER}")
address = lambda library, name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
assert address(loader, "zeMemAllocDevice") == address(driver, "zeMemAllocDevice")
assert [loader.zeLoaderInit(), loader.zelLoaderDriverCheck(0), loader.zeInit(0)] == [0, 0, 0]
count, version = ctypes.c_size_t(), ctypes.create_string_buffer(80)
for get in loader.zelLoaderGetVersions, loader.zelLoaderGetVersionsInternal:
    count.value = 0
    assert (get(ctypes.byref(count), None), count.value) == (0, 1)
    count.value = 5
    assert (get(ctypes.byref(count), version), count.value) == (0, 1)
    assert version.value == b"loader" and version.raw[64:72] == b"\\x11\\0\\1\\0\\1\\0\\0\\0"
count.value = 0
assert (loader.zelLoaderGetVersions(ctypes.byref(count), version), count.value) == (0, 0)
assert loader.zelLoaderGetVersions(None, None) == 0x78000007
handle = ctypes.c_void_p()
assert (loader.zelLoaderTranslateHandle(1, ctypes.c_void_p(77), ctypes.byref(handle)), handle.value) == (0, 77)
assert loader.zelLoaderTranslateHandle(1, ctypes.c_void_p(77), None) == 0x78000007
table = (ctypes.c_void_p * 8)(*range(1, 9))
assert loader.zeGetRTASBuilderProcAddrTable(1 << 16 | 17, table) == 0 and list(table) == list(range(1, 9))
"""
    result = run_python(code)
    assert result.returncode == 0, result


@needs_loader
def test_c_programs_linked_with_the_loader(tmp_path):
    prints(followed(recipe("C programs linked with the loader"), tmp_path), "l0rt CPU device\n")
    prints(followed("./devices", tmp_path, LD_LIBRARY_PATH=STAND_IN), "l0rt CPU device\n")
    assert followed("./devices", tmp_path, ZE_ENABLE_ALT_DRIVERS="/nonexistent.so").returncode == 1


@needs_loader
def test_a_ci_job(tmp_path):
    install, env, use = re.findall(r"^- run: (.*)$", recipe("A CI job without a GPU"), re.MULTILINE)
    assert install == "pip install l0rt"
    prints(followed(env, tmp_path, GITHUB_ENV="later"), "")
    later = dict(line.split("=", 1) for line in (tmp_path / "later").read_text().splitlines())
    source = recipe("C programs linked with the loader").partition("eval ")[0]
    prints(followed(source, tmp_path), "")
    prints(followed(use, tmp_path, **later), "l0rt CPU device\n")


def skip_without(*modules, extra="sycl"):
    if run_python(f"import {', '.join(modules)}").returncode != 0:
        told = f"needs {' and '.join(modules)} beside l0rt: the extra `{extra}`"
        (pytest.fail if os.environ.get(f"L0RT_TEST_{extra.upper()}") == "1" else pytest.skip)(told)


@needs_loader
def test_umf(tmp_path):
    if not Path(sys.prefix, "include/umf.h").exists():
        skip_without("dpctl")  # which brings UMF along
    prints(followed(recipe("UMF"), tmp_path), "device memory\n")


@pytest.mark.parametrize("adapter", [0, 1])
def test_dpctl_dpnp_and_sycl(tmp_path, adapter):
    skip_without("dpctl", "dpnp")
    text = recipe("dpctl, dpnp and SYCL")
    prints(followed(text, tmp_path, SYCL_UR_USE_LEVEL_ZERO_V2=adapter), "l0rt CPU device 499500.0\n")


def test_pyzes(tmp_path):
    if not HEADERS.exists():
        pytest.skip("pyzes loads the machine's loader (Debian: apt install libze1 libze-dev)")
    skip_without("pyzes", extra="partners")
    prints(followed(recipe("pyzes"), tmp_path, L0RT_CPU_MEMORY="1MiB"), "l0rt CPU device 1048576 of 1048576\n")


# Where `make test-all` installs it: its version of SYCL's runtime is not dpctl's.
LLAMA = ROOT / "build/llama/bin"


@pytest.fixture
def llama(tmp_path):
    """Return a function that follows the recipe with these types of weights and settings, and returns its output."""
    if not (LLAMA / "python").exists():
        told = f"needs llama.cpp in {LLAMA.parent}: `make llama`"
        (pytest.fail if os.environ.get("L0RT_TEST_SYCL") == "1" else pytest.skip)(told)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    text = recipe("llama.cpp")
    assert text.endswith("llama.py Q4_0\n")

    def follow(names, **env):
        path = f"{LLAMA}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        result = followed(text.replace("Q4_0", names), tmp_path, timeout=600, PATH=path, **env)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout

    return follow


QUANTS = "Q4_0 Q8_0 Q4_K Q6_K"


@pytest.mark.parametrize(
    ("names", "within", "env"),
    [
        ("F32 F16", 0.01, {}),
        (QUANTS, 0.15, {}),
        (QUANTS, 0.15, {"GGML_SYCL_ENABLE_FLASH_ATTN": 0}),
        (QUANTS, 0.15, {"L0RT_CPU_CHAOS": 1, "SYCL_UR_USE_LEVEL_ZERO_V2": 1}),
    ],
    ids=["floats", "quants", "attention", "chaos"],
)
def test_llama_cpp_computes_what_its_cpu_backend_does(llama, names, within, env):
    device, *lines = llama(names, **env).splitlines()
    assert device == "l0rt CPU device"
    assert len(lines) == len(names.split())
    for name, line in zip(names.split(), lines, strict=True):
        found = re.fullmatch(rf"{name}: the same tokens, logits within ([\d.]+) of their deviation", line)
        assert found, line
        assert float(found[1]) < within, line


PRELUDE = """
import numpy as np, dpctl
queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
assert queue.sycl_device.name == "l0rt CPU device"
"""

VECTOR_ADD = """
import dpctl.memory, dpctl.program
kernels = dpctl.program.create_program_from_spirv(queue, open({spirv!r}, "rb").read())
n = 1000
for kind in "Shared", "Device", "Host":
    x, y, out = (getattr(dpctl.memory, "MemoryUSM" + kind)(4 * n, queue=queue) for _ in range(3))
    given = np.arange(n, dtype="f4")
    x.copy_from_host(given.view("u1")), y.copy_from_host((given * given).view("u1"))
    queue.submit(kernels.get_sycl_kernel("add"), [x, y, out], [n]).wait()
    assert (out.copy_to_host().view("f4") == given + given * given).all(), kind
print("added")
"""

FUNCTIONS = """
import dpnp
x = np.random.default_rng(1).random((37, 53), dtype="f4") + 0.5
y = x[::-1].copy()
on_device = [dpnp.asarray(array, sycl_queue=queue) for array in (x, y)]
for name, count in dict(add=2, divide=2, power=2, hypot=2, sqrt=1, exp=1, sin=1, log1p=1, tanh=1).items():
    got = dpnp.asnumpy(getattr(dpnp, name)(*on_device[:count]))
    np.testing.assert_allclose(got, getattr(np, name)(*(x, y)[:count]), 1e-5, err_msg=name)
for name in "sum", "prod", "max", "argmin", "mean", "std", "cumsum", "sort", "any":
    for axis in None, 0, 1:
        got, expected = (getattr(module, name)(array, axis=axis) for module, array in ((dpnp, on_device[0]), (np, x)))
        np.testing.assert_allclose(dpnp.asnumpy(got), expected, 2e-4, err_msg=f"{name} {axis}")
print("agree")
"""

PRODUCTS = """
import dpnp
rng = np.random.default_rng(1)
for dtype, close in ("f4", 1e-4), ("f8", 1e-12), ("c8", 1e-4), ("c16", 1e-12):
    x, y = ((rng.random((50, 50)) + np.eye(50)).astype(dtype) for _ in range(2))
    on_device, other = (dpnp.asarray(array, sycl_queue=queue) for array in (x, y))
    for name, got, expected in (
        ("matrices", on_device @ other, x @ y),
        ("a vector", on_device @ other[0], x @ y[0]),
        ("vectors", dpnp.vdot(on_device[0], other[0]), np.vdot(x[0], y[0])),
        ("solve", on_device @ dpnp.linalg.solve(on_device, other), y),
        ("svd", dpnp.linalg.svd(on_device)[1], np.linalg.svd(x)[1]),
    ):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(dpnp.asnumpy(got), expected, close, close * scale * 50, err_msg=f"{name} {dtype}")
print("agree")
"""


@pytest.mark.parametrize("adapter", [0, 1])
def test_onemkl_computes_what_numpy_does(adapter):
    """It finds an architecture for which it has SPIR-V, and gives its kernels small integers of 64 bits."""
    skip_without("dpctl", "dpnp")
    env = {**cpu_driver.environment(), "SYCL_UR_USE_LEVEL_ZERO_V2": adapter}
    result = run_python(PRELUDE + PRODUCTS, env, timeout=300)
    # oneMKL warns that there is no OpenCL.
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "agree"), result


@pytest.mark.parametrize("chaos", [None, 1])
@pytest.mark.parametrize("adapter", [0, 1])
@pytest.mark.parametrize(
    ("needed", "code", "says"),
    [(["dpctl"], VECTOR_ADD, "added\n"), (["dpctl", "dpnp"], FUNCTIONS, "agree\n")],
    ids=["add", "dpnp"],
)
def test_sycl_computes_what_numpy_does(tmp_path, needed, code, says, adapter, chaos):
    skip_without(*needed)
    spirv = ROOT / "tests/cpu_driver/kernels/bench.spv"
    env = {**cpu_driver.environment(), "SYCL_UR_USE_LEVEL_ZERO_V2": adapter, "L0RT_CPU_CHAOS": chaos}
    prints(run_python(PRELUDE + code.replace("{spirv!r}", repr(str(spirv))), env, timeout=300), says)
