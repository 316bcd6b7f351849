# SPDX-License-Identifier: Apache-2.0
"""A simulated device does what its kernel driver and its engines do, and names what they would not forgive."""

import os
import re
from pathlib import Path

import pytest

from helpers.process import run

HERE = Path(__file__).parent
DEVICE = os.environ["XE_DEVICE"].partition(",")[0]
VRAM = {"bmg": 12, "pvc": 48, "pvc2": 64, "dg2": 16}  # GiB of a tile
# GTs, engines, and masks of what the GTs have: from Xe2 on media engines have a GT of their own.
PARTS = {"bmg": "2 7 8", "lnl": "2 7 8", "ptl": "2 7 8", "pvc": "1 10 4", "pvc2": "2 20 8", "dg2": "1 3 4"}
LARGE_PAGES = ("pvc", "pvc2", "dg2")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    program = tmp_path_factory.mktemp("client") / "client"
    flags = ["-std=gnu11", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE"]
    result = run(["gcc", *flags, "-o", program, HERE / "client.c"], {"LD_PRELOAD": None})
    assert result.returncode == 0, str(result)
    return program


@pytest.fixture
def asks(client, tmp_path):
    """Run a program of client.c on devices; return what it prints, and the failures that were named."""

    def ask(word, devices=DEVICE, **env):
        file = tmp_path / "failures"
        result = run([client, word], {"XE_DEVICE": devices, "XE_DEVICE_FAILURES": file, **env})
        assert result.returncode == 0, str(result)
        lines = file.read_text().splitlines() if file.exists() else []
        return result.stdout.strip(), [line.partition(" ")[2] for line in lines]

    return ask


def test_a_batch_writes_memory_and_signals_its_fence(asks):
    assert asks("stored") == ("0 0 0 0", [])


def test_a_device_has_the_parts_of_its_product(asks):
    assert asks("described") == (PARTS[DEVICE], [])


def test_programs_see_the_devices_files():
    """Also those whose libraries open files before the simulated devices' own constructor: libselinux does."""
    nodes = run(["ls", "/dev/dri"], {"XE_DEVICE": f"{DEVICE},{DEVICE}"})
    assert nodes.stdout.split() == ["by-path", "card0", "card1", "renderD128", "renderD129"], str(nodes)
    link = run(["readlink", "/sys/class/drm/card0/device"])
    assert re.fullmatch(r"\.\./\.\./\.\./0000:[0-9a-f]{2}:[0-9a-f]{2}\.0\n", link.stdout), str(link)


def test_memory_that_is_not_bound_bans_the_queue(asks):
    assert asks("unbound") == ("0 EIO 1 ECANCELED", ["queue 1: write of memory that is not bound at 0x700001000"])


def test_an_unknown_command_bans_the_queue(asks):
    assert asks("unknown") == ("0 EIO 1 ECANCELED", ["queue 1: unknown command 1f800000 at 0x100000000"])


def test_an_unknown_request_is_named(asks):
    assert asks("stranger") == ("EINVAL", ["unknown ioctl 0xc004647f"])


def test_engines_compute_with_addresses_in_registers(asks):
    assert asks("math") == ("0 0 42", [])


def test_copy_engines_fill_and_copy(asks):
    assert asks("copied") == ("0 0 00 ab ab 00", [])


def test_binding_checks_alignment_as_the_kernel_does(asks):
    small = ["EINVAL"] * 3
    if DEVICE in LARGE_PAGES:
        large = ["0", *small, "EINVAL"]
    else:
        large = ["0"] * 5 if DEVICE in VRAM else ["EINVAL", *["ENOENT"] * 3, "EINVAL"]
    printed, failures = asks("alignment")
    assert printed.split() == ["0", *small, *large]
    assert len(failures) == len([word for word in printed.split() if word != "0"])


@pytest.mark.skipif(DEVICE not in VRAM, reason="has no memory of its own")
def test_memory_runs_out_at_its_size(asks):
    printed, failures = asks("full")
    assert printed == f"{VRAM[DEVICE]} ENOMEM 0 0 ENOMEM"
    assert failures == []  # a driver may try


@pytest.mark.skipif(DEVICE not in VRAM, reason="has no memory of its own")
def test_memory_that_is_deferred_runs_out_where_it_is_bound(asks):
    assert asks("deferred") == (f"{VRAM[DEVICE]} ENOMEM", [])


def test_an_address_space_with_queues_stays(asks):
    printed, failures = asks("ended")
    assert printed == "EBUSY 0 0 ENOENT"
    assert failures == ["vm_destroy: VM 1 has queues", "vm_destroy: no VM 1"]


def test_a_buffer_is_one_for_two_devices(asks):
    assert asks("shared", f"{DEVICE},{DEVICE}") == ("1 7", [])


def test_a_reset_ends_what_would_run_for_ever(asks):
    assert asks("reset") == ("0 0 1 EIO ECANCELED", [])


def test_requests_and_commands_are_counted(asks):
    printed, _ = asks("counted")
    counts = dict(re.findall(r"(\w+)=(\d+)", printed))
    assert counts["exec"] == "2"
    assert counts["gem_create"] == counts["vm_bind"] == counts["mmap"] == "2"
    assert int(counts["gpu_command"]) in (2, 3, 4)  # the second batch may still run


def test_requests_and_commands_take_as_long_as_asked(asks):
    printed, _ = asks("slow", XE_DEVICE_LATENCIES="gpu_command=10000,vm_bind=150000000")
    batch, bind = (int(word) for word in printed.split())
    assert batch >= 80  # eight commands of 10 microseconds
    assert bind >= 150_000
