# SPDX-License-Identifier: Apache-2.0
"""Intel's driver of today on devices that tests/xe_device simulates, in a root of Debian that has this driver."""

import ctypes
import gc
import os
import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, takewhile
from pathlib import Path

import pytest

from helpers import roots
from helpers.process import run
from helpers.rings import INTEL, LOADER, TESTS, Ring

SUITE = "forky"  # the oldest with Intel's driver of 2026
# With libc6-dev come the headers of Linux's xe, with python3 the libraries of Python's own modules, and with OpenCL the
# compiler, without which Level Zero ends the process on Xe2.
PACKAGES = ["gcc", "libc6-dev", "python3", "libze1", "libze-intel-gpu1", "intel-opencl-icd", "intel-ocloc"]
LIBRARY = "libxe_device.so"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
INCLUDED = [TESTS.parent / "include", TESTS.parent / "l0rt" / "cpu_driver"]  # types of Level Zero, and of the engine
FLAGS = "-std=gnu11 -O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -pthread -D_GNU_SOURCE".split()


def programs():
    """Return what a root needs of this machine to run this Python with what is installed: files and folders."""
    found = {sys.prefix, str(TESTS.parent)}
    if sys.base_prefix == "/usr":  # over the root's own Python, which has the same name
        found |= {"/usr/bin/python3", f"/usr/lib/python{sys.version_info.major}.{sys.version_info.minor}"}
    else:
        found.add(sys.base_prefix)
    return sorted(path for path in found if not any(path.startswith(f"{other}/") for other in found))


def root():
    """Return a root with Intel's driver, in which `inside` shows this Python; it takes minutes once a week."""
    folder = roots.unpacked(SUITE, PACKAGES)
    roots.show(folder, programs())
    return folder


def inside(folder, temporary, command, env):
    """Return the command that runs another one in the root, with a folder of this machine as its /tmp."""
    told = [f"{name}={value}" for name, value in env.items() if value is not None]
    own = ["env", "-i", "-C", "/tmp", "HOME=/root", f"PATH={PATH}", *told]
    return roots.inside(folder, [*own, *command], programs(), temporary=temporary)


def build(folder, temporary):
    """Compile the simulated devices in the root, for its own C library, into the folder that is its /tmp."""
    sources = sorted(Path(TESTS, "xe_device").glob("*.c"))
    result = run(
        inside(
            folder,
            temporary,
            ["gcc", *FLAGS, *(f"-I{path}" for path in INCLUDED), "-o", f"/tmp/{LIBRARY}", *sources],
            {},
        ),
        timeout=600,
    )
    assert result.returncode == 0, str(result)


@dataclass(frozen=True)
class XeRing(Ring):
    """A ring on simulated devices: names of tests/xe_device/product.c with commas between."""

    devices: str = field(default="", kw_only=True)

    def environment(self, cpu_driver):
        return {
            **super().environment(cpu_driver),
            "L0RT_DRIVER": "gpu",
            "LD_PRELOAD": f"/tmp/{LIBRARY}",
            "XE_DEVICE": self.devices,
            "XE_DEVICE_ENGINE": cpu_driver,
            "XE_DEVICE_FAILURES": "/tmp/failures",
            "XE_DEVICE_UNMAPPED": "/tmp/unmapped",
            "XE_DEVICE_COUNTERS": "/tmp/counters",
            "XE_DEVICE_YAMA": 1,  # as Debian's kernels have it: the driver shares events between processes by it
        }

    def start(self, command, env, cwd, timeout):
        """Run it in the root, where ``cwd``, which has the library, is /tmp."""
        kept = {name: value for name, value in os.environ.items() if name.startswith("L0RT_TEST_")}
        return run(inside(root(), cwd, command, {**kept, **env}), None, cwd, timeout)


NEEDED = (LOADER, INTEL)
RINGS = (
    XeRing("xe-bmg", NEEDED, {}, devices="bmg"),
    XeRing("xe-lnl", NEEDED, {}, devices="lnl"),
    XeRing("xe-pvc", NEEDED, {}, devices="pvc"),
    XeRing("xe-dg2", NEEDED, {}, devices="dg2"),
    XeRing("xe-bmg x2", NEEDED, {}, devices="bmg,bmg"),
)


def unchecked(output):
    """Return reason -> number of the tests that were skipped, from what pytest has printed."""
    reasons = Counter()
    for number, reason in re.findall(r"^SKIPPED \[(\d+)\] \S+: (.*)$", output, re.MULTILINE):
        reasons[reason] += int(number)
    return reasons


def kernels_run():
    """Return how many kernels have been launched, by this process and by those that have ended."""
    library = ctypes.CDLL(None)
    library.xe_device_counter_name.restype = ctypes.c_char_p
    library.xe_device_counter.restype = ctypes.c_ulonglong
    names = takewhile(lambda name: name, map(library.xe_device_counter_name, count()))
    own = library.xe_device_counter(list(names).index(b"gpu_walker"))
    file = Path(os.environ["XE_DEVICE_COUNTERS"])
    ended = re.findall(r" gpu_walker (\d+)$", file.read_text() if file.exists() else "", re.MULTILINE)
    return own + sum(map(int, ended))


class News:
    """The lines of a file to which processes add some."""

    def __init__(self, path):
        self.path = Path(path)
        self.seen = 0

    def lines(self):
        """Return the lines that have come since the last call."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        fresh, self.seen = lines[self.seen :], len(lines)
        return fresh


class Failures:
    """A plugin of pytest: a test fails if a device has met meanwhile what no kernel or GPU forgives.

    A test of data that fails after launches of kernels that do not compute is skipped, and the reason names one.
    """

    def __init__(self):
        names = {"XE_DEVICE_FAILURES", "XE_DEVICE_UNMAPPED", "XE_DEVICE_COUNTERS"}
        for variable in names & os.environ.keys():  # read when they are used; another worker's are not this one's
            os.environ[variable] += os.environ.get("PYTEST_XDIST_WORKER", "")
        self.failures = News(os.environ["XE_DEVICE_FAILURES"])
        self.unmapped = News(os.environ.get("XE_DEVICE_UNMAPPED", os.devnull))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        self.unmapped.lines()
        try:
            return (yield)
        except (Exception, pytest.fail.Exception):
            lines = self.unmapped.lines() if item.get_closest_marker("checks_data") else []
            if not lines:
                raise
        gc.collect()  # the failure's frames keep memory, into the next test otherwise
        pytest.skip(f"a kernel does not compute: {lines[0].partition(' ')[2]}")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self):
        if fresh := self.failures.lines():
            pytest.fail("the simulated device names:\n" + "\n".join(fresh), pytrace=False)
