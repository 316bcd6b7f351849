# SPDX-License-Identifier: Apache-2.0
"""Versions that are known to be bad: of the loader, of Intel's driver and of Linux, and what to do about each.

Facts go in, rows come out: nothing here looks at the machine. What l0rt itself copes with is in `l0rt.ze.quirks`; here
is what it cannot mend, or what only other software notices.
"""

import re

from l0rt.ze.quirks import NEO_26_18, architecture

NEO_24_35, NEO_24_52, NEO_25_48, NEO_26_05 = 30872, 32224, 36300, 37020
RELEASES = (  # (build, release) of Intel's driver, by its branches: the newest that is not above a build names it
    (24595, "22.43"), (26918, "23.30"), (30872, "24.35"), (32224, "24.52"), (34666, "25.31"), (36300, "25.48"),
    (36711, "26.01"), (37020, "26.05"), (37833, "26.14"), (38308, "26.18"), (39122, "26.27"), (39395, "26.31"),
)  # fmt: skip
_DRIVER = "https://github.com/intel/compute-runtime/"
_ISSUES = _DRIVER + "issues/"
_LOADER = "https://github.com/oneapi-src/level-zero/"
_CHANGES = _LOADER + "blob/master/CHANGELOG.md"


class Facts:
    """What is known of the machine; None, 0 or empty is not known.

    ``loader`` and ``kernel`` are tuples of numbers, ``build`` is that of Intel's driver, ``gpus`` is a list of
    (device id, kernel driver, whether it is discrete).
    """

    def __init__(self, loader=None, build=0, kernel=None, gpus=(), has_npu=False, is_wsl=False, validates=False,
                 path="", others=()):  # fmt: skip
        self.loader = loader
        self.build = build
        self.kernel = kernel
        self.gpus = tuple(gpus)
        self.has_npu = has_npu
        self.is_wsl = is_wsl
        self.validates = validates  # the validation layer is asked for
        self.path = path  # of the loader in use
        self.others = tuple(others)  # (path, version) of other loaders that are newer

    def under_xe(self, *architectures):
        """Return how many GPUs xe drives, of these architectures if any are named."""
        return sum(
            driver == "xe" and (not architectures or architecture(0x8086, device) in architectures)
            for device, driver, _ in self.gpus
        )


class Defect:
    """A row of the table."""

    def __init__(self, code, component, what, remedy, source, applies):
        self.code = code
        self.component = component  # "loader", "driver" or "kernel"
        self.what = what
        self.remedy = remedy
        self.source = source
        self.applies = applies  # Facts -> bool


DEFECTS = (
    Defect(
        "loader_without_sysman",
        "loader",
        "this loader does not start system management on its own: no temperature, power or processes, and no free "
        "memory from the card",
        "install loader 1.9.4 or newer",
        "zesInit is of specification 1.5, which came with 1.9.4: " + _CHANGES,
        lambda f: f.loader is not None and f.loader < (1, 9, 4),
    ),
    Defect(
        "loader_validates_too_little",
        "loader",
        "ZE_ENABLE_VALIDATION_LAYER is set, and the layer of this loader refuses flags that are newer than it: "
        "in-order lists and others count as missing",
        "unset it, or install loader 1.13 or newer",
        "the flag for in-order lists is of specification 1.7, which came with 1.13.0: " + _CHANGES,
        lambda f: f.validates and f.loader is not None and f.loader < (1, 13),
    ),
    Defect(
        "loader_of_a_package",
        "loader",
        "a Python or conda package's own loader is used although there is a newer one: it may not know the driver, or "
        "mix with the other in one process",
        "upgrade or remove that package, or set LD_LIBRARY_PATH to the newer one's folder",
        "https://github.com/IntelPython/dpctl/pull/1801",
        lambda f: any(sign in f.path for sign in ("site-packages", "conda", "/lib/python")) and bool(f.others),
    ),
    Defect(
        "npu_driver",
        "loader",
        "a driver of the NPU is there too: the loader then hands out handles of its own, which other software must "
        "translate before it calls Intel's extensions",
        "nothing for l0rt, which takes GPUs only; other software may want ZE_ENABLE_ALT_DRIVERS=libze_intel_gpu.so.1",
        "zelLoaderTranslateHandle: " + _LOADER + "blob/master/doc/loader_api.md",
        lambda f: f.has_npu,
    ),
    Defect(
        "driver_aborts_on_host_memory",
        "driver",
        "a copy of host memory that the driver cannot wrap ends the process; l0rt stages such copies, other software "
        "may not",
        "install Intel's driver 24.35 or newer",
        "getHostPtrAlloc: " + _DRIVER + "blob/releases/22.43/level_zero/core/source/cmdlist/cmdlist.cpp",
        lambda f: 0 < f.build < NEO_24_35,
    ),
    Defect(
        "driver_aborts_on_memory_info",
        "driver",
        "24.52 may end the process when memory information is read",
        "install a newer driver of Intel's",
        _ISSUES + "803",
        lambda f: f.build == NEO_24_52,
    ),
    Defect(
        "driver_aborts_on_this_kernel",
        "kernel",
        "25.48 ends the process at the first use (bindless heaps) with xe of Linux 6.18 and newer",
        "install a newer driver of Intel's, or start Linux 6.17",
        _ISSUES + "883",
        lambda f: NEO_25_48 <= f.build < 36711 and f.kernel is not None and f.kernel >= (6, 18) and f.under_xe() > 0,
    ),
    Defect(
        "alchemist_on_xe",
        "kernel",
        "drivers up to 26.05 may not find Alchemist (A770, A750, Flex) under xe",
        "let i915 drive it: boot without xe.force_probe",
        _ISSUES + "905",
        lambda f: 0 < f.build <= NEO_26_05 and f.under_xe("alchemist") > 0,
    ),
    Defect(
        "host_shadow",
        "driver",
        "with two GPUs in one process, each byte of device memory also takes a byte of host memory that is pinned "
        "(from 26.09 on)",
        "give each process one GPU: ZE_AFFINITY_MASK=0",
        _ISSUES + "953",
        lambda f: f.build > NEO_26_05 and f.under_xe() > 1,
    ),
    Defect(
        "free_memory_needs_privileges",
        "driver",
        "without privileges the card calls all of its memory free, so l0rt does not believe it",
        "install 26.18 or newer, which tells usable memory to every user, or run with CAP_PERFMON",
        _LOADER + "issues/133",
        lambda f: 0 < f.build < NEO_26_18,
    ),
    Defect(
        "wsl",
        "kernel",
        "WSL pins less host memory than the machine has, and a device whose memory is used up may take the Windows "
        "host down",
        "leave memory free on both; l0rt caches pinned memory up to an eighth of it there (pinned_cache_limit_mb)",
        "https://github.com/microsoft/WSL/issues/14078, https://github.com/microsoft/WSL/issues/40732",
        lambda f: f.is_wsl,
    ),
)


def known(facts):
    """Return the rows that apply."""
    return tuple(row for row in DEFECTS if row.applies(facts))


def numbers(text):
    """Return the numbers at the beginning of a version: ``6.18.3-generic`` is (6, 18, 3); None if there are none."""
    found = re.match(r"\d+(\.\d+)*", text or "")
    return tuple(int(part) for part in found.group().split(".")) if found else None


def release(build):
    """Return the release of a build of Intel's driver, such as 22.43; None if it is older than all that are known."""
    return next((name for first, name in reversed(RELEASES) if build >= first), None)


def build_of_file(path):
    """Return the build that the name of the driver's library has, 0 if it has none: libze_intel_gpu.so.1.3.24595."""
    found = re.search(r"\.so\.1\.\d+\.(\d+)", path or "")
    return int(found.group(1)) if found else 0
