# SPDX-License-Identifier: Apache-2.0
"""Quirks of drivers: each asked of the bare driver, so that what l0rt does about one does not hide it."""

import ctypes
import faulthandler
import mmap
import os
import threading
import time
from importlib.resources import files

from l0rt.launch.spirv import Spirv
from l0rt.runtime.streams import devices
from l0rt.selftest.capabilities import other_process
from l0rt.selftest.driver import (
    FOREVER,
    IPC,
    OUT_OF_MEMORY,
    UNKNOWN,
    VISIBLE,
    Driver,
    Handle,
    Missing,
    P,
    Refused,
    view,
)
from l0rt.selftest.ground import MIB, Untestable, verdict

PIECE = 2 * MIB
LATE, PATIENCE = 0.25, 0.02  # seconds


def counter_events(ground, count=1):
    """Return counter-based events and an in-order list; `Untestable` where the driver has none, or only takes both."""
    mended = [quirk.name for quirk in devices.mended_quirks(ground.index)]
    if not ground.capabilities["inorder"] or not (ground.capabilities["cb_pool"] or "unflushed_counters" in mended):
        raise Untestable("the driver has no counter-based events")
    try:
        list_ = ground.driver.list(in_order=True)
        return ground.driver.events(count, counter_based=True), list_
    except Refused as refused:
        raise Untestable(f"the driver has no counter-based events ({refused})") from None


def range_of(ground, pieces):
    """Return reserved addresses; `Untestable` without virtual memory."""
    try:
        return ground.driver.reserve(pieces)
    except (Refused, Missing) as refused:
        raise Untestable(f"the driver has no virtual memory ({refused})") from None


def unflushed_counters(ground):
    """Q1: after the query has said that the copy is done, the host looks at what it wrote."""
    bare = ground.driver
    (event,), list_ = counter_events(ground)
    nbytes, stale, rounds = 4096, 0, 0
    host, source = bare.allocate(nbytes, 1), bare.allocate(nbytes)
    data = view(host, nbytes)
    while rounds < 300 and (rounds < 20 or ground.remaining() > 1):
        value = rounds % 255 + 1
        bare.fill(list_, source, value, nbytes)
        bare.copy(list_, host, source, nbytes, event)
        until = time.monotonic() + 5
        while not bare.query(event):
            if time.monotonic() > until:
                raise Refused("zeEventQueryStatus", 1)
        stale += bytes(data) != bytes([value]) * nbytes
        bare.wait(event)
        bare.drain(list_)
        rounds += 1
    return verdict(stale, f"stale in {stale} of {rounds} rounds")


def no_vm_bind(ground):
    """Q2: more is mapped than there is; which call reports it, the map or an append?"""
    bare, piece = ground.driver, 64 * MIB
    count = ground.properties["total_memory"] // piece + 2
    base = range_of(ground, piece * count)
    list_, buffer = bare.list(), bare.allocate(4096)
    where, call, parts = "", None, 0
    try:
        for i in range(count):
            part = bare.physical(piece)
            bare.later("zePhysicalMemDestroy", bare.context, part)
            bare.map(base + i * piece, piece, part)
            bare.later("zeVirtualMemUnmap", bare.context, base + i * piece, piece)
            parts += 1
    except Refused as refused:
        if refused.code not in OUT_OF_MEMORY:
            raise
        return verdict(False, f"{refused} after {parts} pieces of 64 MiB", call=refused.call)
    try:
        bare.fill(list_, buffer, 1, 4096)
        bare.drain(list_)
    except Refused as refused:
        where, call = f"{refused}, after {parts} pieces of 64 MiB were mapped", refused.call
    return verdict(where, where or f"{parts} pieces of 64 MiB, more than there is, and no refusal", call=call)


def untyped_mappings(ground):
    """Q3: of which type is a mapped pointer?"""
    range_of(ground, PIECE)
    kind = ground.driver.memory_type(ground.driver.mapped(PIECE))
    return verdict(kind == UNKNOWN, f"type {('unknown', 'host', 'device', 'shared', 'imported')[kind]}", type=kind)


OPEN = """
import ctypes, sys
from l0rt.selftest.driver import Driver, P, Refused, U32
from l0rt.runtime.streams import devices
devices.lazy.init()
bare = Driver(int(sys.argv[1]))
class Handle(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char * 64)]
handle, pool = Handle.from_buffer_copy(bytes.fromhex(sys.argv[2])), P()
open_ = ctypes.CFUNCTYPE(U32, P, Handle, P)(devices.library.address("zeEventPoolOpenIpcHandle"))
code = open_(bare.context, handle, ctypes.byref(pool))
if code:
    print(f"refused with {code:#x}")
else:
    event = bare.event(pool.value)
    bare.do("zeEventHostSignal", event)
    bare.close()
    bare.do("zeEventPoolCloseIpcHandle", pool.value)
    print("signalled")
"""


def raw_event_handles(ground):
    """Q4: another process opens the handle and signals; does it come here?"""
    bare = ground.driver
    pool = bare.pool(1, flags=VISIBLE | IPC)
    event, handle = bare.event(pool), ctypes.create_string_buffer(64)
    bare.do("zeEventPoolGetIpcHandle", pool, ctypes.byref(handle))
    limit = max(4, ground.remaining())
    status, out, complaint = other_process(OPEN, str(ground.index), handle.raw.hex(), timeout=limit)
    came = bare.query(event)
    what = out if status == 0 else f"the other process failed: {complaint}"
    return verdict(not came, "signalled there, seen here" if came else f"not seen here; {what}")


def meet(*works, seconds):
    """Run functions in threads, over and over, until one fails or the time is up; return the first failure's text."""
    failed: list = []
    until = time.monotonic() + seconds

    def repeat(work):
        while not failed and time.monotonic() < until:
            try:
                work()
            except (Refused, AssertionError) as failure:
                failed.append(str(failure))

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed[0] if failed else ""


def racing_maps(ground):
    """Q5: one thread appends copies inside a reservation whose other pieces come and go."""
    bare = ground.driver
    base = range_of(ground, 4 * PIECE)
    parts = [bare.physical(PIECE) for _ in range(4)]
    for i in range(2):
        bare.map(base + i * PIECE, PIECE, parts[i])
    list_ = bare.list()
    bare.fill(list_, base, 1, 2 * PIECE)
    bare.drain(list_)

    def copy():
        for _ in range(32):
            bare.copy(list_, base + PIECE, base, 256)
        bare.drain(list_)

    def remap():
        for i in (2, 3):
            bare.map(base + i * PIECE, PIECE, parts[i])
        for i in (2, 3):
            bare.unmap(base + i * PIECE, PIECE)

    problem = meet(copy, remap, seconds=min(1.0, ground.remaining() / 2))
    bare.drain(list_)
    for i in range(4):
        bare.ask("zeVirtualMemUnmap", bare.context, base + i * PIECE, PIECE)
        bare.ask("zePhysicalMemDestroy", bare.context, parts[i])
    return verdict(problem, problem or "copies beside maps for a second")


def racing_queries(ground):
    """Q6: threads ask one event whose work is under way, and which is then reset."""
    bare = ground.driver
    (event,) = bare.events(1)
    list_, buffer, nbytes = bare.list(), bare.allocate(4 * MIB), 4 * MIB
    problem, rounds = "", 0
    until = time.monotonic() + min(1.0, ground.remaining() / 2)
    while not problem and time.monotonic() < until:
        bare.fill(list_, buffer, 1, nbytes, event)

        def ask():
            bare.query(event)
            bare.wait(event, 0.0001)

        problem = meet(ask, ask, ask, seconds=0.02)
        bare.drain(list_)
        bare.do("zeEventHostReset", event)
        rounds += 1
    return verdict(problem, problem or f"three threads at one event, {rounds} rounds")


def outlasting_waits(ground):
    """Q7: the event comes late, and the wait is to end early."""
    bare = ground.driver
    (event,), list_ = counter_events(ground)
    (gate,) = bare.events(1)
    opening = threading.Timer(LATE, bare.ask, ("zeEventHostSignal", gate))
    start = time.monotonic()
    opening.start()
    try:
        bare.wait_on(list_, gate)  # on some drivers the append itself waits: that is no answer
        bare.signal(list_, event)
        if time.monotonic() - start > LATE / 2:
            raise Untestable("the append waited itself")
        began = time.monotonic()
        bare.wait(event, PATIENCE)
        spent = time.monotonic() - began
    finally:
        opening.join()
        bare.wait(event, 5)
        bare.drain(list_)
    return verdict(spent > (LATE + PATIENCE) / 2, f"a wait of {1e3 * PATIENCE:.0f} ms took {1e3 * spent:.0f} ms")


def single_device_imports(ground):
    """Q8: memory that the context has imported is copied from by its second device."""
    second = ground.second()
    ground.needs("memmap")
    bare = ground.driver
    wrong = []
    with mmap.mmap(-1, 1 << 16) as memory:
        memory[:] = b"\x5a" * (1 << 16)
        window = view_of(memory)
        try:
            with bare.scope():
                address = bare.import_memory(window, 1 << 16)
                for index in (ground.index, second):
                    other = Driver(index)
                    with other.scope():
                        list_, target = other.list(), other.allocate(1 << 16)
                        host = other.allocate(1 << 16, 1)
                        try:
                            other.copy(list_, target, address, 1 << 16)
                            other.copy(list_, host, target, 1 << 16)
                            other.drain(list_)
                            if bytes(view(host, 1 << 16)) != memory[:]:
                                wrong.append(f"device {index} copies other bytes")
                        except Refused as refused:
                            wrong.append(f"device {index}: {refused}")
        finally:
            del window
    return verdict(wrong, "; ".join(wrong) or "two devices copy from it")


_kept: list[mmap.mmap] = []  # memory that the driver may use after its end


def cached_imports(ground):
    """Q14: memory that was imported and freed, and an allocation of its size."""
    ground.needs("memmap")
    nbytes, bare = 1 << 16, ground.driver
    _kept.append(mmap.mmap(-1, nbytes))
    window = view_of(_kept[-1])
    with bare.scope():
        bare.import_memory(window, nbytes)
    with bare.scope():
        address = bare.allocate(nbytes, 1)
    again = address == window
    return verdict(again, "the allocation is the imported memory" if again else "the allocation is other memory")


def listed_symbols(ground):
    """Q15: a module with constants, which have symbols."""
    code = (files("l0rt.launch") / "random.spv").read_bytes()
    more = set(ground.driver.kernel_names(code)) - Spirv(code).kernels.keys()
    return verdict(more, f"one more than the code: {', '.join(more)}" if more else "the kernels of the code")


def fatal_enqueues(ground):
    """Q16: this process handles SIGSEGV meanwhile."""
    code = (files("l0rt.selftest") / "enqueues.spv").read_bytes()
    with open(os.devnull, "w") as nowhere:
        faulthandler.enable(nowhere)
        try:
            ground.driver.kernel_names(code)
            answer = "it is built"
        except Refused as refused:
            answer = str(refused)
        finally:
            faulthandler.disable()
    return verdict(False, answer)


def uncounted_signals(ground):
    """Q17: if the fill takes no time, the wait cannot end too early: several are given."""
    bare, nbytes, rounds, early = ground.driver, ground.size(64 * MIB), 10, 0
    list_, buffer = bare.list(), bare.allocate(nbytes)
    for event in bare.events(rounds):
        for value in range(4):
            bare.fill(list_, buffer, value, nbytes)
        bare.fill(list_, buffer, 4, nbytes, event)
        bare.do("zeCommandListHostSynchronize", list_, FOREVER)
        early += not bare.query(event)
        bare.wait(event)
    return verdict(early, f"{early} of {rounds} waits for a list ended before its last fill")


def view_of(memory):
    """Return the address of a mapping."""
    exported = ctypes.c_char.from_buffer(memory)
    address = ctypes.addressof(exported)
    del exported
    return address


def peer_counters(ground):
    """Q9: a list of the second device waits for the first one's event."""
    second = ground.second()
    (event,), list_ = counter_events(ground)
    bare, other = ground.driver, Driver(second)
    if not devices.can_access_peer(second, ground.index):
        raise Untestable("the second device does not reach the first")
    buffer = bare.allocate(4096)
    with other.scope():
        waiting = other.list()
        bare.fill(list_, buffer, 1, 4096, event)
        other.wait_on(waiting, event)
        came = other.drain(waiting, 5)
        bare.drain(list_)
    return verdict(not came, "the second device goes on" if came else "the second device waits for ever")


OPEN_MEMORY = """
import ctypes, sys
from l0rt.selftest.driver import Driver, Handle, P, Refused, view
from l0rt.runtime.streams import devices
devices.lazy.init()
bare, opened = Driver(int(sys.argv[1])), P()
try:
    bare.do("zeMemOpenIpcHandle", bare.context, bare.device, Handle.from_buffer_copy(bytes.fromhex(sys.argv[2])), 0,
            ctypes.byref(opened))
    list_, host = bare.list(), bare.allocate(4096, 1)
    bare.copy(list_, host, opened.value, 4096)
    bare.drain(list_)
    print("same" if bytes(view(host, 4096)) == b"\\x5a" * 4096 else "other bytes are there")
    bare.do("zeMemCloseIpcHandle", bare.context, opened.value)
except Refused as refused:
    print(refused)
bare.close()
"""


def raw_memory_handles(ground):
    """Q10: another process opens the handle of memory; are the bytes there?"""
    bare, nbytes = ground.driver, 2 * MIB
    list_, buffer, handle = bare.list(), bare.allocate(nbytes), Handle()
    bare.fill(list_, buffer, 0x5A, nbytes)
    bare.drain(list_)
    try:
        bare.do("zeMemGetIpcHandle", bare.context, buffer, ctypes.byref(handle))
    except Refused as refused:
        raise Untestable(f"the driver has no handles of memory ({refused})") from None
    text = ctypes.string_at(ctypes.addressof(handle), 64).hex()
    status, out, complaint = other_process(OPEN_MEMORY, str(ground.index), text, timeout=max(4, ground.remaining()))
    bare.ask("zeMemPutIpcHandle", bare.context, handle)
    what = out if status == 0 else f"the other process failed: {complaint}"
    return verdict(what != "same", "the same bytes there" if what == "same" else what)


def recorded(ground, record, clear):
    """Record what ``record(list)`` appends to an in-order list, clear what that wrote, replay it, and wait."""
    bare, graph, ready = ground.driver, P(), P()
    list_ = bare.list()
    try:
        bare.do("zeCommandListBeginGraphCaptureExt", list_, None)
    except Missing as missing:
        raise Untestable(f"the driver has no graphs ({missing})") from None
    try:
        record(list_)
    finally:
        bare.do("zeCommandListEndGraphCaptureExt", list_, None, ctypes.byref(graph))
        bare.later("zeGraphDestroyExt", graph.value)
    bare.do("zeGraphInstantiateExt", graph.value, None, ctypes.byref(ready))
    bare.later("zeExecutableGraphDestroyExt", ready.value)
    bare.drain(list_)
    clear()
    bare.do("zeCommandListAppendGraphExt", list_, ready.value, None, None, 0, None)
    bare.drain(list_)


def early_graphs(ground):
    """Q11: a fill is recorded, and replayed."""
    ground.has_graphs()
    bare, nbytes = ground.driver, 4096
    host = bare.allocate(nbytes, 1)
    recorded(ground, lambda list_: bare.fill(list_, host, 7, nbytes), lambda: ctypes.memset(host, 0, nbytes))
    right = bytes(view(host, nbytes)) == b"\7" * nbytes
    return verdict(not right, "a fill was recorded and replayed" if right else "what was replayed did nothing")


def unjoined_captures(ground):
    """Q12: a second list joins, is waited for, and is given one more fill, which the first one waits for again."""
    ground.has_graphs()
    bare, nbytes = ground.driver, 4096
    events, other = counter_events(ground, 3)
    hosts = [bare.allocate(nbytes, 1) for _ in range(2)]

    def record(list_):
        bare.signal(list_, events[0])
        bare.wait_on(other, events[0])
        for host, event in zip(hosts, events[1:], strict=True):
            bare.fill(other, host, 7, nbytes)
            bare.signal(other, event)
            bare.wait_on(list_, event)

    def clear():
        bare.drain(other)
        for host in hosts:
            ctypes.memset(host, 0, nbytes)

    recorded(ground, record, clear)
    complete = all(bytes(view(host, nbytes)) == b"\7" * nbytes for host in hosts)
    return verdict(
        not complete, "both fills were replayed" if complete else "what came behind the wait was not replayed"
    )


def fast_link(ground):
    """Q13: the link's rate, and that of one of the host's threads."""
    if ground.is_software:
        raise Untestable("a software device has no link")
    bare, nbytes = ground.driver, ground.size(64 * MIB)
    list_, pinned, there = bare.list(), bare.allocate(nbytes, 1), bare.allocate(nbytes)
    source = ctypes.create_string_buffer(nbytes)

    def link():
        bare.copy(list_, there, pinned, nbytes)
        bare.drain(list_)

    def rate(work):
        spent = []
        for _ in range(4):
            start = time.perf_counter()
            work()
            spent.append(time.perf_counter() - start)
        return nbytes / min(spent) / 1e9

    device, host = rate(link), rate(lambda: ctypes.memmove(pinned, source, nbytes))
    return verdict(device > 2 * host, f"{device:.1f} GB/s, the host {host:.1f}", link=device, host=host)


ASK = {
    "Q1": unflushed_counters,
    "Q2": no_vm_bind,
    "Q3": untyped_mappings,
    "Q4": raw_event_handles,
    "Q5": racing_maps,
    "Q6": racing_queries,
    "Q7": outlasting_waits,
    "Q8": single_device_imports,
    "Q9": peer_counters,
    "Q10": raw_memory_handles,
    "Q11": early_graphs,
    "Q12": unjoined_captures,
    "Q13": fast_link,
    "Q14": cached_imports,
    "Q15": listed_symbols,
    "Q16": fatal_enqueues,
    "Q17": uncounted_signals,
}
