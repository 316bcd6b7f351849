# SPDX-License-Identifier: Apache-2.0
"""Measurements: what the driver's calls cost here. Figures are medians in µs, GB/s where their names say so.

The calls are made from Python: what an empty call costs is measured and taken off.
"""

import ctypes
import threading
import time
from functools import partial
from statistics import median

import numpy as np

import l0rt
import l0rt.accelerator as acc
from l0rt.bench import report
from l0rt.selftest.driver import COPY_OFFLOAD, HOST_SCOPE, TIMED, VISIBLE, Missing, Refused
from l0rt.selftest.ground import MIB, Untestable
from l0rt.selftest.launches import saxpy
from l0rt.selftest.questions import Answer
from l0rt.selftest.quirk_tests import no_vm_bind
from l0rt.selftest.traps_of_memory import exhaust
from l0rt.ze import pci

SIZES = (2 * MIB, 16 * MIB, 128 * MIB)
COPIES = (4, 64, 1 << 10, 16 << 10, 256 << 10, 4 * MIB, 64 * MIB, 256 * MIB)
PIECES = (16, 128, 1024)
SMALL_PIECE = 64 << 10


def measured(detail, **figures):
    """The answer of a measurement."""
    return Answer("measured", detail, figures=figures)


def micro(ns):
    """Return nanoseconds as microseconds with as many digits as mean something; None stays None."""
    return None if ns is None else round(ns / 1e3, 3)


def timed(call, *args):
    """Return the nanoseconds that a call takes."""
    start = time.perf_counter_ns()
    call(*args)
    return time.perf_counter_ns() - start


def overhead():
    """Return what a call from here costs if it does nothing, in ns."""
    address = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p).value
    nothing = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(address or 0)
    return median(timed(nothing, 1) for _ in range(200))


def cost(call, *args, rounds=32, batch=1):
    """Return the median of what a call costs, in µs."""
    empty = overhead()

    def repeat():
        for _ in range(batch):
            call(*args)

    spent = [timed(repeat) / batch for _ in range(rounds)]
    return micro(max(0.0, median(spent) - empty))


def machine(ground):
    """M1: the facts that decide."""
    place = pci.facts(ground.properties["pci"])
    try:
        with ground.driver.scope():
            mapped = ("unknown", "host", "device", "shared", "imported")[
                ground.driver.memory_type(ground.driver.mapped(2 * MIB))
            ]
    except (Refused, Missing):
        mapped = "none: no virtual memory"
    identity = ground.identity
    bar = report.size_text(place["bar_size"]) if place["bar_size"] else "not reported"
    kernel, build = identity["kernel_driver"] or "not reported", identity["build"] or "not reported"
    text = f"kernel driver {kernel}, build {build}, BAR {bar}"
    return measured(f"{text}, mapped pointers: {mapped}", bar_size=place["bar_size"], mapped=mapped)


def virtual_costs(ground):
    """M2: create, map, unmap, destroy; while the device is idle, and while it works."""
    bare, figures = ground.driver, {}
    list_, work = bare.list(), bare.allocate(ground.size(16 * MIB))
    if not ground.capabilities["vmm"]:
        try:
            bare.reserve(2 * MIB)
        except (Refused, Missing) as refused:
            raise Untestable(f"the driver has no virtual memory ({refused})") from None
    for state in ("idle", "busy"):
        for nbytes in SIZES:
            if nbytes > ground.budget:
                continue
            times: dict = {"create": [], "map": [], "unmap": [], "destroy": []}
            with bare.scope():
                base = bare.reserve(nbytes)
                for _ in range(8):
                    for _ in range(16 if state == "busy" else 0):
                        bare.fill(list_, work, 1, ground.size(16 * MIB))
                    start = time.perf_counter_ns()
                    part = bare.physical(nbytes)
                    times["create"].append(time.perf_counter_ns() - start)
                    times["map"].append(timed(bare.map, base, nbytes, part))
                    times["unmap"].append(timed(bare.unmap, base, nbytes))
                    times["destroy"].append(timed(bare.destroy_physical, part))
                    bare.drain(list_)
                    if ground.remaining() < 0.2:
                        break
            for name, values in times.items():
                figures[f"{name}_{nbytes >> 20}MiB_{state}"] = micro(median(values))
    text = ", ".join(f"{name} {figures[f'{name}_2MiB_idle']:g}" for name in ("create", "map", "unmap"))
    return measured(f"2 MiB, idle: {text} µs", **figures)


def slopes(ground):
    """M3: a copy in a range, and another map in it, by the number of its pieces."""
    bare, figures, counts = ground.driver, {}, []
    piece = SMALL_PIECE
    try:
        with bare.scope():
            bare.mapped(piece)
    except (Refused, Missing):
        piece = 2 * MIB
    for count in PIECES:
        if (count + 1) * piece > ground.budget or ground.remaining() < 0.2:
            break
        with bare.scope():
            try:
                base = bare.reserve((count + 1) * piece)
            except (Refused, Missing) as refused:
                raise Untestable(f"the driver has no virtual memory ({refused})") from None
            parts = [bare.physical(piece) for _ in range(count + 1)]
            for i in range(count):
                bare.map(base + i * piece, piece, parts[i])
            list_ = bare.list()
            figures[f"copy_{count}"] = cost(bare.copy, list_, base + 4096, base, 256, rounds=20, batch=4)
            bare.drain(list_)
            spent = []
            for _ in range(8):
                spent.append(timed(bare.map, base + count * piece, piece, parts[count]))
                bare.unmap(base + count * piece, piece)
            figures[f"map_{count}"] = micro(median(spent))
            for i in range(count):
                bare.unmap(base + i * piece, piece)
            for part in parts:
                bare.destroy_physical(part)
        counts.append(count)
    if len(counts) < 2:
        raise Untestable("too little memory or time for ranges of many pieces")
    span = counts[-1] - counts[0]
    for name in ("copy", "map"):
        grown = figures[f"{name}_{counts[-1]}"] - figures[f"{name}_{counts[0]}"]
        figures[f"{name}_per_piece"] = round(grown / span, 5)
    text = f"a copy {figures['copy_per_piece']:g} and a map {figures['map_per_piece']:g} µs more per piece"
    return measured(f"{text}, up to {counts[-1]:,} pieces", piece=piece, **figures)


def allocation_costs(ground):
    """M4: allocate, make resident, free."""
    bare, figures = ground.driver, {}
    for nbytes in SIZES:
        if nbytes > ground.budget:
            continue
        times: dict = {"allocate": [], "resident": [], "free": []}
        for _ in range(8):
            with bare.scope():
                start = time.perf_counter_ns()
                at = bare.allocate(nbytes)
                times["allocate"].append(time.perf_counter_ns() - start)
                times["resident"].append(timed(bare.resident, at, nbytes))
                freeing = time.perf_counter_ns()
            times["free"].append(time.perf_counter_ns() - freeing)
        figures.update({f"{name}_{nbytes >> 20}MiB": micro(median(values)) for name, values in times.items()})
    text = ", ".join(f"{name} {figures[f'{name}_2MiB']:g}" for name in ("allocate", "resident", "free"))
    return measured(f"2 MiB: {text} µs", **figures)


def append_costs(ground):
    """M5: barriers and copies, appended to one list, or to each of several in turn; launches likewise, by l0rt."""
    bare, figures = ground.driver, {}
    source, target = bare.allocate(4096), bare.allocate(4096)
    for count in (1, 2, 32):
        with bare.scope():
            lists = [bare.list(in_order=ground.capabilities["inorder"]) for _ in range(count)]

            def barriers(lists=lists):
                for list_ in lists:
                    bare.do("zeCommandListAppendBarrier", list_, None, 0, None)

            def copies(lists=lists):
                for list_ in lists:
                    bare.copy(list_, target, source, 256)

            for name, work in (("barrier", barriers), ("copy", copies)):
                batch = max(1, 32 // count)
                figures[f"{name}_{count}"] = round(cost(work, rounds=12, batch=batch) / count, 3)
                for list_ in lists:
                    bare.drain(list_)
        figures[f"launch_{count}"] = round(launch_cost(ground.index, count) / count, 3)
    texts = {name: " / ".join(f"{figures[f'{name}_{count}']:g}" for count in (1, 2, 32)) for name in ("copy", "launch")}
    return measured(f"on 1 / 2 / 32 lists a copy takes {texts['copy']} µs, a launch {texts['launch']} µs", **figures)


def launch_cost(index, count):
    """Return what it costs in µs to launch a kernel of one work-item on each of ``count`` streams."""
    with saxpy(index) as module:
        streams = [acc.Stream(index) for _ in range(count)]
        x, y = (l0rt.empty(4, device=index, kind="shared") for _ in range(2))
        launch = module["saxpy"][1, 1]

        def all_of_them():
            for stream in streams:
                with stream:
                    launch(y, x, 0.0, 1)

        result = cost(all_of_them, rounds=12, batch=max(1, 32 // count))
        acc.synchronize(index)
    return result


def event_costs(ground):
    """M6: each kind of event: appended, asked while pending and when complete, waited for."""
    bare, figures = ground.driver, {}
    kinds: dict = {
        "plain_host": {"signal": HOST_SCOPE},
        "plain_scope0": {"signal": 0},
        "timed_host": {"flags": VISIBLE | TIMED},
        "counter_host": {"counter_based": True},
        "counter_scope0": {"counter_based": True, "signal": 0},
    }
    for kind, options in kinds.items():
        with bare.scope():
            try:
                list_ = bare.list(in_order=True)
                events = bare.events(64, **options)
                spent = [timed(bare.signal, list_, event) for event in events]
            except Refused:
                continue  # a kind that this driver has not
            bare.drain(list_)
            empty = overhead()
            figures[f"record_{kind}"] = micro(max(0, median(spent) - empty))
            figures[f"query_{kind}"] = micro(max(0, median(timed(bare.query, event) for event in events) - empty))
            figures[f"wait_{kind}"] = micro(max(0, median(timed(bare.wait, event) for event in events) - empty))
    figures["query_pending"] = pending_query(ground)
    records = ((kind.replace("_", " "), figures.get(f"record_{kind}")) for kind in kinds)
    text = ", ".join(f"{kind} {spent:g}" for kind, spent in records if spent is not None)
    return measured(f"record: {text} µs", **figures)


def pending_query(ground):
    """Return what a query costs while the event's work is under way."""
    bare = ground.driver
    with bare.scope():
        list_, buffer = bare.list(), bare.allocate(ground.size(16 * MIB))
        (event,) = bare.events(1)
        for _ in range(8):
            bare.fill(list_, buffer, 1, ground.size(16 * MIB))
        bare.fill(list_, buffer, 1, ground.size(16 * MIB), event)
        spent: list = []
        while len(spent) < 200:
            start = time.perf_counter_ns()
            if bare.query(event):
                break
            spent.append(time.perf_counter_ns() - start)
        bare.wait(event)
        bare.drain(list_)
    return micro(max(0, median(spent) - overhead())) if spent else None


def wake_up(ground):
    """M7: from the device's clock at the end of the work to the host's after the wait, by policy."""
    ground.needs("global_ts")
    stream, figures = acc.Stream(ground.index), {}
    nbytes = ground.size(16 * MIB)
    buffer = l0rt.empty(nbytes, stream=stream)
    for policy in (None, "spin", "yield", "block"):
        spent = []
        for _ in range(16):
            event = l0rt.Event(ground.index, enable_timing=True)
            buffer.fill(1, stream=stream)
            event.record(stream)
            event.synchronize(timeout=10, policy=policy)
            spent.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) - event.host_time())
        figures[f"wake_up_{policy or 'default'}"] = micro(max(0, median(spent)))
    text = ", ".join(f"{name.removeprefix('wake_up_')} {value:g}" for name, value in figures.items())
    return measured(f"{text} µs", **figures)


def copy_rates(ground):
    """M8: for each size and way the rate in GB/s, the host's wait included."""
    figures: dict = {}
    compute = acc.Stream(ground.index)
    engines = {"compute": compute}
    if ground.properties["copy_ordinal"] >= 0:
        engines["copy"] = acc.stream_pool.copy_stream(ground.index)
    spent = 0.0
    for place, nbytes in enumerate(COPIES):
        if 4 * nbytes > ground.budget or 8 * spent > ground.remaining():
            break
        start = time.monotonic()
        share = ground.remaining() / (len(COPIES) - place) / (2 * len(engines) + 3)
        figures.update(rates_of(ground, nbytes, engines, share))
        spent = time.monotonic() - start
    figures.update(straight(ground))
    largest = max((n for n in COPIES if f"d2d_{n}" in figures), default=4)
    text = ", ".join(
        f"{name.replace('_', ' ')} {figures[f'{name}_{largest}']:.3g}"
        for name in ("staged_h2d", "pinned_h2d_compute", "pinned_h2d_copy", "pinned_d2h_compute", "d2d")
        if f"{name}_{largest}" in figures
    )
    return measured(f"GB/s at {report.size_text(largest)}: {text}", **figures)


def rates_of(ground, nbytes, engines, share):
    """Return the rate of each way to copy so many bytes; each takes a ``share`` of seconds."""
    compute = engines["compute"]
    device, other = (l0rt.empty(nbytes, stream=compute) for _ in range(2))
    pinned = l0rt.empty(nbytes, kind="host", device=ground.index)
    pageable = np.ones(nbytes, "u1")
    for buffer in (device, other, pinned):
        buffer.fill(1, stream=compute)  # its pages are there
    compute.synchronize()
    ways: dict = {
        "staged_h2d": lambda: (device.copy_from(pageable, stream=compute), compute.synchronize()),
        "staged_d2h": lambda: device.copy_to(pageable, stream=compute),
        "d2d": lambda: (other.copy_from(device, stream=compute), compute.synchronize()),
    }
    for engine, stream in engines.items():
        for name, target, source in (("h2d", device, pinned), ("d2h", pinned, device)):
            ways[f"pinned_{name}_{engine}"] = partial(copy_and_wait, target, source, stream)
    rates = {f"{name}_{nbytes}": round(rate(work, nbytes, share), 4) for name, work in ways.items()}
    acc.synchronize(ground.index)
    for buffer in (device, other):
        for stream in engines.values():
            buffer.record_stream(stream)
    return rates


def copy_and_wait(target, source, stream):
    """Copy, one of both being pinned, and wait for it."""
    target.copy_from(source, stream=stream, non_blocking=True)
    stream.synchronize()


def rate(work, nbytes, seconds):
    """Return GB/s of the best of some rounds."""
    best, until = float("inf"), time.monotonic() + min(seconds, 1.0)
    for _ in range(20):
        best = min(best, timed(work))
        if time.monotonic() > until:
            break
    return nbytes / best


def straight(ground):
    """Return how long an append of pageable memory blocks, and what an offloaded copy takes; empty where refused."""
    bare, nbytes, figures = ground.driver, ground.size(4 * MIB), {}
    pageable = np.ones(nbytes, "u1")
    with bare.scope():
        target, list_ = bare.allocate(nbytes), bare.list(in_order=False)
        try:
            figures["append_pageable_µs"] = micro(timed(bare.copy, list_, target, pageable.ctypes.data, nbytes))
            bare.drain(list_)
        except Refused:
            pass  # memory that is not the driver's
        try:
            offloading, host = bare.list(in_order=True, flags=COPY_OFFLOAD), bare.allocate(nbytes, 1)
            figures[f"pinned_h2d_offload_{nbytes}"] = round(
                rate(lambda: (bare.copy(offloading, target, host, nbytes), bare.drain(offloading)), nbytes, 0.2), 4
            )
        except Refused:
            pass  # a driver without that flag
    return figures


def stalls(ground):
    """M9: the longest append of one thread, without and with another thread's maps.

    Its copies are of ordinary memory, and read nothing of the reservation that the other thread changes: Q5's do.
    """
    bare = ground.driver
    source, target = bare.allocate(4096), bare.allocate(4096)
    list_ = bare.list()
    try:
        base = bare.reserve(32 * MIB)
    except (Refused, Missing) as refused:
        raise Untestable(f"the driver has no virtual memory ({refused})") from None
    part, stop, figures = bare.physical(16 * MIB), threading.Event(), {}

    def maps():
        while not stop.is_set():
            bare.map(base, 16 * MIB, part)
            bare.unmap(base, 16 * MIB)

    for state in ("alone", "beside_maps"):
        thread = threading.Thread(target=maps if state == "beside_maps" else stop.wait)
        stop.clear()
        thread.start()
        spent: list = []
        until = time.monotonic() + min(0.5, ground.remaining() / 3)
        while time.monotonic() < until and len(spent) < 5000:
            spent.append(timed(bare.copy, list_, target, source, 64))
            if len(spent) % 64 == 0:
                bare.drain(list_)
        stop.set()
        thread.join()
        bare.drain(list_)
        spent.sort()
        figures[f"median_{state}"], figures[f"longest_{state}"] = micro(median(spent)), micro(spent[-1])
        figures[f"p99_{state}"] = micro(spent[len(spent) * 99 // 100])
    bare.destroy_physical(part)
    text = f"99 of 100 appends within {figures['p99_alone']:g} µs, beside maps {figures['p99_beside_maps']:g} µs"
    return measured(text, **figures)


def refusing_call(ground):
    """M10: the call that says that memory is out, for allocations and for maps."""
    call, text, count = exhaust(ground)
    figures = {"allocation": call or None}
    text = text or f"{count} allocations were given, and there was no time for more"
    try:
        with ground.driver.scope():
            answer = no_vm_bind(ground)
        figures["map"] = answer.figures["call"]
        text += f"; mapped memory: {answer.detail}"
    except Untestable:
        figures["map"] = None
    return measured(text, **figures)


ASK = {
    "M1": machine,
    "M2": virtual_costs,
    "M3": slopes,
    "M4": allocation_costs,
    "M5": append_costs,
    "M6": event_costs,
    "M7": wake_up,
    "M8": copy_rates,
    "M9": stalls,
    "M10": refusing_call,
}
