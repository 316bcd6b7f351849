# SPDX-License-Identifier: Apache-2.0
"""Streams: the pool, the default stream, what is current, order, and what they export."""

import copy
import pickle
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.process import run_python


def test_the_pool_hands_out_32_streams_a_priority_in_turn():
    for priority in (-1, 0, 1):
        streams = [acc.Stream(priority=priority) for _ in range(32)]
        assert len(set(streams)) == 32
        assert acc.Stream(priority=priority) == streams[0]
        assert {s.priority for s in streams} == {priority}


def test_the_default_stream_is_never_handed_out():
    pool = {acc.Stream(priority=p) for p in (-1, 0, 1) for _ in range(40)}
    assert len(pool) == 96
    assert acc.default_stream() not in pool
    assert acc.default_stream() == acc.default_stream()
    assert acc.default_stream().stream_id == 0


def test_any_priority_is_clamped():
    assert acc.Stream(priority=-100).priority == -1
    assert acc.Stream(priority=7).priority == 1
    assert acc.Stream.priority_range() == (1, -1)
    with pytest.raises(TypeError, match="priority must be an int"):
        acc.Stream(priority="high")


def test_a_stream_is_found_again_by_its_numbers():
    s = acc.Stream(priority=1)
    again = acc.Stream(stream_id=s.stream_id, device_index=s.device_index, device_type=s.device_type)
    assert again == s
    assert hash(again) == hash(s)
    for unknown in (-1, 1 << 20, 1 << 40):
        with pytest.raises(ValueError, match="no stream with the id"):
            acc.Stream(stream_id=unknown, device_index=0)
    with pytest.raises(ValueError, match="doesn't match the current accelerator xpu"):
        acc.Stream(stream_id=0, device_index=0, device_type="cuda")
    with pytest.raises(TypeError, match="need stream_id"):
        acc.Stream(device_index=0)


def test_streams_compare_and_print():
    a, b = acc.Stream(), acc.Stream()
    assert a == a
    assert a != b
    assert a != 3
    assert "stream_id=" in repr(a)
    assert copy.copy(a) is copy.deepcopy(a) is a


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_stream_is_pickled_within_its_process(protocol):
    with acc.stream_pool.lease() as leased:
        for stream in (acc.Stream(), acc.Stream(priority=-1), acc.default_stream(), leased):
            assert pickle.loads(pickle.dumps(stream, protocol)) == stream
    pickled = pickle.dumps(acc.Stream(), protocol)
    code = f"import pickle\ntry: pickle.loads({pickled!r})\nexcept TypeError as e: print(e)"
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert "cannot be unpickled in another" in result.stdout, result
    assert "ipc_handle()" in result.stdout


def test_the_native_handle_is_made_on_demand_and_stays():
    s = acc.Stream()
    handle = s.native_handle
    assert handle != 0
    assert s.native_handle == handle
    assert s._as_parameter_.value == handle
    assert s.__l0_stream__() == (0, "cmdlist_immediate", handle)
    assert len(s.hw_queue) == 2
    with s:
        assert l0rt.xpu.current_raw_stream() == handle
    assert not s.is_capturing()


def test_a_with_block_restores_what_was_there():
    before = acc.current_stream()
    a, b = acc.Stream(), acc.Stream()
    with a as entered:
        assert entered is a
        assert acc.current_stream() == a
        with b, a, b:
            assert acc.current_stream() == b
        assert acc.current_stream() == a
        with pytest.raises(KeyError), b:
            raise KeyError
        assert acc.current_stream() == a
    assert acc.current_stream() == before


def test_blocks_that_end_out_of_turn_restore_their_own():
    """Two generators, each inside a with block of its own, are finished in the wrong order."""
    before = acc.current_stream()

    def inside(stream):
        with stream:
            yield

    a, b = inside(acc.Stream()), inside(acc.Stream())
    next(a), next(b)
    a.close()
    b.close()
    acc.set_stream(before)
    assert acc.current_stream() == before


def test_a_block_ends_on_the_thread_it_began_on():
    s, failures = acc.Stream(), []
    s.__enter__()

    def leave():
        try:
            s.__exit__(None, None, None)
        except RuntimeError as e:
            failures.append(str(e))

    t = threading.Thread(target=leave)
    t.start()
    t.join()
    s.__exit__(None, None, None)
    assert failures
    assert "this thread has not entered" in failures[0]


def test_every_thread_has_its_own_current_stream_and_device():
    wrong, gate = [], threading.Barrier(8)

    def work():
        mine = acc.Stream()
        gate.wait()
        for _ in range(2000):
            with mine:
                if acc.current_stream() != mine:
                    wrong.append(mine)
            if acc.current_stream() != acc.default_stream():
                wrong.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_acc_stream_is_a_with_block():
    s = acc.Stream()
    with acc.stream(s):
        assert acc.current_stream() == s
    with acc.stream(None):
        assert acc.current_stream() == acc.default_stream()


def test_set_stream_refuses_what_is_no_stream():
    for wrong in (None, 3, "xpu:0", l0rt.Event()):
        with pytest.raises(TypeError):
            acc.set_stream(wrong)


def test_query_and_synchronize():
    s = acc.Stream()
    assert s.synchronize() is None
    assert s.query() is True
    x = l0rt.empty(1 << 20, stream=s)
    x.fill(3, stream=s)
    assert s.synchronize(timeout=60) is True
    assert acc.synchronize(timeout=60) is True
    assert acc.synchronize() is None


@pytest.mark.checks_data
def test_work_of_one_stream_runs_in_order():
    s = acc.Stream()
    a, b = l0rt.empty(1 << 16, stream=s), l0rt.empty(1 << 16, stream=s)
    for i in range(200):
        a.fill(i % 251, stream=s)
        b.copy_from(a, stream=s)
        a.fill(255, stream=s)
    assert (b.copy_to(np.empty(1 << 16, "u1"), stream=s) == 199).all()


def test_another_thread_runs_while_one_waits():
    """No wait, and no append, holds the GIL."""
    s, counted, stop = acc.Stream(), [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    x = l0rt.empty(64 << 20, stream=s)
    t = threading.Thread(target=count)
    t.start()
    for i in range(20):
        x.fill(i, stream=s)
    s.synchronize()
    stop.set()
    t.join()
    assert counted[0] > 0


@pytest.mark.needs_two_devices
def test_a_stream_block_switches_the_device_too():
    s = acc.Stream(1)
    assert s.device_index == 1
    with s:
        assert acc.current_device_index() == 1
        assert acc.current_stream() == s
        assert l0rt.empty(512).device == l0rt.device("xpu:1")
    assert acc.current_device_index() == 0
    assert acc.current_stream(1) == acc.default_stream(1)
    acc.set_stream(s)
    assert acc.current_device_index() == 1
    acc.set_stream(acc.default_stream(1))
    acc.set_device_index(0)
