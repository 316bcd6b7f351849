# SPDX-License-Identifier: Apache-2.0
"""The rings: drivers that the same tests run on, each in a pytest of its own."""

import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from helpers.extents import noted
from helpers.process import run, run_python

TESTS = Path(__file__).resolve().parents[1]
# Tests on the interface: they never ask which driver they have.
FOLDERS = ("core", "runtime", "accelerator", "kernels", "graphs")
HUNG = 400  # seconds of one test, which takes less than ten: where it stands is shown, and the ring ends

LOADER, VALIDATION, INTEL = "libze_loader.so.1", "libze_validation_layer.so.1", "libze_intel_gpu.so.1"
NO_HARDWARE = {  # Intel's driver encodes every command, and executes none
    "NEOReadDebugKeys": 1,
    "SetCommandStreamReceiver": 1,
    "AUBDumpSubCaptureMode": 1,
    "L0RT_DRIVER": "gpu",
    "L0RT_TEST_NO_DATA": 1,
}


@dataclass(frozen=True)
class Ring:
    name: str
    libraries: tuple
    env: dict = field(hash=False)
    hosts_cpu_driver: bool = False

    def __str__(self):
        return self.name

    def environment(self, cpu_driver):
        """Return the changes to the environment that make l0rt use this ring's driver."""
        inherited = [n for n in os.environ if n.startswith(("ZE_", "L0RT_")) and not n.startswith("L0RT_TEST_")]
        hosted = {"L0RT_DRIVER": "gpu", "ZE_ENABLE_ALT_DRIVERS": cpu_driver} if self.hosts_cpu_driver else {}
        return {**dict.fromkeys([*inherited, *NO_HARDWARE]), **hosted, **self.env, "L0RT_TEST_RING": self.name}

    def missing(self):
        """Return the libraries of this ring that are not installed."""
        return [name for name in self.libraries if not installed(name)]

    def run(self, cpu_driver, cwd, args, timeout, env=None):
        """Run pytest with these arguments on this ring's driver; see `verdict`."""
        quiet = ["-q", "-p", "no:cacheprovider", "--durations=5", "--durations-min=20"]
        quiet += ["-o", f"faulthandler_timeout={min(HUNG, max(10, timeout - 30)):.0f}"]
        command = [sys.executable, "-m", "pytest", "-c", TESTS.parent / "pyproject.toml", "--rootdir", TESTS.parent]
        return self.start([*command, *quiet, *args], {**self.environment(cpu_driver), **(env or {})}, cwd, timeout)

    def start(self, command, env, cwd, timeout):
        return run(command, env, cwd, timeout)


RINGS = (
    Ring("loader", (LOADER,), {"L0RT_CPU_DEVICES": 2}, hosts_cpu_driver=True),
    Ring(
        "loader+validation",
        (LOADER, VALIDATION),
        {"ZE_ENABLE_VALIDATION_LAYER": 1, "ZE_ENABLE_PARAMETER_VALIDATION": 1},
        hosts_cpu_driver=True,
    ),
    Ring(
        "old driver",  # functions missing behind a loader that has them, in-order lists that are none
        (LOADER,),
        {"L0RT_CPU_DEVICES": 2, "L0RT_CPU_PROFILE": "neo-22.43"},
        hosts_cpu_driver=True,
    ),
    Ring("intel", (LOADER, INTEL), {**NO_HARDWARE, "ProductFamilyOverride": "tgllp"}),
    Ring(
        "intel x2",
        (LOADER, INTEL),
        {**NO_HARDWARE, "ProductFamilyOverride": "dg1", "CreateMultipleRootDevices": 2},
    ),
)
SIMULATED = tuple(  # the CPU driver as real devices, with their defects
    Ring(profile, (), {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CPU_PROFILE": profile})
    for profile in (
        "arc-a770-i915",
        "arc-a770-xe",
        "arc-b580",
        "pvc",
        "lunar-lake",
        "meteor-lake",
        "arc-a770-xe,neo-25.18",
        "pvc,neo-25.18",
        "arc-b580,timing",
    )
)


def verdict(result):
    """Return pytest's own last line if tests ran and all passed, else None: a driver may end a process in silence."""
    last = result.stdout.strip().rpartition("\n")[2]
    return last if result.returncode == 0 and re.search(r"\b[1-9]\d* passed\b", last) else None


def installed(library):
    """Can the dynamic linker find this library? Asked in another process, which then has its side effects."""
    return run_python(f"import ctypes; ctypes.CDLL({library!r})").returncode == 0


def runs_on_a_driver(path):
    """Is this test file, or its node id, in a folder that every ring runs?"""
    return any(part in FOLDERS for part in Path(str(path).partition("::")[0]).parent.parts[-2:])


def summary(stats):
    """Return a line for each ring: whether it ran, and what came out. Nothing if no ring was asked for."""
    here = {
        kind: sum(runs_on_a_driver(r.nodeid) for r in stats.get(kind, [])) for kind in ("passed", "failed", "error")
    }
    outcomes = dict(outcome for _, outcome in noted(stats, "ring"))
    if not any(here.values()) and not outcomes:
        return []
    own = os.environ.get("L0RT_DRIVER") or "gpu"
    told = ", ".join(f"{n} {kind}" for kind, n in here.items() if n) or "NOT RUN: not selected"
    return [f"ring {own}: {told}"] + [f"ring {r.name}: {outcomes.get(r.name, 'NOT RUN: not selected')}" for r in RINGS]
