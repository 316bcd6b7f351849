# SPDX-License-Identifier: Apache-2.0
"""Known traps of memory: sizes, pages, pointers, reuse, counters, what stays behind."""

import gc
import random
import threading
from contextlib import suppress

import numpy as np

import l0rt
import l0rt.accelerator as acc
from l0rt import memory
from l0rt.errors import L0Error, OutOfMemoryError
from l0rt.runtime.streams import devices
from l0rt.selftest.driver import OUT_OF_MEMORY, UNKNOWN, Missing, Refused
from l0rt.selftest.ground import MIB, Untestable, verdict


def late_refusal(ground):
    """T11: memory is given, made resident and used, until something refuses; which call is it?"""
    call, text, count = exhaust(ground)
    if not call:
        raise Untestable(f"{count} pieces were given, and there was no time for more")
    return verdict(call != "zeMemAllocDevice", text, call=call)


def exhaust(ground):
    """Use all memory up in 64 pieces; return the call that refused, its answer, and how many pieces there were."""
    bare, piece = ground.driver, max(64 * MIB, ground.properties["total_memory"] // 62)
    count = 0
    with bare.scope():
        list_ = bare.list()
        try:
            while count < 66 and ground.remaining() > 0.3:
                at = bare.allocate(piece)
                bare.resident(at, piece)
                bare.fill(list_, at, 1, 4096)
                bare.drain(list_)
                count += 1
        except Refused as refused:
            if refused.code not in OUT_OF_MEMORY:
                raise
            return refused.call, str(refused), count
    return "", "", count


def odd_sizes(ground):
    """T12: nothing, too much, and an odd alignment."""
    wrong = []
    if l0rt.empty(0, device=ground.index).nbytes != 0:
        wrong.append("0 bytes are some")
    for nbytes in (1 << 62, (1 << 64) - 1):
        try:
            l0rt.empty(nbytes, device=ground.index)
            wrong.append(f"{nbytes} bytes were given")
        except (OutOfMemoryError, ValueError, OverflowError):
            pass
    if l0rt.empty(1, device=ground.index).ptr % 512:
        wrong.append("memory is not aligned")
    return verdict(wrong, "; ".join(wrong) or "0, 2^62 and 2^64 - 1 bytes")


def above_the_limit(ground):
    """T13: one allocation above what the driver calls its largest."""
    most, total = ground.properties["max_alloc"], ground.properties["total_memory"]
    if most + 2 * MIB > total * 0.9:
        raise Untestable("the largest allocation is all of the memory")
    ground.needs("relaxed")
    try:
        buffer = l0rt.empty(most + 2 * MIB, device=ground.index)
    except OutOfMemoryError as e:
        return verdict(True, str(e).partition("\n")[0][:200])
    del buffer
    acc.empty_cache()
    return verdict(False, f"{(most >> 20) + 2:,} MiB were given")


def page_sizes(ground):
    """T14: which sizes of physical memory does the driver make?"""
    bare, answers = ground.driver, {}
    for kib in (64, 2048, 3072):
        try:
            bare.destroy_physical(bare.physical(kib << 10))
            answers[kib] = "made"
        except (Refused, Missing) as refused:
            answers[kib] = str(refused).partition(": ")[2] or str(refused)
    if all(answer != "made" for answer in answers.values()):
        raise Untestable(f"the driver has no virtual memory ({answers[2048]})")
    text = ", ".join(f"{kib} KiB {answer}" for kib, answer in answers.items())
    return verdict(answers[2048] != "made", text, sizes=answers)


def failed_map(ground):
    """T15: a second map at an address that has one, and everything is taken down again."""
    bare, piece = ground.driver, 2 * MIB
    try:
        base = bare.reserve(2 * piece)
    except (Refused, Missing) as refused:
        raise Untestable(f"the driver has no virtual memory ({refused})") from None
    first, second = bare.physical(piece), bare.physical(piece)
    bare.map(base, piece, first)
    answer = bare.ask("zeVirtualMemMap", bare.context, base, piece, second, 0, 1)
    problems = []
    if not answer:
        bare.ask("zeVirtualMemUnmap", bare.context, base, piece)
    code = bare.ask("zeVirtualMemUnmap", bare.context, base, piece)
    if code and answer:
        problems.append("the first map is gone")
    for each in (first, second):
        if bare.ask("zePhysicalMemDestroy", bare.context, each):
            problems.append("physical memory stays in use")
    text = "the second map was refused" if answer else "the second map was taken"
    return verdict(problems, "; ".join([text, *problems]))


def refuses(call, *args):
    """Return whether a call is an error."""
    try:
        call(*args)
    except (ValueError, RuntimeError):
        return True
    return False


def strange_pointers(ground):
    """T16: a stranger's pointer, one inside, one past the end, a second free."""
    buffer, wrong = l0rt.empty(2 * MIB, device=ground.index), []
    host = np.zeros(64, "u1")
    with suppress(Refused):
        if ground.driver.memory_type(host.ctypes.data) != UNKNOWN:
            wrong.append("the driver knows a stranger's pointer")
    inside, outside = memory.pointer_info(buffer.ptr + MIB), memory.pointer_info(host.ctypes.data)
    beyond, end = memory.pointer_info(buffer.ptr + 2 * MIB), buffer.ptr + 2 * MIB
    if inside is None or inside["base"] != buffer.ptr or outside is not None:
        wrong.append("l0rt mistakes a pointer")
    if beyond is not None and beyond["base"] == buffer.ptr:
        wrong.append("the address past the end is taken for the allocation's")
    strangers = {"a stranger's": host.ctypes.data, "an interior": buffer.ptr + MIB, "a past-the-end": end,
                 "a Buffer's": buffer.ptr}  # fmt: skip
    for name, pointer in strangers.items():
        if not refuses(memory.caching_allocator_delete, pointer):
            wrong.append(f"{name} pointer was freed")
    buffer.free()
    if not refuses(buffer.free):
        wrong.append("a second free was taken")
    return verdict(wrong, "; ".join(wrong) or "interior, foreign and freed pointers are told apart")


def reuse(ground):
    """T17: memory is dropped while another stream still reads it, and taken anew at once."""
    a, b = acc.Stream(ground.index), acc.Stream(ground.index)
    nbytes, wrong = ground.size(2 * MIB), 0
    for value in range(1, 33):
        buffer, target = l0rt.empty(nbytes, stream=a), l0rt.empty(nbytes, stream=b)
        buffer.fill(value, stream=a)
        b.wait_stream(a)
        target.copy_from(buffer, stream=b)
        buffer.free()
        l0rt.empty(nbytes, stream=a).fill(255, stream=a)
        wrong += int((target.copy_to(np.zeros(nbytes, "u1"), stream=b) != value).any())
    return verdict(wrong, f"wrong in {wrong} of 32 rounds")


def freed_by_another_thread(ground):
    """T18: used on one stream, freed by another thread, wanted again."""
    a, b = acc.Stream(ground.index), acc.Stream(ground.index)
    nbytes, wrong = ground.size(2 * MIB), 0
    for value in range(1, 17):
        buffer, target = l0rt.empty(nbytes, stream=a).fill(value, stream=a), l0rt.empty(nbytes, stream=b)
        b.wait_stream(a)
        target.copy_from(buffer, stream=b)
        buffer.record_stream(b)
        thread = threading.Thread(target=buffer.free)
        thread.start()
        thread.join()
        l0rt.empty(nbytes, stream=a).fill(255, stream=a)
        wrong += int((target.copy_to(np.zeros(nbytes, "u1"), stream=b) != value).any())
    return verdict(wrong, f"wrong in {wrong} of 16 rounds")


class Loop:
    """A buffer in a cycle, which only the garbage collector frees."""

    def __init__(self, buffer):
        self.buffer, self.me = buffer, self

    def __del__(self):
        self.buffer.free()


def freed_by_the_collector(ground):
    """T19: finalisers free while this and another thread append. A deadlock is when neither goes on."""
    counts, streams = [0, 0], [acc.Stream(ground.index) for _ in range(2)]

    def work(me):
        target = l0rt.empty(4096, stream=streams[me])
        for i in range(100):
            Loop(l0rt.empty(4096, stream=streams[me]))
            target.fill(i, stream=streams[me])
            if i % 25 == me:
                gc.collect()
            counts[me] += 1
        streams[me].synchronize()

    threads = [threading.Thread(target=work, args=(me,), daemon=True) for me in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        before = list(counts)
        for thread in threads:
            thread.join(2)
        if counts == before and any(thread.is_alive() for thread in threads):
            return verdict(True, f"neither thread goes on after {counts[0]} and {counts[1]} buffers")
        if ground.remaining() == 0 and any(thread.is_alive() for thread in threads):
            raise Untestable("too slow for the time that there was")
    return verdict(False, "200 buffers, freed by the collector beside appends")


def counters(ground):
    """T20: what four threads allocate and free adds up."""
    acc.synchronize(ground.index)
    before, streams = acc.memory_allocated(ground.index), [acc.Stream(ground.index) for _ in range(4)]

    def work(seed):
        choice, buffers = random.Random(seed), []
        for _ in range(400):
            buffers.append(l0rt.empty(choice.choice((512, 4096, 65_536)), stream=streams[seed]))
            if len(buffers) > 20:
                buffers.pop(choice.randrange(20))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = acc.memory_allocated(ground.index)
    return verdict(after != before, f"{after - before:+,} bytes after 1,600 allocations and frees")


def patterns(ground):
    """T27: patterns of every size, on each engine."""
    streams, wrong = [("compute", acc.Stream(ground.index))], []
    if ground.properties["copy_ordinal"] >= 0:
        streams.append(("copy", acc.stream_pool.copy_stream(ground.index)))
    for name, stream in streams:
        for size in (1, 2, 4, 8, 16):
            pattern, buffer = bytes(range(1, size + 1)), l0rt.empty(4096, stream=stream)
            buffer.fill(pattern=pattern, stream=stream) if size > 1 else buffer.fill(1, stream=stream)
            if buffer.copy_to(bytearray(4096), stream=stream) != pattern * (4096 // size):
                wrong.append(f"{size} bytes on the {name} engine")
    return verdict(wrong, "; ".join(wrong) or f"1 to 16 bytes on {' and '.join(name for name, _ in streams)}")


def onto_itself(ground):
    """T28: source and target are one."""
    buffer = l0rt.empty(65_536, device=ground.index).fill(7)
    try:
        buffer.copy_from(buffer)
    except (ValueError, L0Error):
        return verdict(False, "refused")
    right = (buffer.copy_to(np.zeros(65_536, "u1")) == 7).all()
    return verdict(not right, "a copy onto itself changes nothing" if right else "wrong bytes")


def all_free(ground):
    """T31: is all memory free while some is in use?"""
    buffer = l0rt.empty(32 * MIB, device=ground.index).fill(1)
    acc.synchronize(ground.index)
    if devices.card(ground.index) is None:
        raise Untestable("no system management, or no card of this address")
    nbytes = devices.memory_on_card(ground.index)
    del buffer
    source = memory.memory_info(ground.index).get("source", "?")
    return verdict(nbytes is None, f"{'not believed' if nbytes is None else 'believed'}; l0rt asks: {source}")


def behind_trimming(ground):
    """T33: after everything was freed and trimmed, nothing is reserved that was not before."""
    acc.synchronize(ground.index)
    gc.collect()
    acc.empty_cache()
    before = acc.memory_reserved(ground.index)
    buffers = [l0rt.empty(3 * MIB, stream=acc.Stream(ground.index)) for _ in range(8)]
    del buffers
    acc.synchronize(ground.index)
    acc.empty_cache()
    after = acc.memory_reserved(ground.index)
    return verdict(after > before, f"{after - before:+,} bytes reserved after 24 MiB came and went")


ASK = {
    "T11": late_refusal,
    "T12": odd_sizes,
    "T13": above_the_limit,
    "T14": page_sizes,
    "T15": failed_map,
    "T16": strange_pointers,
    "T17": reuse,
    "T18": freed_by_another_thread,
    "T19": freed_by_the_collector,
    "T20": counters,
    "T27": patterns,
    "T28": onto_itself,
    "T31": all_free,
    "T33": behind_trimming,
}
