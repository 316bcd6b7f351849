# SPDX-License-Identifier: Apache-2.0
"""What setup.py builds anew: the modules and the CPU driver, each for what it is made of, in the flavour asked for."""

import os
import shutil
import sys
import time

import pytest

from helpers.process import run
from helpers.source import ROOT

DRIVER = "l0rt/cpu_driver/libze_l0rt_cpu.so"


@pytest.fixture
def tree(tmp_path):
    """A source tree with the real setup.py, a module of one line and a driver of one file."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "include", tmp_path / "include")
    (tmp_path / "bench/traces").mkdir(parents=True)
    driver = tmp_path / "l0rt/cpu_driver"
    (driver / "loader").mkdir(parents=True)
    (tmp_path / "l0rt/__init__.py").write_text('__version__ = "1.0"\n')
    (tmp_path / "l0rt/tiny.pyx").write_text("x = 1\n")
    (driver / "tiny.h").write_text("enum { TINY = 1 };\n")
    (driver / "tiny.c").write_text('#include "tiny.h"\nint tiny(void) { return TINY; }\n')
    (driver / "loader/tiny.c").write_text("int tiny_loader(void) { return 1; }\n")
    return tmp_path


def build(tree, flavour=""):
    """Build in place; return the times of the module and of the driver, and whether each has debugging data."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    result = run(command, {"L0RT_BUILD": flavour}, cwd=tree, timeout=300)
    assert result.returncode == 0, result
    (module,) = (tree / "l0rt").glob("tiny.*.so")
    files = (module, tree / DRIVER)
    return [path.stat().st_mtime_ns for path in files], [b".debug_info" in path.read_bytes() for path in files]


def touched(path):
    """Give a file a time after all others'."""
    os.utime(path, (time.time() + 100, time.time() + 100))


def test_a_header_builds_what_includes_it(tree):
    (module, driver), _ = build(tree)
    assert build(tree)[0] == [module, driver]
    touched(tree / "l0rt/cpu_driver/tiny.h")
    (same, newer), _ = build(tree)
    assert same == module
    assert newer > driver
    touched(tree / "include/l0rt/ze.h")
    assert build(tree)[0][0] > module


def test_a_build_in_place_follows_the_flavour(tree):
    assert build(tree)[1] == [False, False]
    assert build(tree, "debug")[1] == [True, True]
    assert build(tree)[1] == [False, False]
    assert build(tree, "debug")[1] == [True, True]
