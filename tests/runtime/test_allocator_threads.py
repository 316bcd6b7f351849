# SPDX-License-Identifier: Apache-2.0
"""Several threads without the GIL: own arenas, a shared one, frees by others; the books stay exact."""

import threading

import numpy as np
import pytest
from l0rt.config import alloc_options

MIB = 1 << 20


def run(*calls):
    failures = []

    def guarded(call):
        try:
            call()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("streams", [(1, 2, 3, 4), (1, 1, 1, 1), (1, 1, 2, 2)], ids=["own", "shared", "pairs"])
@pytest.mark.parametrize("high", [8192, 4 * MIB])
def test_threads_leave_exact_books(loops, streams, high):
    bench = loops.Loops()
    count, live = 20000, 100
    run(*[lambda s=stream, i=i: bench.shuffled(512, high, live, count, s, i + 1) for i, stream in enumerate(streams)])
    allocated, peak, mallocs, frees, active, quiet, quiet_peak = bench.stats()
    assert allocated == active == 0
    assert mallocs == frees == len(streams) * (live + count + count // 2)
    assert 0 < peak <= len(streams) * live * high
    assert 0 <= quiet <= quiet_peak <= bench.peak()[0]
    bench.empty()
    assert bench.reserved == 0
    assert bench.stats()[5] == 0


def test_the_peak_of_all_threads_together_is_exact(loops):
    # Everybody holds their all at the barrier: that moment is the peak, and no arena can see it alone.
    bench = loops.Loops()
    barrier = threading.Barrier(4)
    seen = []

    def work(stream):
        for size in (512, 4096, 2 * MIB):
            bench.hold(size, 50, stream)
            if barrier.wait() == 0:
                seen.append(bench.stats()[:2])
            barrier.wait()
            bench.let_go(stream)
            barrier.wait()
            bench.pairs(size, 2000, stream)

    run(*[lambda s=stream: work(s) for stream in range(1, 5)])
    assert [now for now, _ in seen] == [4 * 50 * size for size in (512, 4096, 2 * MIB)]
    assert [peak for _, peak in seen] == [4 * 50 * size for size in (512, 4096, 2 * MIB)]
    assert bench.stats()[1] == 4 * 50 * 2 * MIB


@pytest.mark.parametrize("nbytes", [512, 4096, 3 * MIB])
def test_blocks_are_freed_by_other_threads(loops, nbytes):
    bench = loops.Loops()
    ring = np.zeros(64, np.uintp)
    count = 20000
    run(
        lambda: bench.remote(nbytes, ring, count, False),
        lambda: bench.remote(nbytes, ring, count, True),
    )
    allocated, _, mallocs, frees, *_ = bench.stats()
    assert allocated == 0
    assert mallocs == frees == count


def test_contents_survive_other_threads(make):
    import random

    allocator = make()

    def work(seed):
        rng = random.Random(seed)
        import ctypes

        live = {}
        for _ in range(2000):
            if rng.random() < 0.55 or not live:
                nbytes = int(2 ** rng.uniform(9, 22))
                address = allocator.malloc(nbytes, rng.choice((1, 2)))
                assert address not in live
                ctypes.memset(address, seed, 64)
                live[address] = nbytes
            else:
                address = rng.choice(list(live))
                nbytes = live.pop(address)
                assert ctypes.string_at(address, 64) == bytes([seed]) * 64
                assert allocator.find(address + nbytes - 1)[0] == address
                allocator.free(address)
        for address in live:
            allocator.free(address)

    run(*[lambda s=seed: work(s) for seed in range(1, 5)])
    assert allocator.allocated_bytes == 0


def test_only_one_of_two_frees_at_once_succeeds(loops):
    bench = loops.Loops()
    for _ in range(300):
        address = bench.malloc(512)
        results = []
        run(lambda: results.append(bench.free(address)), lambda: results.append(bench.free(address)))  # noqa: B023
        assert sorted(results) == [-4, 0]
    assert bench.stats()[2:4] == (300, 300)


def test_no_thread_is_given_a_block_that_another_thread_takes_uncached(make):
    allocator = make()
    allocator.tune(alloc_options.make(), uncached=True)
    live = set()

    def work():
        for _ in range(6000):
            address = allocator.malloc(MIB * 2, 1)
            assert address not in live
            live.add(address)
            live.remove(address)
            allocator.free(address)

    run(work, work, work, work)
    assert allocator.reserved_bytes == 0
