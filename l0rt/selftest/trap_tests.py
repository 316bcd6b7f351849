# SPDX-License-Identifier: Apache-2.0
"""Known traps of functions, order, clocks, events, streams and processes: each tried once."""

import ctypes
import os
import signal
import threading
import time
import warnings
from contextlib import suppress

import numpy as np

import l0rt
import l0rt.accelerator as acc
import l0rt.ze.table as table
from l0rt import memory
from l0rt.runtime.streams import devices
from l0rt.selftest.capabilities import other_process
from l0rt.selftest.driver import U32, P, Refused, view
from l0rt.selftest.ground import MIB, Untestable, verdict
from l0rt.ze.status import name_of

MANY, MAPPINGS = 2000, 65530  # lists; mappings that Linux allows a process
VERSION, HANDLE_OF_DRIVER = b"zeIntelGetDriverVersionString", 0  # of zel_handle_type_t

IN_ORDER_BUILD = 26918  # the first build of Intel's driver that honours the flag


def missing_functions(ground):
    """T1: which does the library lack? What only a loader has does not count where there is none."""
    missing = [name for name in table.missing() if not name.startswith("zel") or devices.library.loader_version()]
    return verdict(
        missing, f"missing, with fallbacks: {', '.join(missing)}" if missing else "all are there", missing=missing
    )


def ignored_order(ground):
    """T2: a bare list that was asked to keep order, given what another order makes visible."""
    bare, wrong, rounds = ground.driver, 0, 0
    if ground.identity["build"] and ground.identity["build"] < IN_ORDER_BUILD:
        return verdict(True, f"builds before {IN_ORDER_BUILD} ignore the flag: barriers keep the order")
    nbytes = ground.size(16 * MIB)
    try:
        list_ = bare.list(in_order=True)
    except Refused as refused:
        raise Untestable(f"no in-order list: {refused}") from None
    device, host = bare.allocate(nbytes), bare.allocate(4096, 1)
    while rounds < 48 and (rounds < 4 or ground.remaining() > 1):
        value = rounds % 250 + 1
        bare.fill(list_, device, value, nbytes)
        bare.fill(list_, device + nbytes - 4096, value + 1, 4096)
        bare.copy(list_, host, device + nbytes - 4096, 4096)
        bare.drain(list_)
        wrong += bytes(view(host, 4096)) != bytes([value + 1]) * 4096
        rounds += 1
    return verdict(wrong, f"wrong in {wrong} of {rounds} rounds")


def wrapped_handles(ground):
    """T3: several drivers in one loader make it wrap handles."""
    if not devices.library.loader_version():
        raise Untestable("no loader is between")
    bare = ground.driver
    wrapped, address, own = devices.native_handles(ground.index)[0], P(), P()
    if bare.ask("zeDriverGetExtensionFunctionAddress", wrapped, VERSION, ctypes.byref(address)) or not address.value:
        raise Untestable("the driver has no extension function that takes its handle")
    bare.do("zelLoaderTranslateHandle", HANDLE_OF_DRIVER, wrapped, ctypes.byref(own))
    text, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    code = ctypes.CFUNCTYPE(U32, P, P, P)(address.value)(own.value, text, ctypes.byref(size))
    return verdict(code, f"{name_of(code)}" if code else f"the driver's version came through: {text.value.decode()}")


def refusing_functions(ground):
    """T4: what is exported is called."""
    bare = ground.driver
    list_ = bare.list(in_order=False)
    tries = {
        "zeDeviceGetStatus": lambda: bare.do("zeDeviceGetStatus", bare.device),
        "zeCommandListHostSynchronize": lambda: bare.do("zeCommandListHostSynchronize", list_, 0),
        "zeDeviceGetGlobalTimestamps": bare.clocks,
        "zeVirtualMemReserve": lambda: bare.reserve(2 * MIB),
    }
    refusing, missing = [], set(table.missing())
    for name, call in tries.items():
        try:
            if name not in missing:
                call()
        except Refused as refused:
            refusing.append(str(refused))
    return verdict(refusing, f"there, and refusing: {', '.join(refusing)}" if refusing else "all do their work")


def clock(ground):
    """T5: the device's clock, read twice."""
    ground.needs("global_ts")
    bits, hz = ground.properties["timestamp_bits"], ground.properties["timer_hz"]
    host, ticks = ground.driver.clocks()
    time.sleep(0.05)
    later, ticks_later = ground.driver.clocks()
    seconds = (ticks_later - ticks) % (1 << bits) / hz
    spent = (later - host) / 1e9
    wrong = bits < 24 or hz < 1000 or not 0.9 * spent < seconds < 1.1 * spent
    return verdict(wrong, f"{1e3 * seconds:.2f} ms of the device's in {1e3 * spent:.2f} ms; {bits} bits at {hz:,} Hz")


def refuses(call, *errors):
    """Does a call raise one of these errors?"""
    try:
        call()
    except errors:
        return True
    return False


def elapsed_without(ground):
    """T6: no elapsed time of events that have none."""
    stream = acc.Stream(ground.index)
    timed, plain, never = (l0rt.Event(ground.index, enable_timing=kind) for kind in (True, False, True))
    timed.record(stream)
    plain.record(stream)
    stream.synchronize()
    accepted = [pair for pair in ((timed, never), (never, timed), (timed, plain))
            if not refuses(lambda pair=pair: pair[0].elapsed_time(pair[1]), RuntimeError, ValueError)]  # fmt: skip
    return verdict(accepted, "3 of 3 raise an error" if not accepted else f"{len(accepted)} of 3 pairs have a time")


def recorded_anew(ground):
    """T7: a wait for the first record gets what was before it, and the host what is before the second."""
    a, b = acc.Stream(ground.index), acc.Stream(ground.index)
    nbytes, event, wrong = ground.size(4 * MIB), l0rt.Event(ground.index), 0
    source, target = l0rt.empty(nbytes, stream=a), l0rt.empty(nbytes, stream=b)
    for value in range(1, 25):
        a.wait_stream(b)
        source.fill(value, stream=a)
        event.record(a)
        b.wait_event(event)
        event.record(a)
        target.copy_from(source, stream=b)
        event.record(b)
        event.synchronize()
        wrong += int((target.copy_to(np.zeros(nbytes, "u1"), stream=b) != value).any())
    source.record_stream(b)
    return verdict(wrong, f"wrong in {wrong} of 24 rounds")


def dropped_events(ground):
    """T8: events without a reference."""
    a, b = acc.Stream(ground.index), acc.Stream(ground.index)
    buffer = l0rt.empty(MIB, stream=a)
    for value in range(200):
        buffer.fill(value % 256, stream=a)
        b.wait_event(a.record_event())
    ended = b.synchronize(timeout=20)
    return verdict(not ended, "200 events dropped in flight" if ended else "the waiting stream does not end")


def streams_given_back(ground):
    """T9: what a leased stream was given is done."""
    buffer, wrong = l0rt.empty(MIB, device=ground.index), 0
    for value in range(1, 33):
        with acc.stream_pool.lease(ground.index) as stream:
            buffer.fill(value, stream=stream)
            event = stream.record_event()
        event.synchronize(timeout=20)
        wrong += int((buffer.copy_to(np.zeros(MIB, "u1")) != value).any())
    return verdict(wrong, f"wrong in {wrong} of 32 leases")


def unrecorded_events(ground):
    """T10: a wait for an event that was never recorded does not block."""
    stream, event = acc.Stream(ground.index), l0rt.Event(ground.index)
    stream.wait_event(event)
    ended = stream.synchronize(timeout=5) and event.query()
    event.synchronize(timeout=5)
    return verdict(not ended, "stream and host go on" if ended else "somebody waits")


def forked_child(ground):
    """T21: a child of fork gets an error that says to spawn instead."""
    l0rt.empty(64, device=ground.index)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(5)
        code = 1
        try:
            l0rt.empty(64, device=ground.index)
        except RuntimeError as refused:
            code = 0 if "spawn" in str(refused) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return verdict(status, "an error that says spawn" if status == 0 else f"the child ended with status {status}")


PENDING = """
import l0rt, l0rt.accelerator as acc, sys
acc.set_device_index(int(sys.argv[1]))
streams = [acc.Stream() for _ in range(4)]
held = [l0rt.empty(1 << 20, stream=s).fill(1, stream=s) for s in streams for _ in range(8)]
events = [s.record_event() for s in streams]
print("end")
"""


def exit_with_work(ground):
    """T22: a process ends with work under way and objects alive."""
    status, out, complaint = other_process(PENDING, str(ground.index), timeout=max(4, ground.remaining()))
    quiet = (status, out, complaint) == (0, "end", "")
    return verdict(not quiet, "silent, status 0" if quiet else f"status {status}: {complaint}")


def interrupted_wait(ground):
    """T24: SIGINT during a wait for what comes only later."""
    if threading.current_thread() is not threading.main_thread():
        raise Untestable("not the main thread")
    bare, stream = ground.driver, acc.Stream(ground.index)
    (gate,) = bare.events(1)
    opening = threading.Timer(0.6, bare.ask, ("zeEventHostSignal", gate))
    sender = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
    start = time.monotonic()
    opening.start()
    interrupted, spent = False, 0.0
    try:
        bare.wait_on(stream.native_handle, gate)
        if time.monotonic() - start > 0.3:
            raise Untestable("the append waited itself")
        sender.start()
        try:
            stream.synchronize(timeout=5)
        except KeyboardInterrupt:
            interrupted, spent = True, time.monotonic() - start
    finally:
        opening.join()
        with suppress(KeyboardInterrupt):
            if sender.is_alive():
                sender.join()
        stream.synchronize(timeout=5)
    return verdict(not interrupted or spent > 0.5, f"ended after {1e3 * spent:.0f} ms" if interrupted else "it goes on")


SHARED = """
import l0rt, sys
for handle in sys.argv[2:]:
    try:
        l0rt.Event.from_ipc_handle(int(sys.argv[1]), bytes.fromhex(handle))
        print("opened")
    except (ValueError, RuntimeError) as refused:
        print("refused")
"""


def stale_handles(ground):
    """T29: a handle whose event is gone, and one that never was."""
    ground.needs("event_ipc")
    event = l0rt.Event(ground.index, interprocess=True)
    event.record(acc.Stream(ground.index))
    acc.synchronize(ground.index)
    handle = event.ipc_handle()
    del event
    handles = handle.hex(), (b"\xa5" * len(handle)).hex()
    status, out, complaint = other_process(SHARED, str(ground.index), *handles, timeout=max(4, ground.remaining()))
    right = (status, out.split()) == (0, ["refused", "refused"])
    return verdict(not right, "both refused" if right else f"{' '.join(out.split())} {complaint}".strip())


def masks(ground):
    """T30: how many devices are there behind a mask of one?"""
    code = "import l0rt.accelerator as acc; print(acc.device_count())"
    wrong = []
    for hierarchy in ("FLAT", "COMPOSITE"):
        env = {"ZE_AFFINITY_MASK": "0", "ZE_FLAT_DEVICE_HIERARCHY": hierarchy}
        status, out, complaint = other_process(code, env=env, timeout=max(4, ground.remaining()))
        if (status, out) != (0, "1"):
            wrong.append(f"{hierarchy}: {out or complaint}")
    return verdict(wrong, "; ".join(wrong) or "a mask of one shows one device")


LEGACY = """
import sys
from l0rt.errors import UnsupportedError
from l0rt.runtime.streams import devices
devices.lazy.init()
try:
    devices.card(int(sys.argv[1]))
    print("mixed")
except UnsupportedError:
    print("refused")
"""


def mixed_management(ground):
    """T32: system management was given to the driver's own handles."""
    status, out, complaint = other_process(
        LEGACY, str(ground.index), env={"ZES_ENABLE_SYSMAN": "1"}, timeout=max(4, ground.remaining())
    )
    return verdict(out != "refused", out if status == 0 else complaint)


def mappings():
    """Return how many mappings this process has."""
    with open("/proc/self/maps") as lines:
        return sum(1 for _ in lines)


def many_objects(ground):
    """T36: lists and events by the thousand: l0rt itself hands out no more than 96 lists."""
    bare, before = ground.driver, mappings()
    lists: list[int] = []
    pool = bare.pool(MANY)
    try:
        while len(lists) < MANY and (len(lists) < 100 or ground.remaining() > 1):
            lists.append(bare.list(in_order=False))
            event = bare.event(pool, len(lists) - 1)
            bare.signal(lists[-1], event)
            if len(lists) % 100 == 0 and not bare.wait(event):
                return verdict(True, f"list {len(lists)} does nothing")
    except Refused as refused:
        return verdict(True, f"{refused} after {len(lists)} lists")
    grown = (mappings() - before) / len(lists)
    return verdict(grown * MANY > MAPPINGS / 2, f"{grown:.1f} mappings for a list and an event, of {MAPPINGS:,}")


def late_variable(ground):
    """T37: a variable that has no effect any more causes a warning."""
    before = os.environ.get("L0RT_DISABLE")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.environ["L0RT_DISABLE"] = "usable_mem" if before != "usable_mem" else "vmm"
        acc.device_count()
        os.environ.pop("L0RT_DISABLE")
        if before is not None:
            os.environ["L0RT_DISABLE"] = before
        acc.device_count()
    return verdict(not caught, "a warning" if caught else "silence")


def growing_history(ground):
    """T39: a ring of entries has as many as it may have."""
    most = 100
    memory.record_memory_history(max_entries=most, context=None)
    try:
        for _ in range(most):
            l0rt.empty(4096, device=ground.index).free()
        count = len(memory.snapshot(device=ground.index)["device_traces"][ground.index])
    finally:
        memory.record_memory_history(None)
    return verdict(count > most, f"{count} entries after {2 * most}")


def adopted_list(ground):
    """T40: a list of another's goes on after l0rt has let go of it."""
    bare = ground.driver
    list_ = bare.list(in_order=ground.capabilities["inorder"])
    buffer = l0rt.empty(MIB, device=ground.index)
    stream = acc.Stream.from_handle(list_, device=ground.index)
    buffer.fill(3, stream=stream)
    stream.synchronize()
    del stream
    acc.synchronize(ground.index)
    bare.fill(list_, buffer.ptr, 5, MIB)
    ended = bare.drain(list_)
    right = ended and (buffer.copy_to(np.zeros(MIB, "u1")) == 5).all()
    return verdict(not right, "used, dropped, used on" if right else "it does not work any more")


ASK = {
    "T1": missing_functions,
    "T2": ignored_order,
    "T3": wrapped_handles,
    "T4": refusing_functions,
    "T5": clock,
    "T6": elapsed_without,
    "T7": recorded_anew,
    "T8": dropped_events,
    "T9": streams_given_back,
    "T10": unrecorded_events,
    "T21": forked_child,
    "T22": exit_with_work,
    "T24": interrupted_wait,
    "T29": stale_handles,
    "T30": masks,
    "T32": mixed_management,
    "T36": many_objects,
    "T37": late_variable,
    "T39": growing_history,
    "T40": adopted_list,
}
