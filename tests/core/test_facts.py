# SPDX-License-Identifier: Apache-2.0
"""What is known of a device besides what Level Zero tells: Linux's facts by PCI address, and the affinity mask."""

import os
import pickle
import re
from types import SimpleNamespace

import l0rt.xpu as xpu
import pytest
from l0rt.runtime.streams import devices
from l0rt.xpu import facts
from l0rt.ze import affinity, count, pci, quirks

from helpers.process import run_python

TORCH_FIELDS = """name platform_name vendor device_id driver_version version max_compute_units gpu_eu_count
gpu_subslice_count max_work_group_size max_num_sub_groups sub_group_sizes memory_clock_rate memory_bus_width
local_mem_size last_level_cache_size total_memory has_fp16 has_fp64 has_atomic64 has_bfloat16_conversions
has_subgroup_matrix_multiply_accumulate has_subgroup_matrix_multiply_accumulate_tensor_float32
has_subgroup_2d_block_io is_integrated_gpu architecture type uuid""".split()
TORCH_2_15_FIELDS = """xe_stack_count xe_regions_per_stack xe_clusters_per_region xe_cores_per_cluster eus_per_xe_core
max_lanes_per_hw_thread""".split()


def test_properties_have_torchs_fields_and_more():
    properties = xpu.get_device_properties()
    assert [field for field in TORCH_FIELDS + TORCH_2_15_FIELDS if not hasattr(properties, field)] == []
    assert properties.max_num_sub_groups * min(properties.sub_group_sizes) <= properties.max_work_group_size
    for more in ("pci", "index", "is_software", "kernel_driver", "render_node", "bar_size", "numa_node"):
        assert hasattr(properties, more)
    assert properties.queue_groups["compute"] >= 1
    assert properties.tiles == properties.xe_stack_count >= 1
    assert sum(size for _, size in properties.memory_kinds) == properties.total_memory
    assert properties.peers == [i for i in range(1, xpu.device_count()) if xpu.can_device_access_peer(0, i)]


QUEUES = """
import l0rt, l0rt.accelerator as acc, l0rt.xpu as xpu
copies = acc.stream_pool.copy_stream()
streams = [acc.Stream(priority=priority) for priority in (0, -1) for _ in range(32)]
print(xpu.get_device_properties().queue_groups, {stream.hw_queue for stream in streams}, copies.hw_queue)
x = l0rt.empty(1 << 16)
for number, stream in enumerate(streams):   # each waits for the one before, on whatever queue that is
    stream.wait_stream(streams[number - 1])
    x.fill(number, stream=stream)
copies.wait_stream(streams[-1])
assert x.copy_to(bytearray(1 << 16), stream=copies) == bytes([len(streams) - 1]) * (1 << 16)
"""


@pytest.mark.parametrize(
    "profile", ["arc-a770-i915", "arc-a770-xe", "arc-b580", "pvc", "lunar-lake", "meteor-lake", None]
)
def test_streams_share_the_queues_that_the_device_has(profile):
    result = run_python(QUEUES, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, "L0RT_DISABLE": None})
    computing = 2 if profile is None else 1
    groups, queues = {"compute": computing, "copy": 1}, {(0, index) for index in range(computing)}
    assert (result.stderr, result.returncode) == ("", 0)
    assert result.stdout == f"{groups} {queues} (1, 0)\n"


UNKNOWN = ("kernel_driver", "render_node", "card_node", "bar_size", "numa_node")


def test_a_device_is_found_by_what_names_it_everywhere():
    for index in range(xpu.device_count()):
        properties = xpu.get_device_properties(index)
        shared = [i for i in range(index) if xpu.get_device_properties(i).uuid == properties.uuid]
        if shared:
            continue  # Intel's driver without hardware gives two devices one UUID
        assert xpu.find_device(properties.uuid) == xpu.find_device(properties.uuid.hex().upper()) == index
        if properties.pci:
            assert xpu.get_device_properties(xpu.find_device(properties.pci)).pci == properties.pci


@pytest.mark.parametrize("what", ["", "0000:ff:1f.7", bytes(15), "/dev/dri/renderD999", "xpu:0"])
def test_what_names_no_device_lists_those_that_there_are(what):
    with pytest.raises(ValueError, match=r"no device has the UUID.*; there is xpu:0 \("):
        xpu.find_device(what)


@pytest.mark.parametrize("what", [None, 0, 1.5, ["0000:03:00.0"]])
def test_an_index_names_no_device_for_good(what):
    with pytest.raises(TypeError, match="UUID"):
        xpu.find_device(what)


SYSMAN = """
import l0rt, l0rt.xpu as xpu
from l0rt import memory
from l0rt.runtime.streams import devices
"""
CPU = {
    "L0RT_DRIVER": "cpu",
    "L0RT_CPU_DEVICES": 2,
    "L0RT_CPU_PROFILE": None,
    "L0RT_DISABLE": "usable_mem",
    "ZES_ENABLE_SYSMAN": None,
}


def test_system_management_is_matched_by_uuid_or_address_and_not_by_index():
    code = SYSMAN + """
from l0rt.core.sysman import find_card
for index in range(2):
    card, properties = devices.card(index), xpu.get_device_properties(index)
    assert (card["uuid"], card["pci"]) == (properties.uuid, properties.pci)
a, b = ({"uuid": bytes([n]) * 16, "pci": f"0000:0{n}:00.0"} for n in (1, 2))
assert find_card([b, a], a["uuid"], None, True) is a
assert find_card([b, a], bytes(16), a["pci"], True) is a
assert find_card([b, a], bytes(16), a["pci"], False) is None         # a tile
assert find_card([b, a], bytes(16), None, True) is None
assert find_card([{"uuid": bytes(16), "pci": None}], bytes(16), None, True) is None
"""
    result = run_python(code, CPU)
    assert result.returncode == 0, result


def test_all_memory_free_is_not_believed():
    """Without privileges i915 and xe report it, and success: levelzero.md, trap 31."""
    code = SYSMAN + """
assert devices.memory_on_card(0) is None
assert "process has reserved" in memory.memory_info(0)["source"]
x = l0rt.empty(64 << 20)
free, total = devices.memory_on_card(0)
assert free <= total - (64 << 20)
assert memory.memory_info(0) == {"free": free, "total": total, "source": "reported by system management",
                                 "trust": True}
assert devices.memory_on_card(1) is None
"""
    result = run_python(code, CPU)
    assert result.returncode == 0, result


def test_zesinit_is_not_mixed_with_the_environments_way():
    code = SYSMAN + """
x = l0rt.empty(64 << 20)
try:
    devices.card(0)
except l0rt.UnsupportedError as e:
    assert "ZES_ENABLE_SYSMAN=1" in str(e) and "zesInit" in str(e)
else:
    raise AssertionError
assert devices.memory_on_card(0) is None
assert "process has reserved" in memory.memory_info(0)["source"]
"""
    result = run_python(code, {**CPU, "ZES_ENABLE_SYSMAN": 1})
    assert result.returncode == 0, result
    result = run_python(code, {**CPU, "ZES_ENABLE_SYSMAN": 1, "L0RT_CPU_FAIL": "zesInit:1:ERROR_UNINITIALIZED"})
    assert result.returncode == 0, result


def test_without_system_management_the_ladder_goes_on():
    code = SYSMAN + """
x = l0rt.empty(64 << 20)
assert devices.card(0) is None and "process has reserved" in memory.memory_info(0)["source"]
"""
    for call in ("zesInit", "zesDriverGet", "zesDeviceGet"):
        result = run_python(code, {**CPU, "L0RT_CPU_FAIL": f"{call}:1:ERROR_UNINITIALIZED"})
        assert result.returncode == 0, result


@pytest.fixture
def sysfs(tmp_path):
    device = tmp_path / "bus/pci/devices/0000:03:00.0"
    (device / "drm/renderD129").mkdir(parents=True)
    (device / "drm/card1").mkdir()
    (tmp_path / "bus/pci/drivers/xe").mkdir(parents=True)
    os.symlink(tmp_path / "bus/pci/drivers/xe", device / "driver")
    (device / "resource").write_text(
        "0x0000000081000000 0x0000000081ffffff 0x0000000000140204\n"
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
        "0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n"
    )
    (device / "numa_node").write_text("1\n")
    return tmp_path


def test_linux_tells_driver_node_and_window(sysfs):
    assert pci.facts("0000:03:00.0", sysfs) == {
        "kernel_driver": "xe",
        "render_node": "/dev/dri/renderD129",
        "card_node": "/dev/dri/card1",
        "bar_size": 16 << 30,
        "numa_node": 1,
    }


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("1\n", 1), ("-1\n", None), ("", None), ("x", None)])
def test_a_device_is_near_a_node_or_near_none(sysfs, text, expected):
    (sysfs / "bus/pci/devices/0000:03:00.0/numa_node").write_text(text)
    assert pci.facts("0000:03:00.0", sysfs)["numa_node"] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0\n", (0,)), ("0-1\n", (0, 1)), ("0,2-3\n", (0, 2, 3)), ("\n", (0,)), ("x-y", (0,)), (None, (0,))],
)
def test_nodes_that_have_memory(tmp_path, text, expected):
    if text is not None:
        (tmp_path / "devices/system/node").mkdir(parents=True)
        (tmp_path / "devices/system/node/has_memory").write_text(text)
    assert pci.memory_nodes(tmp_path) == expected


@pytest.mark.parametrize("address", ["0000:04:00.0", None, ""])
def test_what_linux_does_not_know_is_none(sysfs, address):
    assert pci.facts(address, sysfs) == dict.fromkeys(UNKNOWN)


def test_a_device_without_a_prefetchable_window_has_no_bar(sysfs):
    resource = sysfs / "bus/pci/devices/0000:03:00.0/resource"
    resource.write_text("0x81000000 0x81ffffff 0x140204\n")
    assert pci.facts("0000:03:00.0", sysfs)["bar_size"] is None
    resource.write_text("nonsense\n")
    assert pci.facts("0000:03:00.0", sysfs)["bar_size"] is None


@pytest.mark.parametrize(
    ("mask", "pairs"),
    [
        ("", None),
        ("0", [(0, None)]),
        ("0,1", [(0, None), (1, None)]),
        ("0.1", [(0, 1)]),
        (" 1.0 , 0 ", [(1, 0), (0, None)]),
        ("10.12", [(10, 12)]),
    ],
)
def test_the_grammar_of_the_mask(mask, pairs, monkeypatch):
    assert affinity.parse(mask) == pairs
    monkeypatch.setenv("ZE_AFFINITY_MASK", mask)
    assert xpu.affinity_mask() == pairs


@pytest.mark.parametrize("mask", ["x", "0,", ",", "0.1.2", "-1", "0;1", "0.", ".1", "²"])
def test_a_malformed_mask_names_the_entry(mask):
    with pytest.raises(ValueError, match="is neither a device N nor a tile N.M"):
        affinity.parse(mask)


# Two cards of two tiles each. (card, tile) pairs of each device that is left.
A0, A1, B0, B1 = (0, 0), (0, 1), (1, 0), (1, 1)


@pytest.mark.parametrize(
    ("mask", "composite", "flat"),
    [
        (None, [[A0, A1], [B0, B1]], [[A0], [A1], [B0], [B1]]),
        ("0", [[A0, A1]], [[A0]]),
        ("1", [[B0, B1]], [[A1]]),
        ("0,1", [[A0, A1], [B0, B1]], [[A0], [A1]]),
        ("1,0", [[A0, A1], [B0, B1]], [[A0], [A1]]),
        ("0.1", [[A1]], []),
        ("0.0,1.1", [[A0], [B1]], [[A0]]),
        ("0.1,1", [[A1], [B0, B1]], [[A1]]),
        ("0,0.1", [[A0, A1]], [[A0]]),
        ("3", [], [[B1]]),
        ("7", [], []),
    ],
)
def test_mask_and_hierarchy_together(mask, composite, flat):
    assert affinity.visible(mask, "COMPOSITE", [2, 2]) == composite
    assert affinity.visible(mask, "FLAT", [2, 2]) == affinity.visible(mask, "COMBINED", [2, 2]) == flat


def test_an_unknown_hierarchy_lists_the_right_ones():
    with pytest.raises(ValueError, match="expected one of COMPOSITE, FLAT, COMBINED"):
        affinity.visible("0", "flat", [1])


def test_the_cpu_driver_lists_this_process_and_says_that_there_are_no_others():
    code = SYSMAN + """
import os
head = "GPU:0 is the CPU driver's, which only this process uses"
assert memory.list_gpu_processes() == f"{head}\\nprocess {os.getpid():>10d} uses        0.000 MB GPU memory"
x = l0rt.empty(64 << 20)
expected = f"{head}\\nprocess {os.getpid():>10d} uses       64.000 MB GPU memory"
assert memory.list_gpu_processes() == xpu.list_gpu_processes("xpu:0") == expected
assert "uses        0.000 MB" in memory.list_gpu_processes(1)
for wrong, error in ((2, IndexError), ("cpu", ValueError)):
    try:
        memory.list_gpu_processes(wrong)
    except error:
        continue
    raise AssertionError(wrong)
"""
    result = run_python(code, CPU)
    assert result.returncode == 0, result


def test_processes_that_are_not_known_are_told_with_the_reason():
    code = SYSMAN + """
print(memory.list_gpu_processes())
"""
    for env, reason in (
        ({"L0RT_CPU_FAIL": "zesInit:1:ERROR_UNINITIALIZED"}, "it needs Level Zero's loader 1.9.4 or newer"),
        ({"ZES_ENABLE_SYSMAN": 1}, "ZES_ENABLE_SYSMAN=1"),
        ({"L0RT_CPU_FAIL": "zesDeviceProcessesGetState:1:ERROR_UNSUPPORTED_FEATURE"}, "UNSUPPORTED_FEATURE"),
        ({"L0RT_CPU_FAIL": "zesDeviceProcessesGetState:1:ERROR_INSUFFICIENT_PERMISSIONS"}, "CAP_PERFMON"),
    ):
        result = run_python(code, {**CPU, **env})
        assert result.returncode == 0, result
        assert result.stdout.startswith("the processes that use GPU:0 are not known: "), result
        assert reason in result.stdout, result


# A driver that lists 300 processes, none, one more at each call, or has no such function.
MANY = SYSMAN + """
import ctypes
from l0rt.core import sysman
assert devices.card(0)                                     # opened, once, with the driver's own functions

class State(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("next", ctypes.c_void_p), ("pid", ctypes.c_uint32),
                ("nbytes", ctypes.c_uint64), ("shared", ctypes.c_uint64), ("engines", ctypes.c_uint32)]

there, capacities = [], []
def answer(device, count, states):
    capacities.append(count[0])
    for place in range(min(count[0], len(there))):
        assert states[place].stype == 0x16 and not states[place].next
        states[place].pid, states[place].nbytes = there[place]
    enough = count[0] >= len(there)
    count[0] = len(there)
    return 0 if enough else 0x78000008                     # ERROR_INVALID_SIZE

kind = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(State))
function = kind(answer)
def listed(function):
    address = lambda name: function if name == "zesDeviceProcessesGetState" else devices.library.address(name)
    assert sysman.open_cards(address, None)
    return memory.list_gpu_processes().splitlines()[1:]
"""


def test_any_number_of_processes_is_listed():
    code = MANY + """
address = ctypes.cast(function, ctypes.c_void_p).value
assert listed(address) == ["no processes are running"]
there[:] = [(7, 3 << 20), (4_194_303, (5 << 30) + (1 << 19))]
assert listed(address) == ["process          7 uses        3.000 MB GPU memory",
                           "process    4194303 uses     5120.500 MB GPU memory"]
there[:] = [(pid, pid << 20) for pid in range(1, 301)]
capacities.clear()
lines = listed(address)
assert (len(lines), capacities) == (300, [128, 256, 512])
assert lines[299] == "process        300 uses      300.000 MB GPU memory"
there[:] = [(1, 1)] * 100_000                              # nobody has so many: the driver is broken
assert listed(address) == []
assert "ERROR_INVALID_SIZE" in memory.list_gpu_processes() and capacities[-1] <= 1 << 16
assert listed(0) == [] and "no zesDeviceProcessesGetState" in memory.list_gpu_processes()
"""
    result = run_python(code, CPU)
    assert result.returncode == 0, result


class Found:
    """A device as the driver reports it."""

    def __init__(self, integrated):
        self.integrated = integrated

    def values(self):
        return {"integrated": self.integrated}


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [((0, 1), (0,)), ((1, 0, 1, 0), (0, 0)), ((1, 1), (1, 1)), ((0, 0), (0, 0)), ((), ())],
)
def test_integrated_gpus_beside_a_discrete_one_can_be_hidden(kinds, kept, monkeypatch):
    found = [Found(integrated) for integrated in kinds]
    monkeypatch.setattr(count, "_counted", {})
    monkeypatch.setattr(count, "_ask_with_descriptors", lambda library: b"noise\n%d %d\n" % (len(kinds), sum(kinds)))
    assert devices.shown(found) is found
    assert count.count_without_opening("gpu") == len(kinds)
    monkeypatch.setenv("L0RT_INTEGRATED", "hide")
    assert tuple(device.integrated for device in devices.shown(found)) == kept
    assert count.count_without_opening("gpu") == len(kept)
    monkeypatch.setenv("L0RT_INTEGRATED", "x")
    with pytest.raises(ValueError, match="L0RT_INTEGRATED='x' is not valid: expected one of keep, hide"):
        devices.shown(found)


def test_the_cpu_driver_counts_its_integrated_devices():
    for profile, shown in (("meteor-lake", "2 2"), ("arc-b580", "2 0")):
        code = "from l0rt.ze import count, loader\nprint(count._ask(loader.library_name('cpu')).decode())"
        result = run_python(code, {"L0RT_CPU_PROFILE": profile, "L0RT_CPU_DEVICES": "2", "L0RT_DRIVER": "cpu"})
        assert result.returncode == 0, result
        assert result.stdout.split("\n")[1] == shown


def test_the_architectures_are_those_of_the_gpus_here(monkeypatch):
    cards = [(0x8086, 0xE20B, False), (0x8086, 0x7D55, False), (0x8086, 0xE20B, False), (0x8086, 0x0BD5, True),
             (0x10DE, 0xE20B, False), (0x8086, 0x0001, False)]  # fmt: skip
    known = [dict(zip(("vendor_id", "device_id", "is_software"), card, strict=True)) for card in cards]
    present = SimpleNamespace(device_count=lambda: len(known), properties=known.__getitem__)
    monkeypatch.setattr(facts, "_devices", present)
    assert xpu.get_arch_list() == ["bmg", "mtl-h"]
    assert xpu.get_gencode_flags() == "-device bmg,mtl-h"
    assert set(facts._OCLOCS) == {name for *_, name in quirks.ARCHITECTURES}
    known[:] = known[3:4]
    assert (xpu.get_arch_list(), xpu.get_gencode_flags()) == ([], "")


def test_the_architecture_is_sycls_number(monkeypatch):
    alchemist = {**devices.properties(0), "ip_version": 12 << 22 | 55 << 14 | 8}
    monkeypatch.setattr(devices, "properties", lambda index: alchemist)
    assert xpu.get_device_properties().architecture == 0x3_0DC0_0800  # intel_gpu_acm_g10


def test_a_uuid_has_bytes_and_a_text():
    uuid = xpu.get_device_properties(0).uuid
    assert type(uuid.bytes) is bytes
    assert (len(uuid.bytes), list(uuid.bytes)) == (16, list(uuid))
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", str(uuid))
    assert xpu.find_device(str(uuid)) == xpu.find_device(uuid) == xpu.find_device(uuid.bytes)
    assert pickle.loads(pickle.dumps(uuid)) == uuid
    assert str(pickle.loads(pickle.dumps(uuid))) == str(uuid)
