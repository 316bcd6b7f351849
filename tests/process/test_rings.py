# SPDX-License-Identifier: Apache-2.0
"""The tests on the interface, again on every other driver that is installed."""

import os
from types import SimpleNamespace

import l0rt
import pytest

from helpers import covering
from helpers.ci import skip_unless_ci
from helpers.extents import HANG_LIMIT, SOAK, WHOLE
from helpers.process import run_python
from helpers.rings import FOLDERS, RINGS, SIMULATED, TESTS, Ring, summary, verdict

WHO = """
import ctypes
P, ze = ctypes.c_void_p, ctypes.CDLL("libze_loader.so.1")
assert ze.zeInit(0) == 0
n, driver, devices = ctypes.c_uint32(1), P(), (P * 8)()
assert ze.zeDriverGet(ctypes.byref(n), ctypes.byref(driver)) == 0
n.value = 0
assert ze.zeDeviceGet(driver, ctypes.byref(n), None) == 0
assert ze.zeDeviceGet(driver, ctypes.byref(n), devices) == 0
properties = ctypes.create_string_buffer(bytes([3]), 1024)  # ze_device_properties_t
assert ze.zeDeviceGetProperties(P(devices[0]), properties) == 0
ours = properties[112:].startswith(b"l0rt CPU device")
print(n.value, "ours" if ours else hex(int.from_bytes(properties[20:24], "little")))
"""
ANSWERS = ["2 ours", "1 ours", "2 ours", "1 0x8086", "2 0x8086"]


def again(ring, tmp_path, extent):
    """Run the tests on the interface with a ring's driver: all of them in `make test-all`, a selection elsewhere."""
    if WHOLE and not SOAK and not os.environ.get("CI"):
        return ring.run(l0rt.cpu_driver_path(), tmp_path, [TESTS / name for name in FOLDERS], 1.5 * HANG_LIMIT)
    part = covering.part_of((*RINGS, *SIMULATED).index(ring))
    extent.note(
        f"{ring}: {len(covering.listed())} tests that ask everything, and the {len(covering.files(part))} files of "
        f"part {part}, by L0RT_TEST_TURN={covering.turn()}"
    )
    return ring.run(l0rt.cpu_driver_path(), tmp_path, covering.paths(part), 1.5 * HANG_LIMIT, {"L0RT_TEST_PART": part})


@pytest.mark.takes_minutes
@pytest.mark.parametrize("ring", RINGS, ids=str)
def test_the_same_tests_pass_on_ring(ring, tmp_path, record_property, extent):
    if missing := ring.missing():
        reason = f"NOT RUN: {', '.join(missing)} is not installed"
        record_property("ring", (ring.name, reason))
        skip_unless_ci(reason)
    result = again(ring, tmp_path, extent)
    record_property("ring", (ring.name, verdict(result) or "failed"))
    assert verdict(result), f"ring {ring.name}: {result}"


@pytest.mark.takes_minutes
@pytest.mark.parametrize("ring", SIMULATED, ids=str)
def test_the_same_tests_pass_on_a_simulated_device(ring, tmp_path, extent):
    extent.skip_unless_whole()
    result = again(ring, tmp_path, extent)
    assert verdict(result), f"simulated device {ring.name}: {result}"


def test_a_simulated_device_has_the_name_of_its_profile():
    found = set()
    for ring in SIMULATED:
        code = "import l0rt; print(l0rt.xpu.get_device_name())"
        name = run_python(code, ring.environment(l0rt.cpu_driver_path())).stdout.strip()
        assert name.startswith("l0rt CPU device")
        found.add(name)
    assert len(found) == 5, found  # both of the A770's kernel drivers have one name


@pytest.mark.parametrize(("ring", "answer"), list(zip(RINGS, ANSWERS, strict=True)), ids=str)
def test_each_ring_has_the_driver_it_says(ring, answer, tmp_path):
    if missing := ring.missing():
        skip_unless_ci(f"{', '.join(missing)} is not installed")
    result = run_python(WHO, ring.environment(l0rt.cpu_driver_path()), tmp_path)
    assert result.stdout.strip() == answer, str(result)


@pytest.mark.parametrize(
    ("body", "sign"),
    [
        ("def test_planted(): assert 1 == 2", "1 failed"),
        ("", "no tests ran"),
        ("import pytest\ndef test_planted(): pytest.skip()", "1 skipped"),
        ("import time\ndef test_planted(): time.sleep(1000)", "was killed"),
        ("import os\ndef test_planted(): assert 'ZE_PLANTED' in os.environ", "1 failed"),
        ("import os\ndef test_planted(): os._exit(0)", "exit status 0"),
    ],
)
def test_a_ring_that_does_not_pass_is_seen(body, sign, tmp_path, monkeypatch):
    monkeypatch.setenv("ZE_PLANTED", "1")
    (tmp_path / "test_planted.py").write_text(body)
    timeout = 5 if "sleep" in body else 60
    result = Ring("planted", (), {}).run("nowhere", tmp_path, [tmp_path / "test_planted.py"], timeout)
    assert verdict(result) is None
    assert sign in str(result)


def test_a_ring_that_passes_is_seen(tmp_path):
    (tmp_path / "test_planted.py").write_text("import os\ndef test_it(): assert os.environ['L0RT_TEST_RING'] == 'x'\n")
    result = Ring("x", (), {}).run("nowhere", tmp_path, [tmp_path / "test_planted.py"], timeout=30)
    assert "1 passed" in verdict(result), str(result)


def test_a_missing_library_is_named():
    assert Ring("planted", ("libc.so.6", "libl0rt_planted.so.1"), {}).missing() == ["libl0rt_planted.so.1"]


def test_a_ring_that_cannot_run_fails_in_ci_only(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="planted"):
        skip_unless_ci("planted")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="planted"):
        skip_unless_ci("planted")


def test_the_summary_names_every_ring():
    outcomes = [("loader", "3 passed"), ("intel", "NOT RUN: libx.so is not installed")]
    reports = [SimpleNamespace(nodeid="rings", user_properties=[("ring", outcome)]) for outcome in outcomes]
    lines = summary({"passed": reports})
    assert [line.partition(":")[0] for line in lines[1:]] == [f"ring {ring.name}" for ring in RINGS]
    assert "ring loader: 3 passed" in lines
    assert "ring intel: NOT RUN: libx.so is not installed" in lines
    assert summary({}) == []
