# SPDX-License-Identifier: Apache-2.0
"""A foreign package, built against the installed l0rt, computes through the embedding door."""

import re
import shutil
import sys
import sysconfig
from pathlib import Path

import l0rt
import pytest

from helpers.extents import HANG_LIMIT
from helpers.once import shared
from helpers.process import run, run_python
from helpers.source import ROOT

PACKAGE = Path(__file__).parent / "package"


def build(folder):
    shutil.copytree(PACKAGE, folder, dirs_exist_ok=True)
    result = run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, timeout=300)
    assert result.returncode == 0, str(result)


@pytest.fixture(scope="module")
def built():
    """The folder of the foreign package, built in place."""
    return shared("foreign", build)


@pytest.mark.parametrize("module", ["by_cython", "by_c"])
def test_bytes_come_back(built, module):
    code = f"""
from foreign.{module} import round_trip
data = bytes(range(256)) * 4099
assert round_trip(data) == data
assert round_trip(b"x") == b"x"
"""
    result = run_python(code, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


@pytest.mark.needs_cxx
@pytest.mark.parametrize("part", ["guards", "events", "buffers", "resources", "pools_and_graphs", "failures"])
def test_the_classes_of_cpp(built, part):
    code = f"""
import gc, l0rt, l0rt.accelerator as acc
from foreign.by_cpp import run
for _ in range(3):
    assert run({part!r}) == "", run({part!r})
acc.synchronize()
gc.collect()
assert acc.memory_allocated() == 0
"""
    result = run_python(code, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


PARTS_OF_AN_EMBEDDER = (
    "counts", "failures", "statistics", "fills", "streams", "pools", "graphs", "generators",
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS_OF_AN_EMBEDDER)
def test_what_an_embedder_asks_in_a_thread_unknown_to_python(built, part, tmp_path):
    code = f"""
import sys; sys.path.insert(0, {str(built)!r})
import gc, threading, l0rt, l0rt.accelerator as acc
from foreign.by_embedder import run
for _ in range(3 if {part!r} != "counts" else 1):
    assert run({part!r}) == "", run({part!r})
acc.synchronize()
gc.collect()
assert acc.memory_allocated(0) == acc.memory_allocated(1) == 0
assert threading.active_count() == 1, threading.enumerate()
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


def test_dlpack_is_exchanged_in_c(built):
    code = """
import l0rt
from foreign.by_exchange import look, round_trips
for options in ({"kind": "device"}, {"kind": "host"}, {"kind": "shared"}, {"device": "cpu", "kind": "host"}):
    x = l0rt.empty(4096, **options)
    for whole in (x, x[96:1096]):
        y, ns = round_trips(whole, 1000)
        assert (y.ptr, y.nbytes, type(y).__mro__[1]) == (whole.ptr, whole.nbytes, l0rt.Buffer)
        assert look(whole) == (whole.ptr, whole.nbytes, *whole.__dlpack_device__())
        try:
            x.free()
        except BufferError:
            pass
        else:
            raise AssertionError("freed while it is lent")
        del y
    x.free()
    for use in (look, lambda x: round_trips(x, 1)):
        try:
            use(x)
        except ValueError as error:
            assert "freed" in str(error)
        else:
            raise AssertionError("used after it was freed")
"""
    result = run_python(code, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


def test_every_function_of_the_door(built):
    code = """
import l0rt
from foreign.by_cython import allocate, current, filled, last_error
count, device, has_handle, previous = current()
assert count >= 1 and device == previous == 0 and has_handle
assert filled(0xA5, 70_001) == b"\\xa5" * 70_001
assert allocate(1 << 20, -1) != 0 and allocate(0, 0) == 0
try:
    allocate(64, 1000)
except (l0rt.L0Error, IndexError, ValueError) as e:
    code, text = last_error()
    assert code != 0 and text, (code, text)
else:
    raise AssertionError("a device that is not there was taken")
try:
    allocate(1 << 62, 0)
except l0rt.OutOfMemoryError as e:
    assert "requested" in str(e), e
else:
    raise AssertionError("memory without end")
"""
    result = run_python(code, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


def test_every_mistake_is_an_error_and_harms_nothing(built):
    code = """
import l0rt
from foreign.by_cython import last_error, round_trip
from foreign.by_mistake import by_device, free, free_async, malloc, null_memory, null_stream, record_stream

def refused(kind, words, call, *args):
    try:
        call(*args)
    except kind as e:
        assert words in str(e), e
        code, text = last_error()
        assert code != 0 and type(e).__name__ in text and words in text, (code, text)
    else:
        raise AssertionError((call, args))

block, big = malloc(4096, -1), malloc(32 << 20, -1)
for call in (free, free_async, record_stream):
    for wrong in (1, 12345, id(refused), block + 1, block + 512, 1 << 47, (1 << 64) - 1, 1 << 63):
        if call is record_stream and wrong in (block + 1, block + 512):
            continue  # an address inside an allocation names it
        refused(l0rt.InvalidArgumentError, "invalid device pointer", call, wrong)
    assert call(0) is None
for wrong in (big + 1, big + 65536, big + (32 << 20)):
    refused(l0rt.InvalidArgumentError, "invalid device pointer", free, wrong)
for address in (block, big):
    free(address)
    refused(l0rt.InvalidArgumentError, "invalid device pointer", free, address)
refused(ValueError, "a stream is needed", free_async, malloc(64, -1), True)
refused(ValueError, "a stream is needed", record_stream, malloc(64, -1), True)
for which in range(3):
    refused(ValueError, "a stream is needed", null_stream, which)
    refused(ValueError, "an address", null_memory, which, 8)
    null_memory(which, 0)
for which in range(4):
    for device in (2, 63, -2 if which else 1 << 30):
        refused(IndexError, "out of range. It must be in [0, 2)", by_device, which, device)
refused(IndexError, "out of range", malloc, 64, 2)
refused(ValueError, "device 1 is not the stream's device, 0", malloc, 64, 1, 0)
for huge in (1 << 50, (1 << 64) - 1, (1 << 63) + 5):
    refused(l0rt.OutOfMemoryError, "requested", malloc, huge, -1)
assert malloc(0, 7) == 0
assert round_trip(b"still works") == b"still works"
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
MISTAKES = (
    "ValueError: a module's code is needed, got NULL", "DeviceIndexError: The device index is out of range",
    "ModuleBuildError: the module is not valid", "ValueError: a module's format must be 0, 1 or 2, got 7",
    "ValueError: a module is needed, got NULL", "ValueError: a kernel's name is needed, got NULL",
    "KeyError: \"the module has no kernel 'stor': it has ", "ValueError: each of kernel, sizes and arguments is needed",
    "TypeError: store() takes 2 arguments, got 1", "ValueError: store(): groups must be 1 to ",
    "ValueError: store(): group_size must be 1 to ", "ValueError: the flags of a launch must be 0 or 1, got 8",
    "ValueError: each of kernel, sizes and arguments is needed", "InvalidArgumentError: ",
    "ValueError: store() is of device 0, the stream of device 1", "ValueError: a global offset is needed, got NULL",
    "ValueError: store(): global ids must be below 2**32, got [1048576, 1, 1] work-items from [4294967295, 0, 0] on",
)  # fmt: skip


def test_kernels_without_the_gil(built):
    code = f"""
import struct
import l0rt
from foreign.by_kernel import stored
from pathlib import Path
code = Path({str(KERNELS)!r}).read_bytes()
assert stored(code, -7, 1000) == struct.pack("i", -7) * 1000
native = l0rt.Module(code).native_binary()
assert stored(native, 9, 3, 1) == struct.pack("i", 9) * 3
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


@pytest.mark.long
def test_a_long_loop_without_the_gil_lets_python_run(built, extent):
    rounds = extent(10**4, 10**4, 10**6)
    code = f"""
import gc, threading
import l0rt, l0rt.accelerator as acc
from foreign.by_kernel import churn
from pathlib import Path
code = Path({str(KERNELS)!r}).read_bytes()
right, counted = [], 0
thread = threading.Thread(target=lambda: right.append(churn(code, {rounds})))
thread.start()
while thread.is_alive():
    counted += 1
thread.join()
assert right == [({rounds} + 1023) // 1024], right
assert counted > 10_000, counted            # the loop never held Python up
acc.synchronize()
gc.collect()
assert acc.memory_allocated() == 0
assert acc.memory_reserved() <= 4 << 20, acc.memory_reserved()
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, cwd=built, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


def test_every_mistake_with_kernels_is_an_error(built):
    code = f"""
from foreign.by_cython import last_error
from foreign.by_kernel import mistake, stored
from pathlib import Path
code = Path({str(KERNELS)!r}).read_bytes()
for which, words in enumerate({MISTAKES!r}):
    try:
        mistake(code, which)
    except Exception as error:
        number, text = last_error()
        assert number != 0 and text.startswith(words), (which, text)
        assert text == f"{{type(error).__name__}}: {{error}}"[:1023], (which, text, error)
    else:
        raise AssertionError(which)
assert stored(code, 1, 1) == bytes((1, 0, 0, 0))
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


MODULE = """
static PyMethodDef methods[] = {
    {"allocate", allocate, METH_O, ""}, {"allocate_or_explain", allocate_or_explain, METH_O, ""}, {0}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shown", NULL, 0, methods};

PyMODINIT_FUNC PyInit_shown(void) {
  l0rt = l0rt_import();
  return l0rt == NULL ? NULL : PyModule_Create(&module);
}
"""

SETUP = """
import l0rt
from setuptools import Extension, setup
flags = ["-Wall", "-Werror"]
setup(ext_modules=[Extension("shown", ["shown.c"], include_dirs=[l0rt.get_include()], extra_compile_args=flags)])
"""


def test_the_guide_to_c_handles_failures_as_it_says(tmp_path):
    guide = (ROOT / "docs/embedding.md").read_text()
    (block,) = re.findall(r"^```c\n(#include <Python.h>\n.*?)^```$", guide, re.DOTALL | re.MULTILINE)
    (tmp_path / "shown.c").write_text(block + MODULE)
    (tmp_path / "setup.py").write_text(SETUP)
    result = run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result
    code = """
import threading, l0rt
from shown import allocate, allocate_or_explain
assert allocate(64) and allocate_or_explain(64) and allocate(0) == allocate_or_explain(0) == 0

def failures():
    try:
        allocate(1 << 60)
    except l0rt.OutOfMemoryError as e:
        assert "requested" in str(e), e
    else:
        raise AssertionError("memory without end")
    code, text = allocate_or_explain(1 << 60)
    assert code != 0 and "OutOfMemoryError" in text, (code, text)
    print("told")

failures()
thread = threading.Thread(target=failures)
thread.start()
thread.join()
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (0, "told\ntold\n", ""), result


def test_a_failure_in_a_thread_that_python_did_not_start(built):
    code = """
from foreign.by_c import failure_on_a_thread
for known in (0, 1, 0, 1):
    code, text = failure_on_a_thread(1 << 60, known)
    assert code == 0x70000003 and text.startswith("OutOfMemoryError: "), (known, code, text)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result


def test_use_after_fork_is_told_at_the_door(built):
    code = """
import os
from foreign.by_cython import last_error, round_trip
from foreign.by_mistake import by_device, free, malloc
round_trip(b"x")
block = malloc(4096, -1)
if os.fork() == 0:
    told = 0
    for call in (lambda: malloc(64, -1), lambda: malloc(1 << 30, 0, -1), lambda: by_device(0, 0),
                 lambda: by_device(1, 0), lambda: by_device(3, 0), lambda: round_trip(b"x")):
        try:
            call()
        except RuntimeError as e:
            told += "Cannot re-initialize XPU in forked subprocess" in last_error()[1]
    free(block)
    os._exit(told)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 6
free(block)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


def test_guards_and_events_over_the_guard_table(built):
    code = """
from foreign.by_mistake import events, guards, more_guards
assert more_guards(1) == (0, 1, 1, 1, 1)
assert more_guards(0) == (0, 0, 1, 1, 1)
assert guards(1) == (1, 0, 0, 1, 1)
assert guards(0) == (0, 0, 0, 1, 1)
assert events() == (1, 1)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}, cwd=built)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), str(result)


@pytest.mark.parametrize(
    ("compiler", "suffix"), [("cc", "c"), pytest.param("c++", "cpp", marks=pytest.mark.needs_cxx)]
)
def test_headers_stand_alone(tmp_path, compiler, suffix):
    """Each installed header compiles as C and as C++ without anything before it."""
    headers = sorted(p.name for p in (Path(l0rt.get_include()) / "l0rt").glob("*.h"))
    assert {"l0rt.h", "ze.h", "ze_functions.h"} <= set(headers)
    for header in headers:
        source = tmp_path / f"alone.{suffix}"
        source.write_text(f"#include <l0rt/{header}>\n")
        python = f"-I{sysconfig.get_path('include')}"
        result = run([compiler, "-fsyntax-only", "-Wall", "-Werror", f"-I{l0rt.get_include()}", python, source])
        assert result.returncode == 0, f"{header} with {compiler}: {result}"


PARTS = {
    "a.cpp": "#include <l0rt/l0rt.hpp>\nconst void *in_a() { return &l0rt::api; }\n",
    "b.cpp": """#include <Python.h>
#include <l0rt/l0rt.hpp>
const void *in_a();
int main() { return in_a() == &l0rt::api && l0rt::api == nullptr ? 0 : 1; }
""",
}


@pytest.mark.needs_cxx
def test_the_header_of_cpp_stands_alone_and_in_several_files(tmp_path):
    """Without Python.h before it too; two files that include it are linked, and have one table."""
    for name, text in PARTS.items():
        (tmp_path / name).write_text(text)
    includes = [f"-I{l0rt.get_include()}", f"-I{sysconfig.get_path('include')}"]
    for name in PARTS:
        flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", *includes]
        result = run(["c++", *flags, "-c", name], cwd=tmp_path, timeout=300)
        assert result.returncode == 0, result
    result = run(["c++", "a.o", "b.o", "-o", "both", "-Wl,--unresolved-symbols=ignore-all"], cwd=tmp_path)
    assert result.returncode == 0, result
    assert run([tmp_path / "both"]).returncode == 0


@pytest.mark.needs_cxx
def test_the_guide_to_cpp_compiles(tmp_path):
    (block,) = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "docs/embedding.md").read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "shown.cpp").write_text(block)
    includes = [f"-I{l0rt.get_include()}", f"-I{sysconfig.get_path('include')}"]
    result = run(["c++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", *includes, "shown.cpp"],
                 cwd=tmp_path, timeout=300)  # fmt: skip
    assert result.returncode == 0, result


@pytest.mark.parametrize(("version", "size"), [("L0RT_API_VERSION + 1", "sizeof(l0rt_api)"),
                                               ("L0RT_API_VERSION", "sizeof(l0rt_api) + 8")])  # fmt: skip
def test_an_extension_of_another_version_is_not_imported(tmp_path, version, size):
    """It was built with a newer l0rt: of another version of the table, or with more functions in it."""
    head = re.sub(r"sizeof\(l0rt_api\)", size, (ROOT / "include/l0rt/l0rt.h").read_text())
    head = head.replace("api->version != L0RT_API_VERSION", f"api->version != ({version})")
    head = head.replace("L0RT_API_VERSION, (int)", f"({version}), (int)")
    (tmp_path / "newer.h").write_text(head)
    (tmp_path / "shown.c").write_text("""#include <Python.h>
#include "newer.h"
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "shown", NULL, 0, NULL};
PyMODINIT_FUNC PyInit_shown(void) { return l0rt_import() == NULL ? NULL : PyModule_Create(&module); }
""")
    (tmp_path / "setup.py").write_text(SETUP)
    result = run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, timeout=300)
    assert result.returncode == 0, result
    result = run_python("import shown", {"L0RT_DRIVER": "cpu"}, cwd=tmp_path)
    assert result.returncode == 1
    assert re.search(r"ImportError: expected version \d of l0rt's C API with at least \d+ bytes, got version \d with "
                     r"\d+ bytes: install the l0rt that this extension was built with, or a newer one", result.stderr)
