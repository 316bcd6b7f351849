# SPDX-License-Identifier: Apache-2.0
"""Any address at all: interior, foreign, freed; and what a closed allocator makes of them."""

import os
import random
import threading

import pytest
from l0rt.errors import L0Error

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize("nbytes", [1, 512, 5000, MIB, 3 * MIB, 40 * MIB])
def test_interior_addresses_are_found(make, nbytes):
    allocator = make()
    around = [allocator.malloc(nbytes) for _ in range(3)]
    for address in around:
        _, size, _ = allocator.find(address)
        for offset in {0, 1, nbytes // 2, nbytes - 1, size - 1}:
            assert allocator.find(address + offset)[0] == address
        before, after = allocator.find(address - 1), allocator.find(address + size)
        assert before is None or before[0] != address
        assert after is None or after[0] != address
    for address in around:
        allocator.free(address)
        assert allocator.find(address) is None
        assert allocator.find(address + nbytes - 1) is None


def test_foreign_addresses_are_nobodys(make):
    allocator = make()
    address = allocator.malloc(512)
    rng = random.Random(1)
    foreign = [0, 1, 7, 511, 512, 65535, 1 << 16, 1 << 31, (1 << 31) - 1, 1 << 47, (1 << 47) - 1, 0xFFFF800000000000,
               0xFF00000000000000, (1 << 64) - 1, (1 << 64) - 512, id(foreign_ := object()), 1 << 63]
    foreign += [rng.getrandbits(64) for _ in range(2000)]
    foreign += [address ^ (1 << bit) for bit in range(48, 64)]       # same root, other region
    for pointer in foreign:
        assert allocator.find(pointer) is None
        if pointer != 0:
            with pytest.raises(ValueError, match="not the address"):
                allocator.free(pointer)
    allocator.free(0)
    allocator.free(address)
    del foreign_


def test_wrong_frees_are_told_apart(make):
    allocator = make()
    for nbytes in (4096, 3 * MIB):
        keep = allocator.malloc(nbytes)
        address = allocator.malloc(nbytes)
        for offset in (1, 8, 512, nbytes - 1):
            with pytest.raises(ValueError, match="not the address"):
                allocator.free(address + offset)
        allocator.free(address)
        with pytest.raises(ValueError, match="freed already"):
            allocator.free(address)
        with pytest.raises(ValueError, match="not the address"):
            allocator.record_stream(address, 3)
        allocator.free(keep)
    allocator.empty_cache()
    with pytest.raises(ValueError, match="not the address"):
        allocator.free(address)


def test_two_allocators_share_the_map_but_not_the_memory(make):
    one, two = make(), make()
    a, b = one.malloc(512), two.malloc(512)
    assert one.find(b) == two.find(b)
    for free in (one.free, lambda address: one.free(address, 3)):
        with pytest.raises(ValueError, match="is memory of another allocator: free it there"):
            free(b)
    assert (one.allocated_bytes, two.allocated_bytes) == (512, 512)
    one.free(a)
    two.free(b)
    del two
    assert one.find(b) is None


def test_destroying_gives_back_what_is_still_allocated(make):
    allocator = make()
    address = [allocator.malloc(n, s) for n in (1, MIB, 5 * MIB) for s in range(3)][0]
    allocator.record_stream(address, 9)
    memory = allocator.memory
    memory.hold()
    allocator.free(address)
    assert memory.counters["used"] > 0
    del allocator           # the fixture counts


def test_a_closed_allocator_refuses_and_forgets(make):
    from l0rt.runtime.alloc.allocator import Allocator

    from helpers.plain import PlainMemory

    for code, match in ((0, "closed"), (42, "42")):
        allocator = Allocator(PlainMemory())            # not from make(): it keeps its memory to the end
        held = [allocator.malloc(n, 1) for n in (512, 3 * MIB)]
        allocator.free(allocator.malloc(512, 1))
        allocator.record_stream(held[0], 2)
        allocator.close(code)
        for nbytes in (512, MIB, 3 * MIB):
            for stream in (1, 5):
                with pytest.raises(L0Error, match=match):
                    allocator.malloc(nbytes, stream)
        for address in held:
            allocator.free(address)
            allocator.free(address)
            allocator.record_stream(address, 3)
        allocator.empty_cache()
        allocator.reset_peak_stats()
        assert allocator.stats()["num_ooms"] == 0


def test_a_forked_child_can_close_while_another_thread_holds_every_lock(loops):
    bench = loops.Loops()
    stop = threading.Event()

    def work():
        while not stop.is_set():
            bench.pairs(4096, 20000)
            bench.shuffled(512, 4 * MIB, 50, 5000)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                bench.close()
                assert bench.try_malloc(4096) < 0
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
