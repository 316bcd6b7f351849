# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of a private pool: its memory as it was, with new owners, as a tree of graphs needs it."""

import gc
import random
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config, memory
from l0rt.memory import (
    MemPool,
    check_pool_live_allocations,
    get_checkpoint_state,
    set_checkpoint_pool_state,
    use_mem_pool,
)

pytestmark = pytest.mark.usefixtures("emptied")

KIB, MIB = 1 << 10, 1 << 20


def in_pool(pool, *sizes, **where):
    with use_mem_pool(pool):
        return [l0rt.empty(n, **where) for n in sizes]


@pytest.mark.checks_data
def test_what_was_allocated_is_allocated_again_at_its_address():
    pool = MemPool()
    kept, dropped = in_pool(pool, 100 * KIB, 3 * MIB)
    kept.fill(7)
    state = get_checkpoint_state(None, pool)
    addresses = {kept.ptr, dropped.ptr}
    assert (state.device, state.pool_id, state.live_addresses) == (l0rt.device("xpu:0"), pool.id, addresses)
    address = dropped.ptr
    dropped.free()
    new = in_pool(pool, 2 * MIB, MIB, 512)
    assert not check_pool_live_allocations(0, pool.id, addresses)
    (again,) = set_checkpoint_pool_state(0, state, new)
    assert check_pool_live_allocations(0, pool.id, addresses)
    assert (again.ptr, again.nbytes, again.kind, again.device) == (address, 3 * MIB, "device", l0rt.device("xpu:0"))
    assert (kept.copy_to(np.empty(100 * KIB, "u1")) == 7).all()
    again.fill(3)
    assert (again.copy_to(np.empty(3 * MIB, "u1")) == 3).all()
    for buffer in new:
        with pytest.raises(ValueError, match="freed"):
            buffer.fill(0)
    again.free()
    assert check_pool_live_allocations("xpu:0", pool, [kept.ptr])
    assert set_checkpoint_pool_state(0, state)[0].ptr == address    # as often as one likes; its buffer was dropped
    assert check_pool_live_allocations(0, pool, [kept.ptr])


def test_everything_that_the_checkpoint_does_not_have_must_be_stale():
    pool = MemPool()
    (old,) = in_pool(pool, 64 * KIB)
    state = get_checkpoint_state(0, pool)
    (new,) = in_pool(pool, 2 * MIB)
    address = memory.caching_allocator_alloc(512)
    (outside,) = (l0rt.empty(512),)
    with pytest.raises(ValueError, match="Any stale tensors which are being manually freed must be passed") as refused:
        set_checkpoint_pool_state(0, state)
    assert isinstance(refused.value, RuntimeError)                  # torch's class
    assert hex(new.ptr) in str(refused.value)
    for stale in ([outside], [new, address], [0]):
        with pytest.raises(ValueError, match="nothing is allocated in pool"):
            set_checkpoint_pool_state(0, state, stale)
    borrowed = l0rt.Buffer.from_handle(new.ptr, 64)
    with pytest.raises(ValueError, match="does not own its memory"):
        set_checkpoint_pool_state(0, state, [borrowed])
    borrowed.free()
    view = new[: 64]
    with pytest.raises(ValueError, match="slice"):
        set_checkpoint_pool_state(0, state, [view])
    assert check_pool_live_allocations(0, pool, [old.ptr, new.ptr])
    with pytest.raises(TypeError, match="get_checkpoint_state"):
        set_checkpoint_pool_state(0, {}, [new])
    assert set_checkpoint_pool_state(0, state, [new]) == []
    assert check_pool_live_allocations(0, pool, [old.ptr])
    memory.caching_allocator_delete(address)


def test_memory_without_a_buffer_is_stale_by_its_address():
    pool = MemPool()
    state = get_checkpoint_state(0, pool)
    with use_mem_pool(pool):
        address = memory.caching_allocator_alloc(5000)
    with_it = get_checkpoint_state(0, pool)
    assert set_checkpoint_pool_state(0, state, [address]) == []
    (owned,) = set_checkpoint_pool_state(0, with_it)
    assert (owned.ptr, owned.nbytes) == (address, 5000)
    with pytest.raises(ValueError, match="is a Buffer's memory"):   # a Buffer has it, and frees it
        set_checkpoint_pool_state(0, state, [address])
    assert check_pool_live_allocations(0, pool, [address])


@pytest.mark.checks_data
def test_a_stale_buffer_of_the_checkpoint_gets_a_new_owner():
    pool = MemPool()
    (old,) = in_pool(pool, MIB)
    old.fill(9)
    address, state = old.ptr, get_checkpoint_state(0, pool)
    (new,) = set_checkpoint_pool_state(0, state, [old])
    assert new.ptr == address
    assert (new.copy_to(np.empty(MIB, "u1")) == 9).all()
    with pytest.raises(ValueError, match="freed"):
        _ = old.ptr


def test_a_checkpoint_keeps_the_pool_and_its_memory():
    pool = MemPool()
    (buffer,) = in_pool(pool, 5 * MIB)
    assert pool.use_count() == 1
    state = get_checkpoint_state(0, pool)
    assert pool.use_count() == 2
    address, number = buffer.ptr, pool.id
    buffer.free()
    pool.empty_cache()
    acc.empty_cache()
    assert acc.memory_reserved() >= 5 * MIB
    del pool
    gc.collect()
    (again,) = set_checkpoint_pool_state(0, state)
    assert again.ptr == address
    again.free()
    del state
    gc.collect()
    acc.empty_cache()
    assert acc.memory_reserved() < 5 * MIB
    with pytest.raises(RuntimeError, match="Could not find pool of id"):
        get_checkpoint_state(0, number)


def test_bad_arguments_are_refused():
    pool = MemPool()
    state = get_checkpoint_state(0, pool)
    assert "0 allocations" in repr(state)
    with pytest.raises(TypeError, match="get_checkpoint_state"):
        memory.PoolCheckpoint()
    for call in (get_checkpoint_state, lambda device, pool: check_pool_live_allocations(device, pool, [])):
        with pytest.raises(TypeError, match="pool_id must be"):
            call(0, None)
        with pytest.raises(RuntimeError, match="Could not find pool of id"):
            call(0, (0, 1 << 40))
        with pytest.raises(IndexError):
            call(99, pool)
    with pytest.raises(IndexError):
        set_checkpoint_pool_state(99, state)
    with pytest.raises(TypeError):
        check_pool_live_allocations(0, pool, ["a"])
    with pytest.raises(TypeError):
        set_checkpoint_pool_state(0, state, [1.5])


@pytest.mark.needs_two_devices
def test_a_checkpoint_is_of_one_device():
    pool = MemPool()
    (here,), (there,) = in_pool(pool, MIB, device=0), in_pool(pool, MIB, device=1)
    state = get_checkpoint_state(1, pool)
    assert state.live_addresses == {there.ptr}
    with pytest.raises(ValueError, match="is of device 1"):
        set_checkpoint_pool_state(0, state)
    address = there.ptr
    there.free()
    (again,) = set_checkpoint_pool_state(1, state)
    assert (again.ptr, again.device.index) == (address, 1)
    assert check_pool_live_allocations(0, pool, [here.ptr])


@pytest.mark.checks_data
def test_other_streams_and_their_use():
    pool, side = MemPool(), acc.Stream()
    a, b = *in_pool(pool, 2 * MIB), *in_pool(pool, 2 * MIB, stream=side)
    state = get_checkpoint_state(0, pool)
    places = [a.ptr, b.ptr]
    a.record_stream(side)
    a.fill(1)
    side.wait_stream(acc.current_stream())
    a.fill(2, stream=side)
    a.free()
    b.free()
    again = set_checkpoint_pool_state(0, state)
    assert sorted(buffer.ptr for buffer in again) == sorted(places)
    for buffer in again:
        buffer.fill(5)
        assert (buffer.copy_to(np.empty(2 * MIB, "u1")) == 5).all()


def test_a_captured_device_refuses_it():
    pool = MemPool()
    (buffer,) = in_pool(pool, MIB)
    state, graph = get_checkpoint_state(0, pool), acc.Graph()
    address = buffer.ptr
    with pytest.raises(RuntimeError, match="set_checkpoint_pool_state"), acc.graph(graph):
        set_checkpoint_pool_state(0, state, [buffer])
    assert buffer.ptr == address                            # nothing has changed
    assert set_checkpoint_pool_state(0, state, [buffer])[0].ptr == address


def test_a_sleeping_pool_is_refused():
    pool = MemPool()
    (buffer,) = in_pool(pool, MIB)
    state = get_checkpoint_state(0, pool)
    buffer.free()
    try:
        pool.sleep()
    except NotImplementedError:
        pytest.skip("no virtual memory")
    with pytest.raises(RuntimeError, match="asleep"):
        set_checkpoint_pool_state(0, state)
    pool.wake()
    assert len(set_checkpoint_pool_state(0, state)) == 1


def test_a_thread_that_allocates_from_the_pool_meanwhile_loses_nothing():
    pool, stop, held = MemPool(), threading.Event(), []
    buffers = in_pool(pool, *[300 * KIB] * 8)
    state = get_checkpoint_state(0, pool)

    def allocate():
        while not stop.is_set():
            held.extend(in_pool(pool, 300 * KIB, 2 * MIB))
            del held[:]

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        for _ in range(200):
            buffers.sort(key=lambda buffer: buffer.ptr)
            live = {buffer.ptr for buffer in buffers}
            try:
                buffers = buffers[4:] + set_checkpoint_pool_state(0, state, buffers[:4])
            except RuntimeError:                            # where its block is, or because it is not in stale
                buffers = [buffer for buffer in buffers if is_open(buffer)]
                if len(buffers) < 8:
                    break
            assert {buffer.ptr for buffer in buffers} == live
    finally:
        stop.set()
        thread.join()
    assert check_pool_live_allocations(0, pool, [buffer.ptr for buffer in buffers])


def is_open(buffer):
    try:
        return buffer.ptr != 0
    except ValueError:
        return False


@pytest.mark.checks_data
@pytest.mark.parametrize("conf", ["expandable_segments:True", "expandable_segments:False"])
@pytest.mark.parametrize("seed", range(2))
def test_a_random_walk_keeps_what_is_kept(conf, seed):
    rng = random.Random(f"{conf} {seed}")
    others = [threading.Thread(target=walk, args=(random.Random(f"{seed} {n}"),)) for n in range(2)]
    with config.patch({"alloc_conf": conf}):
        for thread in others:
            thread.start()
        walk(rng)
        for thread in others:
            thread.join()


def walk(rng):
    """Work in a pool of the caller's own."""
    pool, streams = MemPool(), [acc.default_stream(), acc.Stream(), acc.Stream()]
    live, states = {}, []               # address: Buffer and its byte; states and what they have
    for _ in range(250):
        choice = rng.random()
        if choice < 0.06:
            states.append((get_checkpoint_state(0, pool), {a: b.nbytes for a, (b, _) in live.items()}))
        elif choice < 0.12 and states:
            state, had = rng.choice(states[-4:])
            stale = [a for a, (buffer, _) in live.items() if had.get(a) != buffer.nbytes or rng.random() < 0.2]
            made = set_checkpoint_pool_state(0, state, [live.pop(a)[0] for a in stale])
            for buffer in made:
                value = rng.randrange(256)
                live[buffer.ptr] = buffer.fill(value), value
            assert live.keys() == had.keys() == state.live_addresses
        elif choice < 0.65 or not live:
            (buffer,) = in_pool(pool, int(2 ** rng.uniform(6, 22)), stream=rng.choice(streams))
            value = rng.randrange(256)
            live[buffer.ptr] = buffer.fill(value), value
        else:
            buffer, value = live.pop(rng.choice(list(live)))
            if rng.random() < 0.3:
                buffer.record_stream(rng.choice(streams))
            assert (buffer.copy_to(np.empty(buffer.nbytes, "u1")) == value).all()
            buffer.free()
        assert check_pool_live_allocations(0, pool, live)
    for buffer, value in live.values():
        assert (buffer.copy_to(np.empty(buffer.nbytes, "u1")) == value).all()
