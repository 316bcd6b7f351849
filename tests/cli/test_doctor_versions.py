# SPDX-License-Identifier: Apache-2.0
"""Each row of the doctor's table of bad versions, made by libraries, the kernel's files and the environment."""

import os

import pytest
from l0rt.ze import versions

from helpers.doctor import A770, B580, CPU, LUNAR_LAKE, codes, examine, library, stub

VERSIONS = codes("Versions that are known to be bad")
XE = (B580, "xe", True)
KNOWN = {
    "loader_without_sysman": ({"loader": (1, 8, 12)}, {"loader": (1, 9, 4)}),
    "loader_validates_too_little": (
        {"loader": (1, 8, 12), "validates": True}, {"loader": (1, 13, 0), "validates": True},
    ),
    "loader_of_a_package": (
        {"path": "/x/site-packages/lib/libze_loader.so.1", "others": [("/usr/lib/l", "1.27.0")]},
        {"path": "/x/site-packages/lib/libze_loader.so.1"},
    ),
    "npu_driver": ({"has_npu": True}, {}),
    "driver_aborts_on_host_memory": ({"build": 24595}, {"build": 30872}),
    "driver_aborts_on_memory_info": ({"build": 32224}, {"build": 32225}),
    "driver_aborts_on_this_kernel": (
        {"build": 36300, "kernel": (6, 18, 1), "gpus": [(LUNAR_LAKE, "xe", False)]},
        {"build": 36300, "kernel": (6, 17, 9), "gpus": [(LUNAR_LAKE, "xe", False)]},
    ),
    "alchemist_on_xe": (
        {"build": 37020, "gpus": [(A770, "xe", True)]}, {"build": 37020, "gpus": [(A770, "i915", True)]},
    ),
    "host_shadow": ({"build": 38308, "gpus": [XE, XE]}, {"build": 38308, "gpus": [XE]}),
    "free_memory_needs_privileges": ({"build": 37833}, {"build": 38308}),
    "wsl": ({"is_wsl": True}, {}),
}  # fmt: skip


def test_every_bad_version_is_on_the_page_and_here():
    assert [row.code for row in versions.DEFECTS] == list(VERSIONS) == list(KNOWN)
    assert all(row.what and row.remedy and "https://" in row.source and row.component in ("loader", "driver", "kernel")
               for row in versions.DEFECTS)  # fmt: skip


@pytest.mark.parametrize("code", KNOWN)
def test_a_bad_version_is_known_and_the_next_is_not(code):
    bad, good = KNOWN[code]
    assert code in [row.code for row in versions.known(versions.Facts(**bad))]
    assert code not in [row.code for row in versions.known(versions.Facts(**good))]


def test_nothing_is_bad_of_which_nothing_is_known():
    assert versions.known(versions.Facts()) == ()


def old_loader_and_xe(machine, tmp_path):
    machine.gpu()
    machine.gpu("0000:04:00.0", 129, device=A770)
    machine.file("proc/sys/kernel/osrelease", "6.18.1\n")
    env = stub(tmp_path, version=(1, 8, 12), driver="libze_intel_gpu.so.1.14.36300")
    return {**env, "ZE_ENABLE_VALIDATION_LAYER": "1"}


def old_driver_in_wsl_with_another_loader_and_an_npu(machine, tmp_path):
    machine.file("dev/dxg")
    mine, other = tmp_path / "site-packages", tmp_path / "other"
    mine.mkdir(), other.mkdir()
    env = stub(mine, driver="libze_intel_gpu.so.1.3.24595")
    library(mine, "int nothing;", "libze_intel_npu.so.1")
    (other / "libze_loader.so.1.99.0").touch()
    return {"LD_LIBRARY_PATH": f"{env['LD_LIBRARY_PATH']}:{other}:"}


def driver_of_24_52(machine, tmp_path):
    return stub(tmp_path, driver="libze_intel_gpu.so.1.6.32224")


def two_cards_under_xe(machine, tmp_path):
    machine.gpu()
    machine.gpu("0000:04:00.0", 129)
    return stub(tmp_path, driver="libze_intel_gpu.so.1.15.38308")


MACHINES = {
    old_loader_and_xe: "loader_without_sysman loader_validates_too_little driver_aborts_on_this_kernel "
    "alchemist_on_xe free_memory_needs_privileges",
    old_driver_in_wsl_with_another_loader_and_an_npu: "loader_of_a_package npu_driver driver_aborts_on_host_memory "
    "free_memory_needs_privileges wsl",
    driver_of_24_52: "driver_aborts_on_memory_info free_memory_needs_privileges",
    two_cards_under_xe: "host_shadow",
}


def test_machines_with_every_bad_version_are_made_here():
    assert {code for told in MACHINES.values() for code in told.split()} == set(VERSIONS)


@pytest.mark.parametrize("make", MACHINES)
def test_a_machine_with_bad_versions_is_told_of_them(machine, tmp_path, make, extent):
    """Versions come from a loader's answer, the files' names, the kernel's files and the environment."""
    extent.skip_unless_whole()
    found, told, _ = examine(env={**CPU, **make(machine, tmp_path)}, root=machine.root)
    known = [row["code"] for row in found["known"]]
    if not os.path.exists(f"{machine.root}/dev/dxg"):  # a real NPU's driver may be here too
        known = [code for code in known if code != "npu_driver"]
    assert known == MACHINES[make].split()
    assert set(known) <= set(told)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("6.18.3-generic", (6, 18, 3)), ("1.27.0", (1, 27, 0)), ("x", None), ("", None), (None, None)],
)
def test_numbers_of_a_version(text, expected):
    assert versions.numbers(text) == expected


def test_releases_go_by_builds():
    assert versions.release(24595) == "22.43"
    assert versions.release(38400) == "26.18"
    assert versions.release(1) is None
    assert versions.build_of_file("/usr/lib/libze_intel_gpu.so.1.3.24595") == 24595
    assert versions.build_of_file("/usr/lib/libze_intel_gpu.so.1") == 0
