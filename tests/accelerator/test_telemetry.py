# SPDX-License-Identifier: Apache-2.0
"""What a device's sensors say, through l0rt.telemetry and l0rt.xpu, and the history that a Sampler keeps."""

import gc
import json
import threading
import time

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import telemetry, xpu
from l0rt.runtime.streams import devices
from l0rt.ze import pci

from helpers.process import run_python

FIGURES = telemetry.Sample.FIGURES


def has_sensors():
    """The CPU driver has, but through a loader that does not pass system management on."""
    try:
        return bool(devices.sensors(0)) and devices.properties(0)["is_software"]
    except l0rt.UnsupportedError:
        return False


sensed = pytest.mark.skipif(not has_sensors(), reason="needs the sensors of the CPU driver")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def linux(tmp_path, monkeypatch):
    """A device whose driver has no system management, and a sysfs of our own."""

    def none(index):
        raise l0rt.UnsupportedError("this driver has no system management (sysman) of the device")

    monkeypatch.setattr(telemetry._devices, "sensors", none)
    monkeypatch.setattr(telemetry, "_sysfs", str(tmp_path))
    address = devices.properties(0)["pci"]
    if not address:
        address = "0000:03:00.0"
        monkeypatch.setattr(telemetry._devices, "properties", lambda index: {"pci": address})
    return tmp_path / "bus/pci/devices" / address


@sensed
@pytest.mark.checks_data
def test_an_idle_device_and_one_at_work():
    acc.synchronize()
    assert (xpu.temperature(), xpu.clock_rate(), xpu.utilization(0)) == (40, 300, 0)
    assert 9_000 <= xpu.power_draw("xpu:0") <= 11_000
    buffer = l0rt.empty(32 << 20)
    end = threading.Event()

    def work():
        while not end.is_set():
            buffer.fill(1)
            acc.synchronize()

    worker = threading.Thread(target=work)
    worker.start()
    deadline = time.monotonic() + 60
    try:  # on a busy machine the worker or the device's thread may have no turn while one figure is measured
        for figure, least in ((telemetry.utilization, 20), (telemetry.power_draw, 15_000), (telemetry.memory_usage, 0)):
            while figure() <= least:
                assert time.monotonic() < deadline, figure
    finally:
        end.set()
        worker.join()
    assert telemetry.device_memory_used() >= 32 << 20


@sensed
def test_errors_say_what_is_not_known():
    found = telemetry.errors()
    assert (found["ecc"], found["needs_reset"], found["resets"]) == (False, False, None)
    assert list(found["missing"]) == ["resets"]


@pytest.mark.parametrize("name", FIGURES)
def test_a_device_that_is_not_there_is_refused(name):
    with pytest.raises(IndexError):
        getattr(xpu, name)(99)
    with pytest.raises((TypeError, RuntimeError, ValueError)):
        getattr(xpu, name)("cuda")


def test_without_sensors_the_error_says_what_is_missing(linux):
    for name in FIGURES[:-1]:
        with pytest.raises(l0rt.UnsupportedError, match=f"the {name} of xpu:0 is not known: this driver has no system"):
            getattr(telemetry, name)()
    assert telemetry.device_memory_used() >= 0
    assert telemetry.errors()["missing"].keys() == {"resets", "ecc", "needs_reset"}


def test_missing_privileges_come_with_advice(monkeypatch):
    class Locked:
        def __getattr__(self, name):
            raise l0rt.L0Error("the call failed: ERROR_INSUFFICIENT_PERMISSIONS", ("X", 0x70010000))

    monkeypatch.setattr(telemetry._devices, "sensors", lambda index: Locked())
    monkeypatch.setattr(telemetry, "_sysfs", "/nowhere")
    advice = "PERMISSIONS; the root user has it, or a process with CAP_PERFMON"
    for name in FIGURES[:-1]:
        with pytest.raises(l0rt.UnsupportedError, match=f"the {name} of xpu:0 is not known: .*{advice}"):
            getattr(telemetry, name)()
    missing = telemetry.errors()["missing"]
    assert missing.keys() == {"resets", "ecc", "needs_reset"}
    assert all(advice in why for why in missing.values())


def test_xes_files_are_read_where_there_is_no_system_management(linux):
    hwmon = linux / "hwmon/hwmon4"
    write(hwmon / "temp2_input", 61000)
    write(hwmon / "temp2_label", "pkg")
    write(hwmon / "temp3_input", 74000)
    write(hwmon / "temp3_label", "vram")
    write(linux / "tile0/gt0/freq0/act_freq", 1950)
    write(linux / "tile0/gt1/freq0/act_freq", 400)
    assert (telemetry.temperature(), telemetry.clock_rate()) == (61, 1950)
    write(hwmon / "energy1_input", 5_000_000)
    assert pci.sensors(linux.name, str(linux.parents[3])) == {
        "temperatures": {"gpu": 61.0, "memory": 74.0}, "energy": 5_000_000, "clock": 1950,
    }  # fmt: skip
    meter = telemetry.Meter(0)
    assert meter.read(["power_draw"]).power_draw is None
    begin = time.monotonic()
    write(hwmon / "energy1_input", 6_000_000)
    time.sleep(0.05)
    drawn = meter.read(["power_draw"]).power_draw
    assert 1000 / (time.monotonic() - begin + 1) < drawn <= 1000 / 0.05  # a joule


@pytest.mark.parametrize("text", ["", "x", "-5", "1e3", "９", "\0", "1" * 63])
def test_a_file_with_nonsense_is_no_reading(linux, text):
    write(linux / "hwmon/hwmon0/energy1_input", text)
    write(linux / "drm/card0/gt_act_freq_mhz", 700)
    found = pci.sensors(linux.name, str(linux.parents[3]))
    assert (found["temperatures"], found["clock"]) == (None, 700)
    assert found["energy"] is None or found["energy"] == int(text)
    assert pci.sensors("", str(linux.parents[3])) == dict.fromkeys(found)


class Counters:
    """Sensors whose counters are set by the test."""

    def __init__(self):
        self.rows = [(0, 1000)]
        self.moved = [(0, 10**9, 1000)]

    def activity(self):
        return list(self.rows)

    def traffic(self):
        return list(self.moved)


def test_a_rate_is_that_of_the_busiest_and_never_out_of_range(monkeypatch):
    told = Counters()
    monkeypatch.setattr(telemetry._devices, "sensors", lambda index: told)
    meter = telemetry.Meter(0)

    def reading():
        sample = meter.read(["utilization", "memory_usage"])
        return sample.utilization, sample.memory_usage

    assert reading() == (None, None)
    assert reading() == (None, None)  # no counter is renewed
    told.rows, told.moved = [(250, 2000)], [(5 * 10**5, 10**9, 2000)]
    assert reading() == (25, 50)
    told.rows, told.moved = [(9000, 3000)], [(10**9, 10**9, 3000)]
    assert reading() == (100, 100)
    told.rows, told.moved = [(0, 4000)], [(0, 10**9, 4000)]  # begun anew
    assert reading() == (0, 0)
    told.rows = [(0, 5000), (7, 5000)]  # an engine more
    assert reading() == (None, None)
    told.rows, told.moved = [(100, 6000), (807, 6000)], [(0, 0, 6000)]
    assert meter.read(["utilization"]).utilization == 80
    assert "does not report what its memory can do" in meter.read(["memory_usage"]).missing["memory_usage"]


def test_a_sampler_keeps_the_last_samples_and_stops():
    with telemetry.Sampler(interval=0.01, history=5) as sampler:
        assert sampler.is_running
        assert sampler.start() is sampler
        while len(sampler.samples) < 5:
            time.sleep(0.01)
        first = sampler.samples[0].time
        while sampler.samples[0].time == first:
            time.sleep(0.01)
    count = sampler.samples
    assert (len(count), sampler.is_running) == (5, False)
    assert [s.time for s in count] == sorted(s.time for s in count)
    assert json.loads(json.dumps(count[-1].as_dict())).keys() == {"time", "missing", *FIGURES}
    assert "stopped, 5 samples" in repr(sampler)
    assert "device_memory_used=" in repr(count[-1])
    sampler.stop()
    with sampler:
        pass
    assert not sampler.is_running


def test_a_sampler_that_is_dropped_ends_its_thread():
    def samplers():
        return [thread for thread in threading.enumerate() if thread.name == "l0rt-sampler"]

    sampler = telemetry.Sampler(interval=0.01).start()
    [thread] = samplers()
    del sampler
    gc.collect()
    thread.join(60)
    assert samplers() == []


@pytest.mark.parametrize(
    ("arguments", "error"),
    [({"interval": 0}, ValueError), ({"interval": float("nan")}, ValueError), ({"interval": "1"}, TypeError),
     ({"interval": 1e9}, ValueError), ({"interval": True}, TypeError), ({"history": 0}, ValueError),
     ({"history": 1.5}, TypeError), ({"history": 1 << 70}, ValueError), ({"device": 99}, IndexError)],
)  # fmt: skip
def test_a_sampler_with_bad_arguments_is_refused(arguments, error):
    with pytest.raises(error):
        telemetry.Sampler(**arguments)


def test_a_process_that_ends_or_forks_while_it_samples():
    code = """
import os, sys, time
import l0rt.telemetry as telemetry
sampler = telemetry.Sampler(interval=0.01).start()
while not sampler.samples: time.sleep(0.01)
child = os.fork()
if not child:
    count = len(sampler.samples)
    assert not sampler.is_running
    sampler.stop()
    sys.exit(3 if len(sampler.samples) == count >= 1 else 4)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
assert sampler.is_running
print("end")
"""
    result = run_python(code, {"PYTHONWARNINGS": "ignore::DeprecationWarning"}, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "end\n", ""), result
