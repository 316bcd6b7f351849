# SPDX-License-Identifier: Apache-2.0
"""`L0RT_TUNING`: a file of the self-test's is this machine's parameters; another's and a damaged one are refused."""

import json
import os

import pytest
from l0rt.selftest.parameters import parameters
from l0rt.ze import quirks, tuning

from helpers.cli import l0rt
from helpers.process import run_python

B580 = {"vendor_id": 0x8086, "device_id": 0xE20B, "build": 39395, "kernel_driver": "xe"}
SIMULATED = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-b580", "L0RT_CPU_DEVICES": None}
SHOW = """
import l0rt, l0rt.accelerator as acc
from l0rt import config
from l0rt.runtime.streams import devices
l0rt.empty(64)
print([quirk.name for quirk in devices.mended_quirks(0)], config.get("events"),
      config.alloc_conf().expandable_segments, config.alloc_conf().max_split_size_mb)
"""


def written(folder, parameters=None, **changes):
    found = {"report": "l0rt selftest", "format": tuning.FORMAT, "identity": B580, "parameters": parameters or {}}
    path = folder / "tuning.json"
    path.write_text(json.dumps({**found, **changes}))
    return path


def shown(path, **env):
    result = run_python(SHOW, {**SIMULATED, "L0RT_TUNING": path, **env})
    assert result.returncode == 0, result
    assert result.stderr == "", result
    return result.stdout.strip()


def refused(path, **env):
    result = run_python(SHOW, {**SIMULATED, "L0RT_TUNING": path, **env})
    assert result.returncode == 1, result
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError: L0RT_TUNING="), result
    return last


ALWAYS = (  # of every device of Intel's
    "racing_maps", "racing_queries", "single_device_imports", "cached_imports", "peer_counters", "unjoined_captures",
    "listed_symbols", "fatal_enqueues",
)  # fmt: skip
ALL = {"events": "pool", "expandable_segments": False, "quirks": {"raw_event_handles": True}}


ORDER = [quirk.name for quirk in quirks.QUIRKS]


def rows(*names):
    """Return what the program shows for these quirks, besides those that every device has."""
    return str(sorted([*names, *ALWAYS], key=ORDER.index))


def test_parameters_take_the_place_of_defaults(tmp_path):
    assert shown(None) == f"{rows()} auto True None"
    assert shown(written(tmp_path)) == f"{rows()} auto True None"
    assert shown(written(tmp_path, ALL)) == f"{rows('raw_event_handles')} pool False None"


def test_a_measured_quirk_comes_before_the_table(tmp_path):
    path = written(tmp_path, {"quirks": {"untyped_mappings": False}}, identity={**B580, "build": 33578})
    old = {"L0RT_CPU_PROFILE": "arc-b580,neo-25.18"}
    assert shown(None, **old).startswith(rows("untyped_mappings", "raw_event_handles", "early_graphs"))
    assert shown(path, **old).startswith(rows("raw_event_handles", "early_graphs"))


def test_what_is_set_comes_before_what_was_measured(tmp_path):
    path = written(tmp_path, ALL)
    assert shown(path, L0RT_QUIRKS="raw_event_handles=0").startswith(f"{rows()} pool")
    assert shown(path, L0RT_EVENTS="cb") == f"{rows('raw_event_handles')} cb False None"
    assert shown(path, L0RT_ALLOC_CONF="expandable_segments:True").endswith("pool True None")
    assert shown(path, L0RT_ALLOC_CONF="max_split_size_mb:64").endswith("pool False 64")


KIND = """
import l0rt
from l0rt.runtime.memory import device
l0rt.empty(64)
print(device.memory_policy(0)["kind"])
"""


@pytest.mark.parametrize(
    ("parameters", "setting", "profile", "kind"),
    [
        (None, None, "arc-b580", "ranges"),
        (None, None, "arc-a770-i915", "torch"),  # the quirks
        ({"expandable_segments": False}, None, "arc-b580", "torch"),  # maps bind nothing: measured
        ({"expandable_segments": True}, None, "arc-b580", "ranges"),
        ({"expandable_segments": True, "quirks": {"no_vm_bind": False}}, None, "arc-a770-i915", "ranges"),
        ({"expandable_segments": False}, "segments:fit", "arc-b580", "fit"),
        ({"expandable_segments": False}, "expandable_segments:True", "arc-b580", "ranges"),
        ({"expandable_segments": False}, "expandable_segments:False", "arc-b580", "fit"),
        ({"expandable_segments": True}, "segments:torch", "arc-b580", "torch"),
        (None, "expandable_segments:False", "arc-a770-i915", "fit"),
    ],
)
def test_what_is_set_comes_before_what_was_measured_before_the_quirks(tmp_path, parameters, setting, profile, kind):
    here = {**B580, "device_id": 0x56A0, "kernel_driver": "i915"} if "i915" in profile else B580
    path = None if parameters is None else written(tmp_path, parameters, identity=here)
    env = {**SIMULATED, "L0RT_CPU_PROFILE": profile, "L0RT_ALLOC_CONF": setting, "L0RT_TUNING": path}
    result = run_python(KIND, env)
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{kind}\n", ""), result


POLICY = """
import l0rt
from l0rt.runtime.memory import device
l0rt.empty(64)
print(*(device.memory_policy(0)[name] >> 20 for name in ("growth", "least_move", "small_segment")))
"""
SIZES = {"range_growth_mb": 32, "range_move_mb": 4, "small_segment_size_mb": 16}


def policy(path, **env):
    result = run_python(POLICY, {**SIMULATED, "L0RT_ALLOC_CONF": None, "L0RT_TUNING": path, **env})
    assert (result.returncode, result.stderr) == (0, ""), result
    return tuple(map(int, result.stdout.split()))


def test_measured_sizes_are_what_the_allocator_goes_by(tmp_path):
    assert policy(None) == (8, 16, 8)
    assert policy(written(tmp_path, SIZES)) == (32, 4, 16)
    assert policy(written(tmp_path, SIZES), L0RT_ALLOC_CONF="range_growth_mb:4,expandable_segments:True") == (4, 4, 16)
    assert policy(written(tmp_path, {"range_move_mb": 64})) == (8, 64, 8)


STREAMS = """
import ctypes
import l0rt, l0rt.accelerator as acc
charged = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
charged.restype, charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
streams, x = [acc.Stream() for _ in range(32)], l0rt.empty(4096)
for stream in 2 * streams:
    x.fill(1, stream=stream)
acc.synchronize()
print(len({stream.stream_id for stream in streams}), charged(b"list_switch") // 1000)
"""


def test_where_a_change_of_the_list_is_dear_streams_share_lists(tmp_path):
    def switches(path, **env):
        costs = {"L0RT_CPU_LATENCY": "virtual,list_switch=1", "L0RT_STREAM_POOL_SIZE": None}
        result = run_python(STREAMS, {**SIMULATED, **costs, **env, "L0RT_TUNING": path})
        assert (result.returncode, result.stderr) == (0, ""), result
        return tuple(map(int, result.stdout.split()))

    one = written(tmp_path, {"stream_pool_size": 1})  # as many as the simulated device has hardware queues
    count, dear = switches(None)
    assert count == 32
    assert dear >= 2 * 32 - 2
    count, cheap = switches(one)
    assert count == 1
    assert cheap <= 4  # beside the default stream, which shares the queue with it
    assert switches(one, L0RT_STREAM_POOL_SIZE=32)[0] == 32
    count, turns = switches(written(tmp_path, {"stream_pool_size": 2}))
    assert count == 2
    assert turns >= 2 * 32 - 2  # two that take turns on one queue change the list each time


MAPS = {f"{what}_{mib}MiB_idle": us for what, us in (("create", 8.0), ("unmap", 70.0)) for mib in (2, 16, 128)}


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ({"map": (162, 244, 900)}, {"range_growth_mb": 8, "range_move_mb": 16}),  # a B580: 5.9 µs a MiB
        ({"map": (5, 5, 5)}, {}),  # the plain CPU driver: calls that cost nothing decide nothing
        ({"map": (1200, 1282, 1938)}, {"range_growth_mb": 32, "range_move_mb": 16}),
        ({"map": (1e6, 1e6, 1e6)}, {"range_growth_mb": 64}),
        ({"map": (450, 450, 450), "piece": 1.0}, {"range_growth_mb": 16}),  # the time grows with the pieces
        ({"map": (162, 162, 170)}, {"range_growth_mb": 8, "range_move_mb": 64}),
        ({"map": (162, 3000, 50000)}, {"range_growth_mb": 8, "range_move_mb": 4}),
        ({"map": (162, 162, 162), "allocate": 900}, {"range_growth_mb": 8, "small_segment_size_mb": 16}),
        ({"map": (162, 162, 162), "allocate": 9000}, {"range_growth_mb": 8, "small_segment_size_mb": 32}),
    ],
)
def test_sizes_follow_from_what_calls_cost(figures, expected):
    map_us = {f"map_{mib}MiB_idle": float(us) for mib, us in zip((2, 16, 128), figures["map"], strict=True)}
    answers = {"M2": {**MAPS, **map_us}, "M3": {"map_per_piece": figures.get("piece", 0.004)}}
    if "allocate" in figures:
        answers["M4"] = {"allocate_2MiB": figures["allocate"], "resident_2MiB": 1.0}
    answers = {id: {"by": "test", "state": "measured", "figures": found} for id, found in answers.items()}
    found = {"answers": answers, "facts": {"is_software": True, "capabilities": {"vmm": True}}}
    assert parameters(found) == {"expandable_segments": True, **expected}


def test_a_slow_card_measured_grows_by_more(tmp_path):
    path = tmp_path / "tuning.json"
    slow = {**SIMULATED, "L0RT_CPU_PROFILE": "arc-b580,timing", "L0RT_CPU_LATENCY": "map_fresh=1100"}
    result = l0rt("selftest", "M2", "M4", "--seconds", "15", "--json", path, env=slow)
    assert result.returncode == 0, result
    growth, _, small = policy(path, **slow)
    assert growth >= 32  # the machine may be busy, and its calls slower yet
    assert small >= 8


@pytest.mark.parametrize("way", ["set_alloc_conf(expandable_segments=True)", "node"])
def test_settings_of_the_program_come_first(tmp_path, way):
    code = "import l0rt.memory, l0rt; from l0rt import config\n"
    code += "config.set('xpu.allocator.expandable_segments', 'True')" if way == "node" else f"l0rt.memory.{way}"
    result = run_python(f"{code}\n{SHOW}", {**SIMULATED, "L0RT_TUNING": written(tmp_path, ALL)})
    assert result.stdout.strip().endswith("pool True None"), result


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("device_id", 0x56A0, "device 0x56a0, and this is 0xe20b"),
        ("build", 33578, "build of the driver 33578, and this is 39395"),
        ("kernel_driver", "i915", "kernel driver i915, and this is xe"),
        ("vendor_id", 0, "vendor 0x0000, and this is 0x8086"),
    ],
)
def test_another_machines_file_is_refused(tmp_path, name, value, says):
    assert says in refused(written(tmp_path, ALL, identity={**B580, name: value}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"report": "l0rt bench"}, "no report of l0rt selftest"),
        ({"format": 0}, "its format is 0"),
        ({"identity": {"build": 1}}, "which device it is of"),
        ({"parameters": "none"}, "no parameters"),
        ({"parameters": {"speed": 9}}, "a parameter 'speed'"),
        ({"parameters": {"events": "many"}}, "expected pool or cb"),
        ({"parameters": {"expandable_segments": 1}}, "expected true or false"),
        ({"parameters": {"range_growth_mb": True}}, "expected a whole number from 1"),
        ({"parameters": {"small_segment_size_mb": 1}}, "expected a whole number from 2"),
        ({"parameters": {"range_move_mb": "16,segments:torch"}}, "expected a whole number from 1"),
        ({"parameters": {"range_moving_ms": 20}}, "a parameter 'range_moving_ms'"),
        ({"parameters": {"quirks": {"gravity": True}}}, "'gravity'"),
        ({"parameters": {"quirks": {"no_vm_bind": "yes"}}}, "'yes'"),
        ({"parameters": {"quirks": []}}, "quirks is []"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, changes, says):
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError, match="L0RT_TUNING=") as wrong:
        tuning.load(str(path))
    assert says in str(wrong.value)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "[]", "\x00", '"l0rt selftest"'])
def test_a_file_that_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "tuning.json"
    path.write_text(text)
    assert "it is no" in refused(path)


def test_what_is_no_file_or_has_no_end_is_refused(tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2 << 40)
    os.mkfifo(tmp_path / "pipe")
    for path, says in (("/dev/zero", "it is no regular file"), (tmp_path / "pipe", "it is no regular file"),
                       (tmp_path, "Is a directory"), (tmp_path / "large", "it has 2048.00 GiB, and 1.00 MiB are the"),
                       ("/proc/self/maps", "it is no JSON")):  # fmt: skip
        with pytest.raises(ValueError, match=f"L0RT_TUNING=.* is not valid: .*{says}"):
            tuning.load(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "cannot be read: No such file" in refused(tmp_path / "nothing.json")
    assert "cannot be read" in refused(tmp_path)


def test_what_the_self_test_writes_can_be_read(tmp_path):
    path = tmp_path / "tuning.json"
    result = l0rt("selftest", "M2", "M6", "Q3", "--seconds", "15", "--json", path, env=SIMULATED)
    assert result.returncode == 0, result
    found = tuning.load(str(path))
    assert found.identity == B580
    assert json.loads(path.read_text())["parameters"]["expandable_segments"] is True
    assert "True" in shown(path)
