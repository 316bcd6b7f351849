# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's own tests, in C: built and run by its Makefile, without Python in the process."""

import ctypes.util
import fcntl
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from helpers.extents import HANG_LIMIT
from helpers.process import run

TESTS = Path(__file__).resolve().parents[1] / "cpu_driver"

pytestmark = pytest.mark.skipif(
    not TESTS.exists() or shutil.which("make") is None or shutil.which("cc") is None,
    reason="needs the source tree, make and a C compiler (Debian: apt install make gcc)",
)

needs_loader = pytest.mark.skipif(
    ctypes.util.find_library("ze_loader") is None or not Path("/usr/include/level_zero").exists(),
    reason="needs the official loader to link with (Debian: apt install libze1 libze-dev)",
)


@pytest.fixture
def build(tmp_path_factory):
    """The folder that all workers build in."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cpu_driver"
    folder.mkdir(exist_ok=True)
    return folder


def make(word, build, *variables, flavours=("plain",), timeout=600):
    """Make what the Makefile has under this word, when the library is there in the flavours that it needs."""
    # The tests set what they need, and expect the defaults otherwise.
    env = {name: None for name in os.environ if name.startswith(("L0RT_CPU_", "ZE_", "MAKE"))}
    options = [f"-j{os.cpu_count() or 1}", "--no-print-directory", "-C", TESTS, f"BUILD={build}"]

    def made(*words):
        done = run(["make", *options, *words], env, timeout=timeout)
        assert done.returncode == 0, done
        return done.stdout

    with open(build / "lock", "w") as lock:  # the next worker finds it built
        fcntl.flock(lock, fcntl.LOCK_EX)
        for flavour in flavours:
            made(f"FLAVOUR={flavour}", "library")
    return made(*variables, word)


@pytest.mark.takes_minutes
def test_c_tests_pass(build, extent):
    extent.skip_unless_whole()
    said = make("test", build)
    tests = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.c")}
    assert tests <= {line.split(":")[0] for line in said.splitlines() if line.endswith(": ok")}


@needs_loader
def test_the_official_loader_hosts_the_driver(build, extent):
    extent.skip_unless_whole(ci=False)
    said = make("hosted", build, flavours=("plain", "asan", "tsan")).splitlines()
    assert "hosted: 2 driver(s) ok" in said
    assert said.count("stranger: ok") == 6, "plain and with two sanitizers, each without and with the validation layer"
    assert "spirv_damage: ok" in make("damaged_slice", build, flavours=("asan",))


@pytest.mark.skipif(shutil.which("ocloc") is None, reason="needs ocloc (Debian: apt install intel-opencl-icd)")
def test_the_modules_are_what_their_sources_say(tmp_path, build, extent):
    extent.skip_unless_whole()
    made = tmp_path / "made"
    made.mkdir()
    make("kernels", build, f"KERNELS={made}", flavours=())
    kept = {path.name: path.read_bytes() for path in (TESTS / "kernels").glob("*.spv")}
    assert {path.name: path.read_bytes() for path in made.iterdir()} == kept


CORPUS = "dpnp==0.20.0"  # SYCL's compiler made the 17,717 modules in it


def test_modules_that_others_made_are_prepared(tmp_path, build, extent):
    extent.skip_unless_whole(ci=False)
    which = "--no-deps --only-binary=:all: --python-version 3.11 --platform manylinux_2_28_x86_64".split()
    download = [sys.executable, "-m", "pip", "download", "-q", *which, "-d", tmp_path, CORPUS]
    fetched = subprocess.run(download, capture_output=True, text=True, timeout=300, check=False)
    if fetched.returncode != 0:
        pytest.skip(f"{CORPUS} could not be fetched from PyPI: {fetched.stderr.strip().splitlines()[-1]}")
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        objects = sorted(name for name in archive.namelist() if name.endswith(".so"))
        archive.extractall(tmp_path, objects)
    each = extent(35, 35, 1)
    said = make("corpus", build, f"EACH={each}", f"CORPUS={' '.join(str(tmp_path / name) for name in objects)}")
    found = re.search(r"^(\d+) modules found, (\d+) decoded, 0 refused; (\d+) kernels, 0 refused$", said, re.MULTILINE)
    assert found is not None, said
    modules, decoded, kernels = map(int, found.groups())
    assert modules == 17717
    assert decoded == -(-modules // each)
    assert kernels >= decoded - 6, "six of the modules have no function"


def test_damaged_modules_by_the_million(build, soak):
    if not soak:
        pytest.skip("takes minutes: make soak")
    said = make("damaged", build, flavours=("asan",), timeout=HANG_LIMIT)
    assert "damaged: ok" in said
    assert "fuzz_spirv: ok" in said or "no clang: libFuzzer has not run on modules" in said


def test_functions_are_accurate_on_millions_of_operands(build, soak):
    if not soak:
        pytest.skip("takes minutes: make soak")
    assert "spirv_accuracy: ok" in make("accurate", build, timeout=HANG_LIMIT)


def test_random_kernels_by_the_thousand(build, soak):
    if not soak:
        pytest.skip("takes minutes: make soak")
    assert "spirv_random: ok" in make("random", build, timeout=HANG_LIMIT)


@needs_loader
def test_soak(build, soak):
    if not soak:
        pytest.skip("takes minutes: make soak")
    said = make("soak", build, flavours=("asan",), timeout=HANG_LIMIT)
    assert "seeds: ok" in said
    assert "fuzz: ok" in said
    for suite in ("trixie", "sid"):
        print(next(line for line in said.splitlines() if line.startswith(f"loader of {suite}: ")))
