# SPDX-License-Identifier: Apache-2.0
"""The allocator's rows: what allocating and freeing costs, and how much memory it holds to be that fast."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

import l0rt
import l0rt.accelerator as acc
import l0rt.bench.loops as loops
from l0rt.bench import replays, steps, traces
from l0rt.bench.rows import GIB, KIB, MIB, Note, Skip, Work, python, suite

row = suite("allocator")
HELD, SMALLEST, HELD_IN_STEPS = "reserved/requested", "smallest limit", "reserved/requested in steps"
SIZES = {"512B": 512, "4KiB": 4 * KIB, "1MiB": MIB, "20MiB": 20 * MIB}


def sizes_of(*nbytes):
    return np.array(nbytes, dtype=np.uint64)


def raw_pair(lab, sizes):
    return lambda n: loops.raw_allocate_free(lab.context, lab.device, sizes, n)


def malloc_free(lab, nbytes):
    sizes = sizes_of(nbytes)
    yield Work(lambda n: loops.malloc_free(sizes, n), raw_pair(lab, sizes))
    acc.empty_cache()


def empty_drop(lab, nbytes):
    yield Work(python("empty(nbytes)", empty=l0rt.empty, nbytes=nbytes), raw_pair(lab, sizes_of(nbytes)))
    acc.empty_cache()


@row("allocator.slice.python", "x[a:b] of a Buffer, dropped", counts=True, ns=120)
def part(lab):
    yield Work(python("x[a:b]", x=l0rt.empty(4 * KIB), a=512, b=1024))


def pinned(lab, nbytes):
    sizes = sizes_of(nbytes)
    yield Work(lambda n: loops.pinned_malloc_free(lab.index, sizes, n))
    l0rt.memory.empty_host_cache()


for name, nbytes in SIZES.items():
    most = {"ns": 20, "instructions": 160} if nbytes <= MIB else {"ns": 32}
    row(f"allocator.malloc_free.{name}.c", f"l0rt_malloc + l0rt_free, {name}, cached",
        nbytes, counts=True, **most)(malloc_free)  # fmt: skip
for name, nbytes in SIZES.items():
    bound = 700 if nbytes <= MIB else 950  # above, a block goes through the bins, as in malloc_free
    row(f"allocator.empty_drop.{name}.python", f"l0rt.empty(n), dropped, {name}, cached",
        nbytes, counts=True, ns=45, instructions=bound)(empty_drop)  # fmt: skip
for name, nbytes in SIZES.items():
    most = {"ns": 20, "instructions": 160} if nbytes <= MIB else {"ns": 32}
    row(f"allocator.pinned.{name}.c", f"the same pair of pinned memory, {name}, cached",
        nbytes, counts=True, **most)(pinned)  # fmt: skip


def cached(lab, count):
    """Pairs while ``count`` free blocks are cached, each between two live ones, so that none can merge."""
    sizes = sizes_of(*range(512, 512 * 9, 512))
    if 2 * count * int(sizes.mean()) > lab.memory // 2:
        raise Skip(f"needs {4 * count * int(sizes.mean()) / GIB:.1f} GiB of device memory")
    blocks = loops.Blocks(2 * count)
    try:
        blocks.fill(sizes)
        blocks.free(2)
        yield Work(lambda n: loops.malloc_free(sizes, n), raw_pair(lab, sizes))
    finally:
        blocks.free()
        acc.empty_cache()


row("allocator.cached.100.c", "malloc + free of 512 B to 4 KiB, 100 free blocks cached", 100,
    counts=True)(cached)  # fmt: skip
for exponent in range(3, 7):
    budget = {"ns": 24, "times": (1.3, "allocator.cached.100.c")} if exponent > 4 else {}
    text = f"the same with 10^{exponent} free blocks cached"
    row(f"allocator.cached.{10**exponent}.c", text, 10**exponent, long=exponent > 5, counts=exponent <= 5,
        **budget)(cached)  # fmt: skip


@row("allocator.random.c", "free + malloc of a random block, 512 B to 64 MiB, 1,000 live", counts=True, ns=80)
def random(lab):
    rounds = 1 << 14
    generator = np.random.default_rng(1)
    sizes = np.exp(generator.uniform(np.log(512), np.log(64 * MIB), rounds)).astype(np.uint64)
    slots = generator.integers(0, 1000, rounds).astype(np.uint64)
    if 1.8 * 1000 * sizes.mean() > lab.memory:
        raise Skip(f"needs {1800 * sizes.mean() / GIB:.1f} GiB of device memory")
    acc.empty_cache()
    blocks, before = loops.Blocks(1000), acc.memory_reserved()
    try:
        blocks.fill(sizes)
        yield Work(
            lambda n: blocks.swap(slots, sizes, n),
            raw_pair(lab, sizes),
            most=1000,
            notes=lambda _: {"reserved/live": Note((acc.memory_reserved() - before) / blocks.live, "x", 1.6)},
        )
    finally:
        blocks.free()
        acc.empty_cache()


def threads(lab, count):
    """Pairs on ``count`` threads, each on a stream of its own: the wall time of all of them together."""
    sizes = sizes_of(4 * KIB)

    def loop(n):
        ready, times = threading.Barrier(count), []

        def work():
            with acc.Stream():
                loops.malloc_free(sizes, 100)  # the arena, and a cached block
                ready.wait()
                start = time.perf_counter_ns()
                loops.malloc_free(sizes, -(-n // count))
                times.append((start, time.perf_counter_ns()))

        workers = [threading.Thread(target=work) for _ in range(count)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return max(end for _, end in times) - min(start for start, _ in times)

    yield Work(loop, n=1 << 18)  # some milliseconds: beside them, that one thread starts before the other is little
    acc.empty_cache()


row("allocator.threads.1.c", "4 KiB pairs on one thread, own stream: wall time a pair", 1)(threads)
row("allocator.threads.2.c", "4 KiB pairs on two threads, own streams: wall time a pair over both", 2,
    times=(0.6, "allocator.threads.1.c"))(threads)  # fmt: skip


@row("allocator.handoff.c", "allocated by one thread, freed by another, in batches of 4,096", ns=70)
def handoff(lab):
    sizes, blocks = sizes_of(4 * KIB), loops.Blocks(4096)
    with ThreadPoolExecutor(1) as other:

        def loop(n):
            return (blocks.fill(sizes) + other.submit(blocks.free).result()) * n / blocks.count

        yield Work(loop, most=blocks.count)
    acc.empty_cache()


def replay(lab, name, scale, mode):
    """A real trace from an empty cache, the driver's calls included; then again, from what is cached."""
    trace = fitting(lab, name, scale)
    with replays.elsewhere(name, scale, mode) as ask:

        def notes(figures):
            facts = ask("facts")
            notes = {HELD: Note(facts["held"], "x")}
            if facts["smallest"] is not None:
                notes[SMALLEST] = Note(facts["smallest"], "x")
            return {
                **notes,
                "driver calls": Note(facts["calls"]["first"]),
                "again": Note(figures["beside"].median, "ns"),
                "driver calls again": Note(facts["calls"]["again"]),
            }

        yield Work(
            lambda n: ask("first", n),
            lambda n: loops.raw_replay(lab.context, lab.device, trace.ops, trace.slots, trace.sizes, n),
            lambda n: ask("again", n),
            n=len(trace),
            notes=notes,
        )


def limited(lab, name, scale):
    """A real trace with little more memory than it needs."""
    trace = fitting(lab, name, scale)
    with replays.elsewhere(name, scale) as ask:

        def loop(n):
            spent = ask("limited", n)
            if spent is None:
                raise Skip(f"does not fit into {replays.TIGHT} times its peak here")
            return spent

        yield Work(loop, n=len(trace))


def charged(lab, name, scale, mode):
    """A real trace in steps on a virtual clock: what the driver's calls would cost on the device that is simulated."""
    if not steps.has_costs(lab.properties["is_software"]):
        raise Skip("counts simulated costs: set L0RT_CPU_PROFILE=arc-b580,timing, for example")
    trace = fitting(lab, name, scale)
    results: list[dict] = []

    def loop(n):
        if not results:  # it repeats
            results.extend(steps.passes(name, scale, mode))
        return results[0]["percent"] / 100 * steps.STEP_NS * steps.STEPS[name]

    def notes(figures):
        again = max(each["percent"] for each in results[1:])
        return {
            HELD_IN_STEPS: Note(max(each["reserved"] for each in results), "x"),
            "of a step, first pass": Note(results[0]["percent"], "%"),
            "of a step, again": Note(again, "%", None if mode else 1.0),
            "driver calls": Note(results[0]["calls"]),
        }

    yield Work(loop, n=len(trace), rounds=1, notes=notes)


def fitting(lab, name, scale):
    """Return a trace if it fits the device."""
    trace = traces.load(name, scale)
    if 1.3 * trace.peak > lab.memory:
        raise Skip(f"needs {1.3 * trace.peak / GIB:.1f} GiB of device memory")
    return trace


for mode, how in {"": "", "novm": ", without virtual memory", "torch": ", with torch's segments"}.items():
    for name in traces.NAMES:
        for scale in (1, 8):
            id = ".".join(filter(None, ("allocator.trace", name, f"x{scale}", mode, "c")))
            budget = {} if mode == "torch" else {"ns": 60}
            row(id, f"replay of the trace {name}, sizes x{scale}, driver calls included{how}",
                name, scale, mode, **budget)(replay)  # fmt: skip
for mode, how in {"": "", "torch": ", with torch's segments"}.items():
    for name in traces.NAMES:
        for scale in (1, 8):
            id = ".".join(filter(None, ("allocator.step", name, f"x{scale}", mode, "c")))
            row(id, f"charges of the driver's calls, first pass of {name} in steps, sizes x{scale}{how}",
                name, scale, mode)(charged)  # fmt: skip
for name in traces.NAMES:
    for scale in (1, 8):
        row(f"allocator.trace.{name}.x{scale}.tight.c", f"the same, with {replays.TIGHT} x its peak as the limit",
            name, scale, ns=120)(limited)  # fmt: skip


@row("allocator.memory_allocated.python", "acc.memory_allocated()", counts=True, ns=30)
def memory_allocated(lab):
    yield Work(python("memory_allocated()", memory_allocated=acc.memory_allocated))


@row("allocator.memory_stats.python", "acc.memory_stats()", counts=True, ns=6000)
def memory_stats(lab):
    yield Work(python("memory_stats()", memory_stats=acc.memory_stats))


@contextmanager
def beside():
    """Another thread is in a pool, and does nothing."""
    inside, over = threading.Event(), threading.Event()

    def idle():
        with l0rt.memory.use_mem_pool(l0rt.memory.MemPool()):
            inside.set()
            over.wait()

    other = threading.Thread(target=idle)
    other.start()
    inside.wait()
    try:
        yield
    finally:
        over.set()
        other.join()


@contextmanager
def inside(pools):
    """In the first of so many pools, all of which have memory."""
    mempools = [l0rt.memory.MemPool() for _ in range(pools)]
    for pool in reversed(mempools):
        with l0rt.memory.use_mem_pool(pool):
            l0rt.empty(4 * KIB)
    with l0rt.memory.use_mem_pool(mempools[0]):
        yield


@contextmanager
def beside_streams(streams):
    """In a pool from which so many streams allocate."""
    with inside(1):
        for stream in [acc.Stream() for _ in range(streams)]:
            l0rt.empty(4 * KIB, stream=stream)
        yield


def pool_pair(situation, argument, in_c):
    def measured(lab, nbytes):
        sizes = sizes_of(nbytes)
        with situation(*argument):
            if in_c:
                yield Work(lambda n: loops.malloc_free(sizes, n), raw_pair(lab, sizes))
            else:
                yield Work(python("empty(nbytes)", empty=l0rt.empty, nbytes=nbytes), raw_pair(lab, sizes))
        acc.empty_cache()

    return measured


SITUATIONS = {  # how much longer a pair may take than without any pool: in C, in Python
    "beside": (beside, (), 1.15, 1.1, "another thread in a pool"),
    "inside": (inside, (1,), 1.6, 1.4, "in a pool"),
    "inside.200": (inside, (200,), 1.6, 1.4, "in one of 200 pools"),
    "streams.32": (beside_streams, (32,), 1.6, 1.4, "in a pool of 32 streams"),
}
for name, (situation, argument, in_c, in_python, text) in SITUATIONS.items():
    row(f"allocator.pool.{name}.c", f"l0rt_malloc + l0rt_free, 4KiB, cached, {text}", 4 * KIB, counts=True,
        ns=25 if in_c > 1.5 else 18, times=(in_c, "allocator.malloc_free.4KiB.c"),
        instructions=round(160 * in_c))(pool_pair(situation, argument, True))  # fmt: skip
    row(f"allocator.pool.{name}.python", f"l0rt.empty(n), dropped, 4KiB, cached, {text}", 4 * KIB, counts=True,
        times=(in_python, "allocator.empty_drop.4KiB.python"),
        instructions=round(700 * in_python))(pool_pair(situation, argument, False))  # fmt: skip
