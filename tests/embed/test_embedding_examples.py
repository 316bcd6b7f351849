# SPDX-License-Identifier: Apache-2.0
"""The packages of examples/embed_*: built elsewhere against the installed l0rt, and run as their README says."""

import re
import shutil
import sys

import pytest

from helpers.ci import skip_unless_ci
from helpers.process import run
from helpers.source import ROOT

EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("embed_*"))
NEEDS = {"embed_cpp": "pybind11", "embed_cython": "Cython"}
SOFTWARE = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": None}


def test_there_is_one_for_each_language():
    assert EXAMPLES == ["embed_c", "embed_cpp", "embed_cython"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_readme_is_short(name):
    assert len((ROOT / "examples" / name / "README.md").read_text().splitlines()) <= 12


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_built_and_prints_what_its_readme_says(name, tmp_path):
    needed = NEEDS.get(name, "setuptools")
    if run([sys.executable, "-c", f"import {needed}"]).returncode != 0:
        skip_unless_ci(f"needs {needed}: the extra `test`")
    folder, target = tmp_path / name, tmp_path / "installed"
    shutil.copytree(ROOT / "examples" / name, folder)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index"]
    result = run([*install, "--target", target, folder], timeout=300)
    assert result.returncode == 0, str(result)
    code = "import runpy; runpy.run_module('check', run_name='__main__')"
    result = run([sys.executable, "-W", "ignore", "-c", code], {**SOFTWARE, "PYTHONPATH": str(target)}, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, ""), str(result)
    said = re.search(r"^It prints (.*)\.$", (folder / "README.md").read_text(), re.MULTILINE)[1]
    assert result.stdout.splitlines() == re.findall(r"`([^`]*)`", said)
