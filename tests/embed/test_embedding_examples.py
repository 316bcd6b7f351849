# SPDX-License-Identifier: Apache-2.0
"""The packages of examples/embed_*: built elsewhere against the installed l0rt, and run as their README says."""

import os
import re
import shlex
import shutil
import sys
from pathlib import Path

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


def said_by(readme):
    """Return the lines that the example prints, as its README says."""
    said = re.search(r"^It prints (.*)\.$", readme.read_text(), re.MULTILINE)[1]
    return re.findall(r"`([^`]*)`", said)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.needs_cxx] * (name == "embed_cpp")) for name in EXAMPLES]
)
def test_it_is_built_and_prints_what_its_readme_says(name, tmp_path):
    needed = NEEDS.get(name, "setuptools")
    if run([sys.executable, "-c", f"import {needed}"]).returncode != 0:
        skip_unless_ci(f"needs {needed}: the extra `test`")
    folder, target = tmp_path / name, tmp_path / "installed"
    shutil.copytree(ROOT / "examples" / name, folder)
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index"]
    quickly = dict.fromkeys(("CFLAGS", "CXXFLAGS"), "-O1 -g0")  # pybind11 takes ten seconds at -O3 -g
    result = run([*install, "--target", target, folder], quickly, timeout=300)
    assert result.returncode == 0, str(result)
    code = "import runpy; runpy.run_module('check', run_name='__main__')"
    result = run([sys.executable, "-W", "ignore", "-c", code], {**SOFTWARE, "PYTHONPATH": str(target)}, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, ""), str(result)
    assert result.stdout.splitlines() == said_by(folder / "README.md")


@pytest.fixture
def fresh(tmp_path):
    """A function that runs a command line in a new environment, which has nothing of this one's."""
    venv = tmp_path / "venv"
    result = run([sys.executable, "-m", "venv", venv], timeout=300)
    assert result.returncode == 0, str(result)
    alone = {"PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": venv, "PYTHONPATH": None}

    def run_there(line, cwd):
        return run(["sh", "-c", line], {**SOFTWARE, **alone, "PIP_DISABLE_PIP_VERSION_CHECK": 1}, cwd, timeout=600)

    if run_there("pip download -q --no-deps setuptools", tmp_path).returncode != 0:
        skip_unless_ci("needs an index of packages")
    return run_there


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_readme_works_with_the_wheel_in_a_new_environment(name, tmp_path, extent, request):
    extent.skip_unless_whole(ci=name == "embed_c")
    wheel, fresh = request.getfixturevalue("wheel"), request.getfixturevalue("fresh")
    folder = tmp_path / name
    shutil.copytree(ROOT / "examples" / name, folder)
    lines = re.findall(r"^    (.+)$", (folder / "README.md").read_text(), re.MULTILINE)
    assert [line.split()[:2] for line in lines] == [["pip", "install"], ["pip", "install"], ["python", "check.py"]]
    assert lines[0].startswith("pip install l0rt ")     # which is in no index yet
    lines[0] = lines[0].replace(" l0rt ", f" {shlex.quote(str(wheel))} ")
    for line in lines[:-1]:
        result = fresh(line, folder)
        assert result.returncode == 0, f"{line}: {result}"
    result = fresh(f"{lines[-1]} && python -c 'import l0rt; print(l0rt.__file__)'", folder)
    *printed, place = result.stdout.splitlines()
    assert (result.returncode, printed) == (0, said_by(folder / "README.md")), str(result)
    assert Path(place).is_relative_to(tmp_path / "venv"), "not the wheel's l0rt"
