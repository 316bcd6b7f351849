# SPDX-License-Identifier: Apache-2.0
"""Scopes of the statistics: peaks and totals of a part of a program, whatever else measures at the same time."""

import gc
import random
import threading

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory
from l0rt.memory import pop_stats_scope, push_stats_scope, stats_scope

from helpers.process import run_python

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20


def test_a_scope_has_its_peak_and_leaves_the_statistics_alone():
    memory.reset_peak_memory_stats()
    l0rt.empty(50 * MIB).free()
    kept = l0rt.empty(2 * MIB)
    with stats_scope() as outer:
        l0rt.empty(8 * MIB).free()
        with stats_scope("inner") as inner:
            l0rt.empty(4 * MIB).free()
            assert inner.peak_allocated_bytes == 6 * MIB
        l0rt.empty(16 * MIB).free()
        more = l0rt.empty(MIB)
    l0rt.empty(32 * MIB).free()
    assert inner.peak_allocated_bytes == 6 * MIB
    assert (inner.peak_increase_bytes, inner.total_allocated_bytes) == (4 * MIB, 4 * MIB)
    assert outer.peak_allocated_bytes == 18 * MIB
    figures = outer.stats["allocated_bytes"]
    assert figures == {"begin": 2 * MIB, "current": 3 * MIB, "peak": 18 * MIB, "allocated": 29 * MIB,
                       "freed": 28 * MIB}
    assert outer.peak_reserved_bytes >= 18 * MIB
    assert memory.max_memory_allocated() == 50 * MIB
    memory.reset_peak_memory_stats()
    assert memory.max_memory_allocated() == 3 * MIB
    del kept, more


def test_what_resets_the_statistics_resets_no_scope():
    l0rt.empty(MIB).free()
    with stats_scope() as scope:
        l0rt.empty(8 * MIB).free()
        memory.reset_peak_memory_stats()
        memory.reset_accumulated_memory_stats()
        assert memory.max_memory_allocated() == 0
        l0rt.empty(2 * MIB).free()
    assert scope.peak_allocated_bytes == 8 * MIB
    assert scope.total_allocated_bytes == 10 * MIB
    assert memory.max_memory_allocated() == 2 * MIB
    with stats_scope():
        memory.reset_accumulated_memory_stats()
    assert memory.max_memory_allocated() == 2 * MIB


def test_functions_and_names():
    memory.reset_scope_records()

    @stats_scope("work")
    def work(nbytes):
        """Do it."""
        l0rt.empty(nbytes).free()
        return nbytes if nbytes < MIB else work(nbytes // 2)

    assert (work.__name__, work.__doc__) == ("work", "Do it.")
    assert work(2 * MIB) == MIB // 2
    assert memory.scope_records() == {"work": {"num_calls": 3, "peak_bytes": 2 * MIB, "total_bytes": 11 * MIB // 2}}
    memory.reset_scope_records()
    assert memory.scope_records() == {}


def test_push_and_pop_are_of_a_thread():
    first = push_stats_scope("first")
    second = push_stats_scope()
    l0rt.empty(MIB).free()
    wrong = []

    def other():
        try:
            pop_stats_scope()
        except IndexError as error:
            wrong.append(error)
        push_stats_scope()
        l0rt.empty(8 * MIB).free()
        assert pop_stats_scope().peak_increase_bytes == 8 * MIB

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(wrong) == 1
    assert pop_stats_scope() is second
    assert pop_stats_scope() is first
    assert first.peak_increase_bytes == second.peak_increase_bytes == 8 * MIB     # of all threads
    with pytest.raises(IndexError, match="without push_stats_scope"):
        pop_stats_scope()


@pytest.mark.needs_two_devices
def test_a_scope_is_of_one_device():
    with stats_scope(device=1) as scope, stats_scope() as here:
        l0rt.empty(MIB, device=1).free()
    assert (scope.total_allocated_bytes, here.total_allocated_bytes) == (MIB, 0)
    with pytest.raises(IndexError), stats_scope(device=99):
        pass


def test_wrong_use_is_told():
    scope = stats_scope()
    with pytest.raises(RuntimeError, match="was not entered"):
        _ = scope.stats
    with scope, pytest.raises(RuntimeError, match="entered already"):
        scope.__enter__()
    with pytest.raises(RuntimeError, match="was not entered"):
        scope.__exit__()
    with scope:                                                 # once more is another measurement
        l0rt.empty(MIB).free()
    assert scope.total_allocated_bytes == MIB
    for wrong in (3, None, b"x"):
        with pytest.raises(TypeError, match="must be a str"):
            stats_scope(wrong)
    with pytest.raises(TypeError, match="decorates functions"):
        scope(3)
    with pytest.raises(KeyError), stats_scope("raises"):
        raise KeyError
    assert memory.scope_records().pop("raises")["num_calls"] == 1
    memory.reset_scope_records()


def test_scopes_that_overlap_in_any_order_agree_with_a_model(extent):
    for seed in range(extent(20, 400, 4000)):
        rng, live, scopes = random.Random(seed), [], []
        now = acc.memory_allocated()  # a rest that is too small to be split counts, too
        for _ in range(60):
            kind = rng.randrange(5)
            if kind < 2:
                live.append(l0rt.empty(rng.randrange(1, 40) * MIB))
            elif kind == 2 and live:
                live.pop(rng.randrange(len(live))).free()
            elif kind == 3:
                scopes.append([stats_scope().__enter__(), now])
            elif scopes:
                scope, peak = scopes.pop(rng.randrange(len(scopes)))
                if rng.random() < 0.5:
                    scope.__exit__()
                assert scope.peak_allocated_bytes == peak
                del scope
            now = acc.memory_allocated()
            for entry in scopes:
                entry[1] = max(entry[1], now)
        assert all(scope.peak_allocated_bytes == peak for scope, peak in scopes)
        live.clear()
        scopes.clear()
        gc.collect()


def test_threads_begin_and_end_scopes_beside_allocations(hasty):
    wrong = []

    def work():
        try:
            stream = acc.Stream()
            for _ in range(300):
                with stats_scope() as scope:
                    l0rt.empty(MIB, stream=stream).free()
                assert scope.peak_increase_bytes >= 0
                assert scope.total_allocated_bytes >= MIB
                assert scope.peak_allocated_bytes >= MIB
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fragmentation_is_told():
    memory.empty_cache()
    found = memory.fragmentation()
    assert (found["free_bytes"], found["largest_free_block"], found["fragmentation"]) == (0, 0, 0.0)
    blocks = [l0rt.empty(10 * MIB + 5) for _ in range(4)]
    blocks[0].free(), blocks[2].free()
    found = memory.fragmentation()
    assert found["largest_free_block"] <= found["free_bytes"]
    assert found["free_bytes"] >= 20 * MIB
    assert 0 <= found["fragmentation"] < 1
    assert 0 < found["utilization"] < 1
    assert found["rounding_bytes"] == sum(memory.pointer_info(blocks[i].ptr)["size"] - blocks[i].nbytes for i in (1, 3))
    with pytest.raises(IndexError):
        memory.fragmentation(99)


FORKED = """
import os
import l0rt
from l0rt import memory
scope = memory.push_stats_scope("it")
l0rt.empty(1 << 20).free()
child = os.fork()
if child == 0:
    assert memory.pop_stats_scope() is scope
    try: memory.push_stats_scope()
    except RuntimeError as error: assert "fork" in str(error), error
    else: os._exit(3)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print(memory.pop_stats_scope().total_allocated_bytes)
"""


def test_a_forked_child_can_leave_a_scope_and_enters_none():
    result = run_python(FORKED, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None})
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{MIB}\n", ""), result
