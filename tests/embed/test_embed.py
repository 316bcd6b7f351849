"""A foreign package, built against the installed l0rt, computes through the embedding door."""

import shutil
import sys
import sysconfig
from pathlib import Path

import pytest

from helpers.process import run, run_python

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the foreign package, built in place."""
    folder = tmp_path_factory.mktemp("embed") / "package"
    shutil.copytree(PACKAGE, folder)
    result = run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, timeout=300)
    assert result.returncode == 0, str(result)
    return folder


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


def test_headers_stand_alone(tmp_path):
    """Each installed header compiles as C and as C++ without anything before it."""
    import l0rt

    headers = sorted(p.name for p in (Path(l0rt.get_include()) / "l0rt").glob("*.h"))
    assert {"l0rt.h", "ze.h", "ze_functions.h"} <= set(headers)
    for compiler, suffix in (("cc", "c"), ("c++", "cpp")):
        if shutil.which(compiler) is None:
            continue
        for header in headers:
            source = tmp_path / f"alone.{suffix}"
            source.write_text(f"#include <l0rt/{header}>\n")
            python = f"-I{sysconfig.get_path('include')}"
            result = run([compiler, "-fsyntax-only", "-Wall", "-Werror", f"-I{l0rt.get_include()}", python, source])
            assert result.returncode == 0, f"{header} with {compiler}: {result}"
