# SPDX-License-Identifier: Apache-2.0
"""The programs that run under the thread sanitizer: each starts threads that share what threads may share.

``python -m helpers.race_programs NAME``; "done" is all that it prints.
"""

import ctypes
import random
import sys
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
from l0rt import memory
from l0rt.bench import loops
from l0rt.errors import UnsupportedError
from l0rt.selftest.programs import wrong_in_threads

from helpers.door import Door

MIB = 1 << 20


def in_threads(*works):
    """Run every function in a thread of its own, all at once."""
    gate, failed = threading.Barrier(len(works)), []

    def run(work):
        gate.wait()
        try:
            work()
        except BaseException as failure:
            failed.append(failure)
            raise

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


# --- Streams and events.


def events():
    """Threads that record, wait for and ask the events of streams that all of them use."""
    in_threads(*[lambda: l0rt.Event().record()] * 5)  # all at once open the driver, a list, a pool of events
    for seed in range(3):
        wrong = wrong_in_threads(seed, devices=2)
        assert not wrong, wrong
    streams = [acc.Stream(i % 2) for i in range(6)]
    shared = [l0rt.Event() for _ in range(4)]  # of device 0: recorded by one thread, asked by another
    dropped = []
    in_threads(*[lambda seed=seed: record_and_wait(seed, streams, shared, dropped) for seed in range(5)])
    dropped.clear()


def record_and_wait(seed, streams, shared, dropped):
    own = [l0rt.Event(enable_timing=i % 2 == 0) for i in range(4)]
    for i in range(300):
        a, b = streams[(i + seed) % 6], streams[(i * 5 + seed + 1) % 6]
        e = own[i % 4] if a.device_index == 0 else l0rt.Event()
        e.record(a)
        b.wait_event(e)
        dropped.append(a.record_event())
        if a.device_index == 0:
            shared[i % 4].record(a)
        b.wait_event(shared[(i + seed) % 4])
        shared[i % 4].query()
        with b:
            acc.current_stream().query()
        a.wait_stream(b)
        if i % 50 == 0:
            b.synchronize()
            dropped.clear()
        if i % 60 == 0:
            acc.wait_any(a, b)
            acc.wait_all(e, a, stream=b)
            acc.stuck_report()
            b.add_callback(lambda: None)
            with acc.stream_pool.lease(seed % 2) as leased:
                leased.wait_stream(a)
                leased.record_event()
            acc.synchronize(seed % 2)


# --- Memory.

CONFIGURATIONS = (
    "",
    "roundup_power2_divisions:4",
    "garbage_collection_threshold:0.3,per_process_memory_fraction:0.5",
    "expandable_segments:False,max_split_size_mb:20",
    "segments:torch,large_segment_size_mb:11",
    "backend:async",
    "pinned_max_cached_size_mb:1,pinned_cache_limit_mb:2",
    "pinned_use_background_threads:True,pinned_cache_limit_mb:1",
)

# What threads are told because of what others do: a limit is low, a pool sleeps, a buffer is freed, or named in a call.
REFUSALS = ("out of memory", "asleep", "put to sleep", "must end first", "was freed", "in use by")


def unless_refused(work, *args):
    try:
        work(*args)
    except Exception as told:
        if not any(text in str(told) for text in REFUSALS):
            raise


class Sharing:
    """What the threads share: streams, pools, buffers that any of them may free, and addresses of no Buffer."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.streams = [acc.Stream(i % 2) for i in range(6)]
        self.pools = [memory.MemPool(use_on_oom=i == 1, no_split=i == 2, limit=[None, None, 8 * MIB][i])
                      for i in range(3)]  # fmt: skip
        self.buffers = []
        self.addresses = []
        self.door = Door()
        libc = ctypes.CDLL(None)  # which looks at the first argument alone
        self.functions = memory.PluggableAllocator(libc.malloc, libc.free)
        self.raw_streams = [self.door.pointer(stream) for stream in self.streams]

    def run(self):
        works = [self.configure, self.look, self.give_back, self.allocate_by_address,
                 *[self.allocate, self.use_pools, self.allocate_without_python] * 2]  # fmt: skip
        in_threads(*[lambda i=i, work=work: self.repeat(work, random.Random(i)) for i, work in enumerate(works)])

    def repeat(self, work, choice):
        for _ in range(self.rounds):
            unless_refused(work, choice)

    def take_any(self, choice):
        """A buffer of whichever thread, which is the caller's from now on."""
        try:
            return self.buffers.pop(choice.randrange(len(self.buffers) or 1))
        except IndexError:
            return l0rt.empty(4096)

    def keep(self, buffer):
        self.buffers.append(buffer)
        if len(self.buffers) > 60:
            self.buffers.pop(0).free()

    def allocate(self, choice):
        """Any kind of memory, used in any order, given away to be freed by anybody."""
        stream, other = choice.choice(self.streams), choice.choice(self.streams)
        kind = choice.choice(["device", "device", "device", "host", "host", "shared"])
        where = {"device": choice.randrange(2)} if kind != "device" else {"stream": stream}
        for _ in range(4):
            buffer = l0rt.empty(int(2 ** choice.uniform(6, 22)), kind=kind, **where)
            memory.record_use(buffer.ptr + 5, stream)
            if choice.random() < 0.3:
                buffer.fill(1, stream=stream, non_blocking=True)
            if stream.device_index == other.device_index or kind != "device":
                choice.choice([buffer.record_stream, buffer.record_use, lambda on: None])(other)
            self.keep(buffer)
        stream.add_callback(unless_refused, lambda: self.keep(l0rt.empty(3000, device=0)))
        event = l0rt.Event()
        event.record(stream)
        other.wait_event(event)
        for _ in range(2):
            buffer = self.take_any(choice)
            memory.pointer_info(buffer.ptr + 100)
            choice.choice([buffer.free, lambda buffer=buffer: None, lambda buffer=buffer: self.keep(buffer)])()
        self.meddle(stream)

    def meddle(self, stream):
        """Name a buffer that others may name, or free, just now."""
        for buffer in self.buffers[:2]:
            buffer.record_use(stream)
            buffer.record_stream(stream)

    def use_pools(self, choice):
        """In and out of pools, old and new, that sleep, wake and go while others have what came from them."""
        pool = choice.choice([*self.pools, memory.MemPool(), memory.MemPool(self.functions, use_on_oom=True)])
        with memory.use_mem_pool(pool, choice.choice([None, 0, 1])):
            for _ in range(4):
                self.keep(l0rt.empty(int(2 ** choice.uniform(8, 21)), stream=choice.choice(self.streams)))
            with memory.use_mem_pool(choice.choice(self.pools)):
                l0rt.empty(1 << 16, stream=choice.choice(self.streams))
        choice.choice([
            pool.empty_cache, pool.snapshot, pool.use_count,
            lambda: memory.empty_cache(stream=choice.choice(self.streams), pool=pool),
            lambda: doze(pool),
        ])()  # fmt: skip

    def configure(self, choice):
        choice.choice([
            lambda: memory.set_memory_limit(choice.choice([None, 16 * MIB, 64 * MIB]), choice.randrange(2)),
            lambda: memory.set_per_process_memory_fraction(choice.choice([0.2, 1.0]), choice.randrange(2)),
            lambda: memory.set_alloc_conf(choice.choice(CONFIGURATIONS)),
            lambda: memory.set_alloc_conf(choice.choice(CONFIGURATIONS)),
            lambda: l0rt.config.set("alloc_conf", choice.choice(CONFIGURATIONS)),
            lambda: memory.caching_allocator_enable(choice.random() < 0.7),
        ])()  # fmt: skip

    def look(self, choice):
        index = choice.randrange(2)
        choice.choice([memory.memory_stats, memory.host_memory_stats, memory.mem_get_info, memory.memory_summary,
                       memory.reset_peak_memory_stats, memory.reset_accumulated_memory_stats,
                       memory.reset_peak_host_memory_stats, memory.get_memory_limit])(index)  # fmt: skip
        for _ in range(5):
            memory.memory_allocated(index), memory.memory_reserved(index)
        if choice.random() < 0.2:
            memory.memory_snapshot(device=index)

    def give_back(self, choice):
        choice.choice([
            memory.empty_cache, memory.empty_host_cache, lambda: memory.empty_cache(choice.randrange(2)),
            lambda: memory.empty_cache(stream=choice.choice(self.streams)),
            lambda: acc.synchronize(choice.randrange(2)), self.buffers.clear,
        ])()  # fmt: skip

    def allocate_by_address(self, choice):
        """As an embedder does, by the C table, whose functions run without the GIL."""
        i, j = choice.randrange(6), choice.randrange(6)
        address = self.door.malloc(int(2 ** choice.uniform(6, 21)), i % 2, self.raw_streams[i])
        if i % 2 == j % 2:
            choice.choice([self.door.record_stream, self.door.record_use])(address, self.raw_streams[j])
        self.door.memset_async(address, 0, 64, self.raw_streams[i])
        self.addresses.append(address)
        if len(self.addresses) > 8:
            self.door.free(self.addresses.pop(0))
        self.door.free_async(self.door.malloc(5000, i % 2, self.raw_streams[i]), self.raw_streams[i])

    def allocate_without_python(self, choice):
        """Loops in C on the default pool and inside of a shared one: no GIL orders anything."""
        sizes = np.array([int(2 ** choice.uniform(6, 20)) for _ in range(64)], np.uint64)
        slots = np.array([choice.randrange(16) for _ in range(64)], np.uint64)
        with choice.choice(self.streams):
            loops.malloc_free(sizes[:8], 200)
            with memory.use_mem_pool(self.pools[0]):
                loops.malloc_free(sizes[:4], 50)
            blocks = loops.Blocks(16)
            try:
                blocks.fill(sizes)
                blocks.swap(slots, sizes, 200)
            finally:
                blocks.free()
        loops.pinned_malloc_free(choice.randrange(2), sizes[:8], 100)


def doze(pool):
    try:
        pool.sleep()
        pool.wake()
    except UnsupportedError:  # it has ordinary segments, or those of functions
        pass


def allocators(rounds=150):
    """Threads that allocate, of whatever kind and from whichever pool, while others configure, limit and look."""
    in_threads(*[lambda: l0rt.empty(1 << 12), lambda: l0rt.empty(1 << 12, kind="host")] * 2)  # the first of all
    sharing = Sharing(rounds)
    sharing.run()
    acc.synchronize(0), acc.synchronize(1)
    memory.set_alloc_conf("")
    memory.caching_allocator_enable()
    for address in sharing.addresses:
        sharing.door.free(address)


if __name__ == "__main__":
    sys.setswitchinterval(1e-4)
    {"events": events, "allocators": allocators}[sys.argv[1]]()
    acc.synchronize(0), acc.synchronize(1)
    print("done")
