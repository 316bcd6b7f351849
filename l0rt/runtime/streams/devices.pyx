# SPDX-License-Identifier: Apache-2.0
"""Devices: opened once, in a stable order, and kept as plain records."""

import os

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc

from l0rt.core.driver cimport Context
from l0rt.core.device cimport Device
from l0rt.core.event cimport EventPool
from l0rt.runtime.alloc.atomics cimport mutex_init
from l0rt.runtime.lazy cimport LazyInit, on_fork_child
from l0rt.runtime.streams.types cimport *

from l0rt import config
from l0rt._base import callers
from l0rt.core import sensors as core_sensors
from l0rt.core import sysman
from l0rt.core.driver import adopt_context as take_context, make_context, open_drivers
from l0rt.core.device import open_devices
from l0rt.core.memory import context_has
from l0rt.errors import DeviceIndexError, DriverNotFoundError, InvalidArgumentError, L0Error, UnsupportedError
from l0rt.runtime.lazy import CONTEXTS, on_exit
from l0rt.ze import loader, obstacles, pci, quirks, table as ze_table, tuning
from l0rt.ze.count import count_without_opening

cdef l0rt_device* _records = NULL
cdef int _count = 0
cdef int _ready = 0

_devices = []    # core.Device, in l0rt's order
_contexts = []   # core.Context, one a driver
_context_of = []  # by device
_identities = []  # by device: what its quirks and its tuning go by
_quirks = []     # by device: those that are mended
_cards = []      # one list: the cards of system management, filled at the first request
_adopted = []    # at most one: the handle of other software's context, and who owns it
library = None   # the opened ze.loader.Library
cdef LazyInit xpu


cdef int ensure() except -1 nogil:
    if _ready:
        return 0
    with gil:
        return xpu.ensure()


cdef int device_total() noexcept nogil:
    """Number of devices, 0 before initialisation."""
    return _count


cdef l0rt_device* device_at(int index) except NULL nogil:
    if not _ready:
        ensure()
    if 0 <= index < _count:
        return &_records[index]
    with gil:
        raise DeviceIndexError(
            f"The device index is out of range. It must be in [0, {_count}), but got {index}.")


cdef l0rt_device* device_record(int index) noexcept nogil:
    return &_records[index]


cdef l0rt_device* device_of_uuid(bytes uuid, str what) except NULL:
    cdef int i
    for i in range(_count):
        if bytes(_records[i].info.uuid[:16]) == uuid:
            return &_records[i]
    raise InvalidArgumentError(f"the {what} is on a device that this process does not have, with UUID {uuid.hex()}: "
                               "both processes need the same devices (ZE_AFFINITY_MASK)")


cdef bytes pickled_uuid(int index):
    uuid = bytes(_records[index].info.uuid[:16]) if 0 <= index < _count else b""
    return uuid if any(uuid) else None


cdef int pickled_index(int index, bytes uuid) except -2:
    cdef int i
    if not _count:
        ensure()
    if uuid is not None and pickled_uuid(index) != uuid:    # drivers may give several devices one UUID
        for i in range(_count):
            if pickled_uuid(i) == uuid:
                return i
    return index if 0 <= index < _count else -1


cdef Device core_device(int index):
    return <Device>_devices[index]


cdef Context core_context(int index):
    return <Context>_context_of[index]


cdef EventPool event_pool_for(int index, uint32_t count, bint counter_based, bint interprocess):
    """Make a pool whose events any device of the context may wait for, with its memory on this device: drivers keep it
    on the first of those that they are told."""
    cdef ze_device_handle_t[64] handles      # L0RT_MAX_DEVICES
    cdef Context context = <Context>_context_of[index]
    cdef uint32_t found = 1
    cdef int i
    if context.is_adopted:      # nobody says which devices it has
        return EventPool.create(context, count, counter_based, interprocess, 0, NULL)
    handles[0] = _records[index].handle
    for i in range(_count):
        if i != index and _context_of[i] is context:
            handles[found] = _records[i].handle
            found += 1
    return EventPool.create(context, count, counter_based, interprocess, found, handles)


cdef void _forget() noexcept nogil:
    global _ready
    _ready = 0


def _close():
    """Destroy the contexts. Everything that was created in them was destroyed before."""
    global _ready
    _ready = 0
    for context in _contexts:
        context.close()


def not_found(why, code=None):
    """Return the error for "there is no device", which says what to do. ``code`` is the driver's result."""
    return DriverNotFoundError(
        f"Cannot access accelerator device when none is available. No Level Zero device was found: {why}. "
        "L0RT_DRIVER=cpu runs on the bundled CPU driver, which is not a GPU; "
        "`l0rt doctor` shows what was looked for and where", code)


def _open_library(driver):
    """Open the library that ``driver`` names and initialise it; return its GPUs."""
    global library
    try:
        opened = loader.open_library(driver)
    except OSError as e:
        reasons = "; ".join(filter(None, (str(e), obstacles.address_space())))
        name = loader.library_name(driver)
        why = obstacles.why_no_gpu() if driver == "gpu" else f"{name} cannot be opened ({reasons})"
        raise not_found(why) from None
    fatal = obstacles.ends_process() if driver == "gpu" else None
    if fatal is not None:
        callers.warn(fatal.text, RuntimeWarning)
    missing = ze_table.fill(opened.address)
    if missing:
        raise not_found(f"{opened.path} is not a Level Zero library: it lacks {', '.join(missing)}")
    try:
        found = [d for each in open_drivers() for d in open_devices(each)]
    except DriverNotFoundError as e:    # anything else may pass: the next first use tries again
        complaint = opened.complaint()
        if complaint:
            raise DriverNotFoundError(f"The CPU driver did not start: {complaint}", e.code) from e
        if e.code is not None and e.code[0] == "ERROR_OUT_OF_HOST_MEMORY" and obstacles.address_space():
            raise DriverNotFoundError(f"The driver did not start: {obstacles.address_space()} ({e})", e.code) from e
        why = obstacles.why_no_gpu() if driver == "gpu" else obstacles.hidden_by_mask() or opened.path
        raise not_found(f"{why} ({e})", e.code) from e
    if not found:
        raise not_found(obstacles.hidden_by_mask() or f"the driver in {opened.path} has no GPU")
    library = opened
    return found


def _place(indexed):
    """Sort key: discrete GPUs first, then by PCI address; the driver's order if it reports no address."""
    position, device = indexed
    info = device.values()
    return info["integrated"], not info["has_pci"], info["pci"] or "", position


def _choose():
    """Return the devices for the setting ``driver``."""
    driver = config.get("driver")
    if driver != "auto":
        return _open_library(driver)
    if count_without_opening("gpu"):
        return _open_library("gpu")
    callers.warn(f"no GPU ({obstacles.why_no_gpu()}): using the bundled CPU driver, which is not a GPU")
    return _open_library("cpu")


READ_AT_OPENING = (
    "driver", "disable", "quirks", "copy_threads", "stream_pool_size", "integrated", "events", "lazy_init", "tuning")


def shown(found):
    """Return these devices, without integrated GPUs beside a discrete one where the setting hides them."""
    if config.get("integrated") == "keep":
        return found
    return [device for device in found if not device.values()["integrated"]] or found


def _open():
    global _records, _count, _ready
    cdef Device device
    cdef Context context
    for setting in READ_AT_OPENING:
        config.get(setting)         # a wrong value is reported before anything is opened, at each attempt
    measured = tuning.load(config.get("tuning")) if config.get("tuning") else None
    found = shown(_choose())
    if len(found) > L0RT_MAX_DEVICES:
        callers.warn(f"{len(found)} devices: only the first {L0RT_MAX_DEVICES} are used", RuntimeWarning)
    _devices[:] = [device for _, device in sorted(enumerate(found), key=_place)][:L0RT_MAX_DEVICES]
    _identities[:] = [_identity(device) for device in _devices]
    for identity in _identities if measured else ():
        tuning.check(measured, identity)    # before anything is made
    config.tune(measured.settings if measured else {})
    config.freeze(*READ_AT_OPENING)
    by_driver = {}
    for device in _devices:
        if device.driver.index not in by_driver:
            by_driver[device.driver.index] = _make_context(device.driver, not by_driver)
    _contexts[:] = by_driver.values()
    _context_of[:] = [by_driver[device.driver.index] for device in _devices]
    _quirks.clear()
    _records = <l0rt_device*>calloc(len(_devices), sizeof(l0rt_device))
    if _records == NULL:
        raise MemoryError()
    for i in range(len(_devices)):
        device = _devices[i]
        context = _context_of[i]
        _fill(&_records[i], i, device, context, measured.quirks if measured else {})
    for i in range(len(_devices)):
        _set_gate(&_records[i], _devices[i].driver.index, len(_devices))
    _read[:] = _environment()
    _count = <int>len(_devices)
    _ready = 1


cdef object _make_context(driver, bint is_first):
    """A new context; for the driver of the first device that of other software, if one was adopted."""
    if not is_first or not _adopted:
        return make_context(driver)
    handle = _adopted[0][0]
    try:
        taken = take_context(driver, handle)
    except L0Error as e:
        _adopted.clear()            # the next first use makes a context
        raise ValueError(f"adopt_context(): the driver knows no context with the handle {handle:#x} ({e})") from e
    lacks = [f"{xpu.device_type}:{i}" for i, device in enumerate(_devices)
             if device.driver is driver and not context_has(taken, device.handle)]
    if lacks:
        _adopted.clear()
        raise ValueError(f"adopt_context(): the context {handle:#x} lacks {', '.join(lacks)}: make it of all devices "
                         "that l0rt uses, or let ZE_AFFINITY_MASK hide the others")
    return taken


def adopt_context(handle, owner):
    """Let the first use take this context of other software; ``owner`` lives as long as the process."""
    with xpu.lock:
        if xpu.opened:
            raise RuntimeError("adopt_context() comes before the first use of a device: l0rt has a context already")
        _adopted[:] = [(handle, owner)]


def context_owner(index):
    """Return who owns the context of device ``index``; None for l0rt's own."""
    return _adopted[0][1] if _adopted and _context_of[index].is_adopted else None


def native_handles(index):
    """Return the handles of a device's driver, of its context and of the device itself."""
    device_at(index)
    device = core_device(index)
    return device.driver.handle, _context_of[index].handle, device.handle


cdef dict _identity(Device device):
    """What a device is to those who know builds and cards: whom it passes for, where it is simulated."""
    simulated = device.driver.simulated_kernel_driver
    return {
        "vendor_id": device.info.vendor_id,
        "device_id": device.info.device_id,
        "build": device.caps.build,
        "kernel_driver": simulated or pci.kernel_driver(device.pci),
        "simulated": simulated is not None,
    }


cdef int _fill(l0rt_device* record, int index, Device device, Context context, dict measured) except -1:
    record.index = index
    record.handle = device._h
    record.context = context._h
    record.caps = device.caps
    simulated = _identities[index]["simulated"]
    _quirks.append(_mend(record, device, _identities[index], measured))
    record.info = &device.info
    record.is_software = device.info.name.startswith(b"l0rt CPU device")
    record.is_plain_software = record.is_software and not simulated
    # The CPU driver makes an object for every signal of a counter-based event: its pools are quicker. A real device
    # that it passes for is treated as one.
    events = config.get("events")
    record.counter_based = record.caps.cb_events and (
        events == "cb"
        or (events == "auto" and not record.is_plain_software))
    threads = config.get("copy_threads")
    fast = "fast_link" in {quirk.name for quirk in _quirks[index]}
    record.copy_threads = int(threads) if threads != "auto" else (
        min(3, len(os.sched_getaffinity(0))) if fast else 1)
    fill_stream(&record.default_stream, record, 0, 0, False)
    for p in range(3):
        for i in range(L0RT_POOL_STREAMS):
            fill_stream(&record.pool[p][i], record, 1 + p * L0RT_POOL_STREAMS + i, p - 1, False)
    for kind in range(3):
        mutex_init(&record.slots[kind].lock, NULL)
        record.slots[kind].kind = kind
    return 0


cdef tuple _mend(l0rt_device* record, Device device, dict identity, dict measured):
    """Do without what the device's quirks concern; return them. A switch comes before what was ``measured``."""
    found = quirks.mended(identity["vendor_id"], identity["device_id"], identity["build"], identity["kernel_driver"],
                          {**measured, **config.get("quirks")}, device.caps.api_version)
    without = frozenset().union(*[quirk.without for quirk in found])
    record.caps.vmm = record.caps.vmm and "vmm" not in without
    record.caps.list_sync = record.caps.list_sync and "list_sync" not in without
    record.caps.inorder = record.caps.inorder and "inorder" not in without
    record.caps.cb_pool = record.caps.cb_pool and "cb_pool" not in without
    record.caps.cb_events = record.caps.cb_events and "cb_events" not in without
    record.caps.event_ipc = record.caps.event_ipc and "event_ipc" not in without
    record.caps.memory_ipc = record.caps.memory_ipc and "memory_ipc" not in without
    record.caps.copy_offload = (
        record.caps.copy_offload and "copy_offload" not in without and device.info.copy_ordinal >= 0)
    # What is recorded signals counter-based events.
    record.caps.graph = record.caps.graph and record.caps.cb_pool and "graph" not in without
    record.caps.graph_forks = record.caps.graph_forks and record.caps.graph and "graph_forks" not in without
    names = {quirk.name for quirk in found}
    record.maps_nothing = "vmm" in without
    record.racing_maps = "racing_maps" in names
    record.racing_queries = "racing_queries" in names
    record.outlasting_waits = "outlasting_waits" in names
    record.foreign_imports = "single_device_imports" in names and not device.is_first
    record.cached_imports = "cached_imports" in names
    record.peer_counters = "peer_counters" in names
    record.uncounted_signals = "uncounted_signals" in names
    return found


cdef int _set_gate(l0rt_device* record, int driver, int count) except -1:
    """Appends pay for the gate only where something maps: on a device that they may copy from or to."""
    maps = any(_records[i].caps.vmm and _records[i].racing_maps for i in range(count)
               if _devices[i].driver.index == driver)
    record.map_gate = gate_of(driver) if maps and record.racing_maps else NULL
    return 0


# By driver, whose devices share a context: memory of one may be copied by another. Each has a cache line.
cdef int[16][16] _map_gates


cdef int* gate_of(int driver) noexcept:
    return &_map_gates[driver % 16][0]


cdef void fill_stream(l0rt_stream* stream, l0rt_device* device, int64_t id, int priority, bint copies) noexcept:
    """Fill in a new stream's record; ``copies``: it is bound to an engine that only copies."""
    stream.device = device
    stream.ordinal = device.info.copy_ordinal if copies else device.info.compute_ordinal
    stream.queue = id % max(device.info.copy_queues if copies else device.info.compute_queues, <uint32_t>1)
    stream.fill_limit = device.info.copy_fill_pattern if copies else <size_t>-1
    stream.id = id
    stream.priority = priority
    stream.in_order = device.caps.inorder
    mutex_init(&stream.lock, NULL)


# Who sets one of these too late would wonder why nothing happens.
_READ_AT_OPENING = ("ZE_AFFINITY_MASK", "ZE_FLAT_DEVICE_HIERARCHY", "ZE_ENABLE_PCI_ID_DEVICE_ORDER",
                    "ZES_ENABLE_SYSMAN", "L0RT_DRIVER", "L0RT_DISABLE", "L0RT_QUIRKS", "L0RT_TUNING",
                    "L0RT_CPU_DEVICES", "L0RT_CPU_MEMORY")
_read = []


cdef list _environment():
    return [os.environ.get(name) for name in _READ_AT_OPENING]


cdef int _notify_changes(list now) except -1:
    """Warn of variables that were changed after the driver was opened, once for each change."""
    before, _read[:] = list(_read), now
    for name, old, new in zip(_READ_AT_OPENING, before, now):
        if old != new:
            callers.warn(f"{name} has no effect any more: it was read when the driver was opened", RuntimeWarning)
    return 0


def device_count():
    """Return the number of devices, 0 if there is none. It opens no driver in this process and never raises.

    Returns
    -------
    int
    """
    if _count:
        now = _environment()
        if now != _read:
            _notify_changes(now)
        return _count
    try:
        driver = config.get("driver")
    except ValueError:
        return 0
    if driver == "auto":
        return count_without_opening("gpu") or count_without_opening("cpu")
    return count_without_opening(driver)


def properties(int index):
    """Return what is known about device ``index`` as a dict."""
    device_at(index)
    values = core_device(index).values()
    values["is_software"] = bool(_records[index].is_software)
    values["index"] = index
    values["driver_version"] = core_device(index).driver.version
    values["api_version"] = core_device(index).driver.api_version
    return values


def card(int index):
    """Return the card of system management for device ``index``, a dict; None if there is none or it is unknown which.

    UnsupportedError where ZES_ENABLE_SYSMAN=1 gave system management to the driver's own handles.
    """
    device_at(index)
    if not _cards:
        legacy = _read[_READ_AT_OPENING.index("ZES_ENABLE_SYSMAN")]
        _cards.append(sysman.open_cards(library.address, legacy))
    known = [each.values() for each in _devices]
    mine = known[index]
    alone = sum(each["pci"] == mine["pci"] for each in known) == 1
    return sysman.find_card(_cards[0], mine["uuid"], mine["pci"], alone)


def memory_on_card(int index):
    """Return ``(free, size)`` in bytes from system management, None if it reports none or an implausible number."""
    try:
        found = card(index)
    except L0Error:
        return None
    told = None if found is None else sysman.free_memory(found["handle"])
    # A tile that is alone here because a mask hides the others is less than its card.
    return told if told is not None and told[1] < 1.25 * _records[index].info.total_memory else None


NO_SYSMAN = ("this driver has no system management (sysman) of the device: it needs Level Zero's loader 1.9.4 or newer "
             "and a driver that has it; `l0rt doctor` shows which there are")


def processes(int index):
    """Return ``[(process ID, bytes)]`` of the processes that use the card of device ``index``, from system management.

    UnsupportedError or another `L0Error` where it does not say.
    """
    found = card(index)
    if found is None:
        raise UnsupportedError(NO_SYSMAN)
    return sysman.processes(found["handle"])


def other_processes(int index):
    """Return the same without this process; nothing where it is not known."""
    try:
        return [(pid, nbytes) for pid, nbytes in processes(index) if pid != os.getpid()]
    except L0Error:
        return []


def sensors(int index):
    """Return the `Sensors` of the card of device ``index``; UnsupportedError without system management."""
    found = card(index)
    if found is None:
        raise UnsupportedError(NO_SYSMAN)
    return core_sensors.Sensors(found["handle"], library.address)


def capabilities(int index):
    """Return what device ``index`` can do, name to bool, after ``L0RT_DISABLE`` and its quirks."""
    record = dict(device_at(index).caps)
    return {name: bool(record[name]) for name in config.CAPABILITIES if name in record}


def identity(int index):
    """Return what the quirks and the tuning of device ``index`` go by: numbers, build, kernel driver, simulated."""
    device_at(index)
    return dict(_identities[index])


def copy_threads(int index):
    """Return how many threads divide a host's copy of pageable memory from and to device ``index``."""
    return device_at(index).copy_threads


def extensions(int index):
    """Return the names of the extensions that the driver of device ``index`` tells of."""
    device_at(index)
    return core_device(index).driver.extensions()


def mended_quirks(int index):
    """Return the quirks of device ``index`` that are mended."""
    device_at(index)
    return _quirks[index]


def is_mended(int index, name):
    """Whether the quirk of this name is mended on device ``index``."""
    return any(quirk.name == name for quirk in mended_quirks(index))


def can_access_peer(int index, int peer):
    """Whether device ``index`` reaches memory of device ``peer``; devices of two drivers never do."""
    device_at(index)
    device_at(peer)
    if _context_of[index] is not _context_of[peer]:
        return False
    return index == peer or core_device(index).can_access_peer(core_device(peer))


xpu = LazyInit("xpu", _open)
lazy = xpu  # for Python: a cdef name is not a module attribute
on_fork_child(_forget)
on_exit(CONTEXTS, _close)
