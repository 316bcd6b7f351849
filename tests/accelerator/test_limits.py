# SPDX-License-Identifier: Apache-2.0
"""Limits: the configuration's, the one that is set, and what is wise to use under them."""

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import config, memory

MIB = 1 << 20
FRACTION = "xpu.allocator.per_process_memory_fraction"


@pytest.fixture(autouse=True)
def none_is_left():
    acc.empty_cache()
    yield
    memory.set_memory_limit(None)
    acc.empty_cache()


def total():
    return memory.get_memory_info()[1]


def test_a_configured_limit_goes_with_its_configuration():
    assert memory.get_memory_limit() is None
    with config.patch({FRACTION: "0.25"}):
        assert memory.get_memory_limit() == total() // 4
        assert memory.get_per_process_memory_fraction() == pytest.approx(0.25)
    assert memory.get_memory_limit() is None
    assert memory.get_per_process_memory_fraction() == 1.0


def test_a_limit_that_was_set_outlives_what_is_configured():
    with config.patch({FRACTION: "0.5"}):
        memory.set_memory_limit(64 * MIB)
        with config.patch({FRACTION: "0.25"}):
            assert memory.get_memory_limit() == 64 * MIB
            with pytest.raises(l0rt.OutOfMemoryError):
                l0rt.empty(65 * MIB)
            memory.set_memory_limit(None)
            assert memory.get_memory_limit() == total() // 4
        assert memory.get_memory_limit() == total() // 2


@pytest.mark.needs_two_devices
def test_a_configured_limit_is_told_of_a_device_that_was_not_used():
    with config.patch({FRACTION: "0.5"}):
        assert memory.get_memory_limit(1) == memory.get_memory_info(1)[1] // 2


@pytest.mark.parametrize("limit", [0, -1, 1 << 64, 1 << 70])
def test_limits_that_are_none(limit):
    with pytest.raises(ValueError, match=f"from 1 to .* bytes, got {limit}"):
        memory.set_memory_limit(limit)


def test_it_is_wise_to_keep_to_the_limit():
    memory.set_memory_limit(64 * MIB)
    assert memory.recommended_max_memory() == 64 * MIB


def test_too_much_shared_memory_is_out_of_memory_too():
    told = []
    detach = memory.attach_oom_observer(lambda *what: told.append(what))
    try:
        with pytest.raises(l0rt.OutOfMemoryError, match="32768.00 GiB that the host shares"):
            l0rt.empty(1 << 45, kind="shared")
    finally:
        detach()
    assert [(device, nbytes) for device, nbytes, *_ in told] == [(0, 1 << 45)]


def test_the_message_tells_of_private_pools():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        l0rt.empty(40 * MIB).free()
    held = acc.memory_reserved()
    memory.set_memory_limit(held)
    with pytest.raises(l0rt.OutOfMemoryError, match=r"; private pools reserve \d+\.\d\d MiB\), limit"):
        l0rt.empty(40 * MIB)


def test_an_observer_is_not_told_of_its_own_failures():
    calls = []

    def observer(*what):
        calls.append(what)
        l0rt.empty(1 << 50)

    detach = memory.attach_oom_observer(observer)
    try:
        with pytest.raises(l0rt.OutOfMemoryError):
            l0rt.empty(1 << 50)
    finally:
        detach()
    assert len(calls) == 1
