# SPDX-License-Identifier: Apache-2.0
"""Adaptors: allocators that limit, log, count and remember what they pass on, in any order over any upstream."""

import contextlib
import csv
import ctypes
import gc
import io
import os
import random
import threading
import weakref

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory
from l0rt.errors import L0Error, OutOfMemoryError
from l0rt.memory import (
    Adaptor,
    FailureCallbackAdaptor,
    LimitingAdaptor,
    LoggingAdaptor,
    MemPool,
    PluggableAllocator,
    StatisticsAdaptor,
    TrackingAdaptor,
    use_mem_pool,
)

from helpers.process import run_python

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20


class Counted:
    """An upstream without a device: addresses from a counter, at most ``most`` bytes."""

    def __init__(self, most=1 << 40):
        self.most, self.live, self.next, self.calls = most, {}, 1 << 20, 0

    def malloc(self, nbytes, stream):
        self.calls += 1
        if sum(self.live.values()) + nbytes > self.most:
            raise MemoryError
        self.next += nbytes
        self.live[self.next] = nbytes
        return self.next

    def free(self, ptr):
        del self.live[ptr]


def test_a_limit_holds_and_what_is_freed_counts_no_more():
    limited = LimitingAdaptor(Counted(), 1000)
    first = limited.malloc(600)
    assert (limited.get_allocated_bytes(), limited.get_allocation_limit()) == (600, 1000)
    with pytest.raises(OutOfMemoryError, match="requested 401 B|requested 401 bytes"):
        limited.malloc(401)
    second = limited.malloc(400)
    limited.free(first)
    assert limited.get_allocated_bytes() == 400
    limited.free(limited.malloc(600))
    limited.free(second)
    assert limited.get_allocated_bytes() == 0
    assert limited.upstream.live == {}


def test_what_was_not_allocated_is_not_freed():
    limited = LimitingAdaptor(Counted(), 1000)
    address = limited.malloc(10)
    limited.free(0)
    assert limited.malloc(0) == 0
    limited.free(address)
    for wrong in (address, address + 1, -1, 1 << 70):
        with pytest.raises(ValueError, match="is not the address of an allocation"):
            limited.free(wrong)
    for wrong in (-1, 1 << 62, None, "1", 1.5):
        error = ValueError if isinstance(wrong, int) else TypeError
        with pytest.raises(error):
            limited.malloc(wrong)


@pytest.mark.parametrize("wrong", [object(), 3, "xpu", Counted])
def test_an_upstream_is_an_allocator(wrong):
    if wrong is Counted:
        wrong = type("Half", (), {"malloc": lambda *_: 1})()
    with pytest.raises(TypeError, match="an adaptor's upstream must be"):
        StatisticsAdaptor(wrong)


def test_parameters_are_checked(tmp_path):
    for limit, error in ((0, ValueError), (-1, ValueError), (None, TypeError), (1.5, TypeError)):
        with pytest.raises(error):
            LimitingAdaptor(None, limit)
    with pytest.raises(TypeError, match="callback must be"):
        FailureCallbackAdaptor(None, 3)
    with pytest.raises(TypeError, match="make one of its subclasses"):
        Adaptor()
    with pytest.raises(OSError, match="No such file"):
        LoggingAdaptor(None, tmp_path / "none" / "all.csv")
    with pytest.raises((TypeError, ValueError)):
        LoggingAdaptor(None, None)


def test_a_callback_is_asked_until_it_gives_up():
    upstream, asked = Counted(100), []
    kept = upstream.malloc(100, 0)

    def callback(nbytes):
        asked.append(nbytes)
        if len(asked) == 3:
            upstream.free(kept)
        return len(asked) != 5

    adaptor = FailureCallbackAdaptor(upstream, callback)
    address = adaptor.malloc(50)
    assert asked == [50, 50, 50]
    adaptor.free(address)
    with pytest.raises(OutOfMemoryError):
        adaptor.malloc(101)
    assert asked == [50, 50, 50, 101, 101]


def test_what_a_callback_raises_reaches_the_caller_and_nothing_is_counted():
    def callback(nbytes):
        raise KeyError(nbytes)

    limited = LimitingAdaptor(FailureCallbackAdaptor(Counted(10), callback), 1000)
    with pytest.raises(KeyError, match="11"):
        limited.malloc(11)
    assert limited.get_allocated_bytes() == 0
    limited = FailureCallbackAdaptor(Counted(10), callback)
    with use_mem_pool(MemPool(limited)), pytest.raises(L0Error, match="KeyError"):
        l0rt.empty(64)


def test_counters_nest():
    counted = StatisticsAdaptor(Counted())
    a = counted.malloc(100)
    assert counted.push_counters()["current_bytes"] == 100
    b, c = counted.malloc(30), counted.malloc(20)
    counted.free(b)
    counted.free(a)
    inner = counted.pop_counters()
    assert inner == {"current_bytes": -80, "current_count": 0, "peak_bytes": 50, "peak_count": 2, "total_bytes": 50,
                     "total_count": 2}
    assert counted.allocation_counts == {"current_bytes": 20, "current_count": 1, "peak_bytes": 150, "peak_count": 3,
                                         "total_bytes": 150, "total_count": 3}
    with pytest.raises(IndexError, match="without push_counters"):
        counted.pop_counters()
    counted.free(c)


def test_what_is_not_freed_is_known_with_its_stack():
    tracked = TrackingAdaptor(Counted(), capture_stacks=True)

    def somewhere():
        return tracked.malloc(2048)

    address = somewhere()
    other = tracked.malloc(10)
    tracked.free(other)
    (found,) = tracked.outstanding()
    assert (found["address"], found["nbytes"]) == (address, 2048)
    assert any("somewhere" in line for line in found["stack"])
    text = tracked.get_outstanding_allocations_str()
    assert text.startswith(f"{address:#x}: 2.00 KiB\n")
    assert "somewhere" in text
    assert TrackingAdaptor(Counted()).get_outstanding_allocations_str() == ""
    tracked.free(address)
    assert tracked.outstanding() == []


def test_a_log_has_a_row_for_everything(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("old")
    logged = LoggingAdaptor(Counted(100), path)
    address = logged.malloc(60)
    with pytest.raises(OutOfMemoryError):
        logged.malloc(50)
    logged.free(address)
    logged.flush()
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"]
    assert [(r["Action"], int(r["Pointer"], 16), r["Size"]) for r in rows] == [
        ("allocate", address, "60"), ("allocate failure", 0, "50"), ("free", address, "60")]  # fmt: skip
    assert {int(r["Thread"]) for r in rows} == {threading.get_native_id()}
    assert logged.get_file_name() == str(path)
    text = io.StringIO()
    logged = LoggingAdaptor(Counted(), text)
    logged.free(logged.malloc(1))
    assert [line.split(",")[2] for line in text.getvalue().splitlines()[1:]] == ["allocate", "free"]
    assert logged.get_file_name() is None


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_an_allocation_that_cannot_be_logged_is_given_back(tmp_path):
    class Full(io.StringIO):
        is_full = False

        def write(self, text):
            if self.is_full:
                raise OSError("full")
            return super().write(text)

    upstream, log = Counted(), Full()
    logged = LimitingAdaptor(LoggingAdaptor(upstream, log), 100)
    log.is_full = True
    with pytest.raises(OSError, match="full"):
        logged.malloc(10)
    assert upstream.live == {}
    assert logged.get_allocated_bytes() == 0
    with pytest.raises(OSError, match="No space"):
        LoggingAdaptor(None, "/dev/full")


def test_a_wrong_answer_of_an_upstream_is_told():
    class Wrong(Counted):
        answers = ()

        def malloc(self, nbytes, stream):
            return self.answers.pop(0)

    upstream = Wrong()
    upstream.answers = [512, 512, "x", -1, 1 << 64, None]
    counted = StatisticsAdaptor(upstream)
    assert counted.malloc(5) == 512
    with pytest.raises(ValueError, match="allocated already"):
        counted.malloc(5)
    with pytest.raises(TypeError, match="an int, got str"):
        counted.malloc(5)
    for _ in range(2):
        with pytest.raises(ValueError, match="must return an address"):
            counted.malloc(5)
    with pytest.raises(OutOfMemoryError):
        counted.malloc(5)
    assert counted.allocation_counts["total_count"] == 1
    assert counted.get_allocated_bytes() == 5


# --- On a device.


@pytest.mark.checks_data
def test_a_pool_over_adaptors_over_the_driver():
    counted = StatisticsAdaptor(None)
    limited = LimitingAdaptor(TrackingAdaptor(counted), 40 * MIB)
    pool = MemPool(limited)
    with use_mem_pool(pool):
        buffer = l0rt.empty(10 * MIB).fill(7)
        with pytest.raises(OutOfMemoryError):
            l0rt.empty(60 * MIB)
    taken = counted.allocation_counts["current_bytes"]
    assert 10 * MIB <= taken <= 40 * MIB
    assert (buffer.numpy() == 7).all()
    assert limited.get_allocated_bytes() == taken == limited.upstream.outstanding()[0]["nbytes"]
    buffer.free()
    pool.empty_cache()
    assert counted.allocation_counts["current_bytes"] == 0


@pytest.mark.checks_data
def test_adaptors_over_a_pool_and_over_the_device():
    pool, stream, before = MemPool(), acc.Stream(), acc.memory_allocated()
    for upstream in (pool, l0rt.interface.get_allocator("xpu", 0)):
        counted = StatisticsAdaptor(LimitingAdaptor(upstream, 4 * MIB))
        address = counted.malloc(MIB, stream)
        l0rt.memset(address, 3, MIB, stream=stream)
        out = bytearray(MIB)
        l0rt.memcpy(out, address, MIB, stream)
        stream.synchronize()
        assert out == b"\3" * MIB
        assert memory.pointer_info(address)["requested"] == MIB
        with pytest.raises(OutOfMemoryError):
            counted.malloc(4 * MIB)
        counted.free(address)
        assert acc.memory_allocated() == before
    with pytest.raises(OutOfMemoryError):
        StatisticsAdaptor(pool).malloc(1 << 60)
    with pytest.raises((IndexError, ValueError, RuntimeError)):
        StatisticsAdaptor(pool).malloc(1, device=99)


def test_adaptors_over_functions_of_python_and_of_c():
    libc = ctypes.CDLL(None)
    made = []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    def alloc(nbytes, device, stream):
        made.append(nbytes)
        libc.malloc.restype = ctypes.c_void_p
        return libc.malloc(ctypes.c_size_t(nbytes))

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)
    def free(ptr, nbytes, device, stream):
        made.append(-nbytes)
        libc.free(ctypes.c_void_p(ptr))

    for functions in (PluggableAllocator(alloc, free), PluggableAllocator(lambda *a: alloc(*a), lambda *a: free(*a))):
        counted = StatisticsAdaptor(functions)
        counted.free(counted.malloc(100))
        assert made == [100, -100]
        made.clear()


def test_another_device_types_buffers_come_through_adaptors():
    counted = StatisticsAdaptor(LimitingAdaptor(l0rt.interface.get_allocator("cpu"), 1000))
    assert counted.host_accessible
    with pytest.raises(AttributeError, match="record_stream"):
        _ = counted.record_stream
    l0rt.interface.register_allocator("cpu", None, counted)
    try:
        buffer = l0rt.empty(600, device="cpu").fill(5)
        assert counted.allocation_counts["current_bytes"] == 600
        assert bytes(buffer) == b"\5" * 600
        with pytest.raises(MemoryError):
            l0rt.empty(600, device="cpu")
        buffer.free()
        assert counted.allocation_counts["current_bytes"] == 0
    finally:
        l0rt.interface.register_allocator("cpu", None, counted.upstream.upstream)


def test_an_adaptor_ends_with_its_pool():
    gc.collect()
    limited = LimitingAdaptor(None, MIB << 5)
    pool = MemPool(limited)
    with use_mem_pool(pool):
        buffer = l0rt.empty(100)
    gone = weakref.ref(limited.allocator())
    del limited, pool
    gc.collect()
    assert gone() is not None           # memory of it is in use
    del buffer
    gc.collect()
    acc.synchronize()
    memory.empty_cache()
    gc.collect()
    assert gone() is None


class Model:
    """What a stack of adaptors must say."""

    def __init__(self, rng, log):
        self.upstream = Counted(rng.choice([500, 2000, 1 << 40]))
        self.limit, self.frees = self.upstream.most, 0
        self.made = []
        top = self.upstream
        for _ in range(rng.randint(1, 6)):
            kind = rng.randrange(5)
            if kind == 0:
                most = rng.choice([300, 1500, 10000])
                self.limit = min(self.limit, most)
                top = LimitingAdaptor(top, most)
            elif kind == 1:
                top = FailureCallbackAdaptor(top, lambda nbytes: False)
            elif kind == 2:
                top = StatisticsAdaptor(top)
            elif kind == 3:
                top = TrackingAdaptor(top, rng.random() < 0.3)
            else:
                top = LoggingAdaptor(top, log)
            self.made.append(top)
        self.top, self.live = top, {}

    def step(self, rng):
        if self.live and rng.random() < 0.45:
            address = rng.choice(list(self.live))
            self.top.free(address)
            del self.live[address]
            return
        nbytes = rng.choice([1, 7, 100, 400, 1000])
        fits = sum(self.live.values()) + nbytes <= self.limit
        try:
            address = self.top.malloc(nbytes)
        except OutOfMemoryError:
            assert not fits
        else:
            assert fits
            assert address not in self.live
            self.live[address] = nbytes

    def check(self):
        expected = sum(self.live.values())
        assert self.upstream.live == self.live
        for adaptor in self.made:
            assert adaptor.get_allocated_bytes() == expected
            if isinstance(adaptor, StatisticsAdaptor):
                counts = adaptor.allocation_counts
                assert (counts["current_bytes"], counts["current_count"]) == (expected, len(self.live))
            if isinstance(adaptor, TrackingAdaptor):
                assert {each["address"]: each["nbytes"] for each in adaptor.outstanding()} == self.live


def test_random_programs_over_random_stacks(extent):
    for seed in range(extent(60, 2000, 20000)):
        rng = random.Random(seed)
        log = io.StringIO()
        model = Model(rng, log)
        for _ in range(60):
            model.step(rng)
            model.check()
        for address in list(model.live):
            model.top.free(address)
            del model.live[address]
        model.check()


def test_threads_use_one_stack(hasty, extent):
    limited = LimitingAdaptor(StatisticsAdaptor(TrackingAdaptor(l0rt.interface.get_allocator("cpu"))), 50_000)
    most, wrong = extent(2000, 50_000, 500_000), []

    def work(seed):
        rng, mine = random.Random(seed), []
        try:
            for _ in range(most):
                if mine and rng.random() < 0.5:
                    limited.free(mine.pop(rng.randrange(len(mine))))
                else:
                    with contextlib.suppress(OutOfMemoryError):
                        mine.append(limited.malloc(rng.randrange(1, 5000)))
                assert limited.get_allocated_bytes() <= 50_000
            for address in mine:
                limited.free(address)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert limited.get_allocated_bytes() == 0
    assert limited.upstream.allocation_counts["peak_bytes"] <= 50_000
    assert limited.upstream.upstream.outstanding() == []


FORKED = """
import os
import l0rt
from l0rt import memory
top = memory.LoggingAdaptor(memory.LimitingAdaptor(memory.StatisticsAdaptor(None), 1 << 30), "log.csv")
kept = memory.LimitingAdaptor(l0rt.interface.get_allocator("cpu"), 100)
address, plain = top.malloc(1 << 20), kept.malloc(60)
child = os.fork()
if child == 0:
    try: top.malloc(1)
    except RuntimeError as error: assert "fork" in str(error), error
    else: os._exit(3)
    kept.free(plain)
    kept.free(kept.malloc(100))
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert kept.get_allocated_bytes() == 60
top.free(address)
print([line.split(",")[2] for line in open("log.csv")])
"""


def test_a_forked_child_keeps_to_memory_of_the_process():
    result = run_python(FORKED, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None})
    rows = "['Action', 'allocate', 'free']\n"
    assert (result.returncode, result.stdout, result.stderr) == (0, rows, ""), result
