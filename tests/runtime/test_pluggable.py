# SPDX-License-Identifier: Apache-2.0
"""Pools whose memory comes from functions in C or in Python."""

import ctypes
import gc
import subprocess
import sys
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory
from l0rt.errors import L0Error, OutOfMemoryError, UnsupportedError
from l0rt.memory import MemPool, PluggableAllocator, XPUPluggableAllocator, use_mem_pool

from helpers.hostmemory import Host

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20

SOURCE = """
#include <stdlib.h>
static long taken, given;
static void *last_stream;
long count_taken(void) { return taken; }
long count_given(void) { return given; }
void *stream_seen(void) { return last_stream; }
void *give_me(size_t nbytes, int device, void *stream) {
  if (nbytes > 64u << 20 || device != 0) return NULL;
  taken += 1;
  last_stream = stream;
  return aligned_alloc(1 << 16, nbytes);
}
void take_back(void *ptr, size_t nbytes, int device, void *stream) { given += 1; free(ptr); }
"""


@pytest.fixture
def unraisable(monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: heard.append((told.exc_type, str(told.exc_value))))
    return heard


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    (folder / "mine.c").write_text(SOURCE)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "mine.so", folder / "mine.c"], check=True)
    return str(folder / "mine.so")


# --- Where memory comes from.


def test_segments_come_from_the_functions_and_are_cached(host):
    before = memory.memory_reserved()
    pool = MemPool(host.allocator())
    with use_mem_pool(pool):
        small, large = l0rt.empty(1000), l0rt.empty(5 * MIB)
        assert len(host.live) == 2
        address = large.ptr
        large.free()
        large = l0rt.empty(5 * MIB)
    assert large.ptr == address
    assert len(host.calls) == 2
    raw = l0rt.xpu.current_raw_stream()
    assert {(device, stream) for _, device, stream in host.calls} == {(0, raw)}
    assert sorted(size for size, _, _ in host.calls) == [2 * MIB, 5 * MIB]
    assert memory.memory_reserved() == before + 7 * MIB
    assert {segment["segment_pool_id"] for segment in pool.snapshot()} == {pool.id}
    assert not any(segment["is_expandable"] for segment in pool.snapshot())
    assert memory.pointer_info(address + 100)["base"] == address
    small.free()
    large.free()
    assert len(host.live) == 2
    pool.empty_cache()
    assert not host.live
    assert memory.memory_reserved() == before


def test_memory_at_any_address_will_do():
    for alignment in (16, 512, 4096):
        host = Host(alignment)
        with use_mem_pool(MemPool(host.allocator())):
            buffers = [l0rt.empty(n) for n in (1, MIB, 3 * MIB)]
            assert all(any(raw <= b.ptr and b.ptr + b.nbytes <= raw + size + alignment
                           for raw, size in host.live.values()) for b in buffers)
        assert len(host.calls) == len(host.live) + 1    # asked anew once, with space to align
        del buffers
        acc.empty_cache()
        assert not host.live


@pytest.mark.checks_data
def test_data_stays_what_it_was(host):
    data, back = np.arange(MIB, dtype="u4"), np.empty(MIB, "u4")
    with use_mem_pool(MemPool(host.allocator())):
        buffer = l0rt.empty(data.nbytes)
    buffer.copy_from(data)
    buffer.copy_to(back)
    assert (data == back).all()


def test_a_librarys_functions(library):
    allocator = XPUPluggableAllocator(library, "give_me", "take_back")
    assert isinstance(allocator, PluggableAllocator)
    mine = ctypes.CDLL(library)
    mine.stream_seen.restype = ctypes.c_void_p
    taken, given = mine.count_taken(), mine.count_given()
    pool = MemPool(allocator.allocator())
    assert pool.allocator is allocator
    with use_mem_pool(pool):
        buffer = l0rt.empty(3 * MIB)
        assert mine.count_taken() == taken + 1
        assert mine.stream_seen() == l0rt.xpu.current_raw_stream()
        with pytest.raises(OutOfMemoryError):
            l0rt.empty(65 * MIB)
    buffer.free()
    pool.empty_cache()
    assert mine.count_given() == given + 1


def test_c_functions_by_address_or_from_ctypes(library):
    mine = ctypes.CDLL(library)
    addresses = [ctypes.cast(f, ctypes.c_void_p).value for f in (mine.give_me, mine.take_back)]
    for functions in ((mine.give_me, mine.take_back), addresses, (mine.give_me, addresses[1])):
        taken, given = mine.count_taken(), mine.count_given()
        with use_mem_pool(MemPool(PluggableAllocator(*functions))):
            l0rt.empty(MIB).free()
        acc.empty_cache()
        assert (mine.count_taken() - taken, mine.count_given() - given) == (1, 1)


@pytest.mark.checks_data    # it does not wait, and finds what is done only where something is
def test_a_pool_that_is_gone_gives_back_what_it_can(host):
    pool = MemPool(host.allocator())
    with use_mem_pool(pool):
        kept, gone = l0rt.empty(3 * MIB), l0rt.empty(4 * MIB)
    gone.free()
    del pool
    gc.collect()
    acc.synchronize()
    assert len(host.live) == 1
    assert memory.pointer_info(kept.ptr) is not None
    kept.free()
    acc.empty_cache()
    assert not host.live


def test_functions_live_as_long_as_their_memory():
    host = Host()
    called = []

    class Free:
        def __call__(self, *args):
            called.append(args)
            host.free(*args)

    with use_mem_pool(MemPool(PluggableAllocator(host.alloc, Free()))):
        buffer = l0rt.empty(MIB)
    gc.collect()
    assert not called
    buffer.free()
    acc.empty_cache()
    assert len(called) == 1


def test_a_pool_in_a_cycle_with_its_functions_is_collected(host):
    class Owner:
        def alloc(self, *args):
            return host.alloc(*args)

        def on_oom(self, nbytes):
            return False

    owner = Owner()
    owner.pool = MemPool(PluggableAllocator(owner.alloc, host.free), on_oom=owner.on_oom)
    number = owner.pool.id
    with use_mem_pool(owner.pool):
        l0rt.empty(MIB).free()
    owner.pool.empty_cache()
    del owner
    gc.collect()
    assert l0rt.xpu.memory_snapshot(number) == []
    assert not any(isinstance(thing, Owner) for thing in gc.get_objects())


def test_it_does_not_sleep(host):
    pool = MemPool(host.allocator())
    for verb in (pool.sleep, pool.wake):
        with pytest.raises(UnsupportedError, match="cannot sleep"):
            verb()


def test_streams_have_segments_of_their_own(host):
    stream = acc.Stream()
    with use_mem_pool(MemPool(host.allocator())), stream:
        l0rt.empty(MIB).free()
        assert host.calls[-1][2] == l0rt.xpu.current_raw_stream()
    assert len(host.calls) == 1


# --- What functions do wrong.


def test_what_alloc_raises_is_told_to_its_caller(host):
    def alloc(nbytes, device, stream):
        raise KeyError("nothing here")

    pool = MemPool(PluggableAllocator(alloc, host.free))
    with use_mem_pool(pool), pytest.raises(L0Error, match="KeyError: 'nothing here'") as told:
        l0rt.empty(100)
    assert isinstance(told.value.__cause__, KeyError)
    l0rt.empty(100).free()


def test_an_interrupt_stays_one(host):
    def alloc(nbytes, device, stream):
        raise KeyboardInterrupt

    with use_mem_pool(MemPool(PluggableAllocator(alloc, host.free))), pytest.raises(KeyboardInterrupt):
        l0rt.empty(100)


@pytest.mark.parametrize("answer", [None, 0])
def test_nothing_is_out_of_memory(host, answer):
    asked = []

    def alloc(nbytes, device, stream):
        asked.append(nbytes)
        return answer

    with use_mem_pool(MemPool(PluggableAllocator(alloc, host.free))), pytest.raises(OutOfMemoryError):
        l0rt.empty(MIB)
    assert set(asked) == {2 * MIB}


def test_a_memory_error_is_out_of_memory(host):
    def alloc(nbytes, device, stream):
        raise MemoryError

    with use_mem_pool(MemPool(PluggableAllocator(alloc, host.free))), pytest.raises(OutOfMemoryError):
        l0rt.empty(MIB)


@pytest.mark.parametrize(("answer", "words"), [
    ("x", "must return an address, an int, got str"), (1.5, "float"), (True, "bool"), (b"", "bytes"),
    (-1, "must return an address from 1 to .*, got -0x1"), (1 << 64, "must return an address"),
])
def test_no_address_is_an_error(host, answer, words):
    with (use_mem_pool(MemPool(PluggableAllocator(lambda *args: answer, host.free))),
          pytest.raises(L0Error, match=words)):
        l0rt.empty(MIB)


def test_memory_that_is_l0rts_already_is_refused_and_stays_whose_it_was():
    inner, freed = [], []

    def alloc(nbytes, device, stream):
        inner.append(l0rt.empty(nbytes))
        return inner[-1].ptr

    with (use_mem_pool(MemPool(PluggableAllocator(alloc, lambda *args: freed.append(args)))),
          pytest.raises(L0Error, match="l0rt's already")):
        l0rt.empty(MIB)
    assert freed == []
    assert memory.pointer_info(inner[0].ptr)["base"] == inner[0].ptr
    inner[0].free()


def test_what_free_raises_is_not_lost(host, unraisable):
    def free(*args):
        host.free(*args)
        raise ValueError("not so")

    pool = MemPool(PluggableAllocator(host.alloc, free))
    with use_mem_pool(pool):
        l0rt.empty(MIB).free()
    pool.empty_cache()
    assert unraisable == [(ValueError, "not so")]
    assert not [segment for segment in memory.memory_snapshot() if segment["segment_pool_id"] == pool.id]


def test_functions_may_allocate(host):
    """What they allocate comes from the default pool, while other threads allocate too."""
    scratch = []

    def alloc(*args):
        scratch.append(l0rt.empty(MIB))
        other = threading.Thread(target=lambda: scratch.append(l0rt.empty(9 * MIB)))
        other.start()
        other.join()
        return host.alloc(*args)

    def free(*args):
        l0rt.empty(20 * MIB).free()
        acc.empty_cache()
        host.free(*args)

    pool = MemPool(PluggableAllocator(alloc, free))
    with use_mem_pool(pool):
        l0rt.empty(MIB).free()
    pool.empty_cache()
    assert len(scratch) == 2
    assert all(block["state"] == "inactive" for segment in pool.snapshot() for block in segment["blocks"])


def test_a_function_that_asks_itself_is_told(host):
    def alloc(nbytes, device, stream):
        with use_mem_pool(pool):
            l0rt.empty(nbytes)
        return host.alloc(nbytes, device, stream)

    pool = MemPool(PluggableAllocator(alloc, host.free))
    with use_mem_pool(pool), pytest.raises(L0Error, match="allocates from its own pool"):
        l0rt.empty(MIB)
    del alloc


def test_pools_may_feed_each_other(host):
    upper = []

    def alloc(nbytes, device, stream):
        with use_mem_pool(lower):
            upper.append(l0rt.empty(512))
        return host.alloc(nbytes, device, stream)

    other = Host()
    lower = MemPool(other.allocator())
    with use_mem_pool(MemPool(PluggableAllocator(alloc, host.free))):
        buffer = l0rt.empty(MIB)
    assert memory.pointer_info(upper[0].ptr)["size"] == 512
    assert len(host.live) == len(other.live) == 1
    buffer.free()
    upper.clear()


def test_threads_share_a_pool(host):
    pool, failed = MemPool(host.allocator()), []

    def work():
        try:
            with use_mem_pool(pool), acc.Stream():
                for n in (1, 3, 2, 5) * 5:
                    l0rt.empty(n * MIB).free()
                    pool.empty_cache()
        except Exception as failure:
            failed.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


@pytest.mark.parametrize("function", [None, "f", 1.5, True, object(), b"x"])
@pytest.mark.parametrize("place", [0, 1])
def test_what_is_no_function_is_refused(function, place):
    functions = [len, len]
    functions[place] = function
    with pytest.raises(TypeError, match="alloc must be a function" if place == 0 else "free must be a function"):
        PluggableAllocator(*functions)


@pytest.mark.parametrize("address", [0, -1, 1 << 64, ctypes.CFUNCTYPE(None)(0)])
def test_addresses_of_nothing_are_refused(address):
    with pytest.raises(ValueError, match="must be the address of a C function"):
        PluggableAllocator(address, address)


def test_bad_libraries(library, tmp_path):
    with pytest.raises(OSError, match="missing.so"):
        XPUPluggableAllocator(str(tmp_path / "missing.so"), "give_me", "take_back")
    with pytest.raises(AttributeError, match="nobody"):
        XPUPluggableAllocator(library, "give_me", "nobody")
    for arguments in ((None, "give_me", "take_back"), (library, None, "take_back"), (library, "give_me", 3)):
        with pytest.raises(TypeError, match="must be str"):
            XPUPluggableAllocator(*arguments)
