# SPDX-License-Identifier: Apache-2.0
"""What is known of a device besides what Level Zero tells: Linux's facts by PCI address, and the affinity mask."""

import os

import l0rt.xpu as xpu
import pytest
from l0rt.ze import affinity, pci

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
    for more in ("pci", "index", "is_software", "kernel_driver", "render_node", "bar_size"):
        assert hasattr(properties, more)
    assert properties.queue_groups["compute"] >= 1
    assert properties.tiles == properties.xe_stack_count >= 1
    assert sum(size for _, size in properties.memory_kinds) == properties.total_memory
    assert properties.peers == [i for i in range(1, xpu.device_count()) if xpu.can_device_access_peer(0, i)]


UNKNOWN = ("kernel_driver", "render_node", "card_node", "bar_size")


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
assert memory.memory_info(0) == {"free": free, "total": total, "source": "reported by system management"}
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
    return tmp_path


def test_linux_tells_driver_node_and_window(sysfs):
    assert pci.facts("0000:03:00.0", sysfs) == {
        "kernel_driver": "xe",
        "render_node": "/dev/dri/renderD129",
        "card_node": "/dev/dri/card1",
        "bar_size": 16 << 30,
    }


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
