# SPDX-License-Identifier: Apache-2.0
"""`l0rt doctor` says what is there, what is used, and what is wrong; nothing takes it down."""

import json
import re
import shutil
import subprocess

import l0rt as package
import pytest
from l0rt import config
from l0rt.cli.doctor import FALLBACKS
from l0rt.ze import obstacles

from helpers.cli import l0rt
from helpers.process import run_python

ANY = {"L0RT_DRIVER": None, "L0RT_CPU_DEVICES": None}
# What a machine without a GPU may lack, in words of the test's own.
NO_GPU_HERE = re.compile(
    r"No GPU is seen: (the Level Zero loader \(libze_loader\.so\.1\) is not installed|the loader is there, but Intel's "
    r"Level Zero driver \(libze_intel_gpu\.so\.1\) is not|this is WSL|this container .* has no render node|there is no "
    r"Intel GPU with a render node)"
)
BROKEN = 4  # the exit status where something is there and does not work


def library(folder, source):
    """Compile a shared library to play a driver."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = folder / "driver.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path


def test_the_cpu_driver_is_named_as_what_it_is():
    result = l0rt("doctor", env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    assert result.returncode == 0, result
    assert result.stdout.count("l0rt CPU device") == 2
    assert result.stdout.count("CPU driver: not a GPU") == 2
    assert result.stdout.count("works: allocated, filled, copied back") == 2
    assert package.cpu_driver_path() in "".join(result.stdout.split())
    assert "A device is usable." in result.stdout


def test_without_a_gpu_it_says_why_and_uses_the_cpu_driver():
    if obstacles.gpu_nodes():
        pytest.skip("there is a GPU on this machine")
    result = l0rt("doctor", env=ANY)
    text = " ".join(result.stdout.split())
    assert result.returncode == 0, result
    assert "(L0RT_DRIVER=auto)" in text
    assert NO_GPU_HERE.search(text), text
    assert "The bundled CPU driver is used." in text


def test_with_gpu_asked_for_and_none_there_it_fails():
    if obstacles.gpu_nodes():
        pytest.skip("there is a GPU on this machine")
    result = l0rt("doctor", env={**ANY, "L0RT_DRIVER": "gpu"})
    text = " ".join(result.stdout.split())
    assert result.returncode == 1, result
    assert NO_GPU_HERE.search(text), text
    assert "L0RT_DRIVER=cpu runs on the bundled CPU driver, which is not a GPU." in text
    assert "No device is usable." in text


def test_a_driver_that_is_not_there():
    result = l0rt("doctor", env={"L0RT_DRIVER": "/no/such/library.so"})
    assert result.returncode == BROKEN, result
    assert "No driver could be used: /no/such/library.so cannot be opened" in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_a_library_that_is_no_driver(tmp_path):
    path = library(tmp_path, "int nothing;")
    result = l0rt("doctor", env={"L0RT_DRIVER": path})
    assert result.returncode == BROKEN, result
    assert "is not a Level Zero library" in " ".join(result.stdout.split())


def test_a_driver_that_aborts_does_not_take_the_doctor_down(tmp_path):
    path = library(
        tmp_path, "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }"
    )
    result = l0rt("doctor", env={"L0RT_DRIVER": path})
    assert result.returncode == BROKEN, result
    assert "the driver ended its process by SIGABRT while it was opened and used" in " ".join(result.stdout.split())


def test_a_driver_that_hangs_does_not_hold_the_doctor_up(tmp_path):
    path = library(
        tmp_path, "#include <unistd.h>\n__attribute__((constructor)) static void start(void) { sleep(50); }"
    )
    code = f"from l0rt.cli import doctor; doctor.PATIENCE = 3; print(doctor.ask('driver', {str(path)!r}))"
    result = run_python(code, timeout=40)
    assert "did not answer within 3 seconds" in result.stdout, result


def test_a_device_that_fails_its_trial():
    fault = "zeCommandListAppendMemoryFill:1:ERROR_DEVICE_LOST"
    result = l0rt("doctor", env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "L0RT_CPU_FAIL": fault})
    assert result.returncode == BROKEN, result
    assert re.search(r"^  trial +DeviceLostError", result.stdout, re.MULTILINE)
    assert f"L0RT_CPU_FAIL={fault}" in result.stdout


def test_a_driver_that_does_not_start():
    fault = "zeInit:1:ERROR_UNINITIALIZED,zeInitDrivers:1:ERROR_UNINITIALIZED"
    result = l0rt("doctor", env={"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": fault})
    assert result.returncode == BROKEN, result
    assert "ERROR_UNINITIALIZED" in result.stdout


def test_fallbacks_are_named():
    result = l0rt("doctor", env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "L0RT_DISABLE": "inorder,list_sync"})
    assert result.returncode == 0, result
    assert re.search(r"^  lacks +inorder: barriers keep the order of each stream$", result.stdout, re.MULTILINE)
    assert re.search(r"^  lacks +list_sync: ", result.stdout, re.MULTILINE)


def test_every_capability_is_in_one_list():
    """In `can` or in a line of `lacks`; a long line goes on below its label."""
    lists, label = {}, None
    some = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "L0RT_DISABLE": "inorder,global_ts,memmap"}
    for line in l0rt("doctor", env=some).stdout.splitlines():
        if found := re.match(r"^ {2}(can|lacks) +(.*)", line):
            label, text = found.groups()
        elif label and line.startswith(" " * 11):
            text = line.strip()
        else:
            label = None
            continue
        names = re.findall(r"^(\w+):", text) if label == "lacks" else re.findall(r"\w+", text)
        lists.setdefault(label, []).extend(names)
    assert set(lists) == {"can", "lacks"}
    assert sorted(lists["can"] + lists["lacks"]) == sorted(config.CAPABILITIES)


def test_each_capability_of_the_record_has_a_fallback():
    code = "from l0rt.runtime.streams import devices; devices.lazy.init(); print(*devices.capabilities(0))"
    assert sorted(run_python(code, {"L0RT_DRIVER": "cpu"}).stdout.split()) == sorted(FALLBACKS)


def test_a_fallback_that_raises_is_said_to_raise():
    code = """
import l0rt, l0rt.accelerator as acc
e = l0rt.Event(enable_timing=True)
e.record()
e.synchronize()
for use in (e.host_time, l0rt.empty(64).ipc_handle, lambda: l0rt.memory.register(bytearray(1 << 16))):
    try:
        use()
    except l0rt.UnsupportedError:
        print("raised")
"""
    environment = {"L0RT_DRIVER": "cpu", "L0RT_DISABLE": "global_ts,memmap,memory_ipc"}
    assert run_python(code, environment).stdout == "raised\n" * 3
    assert [name for name, text in FALLBACKS.items() if "raises" in text] == ["global_ts", "memory_ipc", "memmap"]


def test_a_bad_setting_is_a_finding():
    result = l0rt("doctor", env={"L0RT_DISABLE": "gravity"})
    assert result.returncode == BROKEN, result
    assert "L0RT_DISABLE='gravity' is not valid" in " ".join(result.stdout.split())
    assert result.stderr == ""


def test_the_findings_as_json():
    result = l0rt("doctor", "--json", env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    found = json.loads(result.stdout)
    assert found["usable"] is True
    assert [device["is_software"] for device in found["driver"]["devices"]] == [True, True]
    assert found["trial"] == {"devices": [None, None]}
    assert found["cpu_driver"] == {"path": package.cpu_driver_path(), "there": True}
    assert found["environment"]["L0RT_CPU_DEVICES"] == "2"


def test_plain_text_with_every_path_in_one_line():
    result = l0rt("doctor", env={"COLUMNS": "40"})
    assert "\x1b" not in result.stdout
    assert re.search(rf"^CPU driver +{re.escape(package.cpu_driver_path())}$", result.stdout, re.MULTILINE)
