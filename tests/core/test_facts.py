"""What is known of a device besides what Level Zero tells: Linux's facts by PCI address, and the affinity mask."""

import os

import l0rt.xpu as xpu
import pytest
from l0rt.ze import affinity, pci

TORCH_FIELDS = """name platform_name vendor device_id driver_version version max_compute_units gpu_eu_count
gpu_subslice_count max_work_group_size max_num_sub_groups sub_group_sizes memory_clock_rate memory_bus_width
local_mem_size last_level_cache_size total_memory has_fp16 has_fp64 has_atomic64 has_bfloat16_conversions
has_subgroup_matrix_multiply_accumulate has_subgroup_matrix_multiply_accumulate_tensor_float32
has_subgroup_2d_block_io is_integrated_gpu architecture type uuid""".split()


def test_properties_have_torchs_fields_and_more():
    properties = xpu.get_device_properties()
    assert [field for field in TORCH_FIELDS if not hasattr(properties, field)] == []
    assert properties.max_num_sub_groups * min(properties.sub_group_sizes) <= properties.max_work_group_size
    for more in ("pci", "index", "is_software", "kernel_driver", "render_node", "bar_size"):
        assert hasattr(properties, more)
    assert properties.queue_groups["compute"] >= 1
    assert properties.peers == [i for i in range(1, xpu.device_count()) if xpu.can_device_access_peer(0, i)]


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
        "bar_size": 16 << 30,
    }


@pytest.mark.parametrize("address", ["0000:04:00.0", None, ""])
def test_what_linux_does_not_know_is_none(sysfs, address):
    assert pci.facts(address, sysfs) == {"kernel_driver": None, "render_node": None, "bar_size": None}


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
