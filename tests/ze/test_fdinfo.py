# SPDX-License-Identifier: Apache-2.0
"""What fdinfo of xe and i915 tells: texts as Linux's drivers write them, files of one client and of several."""

import os

import l0rt
import pytest
from l0rt import memory
from l0rt.runtime.streams import devices
from l0rt.ze import fdinfo

from helpers.process import run_python

KIB, MIB = 1 << 10, 1 << 20
ADDRESS = "0000:03:00.0"
XE = """pos:\t0
flags:\t0100002
mnt_id:\t26
ino:\t685
drm-driver:\txe
drm-client-id:\t{client}
drm-pdev:\t{pdev}
drm-total-system:\t0
drm-shared-system:\t0
drm-active-system:\t0
drm-resident-system:\t0
drm-purgeable-system:\t0
drm-total-gtt:\t192 KiB
drm-shared-gtt:\t0
drm-active-gtt:\t0
drm-resident-gtt:\t128 KiB
drm-total-vram0:\t23992 KiB
drm-shared-vram0:\t16 MiB
drm-active-vram0:\t0
drm-resident-vram0:\t22 MiB
drm-total-stolen:\t0
drm-resident-stolen:\t0
drm-cycles-rcs:\t28257900
drm-total-cycles-rcs:\t7655183225
"""
I915 = """pos:    0
flags:  0100002
mnt_id: 21
ino:    397
drm-driver: i915
drm-client-id: {client}
drm-pdev: {pdev}
drm-total-system0:      129 MiB
drm-shared-system0:     16 MiB
drm-active-system0:     110 MiB
drm-resident-system0:   125 MiB
drm-purgeable-system0:  2 MiB
drm-total-stolen-system0:       0
drm-engine-render:      25662044495 ns
drm-engine-copy:        0 ns
"""
# Linux before 6.7 or so, of other drivers: only what is resident, under an older name.
OLD = "drm-driver:\tx\ndrm-client-id:\t{client}\ndrm-pdev:\t{pdev}\ndrm-memory-vram:\t5 MiB\ndrm-memory-gtt:\t3 MiB\n"
SILENT = "drm-driver:\ti915\ndrm-client-id:\t{client}\ndrm-pdev:\t{pdev}\ndrm-engine-render:\t5 ns\n"


@pytest.fixture
def proc(tmp_path, monkeypatch):
    monkeypatch.setattr(fdinfo, "ROOT", str(tmp_path))
    return tmp_path


def write(proc, process, number, text, node="/dev/dri/renderD128", client=1, pdev=ADDRESS):
    for name in ("fd", "fdinfo"):
        (proc / process / name).mkdir(parents=True, exist_ok=True)
    (proc / process / "fd" / str(number)).symlink_to(node)
    (proc / process / "fdinfo" / str(number)).write_text(text.format(client=client, pdev=pdev))


@pytest.mark.parametrize(("text", "host", "used"), [
    (XE, 192 * KIB, 22 * MIB), (I915, 129 * MIB, 125 * MIB), (OLD, 3 * MIB, 5 * MIB), (SILENT, None, None),
])  # fmt: skip
def test_each_client_counts_once(proc, text, host, used):
    for process in ("self", "41"):
        write(proc, process, 3, text)
        write(proc, process, 4, text)  # the same file once more
        write(proc, process, 5, text, pdev="0000:04:00.0")
        write(proc, process, 6, text, node="socket:[1]")
    assert (fdinfo.host_bytes(ADDRESS), fdinfo.used_bytes(ADDRESS)) == (host, used)
    write(proc, "self", 7, text, client=2)
    write(proc, "77", 7, text, client=2)  # a file that a child has too
    write(proc, "78", 7, text, client=3)
    expected = (None, None) if host is None else (2 * host, 3 * used)
    assert (fdinfo.host_bytes(ADDRESS), fdinfo.used_bytes(ADDRESS)) == expected


def test_what_cannot_be_read_is_not_told(proc):
    assert fdinfo.host_bytes(ADDRESS) is fdinfo.used_bytes(ADDRESS) is None
    write(proc, "self", 3, "pos:\t0\nflags:\t02\n")
    (proc / "self" / "fd" / "9").symlink_to("/dev/dri/card0")  # closed meanwhile
    (proc / "net").mkdir()
    assert fdinfo.host_bytes(ADDRESS) is None
    assert fdinfo.host_bytes(None) is fdinfo.used_bytes("") is None


@pytest.mark.parametrize("value", ["", "x", "-5", "1.5 MiB", "5 KB", "5  KiB", "９", "1" * 30, "0x10", "5 KiB KiB"])
def test_a_number_that_is_none_is_left_out(value):
    told = fdinfo.parse(f"drm-driver: xe\ndrm-total-gtt: {value}\ndrm-total-system: 7\ndrm-total: 5\ndrm-\nno colon")
    assert told["total"] == {"system": 7}


def test_a_text_of_another_file_is_none():
    assert fdinfo.parse("pos:\t0\nino:\t5\n") is fdinfo.parse("") is None


def test_files_of_this_very_process_are_walked(tmp_path):
    with (tmp_path / "x").open("w"):
        assert fdinfo.clients(ADDRESS) == []
    assert str(os.getpid()) in fdinfo._names("/proc")


def test_host_shadow_bytes_are_those_of_the_devices_address(proc, monkeypatch):
    address = devices.properties(0)["pci"]
    with pytest.raises(l0rt.UnsupportedError, match="no fdinfo of this process reports the memory of xpu:0"):
        memory.host_shadow_bytes()
    if not address:
        address = ADDRESS
        real = devices.properties
        monkeypatch.setattr("l0rt.memory.stats.properties", lambda index: {**real(index), "pci": ADDRESS})
    write(proc, "self", 3, XE, pdev=address)
    assert memory.host_shadow_bytes() == memory.host_shadow_bytes("xpu:0") == 192 * KIB
    with pytest.raises(IndexError):
        memory.host_shadow_bytes(99)
    with pytest.raises(TypeError):
        memory.host_shadow_bytes(1.5)


# The driver tells nothing of free memory from the ninth question on, and there is no system management.
RUNG = """
import l0rt
import l0rt.accelerator as acc
from l0rt import memory
from l0rt.ze import fdinfo
fdinfo.ROOT = {root!r}
acc.current_device_index()
kept = l0rt.empty(3 << 20)
found = memory.memory_info()
assert memory.mem_get_info() == (found["free"], found["total"]) == acc.get_memory_info()
print(found["total"] - found["free"], memory.memory_reserved(), found["trust"], found["source"], sep="; ")
"""


def test_free_memory_is_what_a_recorded_fdinfo_leaves_where_the_driver_does_not_tell(tmp_path):
    fails = ",".join(f"zeDeviceGetProperties:{nth}:ERROR_UNKNOWN" for nth in range(9, 60))
    cpu = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-a770-xe", "L0RT_CPU_DEVICES": None, "L0RT_CPU_FAIL": fails}

    def told():
        result = run_python(RUNG.format(root=str(tmp_path)), cpu)
        assert (result.returncode, result.stderr) == (0, ""), result
        return result.stdout.strip().split("; ")

    asked = "import l0rt; print(l0rt.xpu.get_device_properties(0).pci)"
    pci = run_python(asked, {**cpu, "L0RT_CPU_FAIL": None}).stdout.strip()
    taken, reserved, trust, source = told()
    assert taken == reserved != "0"
    assert (trust, source) == ("False", "total less what this process has reserved")
    for process in "1234", "99":
        write(tmp_path, process, 3, XE, pdev=pci, client=process)
    assert told() == [str(44 * MIB), reserved, "False", "total less what fdinfo of processes shows"]
