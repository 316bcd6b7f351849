# SPDX-License-Identifier: Apache-2.0
"""Quirks: where builds of Intel's driver do otherwise than the specification says, and what l0rt does about it.

Facts of a device go in, rows come out: nothing here asks a driver. A quirk is mended by doing without capabilities, or
where its calls are made: those places ask for it by name.
"""

from collections import namedtuple

INTEL = 0x8086
# Build numbers of releases, the last part of their names (https://github.com/intel/compute-runtime/releases).
IN_ORDER, NEO_25_18, NEO_25_31, NEO_26_01, NEO_26_18, NEO_26_31 = 32149, 33578, 34666, 36711, 38308, 39395
API_1_6 = 1 << 16 | 6

ARCHITECTURES = (  # (first device id, last device id, architecture): ranges of include/pciids/intel/pciids.h in Linux
    (0x0B69, 0x0BE5, "ponte vecchio"),
    (0x4F80, 0x4F88, "alchemist"),
    (0x5690, 0x56C2, "alchemist"),
    (0x6420, 0x64B0, "lunar lake"),
    (0x7D40, 0x7D40, "meteor lake"),
    (0x7D41, 0x7D41, "arrow lake"),
    (0x7D45, 0x7D45, "meteor lake"),
    (0x7D51, 0x7D51, "arrow lake"),
    (0x7D55, 0x7D60, "meteor lake"),
    (0x7D67, 0x7DD1, "arrow lake"),
    (0x7DD5, 0x7DD5, "meteor lake"),
    (0xB080, 0xB0BF, "panther lake"),
    (0xB640, 0xB640, "arrow lake"),
    (0xE200, 0xE2FF, "battlemage"),
)

# On these the driver counts every command of an ordered list (EnableWalkerPostSyncSkip is off).
COUNTING = ("alchemist", "ponte vecchio", "meteor lake", "arrow lake", "battlemage")
NEWER = ("lunar lake", "panther lake", "battlemage")  # Xe2 and Xe3: the driver compiles before it can do anything


def architecture(vendor_id, device_id):
    """Return the architecture of a device of Intel's; None for another vendor's, and for one that is not listed."""
    if vendor_id != INTEL:
        return None
    return next((name for first, last, name in ARCHITECTURES if first <= device_id <= last), None)


# What the rows go by. A build without a number is 0, and so counts as the oldest.
Facts = namedtuple("Facts", "architecture build kernel_driver api")


class Quirk:
    """A row of the table."""

    def __init__(self, name, what, mend, source, without, applies):
        self.name = name
        self.what = what
        self.mend = mend
        self.source = source  # who says so
        self.without = frozenset(without)  # capabilities that are not used
        self.applies = applies  # Facts -> bool


QUIRKS = (
    Quirk(
        "unflushed_counters",
        "a counter-based event's signal leaves the caches unflushed: host memory that the device wrote may read stale "
        "after a query or a polled wait",
        "events come from pools: their signals flush",
        "Intel's driver before 26.31, by its source: only zeEventHostSynchronize flushes",
        ("cb_events", "cb_pool"),
        lambda d: d.build < NEO_26_31 and d.architecture not in ("battlemage", "ponte vecchio"),
    ),
    Quirk(
        "no_vm_bind",
        "mapping only lists the memory, every submission walks the list, and out of memory shows at a later append",
        "memory comes in segments",
        "the i915 that is part of Linux has no VM_BIND (drivers/gpu/drm/i915)",
        ("vmm",),
        lambda d: d.kernel_driver not in ("xe", "i915-prelim"),
    ),
    Quirk(
        "untyped_mappings",
        "mapped memory is of unknown type, so that other libraries refuse it",
        "memory comes in segments",
        "Intel's driver before 25.31: https://github.com/uxlfoundation/oneDNN/pull/3656",
        ("vmm",),
        lambda d: d.build < NEO_25_31,
    ),
    Quirk(
        "raw_event_handles",
        "an event's handle for other processes is a descriptor's number, which means another file there",
        "events are not shared with other processes: UnsupportedError",
        "Intel's driver before 26.18, by its source; on Alchemist and Ponte Vecchio also 26.27, run",
        ("event_ipc",),
        lambda d: d.build < NEO_26_18 or d.architecture in ("alchemist", "ponte vecchio"),
    ),
    Quirk(
        "racing_maps",
        "an append of a copy or fill reads which memory is mapped into a reservation while another thread maps or "
        "unmaps there: memory used after its end; launches and graphs are taken to do the same",
        "all these appends and mapping exclude each other; memory that cannot be mapped for that comes in segments",
        "Intel's driver, by its source: read from 24.39 to 26.31, and no build is known to be without it",
        (),
        lambda d: True,
    ),
    Quirk(
        "racing_queries",
        "two threads that ask or wait for one event that is not counter-based race inside the driver",
        "one thread at a time asks the driver about such an event",
        "Intel's driver, by its source; no build that is known to be without it",
        (),
        lambda d: True,
    ),
    Quirk(
        "outlasting_waits",
        "a wait for a counter-based event also waits for all of the engine's work, beyond its timeout",
        "such events are asked again and again, and never waited for",
        "Intel's driver from 26.01 on, by its source",
        (),
        lambda d: (not d.build or d.build >= NEO_26_01) and d.architecture in ("alchemist", "lunar lake"),
    ),
    Quirk(
        "single_device_imports",
        "registered memory is there for one device of its context only",
        "it is registered for the driver's first device; copies of the others are staged",
        "Intel's driver, by its source; no build that is known to be without it",
        (),
        lambda d: True,
    ),
    Quirk(
        "cached_imports",
        "registered memory of up to 256 MiB goes into a cache when it is freed: a later allocation returns it, while "
        "it is the program's, and a thread of the driver uses it after ten seconds",
        "it is registered by functions of Intel's own (zexDriverImportExternalPointer), which have no cache",
        "Intel's driver 26.27, run on Battlemage, Lunar Lake and Panther Lake; the cache is off on Alchemist and Ponte "
        "Vecchio, and no build that is known to be without it elsewhere",
        (),
        lambda d: d.architecture not in ("alchemist", "ponte vecchio"),
    ),
    Quirk(
        "peer_counters",
        "waiting for another device's counter-based event ends the process",
        "the host waits for it",
        "Intel's driver, by its source; no build that is known to be without it",
        (),
        lambda d: True,
    ),
    Quirk(
        "unordered_lists",
        "a list that is to keep its commands in order does not, or nobody relies on it yet",
        "a barrier stands between the commands of a stream",
        "Intel's driver before build 26918, by its source, ignores the flag; Intel's clients rely on it from 32149 on, "
        "or, where there is no number, from API 1.6 on",
        ("inorder", "copy_offload", "cb_events", "cb_pool", "graph", "graph_forks"),
        lambda d: d.build < IN_ORDER if d.build else d.api < API_1_6,
    ),
    Quirk(
        "raw_memory_handles",
        "a handle of memory for other processes is a descriptor's number, which means another file there",
        "memory is not shared with other processes: UnsupportedError",
        "Intel's driver before 25.18, by its source; on Alchemist and Ponte Vecchio also 26.27, run",
        ("memory_ipc",),
        lambda d: d.build < NEO_25_18 or d.architecture in ("alchemist", "ponte vecchio"),
    ),
    Quirk(
        "early_graphs",
        "the driver's graphs are those from before their extension was final: other names and other codes of errors",
        "graphs are lists of commands",
        "Intel's driver before 26.31",
        ("graph", "graph_forks"),
        lambda d: d.build < NEO_26_31,
    ),
    Quirk(
        "unjoined_captures",
        "a list that waits for one that is being recorded does not stay part of the recording",
        "graphs of several streams are lists of commands",
        "Intel's driver, by its source; no build that is known to be without it",
        ("graph_forks",),
        lambda d: True,
    ),
    Quirk(
        "listed_symbols",
        "a module with variables or exported functions lists one kernel more, which its code does not have",
        "it is neither listed nor made",
        "Intel's driver 26.27, run; no build that is known to be without it",
        (),
        lambda d: True,
    ),
    Quirk(
        "fatal_enqueues",
        "the compiler faults on kernels that enqueue others, which ends a process that handles SIGSEGV",
        "such modules are refused unless they are trusted",
        "Intel's compiler 2.40, run; no build that is known to support them",
        (),
        lambda d: True,
    ),
    Quirk(
        "uncounted_signals",
        "a copy, fill or launch that signals an event of a pool does not count in its list's order: a wait for the "
        "list, or for what a copy of rows signals behind it, ends before it is done",
        "a list is waited for by an event, which is signalled behind a copy and not by it",
        "Intel's driver 26.27, run on Lunar Lake and Panther Lake; absent on Alchemist, Battlemage and Ponte Vecchio, "
        "and no build that is known to be without it elsewhere",
        ("list_sync",),
        lambda d: (not d.build or d.build >= NEO_26_01) and d.architecture not in COUNTING,
    ),
    Quirk(
        "fast_link",
        "the link is several times faster than one thread copies",
        "up to three threads divide a host's copy of pageable memory",
        "Intel's data sheet of Ponte Vecchio: PCI Express 5.0 x16",
        (),
        lambda d: d.architecture == "ponte vecchio",
    ),
)


def mended(vendor_id, device_id, build, kernel_driver, switches, api=API_1_6):
    """Return the quirks that are mended for a device: those that apply, but for what ``switches`` says by name."""
    facts = Facts(architecture(vendor_id, device_id), build, kernel_driver, api)
    return tuple(quirk for quirk in QUIRKS if switches.get(quirk.name, vendor_id == INTEL and quirk.applies(facts)))
