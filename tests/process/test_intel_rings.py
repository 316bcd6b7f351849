# SPDX-License-Identifier: Apache-2.0
"""What `make test-intel` stands on, as far as it needs no root of Debian: it sees what a simulated device names."""

import re

import pytest

from helpers import xe_device
from helpers.rings import TESTS, Ring, verdict

PLANTED = """
import os
def test_before(): pass
def test_named():
    with open(os.environ["XE_DEVICE_FAILURES"], "a") as file:
        print("7:7 queue 1: unknown command 1f800000 at 0x1000", file=file)
def test_after(): pass
"""


OF_KERNELS = """
import os
import pytest

def launch():
    with open(os.environ["XE_DEVICE_UNMAPPED"], "a") as file:
        print("blur: it has images", file=file)

@pytest.mark.checks_data
def test_of_a_kernel():
    launch()
    assert False

@pytest.mark.checks_data
def test_of_a_kernel_that_raises():
    launch()
    with pytest.raises(RuntimeError): pass

@pytest.mark.checks_data
def test_of_a_copy(): assert False
def test_of_no_data(): test_of_a_kernel()
"""


def planted(folder, text, processes=0):
    """Run tests as a ring of simulated devices does."""
    test = folder / "test_planted.py"
    test.write_text(text)
    arguments = ["--reruns=0", "-n", str(processes), "--confcutdir", TESTS, "-p", "conftest", test]
    files = {"XE_DEVICE_FAILURES": folder / "failures", "XE_DEVICE_UNMAPPED": folder / "unmapped"}
    environment = {**files, "PYTHONPATH": TESTS}
    return Ring("planted", (), {}).run("nowhere", folder, arguments, 60, environment)


@pytest.mark.parametrize("processes", [0, 2])
def test_a_failure_of_the_device_fails_the_test_that_met_it(processes, tmp_path):
    result = planted(tmp_path, PLANTED, processes)
    assert verdict(result) is None
    assert "3 passed, 1 error" in result.stdout
    assert "ERROR" in result.stdout
    assert re.search(r"^ERROR .*test_named", result.stdout, re.MULTILINE), result
    assert "unknown command 1f800000 at 0x1000" in result.stdout


def test_only_data_of_kernels_may_be_wrong(tmp_path):
    result = planted(tmp_path, OF_KERNELS)
    assert "2 failed, 2 skipped" in result.stdout, result
    assert re.findall(r"^FAILED .*::(\w+)", result.stdout, re.MULTILINE) == ["test_of_a_copy", "test_of_no_data"]


def test_each_ring_is_of_products_that_can_be_simulated():
    products = set(re.findall(r'^  \{"(\w+)",', (TESTS / "xe_device/product.c").read_text(), re.MULTILINE))
    assert {"bmg", "lnl", "pvc", "dg2"} <= products
    for ring in xe_device.RINGS:
        assert set(ring.devices.split(",")) <= products
        environment = ring.environment(None)
        assert (environment["XE_DEVICE"], environment["L0RT_TEST_RING"]) == (ring.devices, ring.name)


def test_what_was_not_checked_is_counted():
    line = "SKIPPED [{}] ../tests/conftest.py:125: no data: here\n"
    output = line.format(43) + line.format(2) + "47 passed"
    assert xe_device.unchecked(output) == {"no data: here": 45}


def test_python_and_what_is_installed_are_shown_in_a_root():
    paths = xe_device.programs()
    assert str(TESTS.parent) in paths
    assert all(a == b or not a.startswith(f"{b}/") for a in paths for b in paths)
