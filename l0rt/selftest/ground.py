# SPDX-License-Identifier: Apache-2.0
"""What a child process of the self-test stands on: the device, how much of its memory may be used, for how long."""

import time
import warnings

import l0rt.accelerator as acc
from l0rt import memory
from l0rt.bench import report
from l0rt.runtime.streams import devices
from l0rt.selftest.driver import Driver
from l0rt.selftest.questions import Answer
from l0rt.ze import pci, quirks

MIB = 1 << 20
SHARE, MOST = 8, 1 << 30  # an eighth of what is free, of the device's memory and of the host's, and no more than 1 GiB


class Untestable(Exception):
    """The question cannot be answered here; the text says why."""


class Ground:
    """The device, and what the questions may do with it."""

    def __init__(self, index, provoke=False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that `auto` took the CPU driver is said in the report
            devices.lazy.init()
            acc.set_device_index(index)
        self.index = index
        self.driver = Driver(index)
        self.properties = devices.properties(index)
        self.capabilities = devices.capabilities(index)
        self.identity = devices.identity(index)
        self.architecture = quirks.architecture(self.identity["vendor_id"], self.identity["device_id"])
        self.is_software = self.properties["is_software"]
        self.executes = self.is_software or not report.simulated()
        self.provoke = provoke or self.is_software
        self.budget = budget(index)
        self.ends = time.monotonic()

    def facts(self):
        """Return what the report says about the device: nothing that identifies one card or one user."""
        place = pci.facts(self.properties["pci"])
        return {
            **self.identity,
            "name": self.properties["name"],
            "is_software": self.is_software,
            "executes": self.executes,
            "architecture": self.architecture,
            "driver_version": self.properties["driver_version"],
            "api_version": "{}.{}".format(*self.properties["api_version"]),
            "loader": devices.library.loader_version(),
            "integrated": bool(self.properties["integrated"]),
            "total_memory": self.properties["total_memory"],
            "max_alloc": self.properties["max_alloc"],
            "bar_size": place["bar_size"],
            "compute_queues": self.properties["compute_queues"],
            "copy_queues": self.properties["copy_queues"] if self.properties["copy_ordinal"] >= 0 else 0,
            "timestamp_bits": self.properties["timestamp_bits"],
            "timer_hz": self.properties["timer_hz"],
            "devices": devices.device_count(),
            "capabilities": self.capabilities,
            "mended": [quirk.name for quirk in devices.mended_quirks(self.index)],
            "budget": self.budget,
            "caveat": report.caveat(self.is_software),
        }

    def remaining(self):
        """Return the seconds that the question at hand still has."""
        return max(0.0, self.ends - time.monotonic())

    def needs(self, capability):
        """`Untestable` without this capability of the driver's, whether or not l0rt uses it."""
        if not self.capabilities.get(capability):
            raise Untestable(f"the driver has no {capability}, or l0rt does without it")

    def has_graphs(self):
        """`Untestable` where the driver reports no graphs of its own."""
        if "ZE_extension_record_replay_graph" not in devices.extensions(self.index):
            raise Untestable("the driver has no graphs")

    def second(self):
        """Return the index of another device of the same driver; `Untestable` if there is none."""
        for other in range(devices.device_count()):
            if other != self.index and devices._context_of[other] is devices._context_of[self.index]:
                return other
        raise Untestable("there is one device only")

    def size(self, nbytes):
        """Return a size: the wanted one, or what of it may be used."""
        return max(MIB, min(nbytes, self.budget // 4))


def budget(index):
    """Return how many bytes the self-test may use at most."""
    free = memory.mem_get_info(index)[0]
    return max(16 * MIB, min(MOST, free // SHARE, available() // SHARE))


def available():
    """Return how much of the host's memory is available."""
    try:
        with open("/proc/meminfo") as lines:
            return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return MOST


def works(detail="", **figures):
    """The answer of a capability that is there and works."""
    return Answer("works", detail, figures=figures)


def fails(detail, **figures):
    """The answer of a capability that is there and does not work."""
    return Answer("fails", detail, figures=figures)


def verdict(there, detail="", **figures):
    """The answer to a question about a trap or quirk: is it there?"""
    return Answer("present" if there else "absent", detail, figures=figures)
