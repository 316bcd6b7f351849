# SPDX-License-Identifier: Apache-2.0
"""Memory by its address, and memory that is not cached."""

import ctypes

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import config, memory
from l0rt.runtime.alloc.allocator import Allocator

from helpers.door import Door, Failed
from helpers.plain import PlainMemory

MIB = 1 << 20


def test_what_nothing_owns_is_freed_by_its_address():
    stream, before = acc.Stream(), acc.memory_allocated()
    address = memory.caching_allocator_alloc(1000, stream=stream)
    info = memory.pointer_info(address)
    assert (info["base"], info["requested"], info["stream"]) == (address, 1000, stream.stream_id)
    assert acc.memory_allocated() == before + 1024
    memory.caching_allocator_delete(address)
    assert acc.memory_allocated() == before
    with pytest.raises(l0rt.InvalidArgumentError, match="was freed already|is not the start"):
        memory.caching_allocator_delete(address)
    assert memory.caching_allocator_alloc(0) == 0
    memory.caching_allocator_delete(0)


def frees():
    """Every way to free memory by its address, and what it raises."""
    door, stream = Door(), acc.Stream()
    return {
        "caching_allocator_delete": (memory.caching_allocator_delete, l0rt.InvalidArgumentError),
        "l0rt_free": (door.free, Failed),
        "l0rt_free_async": (lambda address: door.free_async(address, door.pointer(stream)), Failed),
        "Allocator.free": (Allocator(PlainMemory()).free, ValueError),
        "Allocator.free for a stream": (lambda address: Allocator(PlainMemory()).free(address, 5),
                                        ValueError),
    }  # fmt: skip


@pytest.mark.parametrize("way", sorted(frees()))
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
@pytest.mark.parametrize("nbytes", [4096, 3 * MIB])
def test_what_a_buffer_owns_is_not_freed_by_its_address(way, kind, nbytes):
    free, error = frees()[way]
    for uncached in (False, True):
        with config.patch({"no_memory_caching": "0"}):
            memory.caching_allocator_enable(not uncached)
            for is_used in (False, True):
                buffer = l0rt.empty(nbytes, kind=kind)
                if is_used:
                    buffer.record_stream(acc.Stream())
                before = acc.memory_allocated()
                with pytest.raises(error, match="allocator|is not the start|is not the address"):
                    free(buffer.ptr)
                assert acc.memory_allocated() == before
                with pytest.raises(error, match="is not the start|is not the address"):
                    free(buffer.ptr + 1)
                buffer.fill(1)
                buffer.free()


@pytest.mark.parametrize("nbytes", [4096, 3 * MIB])
def test_an_address_is_freed_where_it_is_from(nbytes):
    door, one, two = Door(), Allocator(PlainMemory()), Allocator(PlainMemory())
    raw, address = memory.caching_allocator_alloc(nbytes), one.malloc(nbytes)
    streams = [acc.current_stream(), acc.Stream()]
    for _ in range(2):
        with pytest.raises(l0rt.InvalidArgumentError, match="memory of another allocator"):
            one.free(raw)
        with pytest.raises(l0rt.InvalidArgumentError, match="memory of another allocator"):
            two.free(address)
        with pytest.raises(l0rt.InvalidArgumentError, match="a Buffer's memory, or another allocator's"):
            memory.caching_allocator_delete(address)
        with pytest.raises(Failed, match="a Buffer's memory, or another allocator's"):
            door.free(address)
        for record in (one.record_stream, one.record_use):
            with pytest.raises(l0rt.InvalidArgumentError, match="memory of another allocator"):
                record(raw, 5)
        for record in (door.record_stream, door.record_use):
            with pytest.raises(Failed, match="a Buffer's memory, or another allocator's"):
                record(address, door.pointer(streams[1]))
        with pytest.raises(l0rt.InvalidArgumentError, match="is in no allocation"):
            memory.record_use(address, streams[1])
        memory.record_use(raw, streams[1])      # used by another stream, it is still who it was
        one.record_stream(address, 5)
    before = acc.memory_allocated()
    memory.caching_allocator_delete(raw)
    one.free(address)
    acc.synchronize()
    assert acc.memory_allocated() < before
    assert one.allocated_bytes == 0


def test_addresses_of_uncached_memory_are_freed():
    before = acc.memory_allocated()
    with config.patch({"no_memory_caching": "0"}):
        memory.caching_allocator_enable(False)
        addresses = [memory.caching_allocator_alloc(n) for n in (1000, 5 * MIB)]
        memory.record_use(addresses[1], acc.Stream())
        for address in addresses:
            memory.caching_allocator_delete(address)
    acc.synchronize()
    assert acc.memory_allocated() == before


def test_it_comes_from_the_pool_that_the_thread_is_in():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        address = memory.caching_allocator_alloc(4096)
    assert [segment["requested_size"] for segment in pool.snapshot()] == [4096]
    memory.caching_allocator_delete(address)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [((-1,), ValueError), ((None,), TypeError), (("4",), TypeError), ((1.5,), TypeError), ((1 << 63,), ValueError),
     ((5, 99), IndexError), ((5, -2), IndexError), ((5, "cpu"), (ValueError, RuntimeError)), ((5, None, 7), TypeError)],
)  # fmt: skip
def test_wrong_requests(arguments, error):
    with pytest.raises(error):
        memory.caching_allocator_alloc(*arguments)


@pytest.mark.parametrize(
    ("address", "error"),
    [(-1, ValueError), (1 << 64, ValueError), (None, TypeError), (True, TypeError), (5, l0rt.InvalidArgumentError)],
)
def test_wrong_addresses(address, error):
    with pytest.raises(error):
        memory.caching_allocator_delete(address)


@pytest.mark.needs_two_devices
def test_the_stream_is_the_device_s():
    with pytest.raises(ValueError, match="device 1 is not the stream's device, 0"):
        memory.caching_allocator_alloc(5, 1, acc.current_stream(0))


def test_caching_ends_and_begins_at_any_time():
    acc.empty_cache()
    before, kept = acc.memory_reserved(), l0rt.empty(3 * MIB)
    with config.patch({"no_memory_caching": "0"}):
        memory.caching_allocator_enable(False)
        held, uncached = acc.memory_reserved(), l0rt.empty(5 * MIB + 5)
        blocks = [block for segment in memory.memory_snapshot() for block in segment["blocks"]]
        assert 5 * MIB + 5 in [block["requested_size"] for block in blocks]
        uncached.free()
        assert acc.memory_reserved() == held
        memory.caching_allocator_enable()
        kept.free()
    l0rt.empty(5 * MIB).free()
    assert acc.memory_reserved() >= held
    acc.empty_cache()
    assert acc.memory_reserved() == before
    with pytest.raises(TypeError, match="takes a bool"):
        memory.caching_allocator_enable(1)


def test_a_use_of_shared_memory_is_told_by_its_address_too():
    shared = l0rt.empty(4096, kind="shared")
    memory.record_use(shared.ptr + 5, acc.Stream())
    with pytest.raises(l0rt.InvalidArgumentError, match="0x5 is in no allocation"):
        memory.record_use(5)


@pytest.mark.parametrize("nbytes", [1, 4096, 3 * MIB])
def test_pinned_memory_is_freed_by_its_own_function(nbytes):
    door, device = Door(), memory.caching_allocator_alloc(nbytes)
    memory.empty_host_cache()
    at_first = memory.host_memory_stats()["allocated_bytes.current"]
    pinned = door.host_malloc(nbytes, -1)
    before = acc.memory_allocated(), memory.host_memory_stats()["allocated_bytes.current"]
    for is_used in (False, True):
        if is_used:
            door.record_stream(pinned, door.pointer(acc.Stream()))
        for way in ("caching_allocator_delete", "l0rt_free", "l0rt_free_async"):
            free, error = frees()[way]
            with pytest.raises(error, match="another allocator's: it is freed there"):
                free(pinned)
    with pytest.raises(Failed, match="another allocator's: it is freed there"):
        door.host_free(device)
    assert (acc.memory_allocated(), memory.host_memory_stats()["allocated_bytes.current"]) == before
    assert door.host_free(pinned) == 0
    memory.caching_allocator_delete(device)
    acc.synchronize()  # the stream that used it
    memory.empty_host_cache()
    assert memory.host_memory_stats()["allocated_bytes.current"] == at_first


def test_wrong_numbers_are_refused():
    door, place = Door(), ctypes.c_void_p()
    with pytest.raises(Failed, match="the flags of an event must be 0 or 1, got 6"):
        door.event_record(ctypes.byref(place), door.current_stream(-1), 6)
    assert place.value is None
    for nbytes in ((1 << 63) - 1, (1 << 64) - 1):
        with pytest.raises(Failed, match=f"a module's code cannot have {nbytes} bytes"):
            door.module_create(-1, b"code", nbytes, 0, None)
