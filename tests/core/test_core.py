# SPDX-License-Identifier: Apache-2.0
"""The owner classes: made by their factories, closed once, not tracked by the garbage collector."""

import gc

import l0rt.accelerator as acc
import pytest
from l0rt.core import cmdlist, device, driver, event, memory
from l0rt.runtime.streams import devices

HAVE_GC = 1 << 14  # CPython's Py_TPFLAGS_HAVE_GC
OWNERS = [driver.Driver, device.Device, driver.Context, memory.Allocation, event.EventPool, cmdlist.CommandList]


@pytest.fixture
def core():
    """A driver and its first device, beside those that the runtime uses."""
    acc.current_stream()
    found = driver.open_drivers()
    return found[0], device.open_devices(found[0])[0]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda c: c.__name__)
def test_users_do_not_make_owners(owner):
    with pytest.raises(TypeError, match="is made by"):
        owner()
    with pytest.raises(TypeError, match="is made by"):
        owner.__new__(owner)


@pytest.mark.parametrize("owner", OWNERS, ids=lambda c: c.__name__)
def test_owners_cannot_sit_in_a_cycle(owner):
    assert not owner.__flags__ & HAVE_GC


def test_a_context_is_closed_once(core):
    made = driver.make_context(core[0])
    assert made.handle != 0
    made.close()
    assert made.handle == 0
    made.close()


def test_memory_outlives_the_name_of_its_context(core):
    made = driver.make_context(core[0])
    held = memory.host_allocation(made, 4096)
    del made
    gc.collect()
    assert held.ptr != 0
    assert held.nbytes == 4096
    assert held.context.handle != 0
    held.close()
    assert held.ptr == 0


def test_a_driver_says_what_it_is(core):
    found, first = core
    major, minor = found.api_version
    assert (major, minor) >= (1, 0)
    assert found.version
    assert set(first.capabilities) <= set(devices.config.CAPABILITIES)
    assert first.is_gpu
    values = first.values()
    assert values["name"]
    assert values["total_memory"] > 0
    assert values["compute_ordinal"] >= 0
    assert values["compute_queues"] >= 1
    assert 1 <= values["timestamp_bits"] <= 64
    assert values["timer_hz"] > 10_000
    assert len(values["uuid"]) == 16
    assert first.can_access_peer(first) in (True, False)


def test_wrong_arguments_are_type_errors(core):
    for wrong in (None, 3, "driver"):
        with pytest.raises(TypeError):
            driver.make_context(wrong)
        with pytest.raises(TypeError):
            device.open_devices(wrong)
        with pytest.raises(TypeError):
            memory.host_allocation(wrong, 4096)
