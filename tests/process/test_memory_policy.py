# SPDX-License-Identifier: Apache-2.0
"""How memory is taken from the driver by default on which device, and what says otherwise. Devices are simulated."""

import json

import pytest
from l0rt.bench import steps

from helpers.process import run_python

MIB = 1 << 20
POLICY = """
import json, l0rt, l0rt.accelerator as acc
from l0rt.runtime.memory.device import memory_policy
kept = l0rt.empty(1000)
small = acc.memory_reserved()
more = l0rt.empty(3 << 20)
print(json.dumps([memory_policy(0), small >> 20, acc.memory_reserved() - small >> 20]))
"""
NAMES = ("L0RT_ALLOC_CONF", "L0RT_CPU_LATENCY", "L0RT_CPU_QUIRKS", "L0RT_DISABLE", "L0RT_QUIRKS", "L0RT_TUNING")


def asked(profile, before="", **env):
    """Return the policy of a device, and the MiB that a small and then a large request take."""
    env = {**dict.fromkeys(NAMES), "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, **env}
    result = run_python(before + POLICY, env)
    assert result.returncode == 0, result
    return json.loads(result.stdout)


@pytest.mark.parametrize("profile", ["arc-b580", "pvc", "lunar-lake", "arc-a770-xe"])
def test_where_mapping_is_dear_ranges_grow_by_much_and_small_requests_have_segments(profile):
    policy, small, more = asked(profile)
    assert (policy["kind"], small, more) == ("ranges", 8, 8)
    assert (policy["growth"], policy["growth_share"], policy["least_move"]) == (8 * MIB, 32, 16 * MIB)
    assert policy["moving"] == 20_000_000


@pytest.mark.parametrize(
    "profile",
    ["arc-a770-i915", "meteor-lake", "arc-b580,neo-25.18"],
)
def test_where_ranges_are_no_use_segments_are_torchs(profile):
    policy, small, more = asked(profile)
    assert (policy["kind"], small, more) == ("torch", 2, 20)


@pytest.mark.parametrize(
    ("profile", "env"),
    [
        ("neo-22.43", {}),
        (None, {"L0RT_DISABLE": "vmm"}),
        ("arc-a770-i915", {"L0RT_ALLOC_CONF": "segments:fit"}),
        ("arc-a770-i915", {"L0RT_ALLOC_CONF": "expandable_segments:False"}),
        ("arc-b580", {"L0RT_ALLOC_CONF": "expandable_segments:False", "L0RT_DISABLE": "vmm"}),
    ],
)
def test_segments_of_the_requests_size_stay_elsewhere_and_when_they_are_asked_for(profile, env):
    policy, small, more = asked(profile, **env)
    assert policy["kind"] == "fit"
    assert more == 3


def test_the_plain_cpu_driver_is_as_it_was():
    policy, small, more = asked(None)
    assert (policy["kind"], policy["moving"], policy["moves"], policy["small_segment"]) == ("ranges", 0, 2048, 0)
    assert small <= 1
    assert more <= 4


def test_ranges_that_are_asked_for_need_virtual_memory():
    assert asked("arc-a770-i915", L0RT_ALLOC_CONF="expandable_segments:True")[0]["kind"] == "torch"
    assert asked("arc-a770-i915", L0RT_QUIRKS="no_vm_bind=0")[0]["kind"] == "ranges"


def test_a_default_that_is_asked_for_is_no_default():
    before = "import l0rt.memory\nl0rt.memory.set_alloc_conf(segments='fit')\n"
    assert asked("arc-a770-i915", before)[0]["kind"] == "fit"


def test_each_setting_overrides_the_device():
    before = "import l0rt\n"
    for name, value in (("range_growth_mb", 32), ("range_move_mb", 5), ("range_moving_ms", 7)):
        before += f"l0rt.config.set('xpu.allocator.{name}', '{value}')\n"
    policy, small, more = asked("arc-b580", before, L0RT_ALLOC_CONF="small_segment_size_mb:16,range_growth_mb:4")
    assert (policy["growth"], policy["least_move"], policy["moving"]) == (32 * MIB, 5 * MIB, 7_000_000)
    assert (small, more) == (16, 32)


def test_the_settings_hold_on_the_plain_cpu_driver_too():
    policy, small, more = asked(None, L0RT_ALLOC_CONF="small_segment_size_mb:4,range_growth_mb:16,range_moving_ms:1")
    assert (policy["kind"], policy["moving"], small, more) == ("ranges", 1_000_000, 4, 16)


def test_pools_stay_small():
    code = """
import l0rt, l0rt.accelerator as acc
kept = []
for _ in range(8):
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool()):
        kept.append(l0rt.empty(1000))
assert acc.memory_reserved() <= 8 * (2 << 20), acc.memory_reserved()
"""
    env = {**dict.fromkeys(NAMES), "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-b580"}
    assert run_python(code, env).returncode == 0


POOLS_GROWTH = """
import l0rt, l0rt.accelerator as acc
from contextlib import nullcontext
from l0rt.bench.replays import driver_calls
found = []
for pool in (None, l0rt.memory.MemPool()):
    kept, before, calls = [], acc.memory_reserved(), driver_calls()
    with nullcontext() if pool is None else l0rt.memory.use_mem_pool(pool):
        for count in range(1, 65):
            kept.append(l0rt.empty(2 << 20))
            more = acc.memory_reserved() - before - (count << 21)
            assert pool is None or more <= min(count << 21, 6 << 20), (count, more)
    found.append(driver_calls() - calls)
print(*found)
"""


def test_a_pool_doubles_until_it_grows_by_as_much_as_the_rest():
    env = {**dict.fromkeys(NAMES), "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-b580"}
    result = run_python(POOLS_GROWTH, env)
    assert (result.returncode, result.stdout) == (0, "16 18\n"), result


def test_addresses_last_for_ten_thousand_pools():
    """A process has 128 TiB of them; a range for all of a device's 16 GiB takes 18 GiB."""
    code = """
import l0rt, l0rt.accelerator as acc
def addresses():
    "What the process has mapped or reserved: most of it is what the CPU driver reserves."
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize:"))
def used():
    pool = l0rt.memory.MemPool()
    with l0rt.memory.use_mem_pool(pool):
        return pool, l0rt.empty(1000)
first = used()
before = addresses()
pools = [used() for _ in range(500)]
print((addresses() - before) / 500 / (1 << 30))
"""
    result = run_python(code, {**dict.fromkeys(NAMES), "L0RT_DRIVER": "cpu", "L0RT_CPU_MEMORY": "16GiB"})
    assert result.returncode == 0, result
    assert 10_000 * float(result.stdout) < 128 << 10, result


@pytest.mark.parametrize("profile", ["arc-b580,timing", "pvc,timing", "arc-a770-i915,timing"])
def test_the_default_takes_no_more_time_and_memory_than_torchs_segments(profile, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("L0RT_DRIVER", "cpu")
    monkeypatch.setenv("L0RT_CPU_PROFILE", profile)
    ours, torchs = (steps.passes("conv_train", 1, mode) for mode in ("", "torch"))
    assert ours[0]["percent"] <= torchs[0]["percent"]
    assert ours[0]["calls"] > 0
    assert max(each["percent"] for each in ours[1:]) <= 1
    assert max(each["reserved"] for each in ours) <= max(each["reserved"] for each in torchs)
