# SPDX-License-Identifier: Apache-2.0
"""Capabilities, each used for real: order, events, timing, copies, virtual memory, other processes, running out."""

import os
import subprocess
import sys
import time

import numpy as np

import l0rt
import l0rt.accelerator as acc
from l0rt import config, memory
from l0rt._base.paths import known_interpreter
from l0rt.errors import OutOfMemoryError
from l0rt.selftest.driver import OUT_OF_MEMORY, Refused, view
from l0rt.selftest.ground import MIB, Untestable, fails, works

ODD_SIZES = (1, 3, 64, 4095, 4097, 65_537, 1 * MIB + 13)


def order_of_one_stream(ground):
    """C1: a long fill, a short one over its end, and a copy of that end: in another order the byte is wrong."""
    nbytes, wrong = ground.size(16 * MIB), 0
    stream = acc.Stream(ground.index)
    long, end = l0rt.empty(nbytes, stream=stream), l0rt.empty(64, stream=stream)
    back = np.zeros(64, "u1")
    rounds = 0
    while rounds < 64 and (rounds < 4 or ground.remaining() > 1):
        value = rounds % 250 + 1
        long.fill(value, stream=stream)
        end.fill(0, stream=stream)
        end.fill(value + 1, stream=stream)
        end.copy_to(back, stream=stream)
        wrong += int((back != value + 1).any())
        rounds += 1
    return fails(f"wrong in {wrong} of {rounds} rounds") if wrong else works(f"{rounds} rounds")


def order_across_streams(ground):
    """C2: a value goes from stream to stream; each waits for the event of the one before."""
    streams = [acc.Stream(ground.index, priority=i % 3 - 1) for i in range(8)]
    buffers = [l0rt.empty(256 << 10, stream=stream) for stream in streams]
    rounds = 0
    while rounds < 40 and (rounds < 4 or ground.remaining() > 1):
        buffers[0].fill(rounds % 255 + 1, stream=streams[0])
        for i in range(1, len(streams)):
            streams[i].wait_event(streams[i - 1].record_event())
            buffers[i].copy_from(buffers[i - 1], stream=streams[i])
        back = buffers[-1].copy_to(np.zeros(256 << 10, "u1"), stream=streams[-1])
        if (back != rounds % 255 + 1).any():
            return fails(f"the value of round {rounds} did not arrive")
        for a, b in zip(streams, [*streams[1:], streams[0]], strict=True):
            a.wait_stream(b)
        rounds += 1
    for buffer in buffers:
        for stream in streams:
            buffer.record_stream(stream)
    return works(f"{rounds} rounds of 8 streams")


def events(ground):
    """C3: whether queried or waited for, by whichever policy, what was done before the record is there after it."""
    stream = acc.Stream(ground.index)
    host = l0rt.empty(1 << 16, kind="host", device=ground.index)
    data = np.frombuffer(memoryview(host), "u1")
    source = l0rt.empty(1 << 16, stream=stream)
    ways: tuple = ("query", "spin", "yield", "block")
    for i in range(48):
        value = i % 255 + 1
        source.fill(value, stream=stream)
        host.copy_from(source, stream=stream, non_blocking=True)
        event = stream.record_event()
        if ways[i % 4] == "query":
            while not event.query():
                if ground.remaining() == 0:
                    return fails("an event never becomes complete")
        elif not event.synchronize(timeout=10, policy=ways[i % 4]):
            return fails("an event never becomes complete")
        if (data != value).any():
            return fails(f"host memory was stale after {ways[i % 4]}")
    return works("48 records; query, spin, yield, block")


def timing(ground):
    """C4: between two records lie 30 ms of the host's, and the device's clock says so too."""
    stream = acc.Stream(ground.index)
    start, end = l0rt.Event(ground.index, enable_timing=True), l0rt.Event(ground.index, enable_timing=True)
    start.record(stream)
    start.synchronize(timeout=10)
    before = time.perf_counter()
    time.sleep(0.03)
    end.record(stream)
    end.synchronize(timeout=10)
    spent = 1e3 * (time.perf_counter() - before)
    elapsed = start.elapsed_time(end)
    if not 0.9 * 30 <= elapsed <= spent + 20:
        return fails(f"{elapsed:.1f} ms of the device's in {spent:.1f} ms of the host's")
    return works(f"{elapsed:.1f} ms in {spent:.1f} ms of the host's")


def copies(ground):
    """C5: every kind to every kind, in odd sizes; host memory at odd offsets."""
    sizes = []
    for nbytes in ODD_SIZES:
        data = np.random.default_rng(nbytes).integers(0, 256, nbytes + 3, "u1")[3:]
        device, other = (l0rt.empty(nbytes, device=ground.index) for _ in range(2))
        host, shared = (l0rt.empty(nbytes, device=ground.index, kind=kind) for kind in ("host", "shared"))
        device.copy_from(data)
        for source, target in ((device, other), (other, host), (host, shared), (shared, device)):
            target.copy_from(source)
        acc.synchronize(ground.index)
        back = device.copy_to(np.zeros(nbytes + 5, "u1")[5:])
        if (back != data).any():
            return fails(f"{nbytes} bytes came back changed")
        sizes.append(nbytes)
    return works(f"{len(sizes)} sizes from 1 B to 1 MiB; pageable, device, host, shared{registered(ground)}")


def registered(ground):
    """Copy memory of this process's that was registered; return how that went, for the end of a sentence."""
    if not ground.capabilities["memmap"]:
        return ""
    data = np.random.default_rng(1).integers(0, 256, 1 << 16, "u1")
    buffer = l0rt.empty(data.nbytes, device=ground.index)
    with memory.register(data, device=ground.index):
        buffer.copy_from(data, non_blocking=True)
        acc.synchronize(ground.index)
        assert (buffer.copy_to(np.zeros_like(data)) == data).all(), "registered memory arrived changed"
    return ", registered"


def copy_engine(ground):
    """C6: a fill on the compute engine, a copy each way on the copy engine."""
    if ground.properties["copy_ordinal"] < 0:
        raise Untestable("the device has no queue group that only copies")
    nbytes = ground.size(4 * MIB)
    compute, copying = acc.Stream(ground.index), acc.stream_pool.copy_stream(ground.index)
    buffer, host = l0rt.empty(nbytes, stream=compute), l0rt.empty(nbytes, kind="host", device=ground.index)
    for value in range(1, 9):
        copying.wait_event(compute.record_event())
        buffer.fill(value, stream=compute)
        copying.wait_event(compute.record_event())
        host.copy_from(buffer, stream=copying, non_blocking=True)
        if not copying.synchronize(timeout=20):
            return fails("the copy stream does not finish")
        if (np.frombuffer(memoryview(host), "u1") != value).any():
            return fails("a copy on the copy engine came before what it waited for, or lost bytes")
        compute.wait_event(copying.record_event())
    buffer.record_stream(copying)
    return works("8 rounds across two engines")


def virtual_memory(ground):
    """C7: data in mapped pieces stays, also after others were given back."""
    ground.needs("vmm")
    bare, piece = ground.driver, 2 * MIB
    list_ = bare.list()
    host = bare.allocate(piece, 1)
    base = bare.reserve(8 * piece)
    parts: dict = {}
    for round_ in range(3):
        for i in range(8):
            if i not in parts:
                parts[i] = bare.physical(piece)
                bare.map(base + i * piece, piece, parts[i])
                bare.fill(list_, base + i * piece, 16 * round_ + i + 1, piece)
        assert bare.drain(list_), "a fill of mapped memory does not end"
        for i in (1, 4, 6):
            bare.unmap(base + i * piece, piece)
            bare.destroy_physical(parts.pop(i))
    wrong = []
    for i, part in parts.items():
        bare.do("zeCommandListAppendMemoryCopy", list_, host, base + i * piece, 64, None, 0, None)
        bare.drain(list_)
        if bytes(view(host, 64)) != bytes([i + 1]) * 64:
            wrong.append(i)
        bare.unmap(base + i * piece, piece)
        bare.destroy_physical(part)
    return fails(f"pieces {wrong} lost their data") if wrong else works("24 maps and unmaps around data")


def event_in_another_process(ground):
    """C8: this process records, the other one waits."""
    ground.needs("event_ipc")
    stream = acc.Stream(ground.index)
    event = l0rt.Event(ground.index, interprocess=True)
    event.record(stream)
    stream.synchronize()
    code = (
        "import l0rt, sys\n"
        f"event = l0rt.Event.from_ipc_handle({ground.index}, bytes.fromhex(sys.argv[1]))\n"
        "print('came' if event.synchronize(timeout=3) else 'did not come')"
    )
    status, out, complaint = other_process(code, event.ipc_handle().hex(), timeout=max(4.0, ground.remaining()))
    if status == 0 and out.endswith("came") and not out.endswith("not come"):
        return works("recorded here, waited for there")
    return fails(f"the event {out}" if status == 0 else f"the other process failed: {complaint}")


def other_process(code, *words, env=None, timeout=20.0):
    """Run code in another process on the same driver; return its status, what it printed, its last complaint."""
    set_up = f"import sys; sys.path[:] = {sys.path!r}; from l0rt import config; config.set('driver', sys.argv.pop(1))\n"
    set_up += "import warnings; warnings.filterwarnings('ignore', message='no GPU')\n"
    try:
        child = subprocess.run(
            [known_interpreter(), "-c", set_up + code, config.get("driver"), *words],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise Untestable(f"another process did not answer within {timeout:.0f} s") from None
    lines = [line for line in child.stderr.splitlines() if line.strip()]
    return child.returncode, child.stdout.strip(), lines[-1][:200] if lines else ""


def out_of_memory(ground):
    """C9: under a limit of l0rt's own, memory runs out in an error, and what is freed can be used."""
    before = memory.get_memory_limit(ground.index)
    buffers: list = []
    acc.empty_cache()
    limit = memory.memory_reserved(ground.index) + min(ground.budget, 64 * MIB)
    memory.set_memory_limit(limit, ground.index)
    try:
        for _ in range(1 + limit // MIB):
            buffers.append(l0rt.empty(MIB, device=ground.index))
        return fails("no error at a limit")
    except OutOfMemoryError as e:
        if "requested" not in str(e):
            return fails("the error does not explain itself")
        count = len(buffers)
        buffers.clear()
        buffer = l0rt.empty(8 * MIB, device=ground.index).fill(7)
        back = buffer.copy_to(np.zeros(8 * MIB, "u1"))
        return works(f"an error after {count} MiB, then work again") if (back == 7).all() else fails("wrong data after")
    finally:
        buffers.clear()
        memory.set_memory_limit(before, ground.index)


def exhaustion(ground):
    """C10: the driver's own end, and its recovery."""
    bare, piece = ground.driver, max(64 * MIB, ground.properties["total_memory"] // 64)
    addresses: list = []
    acc.empty_cache()
    try:
        while len(addresses) < 80 and ground.remaining() > 0.5:
            addresses.append(bare.allocate(piece))
            bare.resident(addresses[-1], piece)
        refusal = "no refusal"
    except Refused as refused:
        if refused.code not in OUT_OF_MEMORY:
            raise
        refusal = str(refused)
    finally:
        bare.cleanup.close()
    if refusal == "no refusal":
        raise Untestable(f"{len(addresses)} pieces of {piece >> 20} MiB were all given")
    back = l0rt.empty(MIB, device=ground.index).fill(9).copy_to(np.zeros(MIB, "u1"))
    return (
        works(f"{refusal} at {len(addresses)} x {piece >> 20} MiB, then work again")
        if (back == 9).all()
        else fails("wrong")
    )


def wait_for_the_device(ground):
    """C16: what each stream copied last to pinned memory is there when the wait for the device is over."""
    nbytes, rounds = 512 << 10, 0
    streams = [acc.Stream(ground.index) for _ in range(8)]
    if ground.properties["copy_ordinal"] >= 0:
        streams += [acc.stream_pool.copy_stream(ground.index)]
    sources = [l0rt.empty(nbytes, stream=stream) for stream in streams]
    targets = [l0rt.empty(nbytes, kind="host", device=ground.index) for _ in streams]
    while rounds < 20 and (rounds < 2 or ground.remaining() > 1):
        value = rounds % 255 + 1
        for stream, source, target in zip(streams, sources, targets, strict=True):
            source.fill(value, stream=stream)
            target.copy_from(source, stream=stream, non_blocking=True)
        acc.synchronize(ground.index)
        late = sum(int((np.frombuffer(memoryview(target), "u1") != value).any()) for target in targets)
        if late:
            return fails(f"{late} of {len(streams)} copies were not there in round {rounds}")
        rounds += 1
    how = "one call of the driver's" if ground.capabilities["device_sync"] else "one call a stream"
    return works(f"{rounds} rounds of {len(streams)} streams; {how}")


ASK = {
    "C1": order_of_one_stream,
    "C2": order_across_streams,
    "C3": events,
    "C4": timing,
    "C5": copies,
    "C6": copy_engine,
    "C7": virtual_memory,
    "C8": event_in_another_process,
    "C9": out_of_memory,
    "C10": exhaustion,
    "C16": wait_for_the_device,
}
