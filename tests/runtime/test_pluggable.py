"""Pools whose memory comes from functions in C or in Python; limits of pools, and what they ask before they fail.

The functions give host memory, which no device touches here, so that every driver runs the tests.
"""

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

from helpers.process import run_python

MIB = 1 << 20
LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype = LIBC.malloc.restype = ctypes.c_void_p
LIBC.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]

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


class Host:
    """Functions over host memory that remember what they gave."""

    def __init__(self, alignment=1 << 16):
        self.alignment = alignment
        self.live, self.calls = {}, []

    def alloc(self, nbytes, device, stream):
        raw = LIBC.aligned_alloc(1 << 16, nbytes + self.alignment)
        ptr = raw + self.alignment % (1 << 16)
        self.live[ptr] = raw, nbytes
        self.calls.append((nbytes, device, stream))
        return ptr

    def free(self, ptr, nbytes, device, stream):
        raw, size = self.live.pop(ptr)
        assert size == nbytes
        LIBC.free(raw)

    def allocator(self):
        return PluggableAllocator(self.alloc, self.free)


@pytest.fixture(autouse=True)
def empty():
    gc.collect()
    acc.empty_cache()
    yield
    memory.set_memory_limit(None)
    gc.collect()
    acc.empty_cache()


@pytest.fixture
def host():
    made = Host()
    yield made
    gc.collect()
    acc.empty_cache()
    assert not made.live


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
        assert len(host.calls) == len(host.live) + 1    # asked anew once, with room to align
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
        gc.collect()
        assert (mine.count_taken() - taken, mine.count_given() - given) == (1, 1)


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

    owner = Owner()
    owner.pool = MemPool(PluggableAllocator(owner.alloc, host.free), on_oom=lambda n: owner.pool is None)
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
    assert asked and set(asked) == {2 * MIB}


def test_a_memory_error_is_out_of_memory(host):
    def alloc(nbytes, device, stream):
        raise MemoryError

    with use_mem_pool(MemPool(PluggableAllocator(alloc, host.free))), pytest.raises(OutOfMemoryError):
        l0rt.empty(MIB)


@pytest.mark.parametrize(("answer", "words"), [
    ("x", "no address, which is an int, but str"), (1.5, "float"), (True, "bool"), (b"", "bytes"),
    (-1, "-0x1, which is no address"), (1 << 64, "no address"),
])
def test_no_address_is_an_error(host, answer, words):
    with (use_mem_pool(MemPool(PluggableAllocator(lambda *args: answer, host.free))),
          pytest.raises(L0Error, match=words)):
        l0rt.empty(MIB)


def test_memory_that_is_l0rts_already_is_given_back():
    inner, freed = [], []

    def alloc(nbytes, device, stream):
        inner.append(l0rt.empty(nbytes))
        return inner[-1].ptr

    with (use_mem_pool(MemPool(PluggableAllocator(alloc, lambda *args: freed.append(args)))),
          pytest.raises(L0Error, match="l0rt's already")):
        l0rt.empty(MIB)
    assert [args[0] for args in freed] == [buffer.ptr for buffer in inner]
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
    with use_mem_pool(pool), pytest.raises(L0Error, match="asks itself for memory"):
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
    with pytest.raises(TypeError, match="alloc is a function" if place == 0 else "free is a function"):
        PluggableAllocator(*functions)


@pytest.mark.parametrize("address", [0, -1, 1 << 64, ctypes.CFUNCTYPE(None)(0)])
def test_addresses_of_nothing_are_refused(address):
    with pytest.raises(ValueError, match="is the address of a function"):
        PluggableAllocator(address, address)


def test_bad_libraries(library, tmp_path):
    with pytest.raises(OSError, match="missing.so"):
        XPUPluggableAllocator(str(tmp_path / "missing.so"), "give_me", "take_back")
    with pytest.raises(AttributeError, match="nobody"):
        XPUPluggableAllocator(library, "give_me", "nobody")
    for arguments in ((None, "give_me", "take_back"), (library, None, "take_back"), (library, "give_me", 3)):
        with pytest.raises(TypeError, match="are str"):
            XPUPluggableAllocator(*arguments)


@pytest.mark.parametrize("wrong", [object(), len, 3, "libmine.so"])
def test_what_is_no_allocator_is_refused(wrong):
    with pytest.raises(TypeError, match="PluggableAllocator"):
        MemPool(wrong)
    with pytest.raises(TypeError, match="PluggableAllocator"):
        memory.change_current_allocator(wrong)


# --- Limits, and what is asked before an allocation fails.


@pytest.mark.parametrize("plugged", [False, True])
def test_a_pool_keeps_to_its_limit(host, plugged):
    pool = MemPool(host.allocator() if plugged else None, limit=16 * MIB)
    assert pool.limit == 16 * MIB
    elsewhere = l0rt.empty(30 * MIB)
    with use_mem_pool(pool):
        first = l0rt.empty(10 * MIB)
        with pytest.raises(OutOfMemoryError, match=r"limit none, of its pool 16\.00 MiB"):
            l0rt.empty(8 * MIB)
        first.free()
        with acc.Stream():      # what another stream of the pool has cached makes room
            second = l0rt.empty(12 * MIB)
    assert sum(segment["total_size"] for segment in pool.snapshot()) <= 16 * MIB
    elsewhere.free()
    second.free()


def test_a_pools_limit_takes_nothing_from_others():
    l0rt.empty(40 * MIB).free()
    reserved = memory.memory_reserved()
    with use_mem_pool(MemPool(limit=4 * MIB)), pytest.raises(OutOfMemoryError):
        l0rt.empty(8 * MIB)
    assert memory.memory_reserved() == reserved


@pytest.mark.parametrize("plugged", [False, True])
def test_a_pool_asks_before_it_fails(host, plugged):
    kept, asked = [], []

    def on_oom(nbytes):
        asked.append(nbytes)
        if kept:
            kept.pop().free()
            return True
        return None

    pool = MemPool(host.allocator() if plugged else None, limit=16 * MIB, on_oom=on_oom)
    assert pool.on_oom is on_oom
    with use_mem_pool(pool):
        kept.append(l0rt.empty(10 * MIB))
        buffer = l0rt.empty(12 * MIB)
        assert asked == [12 * MIB]
        with pytest.raises(OutOfMemoryError):
            l0rt.empty(12 * MIB)
    assert len(asked) == 2
    memory.set_memory_limit(memory.memory_reserved())
    with pytest.raises(OutOfMemoryError):       # not the pool's
        l0rt.empty(64 * MIB)
    assert len(asked) == 2
    buffer.free()


def test_what_it_raises_is_told():
    def on_oom(nbytes):
        raise LookupError("no room")

    with use_mem_pool(MemPool(limit=2 * MIB, on_oom=on_oom)), pytest.raises(LookupError, match="no room"):
        l0rt.empty(8 * MIB)


def test_wrong_limits_are_refused():
    for limit in ("1", 1.5, [], True):
        with pytest.raises(TypeError, match="a limit is an int or None"):
            MemPool(limit=limit)
    for limit in (0, -5):
        with pytest.raises(ValueError, match="a limit is positive"):
            MemPool(limit=limit)
    with pytest.raises(TypeError, match="on_oom is a function"):
        MemPool(on_oom=3)
    with pytest.raises(TypeError):
        MemPool(None, False, False, MIB)


# --- In place of the driver's memory; exit and fork.

CURRENT = """
import ctypes, gc, os, sys, l0rt, l0rt.accelerator as acc
from l0rt import memory
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
live = {}
def alloc(nbytes, device, stream):
    ptr = libc.aligned_alloc(65536, nbytes)
    live[ptr] = nbytes
    return ptr
def free(ptr, nbytes, device, stream):
    assert live.pop(ptr) == nbytes
    libc.free(ptr)
    if sys.is_finalizing() or report:
        print("freed", nbytes, flush=True)
report = False
allocator = memory.PluggableAllocator(alloc, free)
"""


def test_the_current_allocator_can_be_changed_before_its_first_use():
    result = run_python(CURRENT + """
acc.device_count(), acc.current_stream()
memory.change_current_allocator(memory.PluggableAllocator(free, alloc))
l0rt.xpu.change_current_allocator(allocator)
a, b = l0rt.empty(100), l0rt.empty(70000)
assert sorted(live.values()) == [65536, 131072], live
assert memory.memory_reserved() == 3 * 65536
with memory.use_mem_pool(memory.MemPool()):
    c = l0rt.empty(1)
assert len(live) == 3
a.free(), b.free(), c.free()
assert not live
assert memory.memory_allocated() == memory.memory_reserved() == 0
try:
    memory.change_current_allocator(allocator)
except RuntimeError as e:
    print(e)
""")
    assert result.returncode == 0, result
    assert result.stdout == "Can't swap an already initialized allocator\n"
    assert result.stderr == ""


def test_an_allocator_in_use_stays():
    buffer = l0rt.empty(1)
    with pytest.raises(RuntimeError, match="^Can't swap an already initialized allocator$"):
        memory.change_current_allocator(PluggableAllocator(len, len))
    buffer.free()


def test_a_current_allocator_that_asks_itself_is_told():
    result = run_python(CURRENT + """
memory.change_current_allocator(memory.PluggableAllocator(lambda n, d, s: l0rt.empty(n).ptr, free))
try:
    l0rt.empty(1)
except l0rt.L0Error as e:
    print(e)
""")
    assert "asks itself for memory" in result.stdout, result


def test_all_is_given_back_at_exit():
    result = run_python(CURRENT + """
report = True
pool = memory.MemPool(allocator)
with memory.use_mem_pool(pool):
    kept = l0rt.empty(3 << 20)
    l0rt.empty(1).free()
""")
    assert result.returncode == 0, result
    assert sorted(result.stdout.split("\n")) == ["", "freed 2097152", "freed 3145728"], result
    assert result.stderr == ""


def test_a_forked_child_calls_nothing():
    result = run_python(CURRENT + """
report = True
pool = memory.MemPool(allocator)
with memory.use_mem_pool(pool):
    kept = l0rt.empty(3 << 20)
if os.fork() == 0:
    try:
        with memory.use_mem_pool(pool):
            l0rt.empty(1)
    except RuntimeError as e:
        assert "fork" in str(e), e
    kept.free()
    pool.empty_cache()
    del kept, pool
    gc.collect()
    os._exit(0)
assert os.wait()[1] == 0
print("parent")
""")
    assert result.returncode == 0, result
    assert result.stdout == "parent\nfreed 3145728\n", result
