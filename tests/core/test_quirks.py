# SPDX-License-Identifier: Apache-2.0
"""Quirks: which rows of the table apply to which device, build and kernel driver, and what l0rt then does without."""

import json

import pytest
from l0rt import config
from l0rt.ze import pci, quirks

from helpers.process import run_python

ALCHEMIST, BATTLEMAGE, PONTE_VECCHIO, LUNAR_LAKE = 0x56A0, 0xE20B, 0x0BDA, 0x64A0
OLD, MIDDLE, NEW = 33578, 36300, 39395  # 25.18, 25.48, 26.31
EVERY = {"unflushed_counters", "no_vm_bind", "untyped_mappings", "raw_event_handles"}


def names(device_id, build, kernel_driver, vendor_id=quirks.INTEL, switches=None):
    return {quirk.name for quirk in quirks.mended(vendor_id, device_id, build, kernel_driver, switches or {})}


@pytest.mark.parametrize(
    ("device_id", "build", "kernel_driver", "expected"),
    [
        (ALCHEMIST, OLD, "i915", EVERY),
        (ALCHEMIST, NEW, "i915", {"no_vm_bind"}),
        (ALCHEMIST, NEW, "i915-prelim", set()),
        (ALCHEMIST, MIDDLE, "xe", {"unflushed_counters", "raw_event_handles"}),
        (BATTLEMAGE, OLD, "xe", {"untyped_mappings", "raw_event_handles"}),
        (BATTLEMAGE, NEW, "xe", set()),
        (PONTE_VECCHIO, MIDDLE, "i915-prelim", {"raw_event_handles"}),
        (LUNAR_LAKE, MIDDLE, "xe", {"unflushed_counters", "raw_event_handles"}),
        (BATTLEMAGE, NEW, None, {"no_vm_bind"}),  # unknown: the careful way
        (0x1234, NEW, "xe", set()),
        (BATTLEMAGE, 0, "xe", {"untyped_mappings", "raw_event_handles"}),  # no number: as the oldest
    ],
)
def test_rows_follow_from_device_build_and_kernel_driver(device_id, build, kernel_driver, expected):
    assert names(device_id, build, kernel_driver) == expected


def test_another_vendors_device_has_none():
    assert names(ALCHEMIST, 0, None, vendor_id=0) == set()
    assert quirks.architecture(0, ALCHEMIST) is None


def test_the_setting_switches_rows_on_and_off():
    switches = {"no_vm_bind": False, "raw_event_handles": True}
    assert names(ALCHEMIST, NEW, "i915", switches=switches) == {"raw_event_handles"}
    assert names(0, 0, None, vendor_id=0, switches=switches) == {"raw_event_handles"}


@pytest.mark.parametrize("wrong", ["no_vm_bind", "no_vm_bind=2", "no_vm_bind=", "vm_bind=1", "=1"])
def test_a_wrong_switch_is_told_with_the_names_that_there_are(wrong):
    with pytest.raises(ValueError, match="no_vm_bind"):
        config.set("quirks", wrong)


def test_every_row_is_named_in_the_settings_and_concerns_capabilities():
    assert {quirk.name for quirk in quirks.QUIRKS} == set(config.QUIRKS) == EVERY
    assert {name for quirk in quirks.QUIRKS for name in quirk.without} <= set(config.CAPABILITIES)


@pytest.mark.parametrize(("files", "expected"), [((), "i915"), (("prelim_uapi_version",), "i915-prelim")])
def test_the_i915_with_vm_bind_is_told_by_its_files(tmp_path, files, expected):
    folder = tmp_path / "bus/pci/devices/0000:03:00.0"
    (folder / "drm/card0").mkdir(parents=True)
    for name in files:
        (folder / "drm/card0" / name).touch()
    (tmp_path / "bus/pci/drivers/i915").mkdir(parents=True)
    (folder / "driver").symlink_to(tmp_path / "bus/pci/drivers/i915")
    assert pci.kernel_driver("0000:03:00.0", tmp_path) == expected
    assert pci.kernel_driver("0000:04:00.0", tmp_path) is None
    assert pci.kernel_driver(None, tmp_path) is None


PROGRAM = """
import json
import l0rt
import l0rt.accelerator as acc
from l0rt.errors import UnsupportedError
from l0rt.runtime.streams import devices
x = l0rt.empty(64 << 20).fill(7)
out = bytearray(16)
l0rt.empty(16).fill(7).copy_to(out)
event = l0rt.Event(interprocess=True)
event.record()
event.synchronize()
try:
    event.ipc_handle()
    shares = True
except UnsupportedError:
    shares = False
acc.synchronize()
able = devices.capabilities(0)
print(json.dumps({
    "quirks": sorted(quirk.name for quirk in devices.mended_quirks(0)),
    "able": {name: able[name] for name in ("inorder", "vmm", "cb_events", "event_ipc")},
    "shares": shares,
    "software": devices.properties(0)["is_software"],
    "works": bytes(out) == b"\\7" * 16,
}))
"""


def found_on(profile, **environment):
    cleared = dict.fromkeys(("L0RT_DISABLE", "L0RT_EVENTS", "L0RT_QUIRKS"))
    result = run_python(PROGRAM, {**cleared, "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, **environment})
    assert (result.returncode, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("arc-a770-i915", {"vmm": False, "cb_events": True, "event_ipc": True}),
        ("arc-a770-xe", {"vmm": True, "cb_events": True, "event_ipc": True}),
        ("arc-a770-xe,neo-25.18", {"vmm": False, "cb_events": False, "event_ipc": False}),
        ("arc-b580,neo-25.18", {"vmm": False, "cb_events": True, "event_ipc": False}),
        ("pvc", {"vmm": True, "cb_events": True, "event_ipc": True}),
        ("lunar-lake,neo-25.18", {"vmm": False, "cb_events": False, "event_ipc": False}),
        ("meteor-lake", {"vmm": False, "cb_events": True, "event_ipc": True}),
    ],
)
def test_a_simulated_device_is_used_without_what_its_quirks_concern(profile, expected):
    found = found_on(profile)
    assert found["able"] == {"inorder": True, **expected}
    assert found["shares"] == expected["event_ipc"]
    assert found["software"]  # whatever its name is
    assert found["works"]


def test_a_mend_is_switched_off_and_on_in_a_process():
    assert found_on("arc-a770-i915", L0RT_QUIRKS="no_vm_bind=0")["able"]["vmm"]
    assert not found_on(None, L0RT_QUIRKS="no_vm_bind=1")["able"]["vmm"]
    assert found_on("arc-b580", L0RT_DISABLE="event_ipc")["quirks"] == []
    assert not found_on("arc-b580", L0RT_DISABLE="event_ipc")["shares"]
