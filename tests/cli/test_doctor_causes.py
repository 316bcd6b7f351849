# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/doctor.md, made: by a folder in place of the root, a library that plays a driver, or a variable.

Bad versions are in test_doctor_versions.py.
"""

import contextlib
import inspect
import io
import json
import os
import platform
import re
import shutil
import stat
import subprocess
from pathlib import Path

import l0rt as package
import pytest
from l0rt.cli import advice, doctor
from l0rt.ze import loader, obstacles
from rich.console import Console

from helpers.cli import l0rt
from helpers.doctor import A770, B580, CPU, LUNAR_LAKE, answered, codes, examine, library, stub
from helpers.source import ROOT

NOBODY = 65534
REASONS = codes("Why no GPU is seen")
OTHERS = codes("What else is told")


@pytest.fixture
def libraries(monkeypatch, machine):
    """Let the loader and Intel's driver be libraries that can be loaded."""
    monkeypatch.setattr(loader, "LOADER", str(library(machine.root, "int a;", "loader.so")))
    monkeypatch.setattr(obstacles, "INTEL_DRIVER", str(library(machine.root, "int b;", "driver.so")))


def as_user(function, uid=NOBODY, gid=NOBODY):
    """Return what ``function`` returns to a user without privileges: in a child of this process, which may be root."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(gid, gid, gid)
                os.setresuid(uid, uid, uid)
            os.write(write, json.dumps(function()).encode())
        os._exit(0)
    os.close(write)
    with open(read) as answer:
        told = answer.read()
    os.waitpid(child, 0)
    return json.loads(told)


def reason(machine, **user):
    def ask():
        found = obstacles.first(str(machine.root))
        return found.code, found.text

    return as_user(ask, **user)


def no_loader(machine, monkeypatch):
    monkeypatch.setattr(loader, "LOADER", "libze_loader_absent.so.1")
    return "Debian: apt install libze1"


def broken_loader(machine, monkeypatch):
    monkeypatch.setattr(loader, "LOADER", str(machine.file("torn.so", "not a library")))
    return "cannot be loaded"


def no_driver(machine, monkeypatch):
    monkeypatch.setattr(obstacles, "INTEL_DRIVER", "libze_intel_gpu_absent.so.1")
    return "Debian 12: apt install intel-opencl-icd; Debian 14: apt install libze-intel-gpu1"


def broken_driver(machine, monkeypatch):
    path = library(machine.root, "extern int absent(void); int use(void) { return absent(); }", "undefined.so")
    monkeypatch.setattr(obstacles, "INTEL_DRIVER", str(path))
    return "undefined symbol"


def wsl_no_gpu(machine, *_):
    machine.file("dev/dxg")
    return "wsl --update"


def no_kernel_driver(machine, *_):
    machine.gpu(driver=None)
    return "0000:03:00.0 (device 0xe20b): load i915 or xe"


def container_no_gpu(machine, *_):
    machine.file("proc/1/cgroup", "0::/docker/0123abcd\n")
    return "(/proc/1/cgroup) has no render node"


def no_gpu(machine, *_):
    return "there is no Intel GPU with a render node"


def node_not_handed(machine, *_):
    machine.gpu(node=None)
    machine.file("run/.containerenv")
    return "this container (/run/.containerenv) has not: start the container with --device /dev/dri"


def login_again(machine, *_):
    shutil.chown(machine.gpu(node=0o660), 0, NOBODY)  # nobody's own group, and the process is in another
    return "newgrp"


def container_no_permission(machine, *_):
    shutil.chown(machine.gpu(node=0o660), 0, 12345)
    machine.file(".dockerenv")
    return "start it with --device /dev/dri --group-add 12345"


def no_permission(machine, *_):
    for number in (128, 129):
        shutil.chown(machine.gpu(f"0000:0{number - 125}:00.0", number, node=0o660), 0, 12345)
    return "renderD129: add the user to the group 12345 (usermod -aG 12345 $USER), log in again"


def affinity_mask(machine, monkeypatch):
    for number in (128, 129):
        machine.gpu(f"0000:0{number - 125}:00.0", number, bar=256 << 20)
    monkeypatch.setenv("ZE_AFFINITY_MASK", "2,3.1")
    return "ZE_AFFINITY_MASK=2,3.1 hides every device ("


def no_compiler(machine, monkeypatch):
    monkeypatch.setattr(loader, "real_path", lambda name: str(machine.root / name))  # nothing is beside it
    machine.gpu(bar=256 << 20)
    machine.file("etc/ld.so.cache", "\0libigdgmm.so.12\0libze_intel_gpu.so.1\0")
    return "Debian 14: apt install libigc2"


def small_bar_no_start(machine, *_):
    machine.gpu(bar=256 << 20)
    return "its window to the host is 256 MiB: enable resizable BAR"


def no_start(machine, *_):
    machine.gpu(bar=16 << 30)
    return "the driver did not start on it"


MADE = {
    each.__name__: each
    for each in (no_loader, broken_loader, no_driver, broken_driver, wsl_no_gpu, no_kernel_driver, container_no_gpu,
                 no_gpu, node_not_handed, login_again, container_no_permission, no_permission, affinity_mask,
                 no_compiler, small_bar_no_start, no_start)
}  # fmt: skip


def test_every_reason_of_the_page_is_made_here():
    assert list(MADE) == list(REASONS)


@pytest.mark.parametrize("code", MADE)
def test_why_no_gpu_is_seen(code, machine, libraries, monkeypatch):
    if code in ("login_again", "container_no_permission", "no_permission") and os.getuid() != 0:
        pytest.skip("needs to be root, to become another user")
    expected = MADE[code](machine, monkeypatch)
    found, text = reason(machine, gid=12000 if code == "login_again" else NOBODY)
    assert found == code, text
    assert expected in text, text
    assert not text.endswith(".")
    status = REASONS[code].split("|")[-2].strip()
    assert status == ("1" if code in advice.ABSENT else "4")


@pytest.mark.parametrize("mask", ["", "0", "5,1.0"])
def test_a_mask_that_names_a_device_is_not_the_reason(mask, machine, libraries, monkeypatch):
    monkeypatch.setenv("ZE_AFFINITY_MASK", mask or "")
    machine.gpu()
    machine.gpu("0000:04:00.0", 129)
    assert reason(machine)[0] == "no_start"


def test_a_mask_that_is_none_is_the_reason(machine, libraries, monkeypatch):
    monkeypatch.setenv("ZE_AFFINITY_MASK", "first")
    machine.gpu()
    code, text = reason(machine)
    assert (code, text) == ("affinity_mask", "ZE_AFFINITY_MASK='first': 'first' is neither a device N nor a tile N.M")


@pytest.mark.parametrize(("device", "ends"), [(B580, True), (LUNAR_LAKE, True), (A770, False)])
def test_newer_gpus_need_the_compiler_at_the_start(device, ends, machine, monkeypatch):
    monkeypatch.setattr(loader, "real_path", lambda name: str(machine.root / name))  # nothing is beside it
    machine.gpu(device=device)
    assert obstacles.ends_process(str(machine.root)) is None  # nobody knows what there is
    machine.file("etc/ld.so.cache", "\0")
    assert (obstacles.ends_process(str(machine.root)) is not None) == ends


@pytest.mark.parametrize("place", ["list", "variable", "loader"])
def test_a_compiler_is_found_where_the_dynamic_linker_looks(place, machine, libraries, monkeypatch):
    machine.gpu()
    machine.file("etc/ld.so.cache", "\0libigc.so.2\0" if place == "list" else "\0")
    machine.file("opt/libigc.so.2")
    if place == "variable":
        monkeypatch.setenv("LD_LIBRARY_PATH", str(machine.root / "opt"))
    if place == "loader":
        monkeypatch.setattr(loader, "LOADER", str(library(machine.root / "opt", "int a;", "libze_loader_beside.so")))
    assert reason(machine)[0] == "no_start"


def test_an_integrated_gpus_bar_is_small_by_nature(machine, libraries):
    machine.gpu(address=obstacles.INTEGRATED, bar=256 << 20)
    assert reason(machine)[0] == "no_start"


def test_another_vendors_gpu_is_not_intels(machine, libraries):
    machine.gpu()
    machine.file("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n")
    assert reason(machine)[0] == "no_gpu"


def test_one_node_that_may_be_opened_is_enough(machine, libraries):
    machine.gpu(node=0)
    machine.gpu("0000:04:00.0", 129)
    code, text = reason(machine)
    assert code == "no_start"
    assert "renderD129" in text


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (".dockerenv", "", "/.dockerenv"),
        ("run/.containerenv", "", "/run/.containerenv"),
        ("proc/1/cgroup", "0::/kubepods.slice/pod1", "/proc/1/cgroup"),
        ("proc/self/cgroup", "0::/machine.slice/libpod-1.scope", "/proc/self/cgroup"),
        ("proc/1/cgroup", "0::/init.scope", None),
    ],
)
def test_what_shows_a_container(machine, file, text, expected):
    machine.file(file, text)
    assert obstacles.container(str(machine.root)) == expected


# --- Through the command, in processes of their own.


def shown(found):
    out = Console(file=io.StringIO(), width=1 << 14, highlight=False, markup=False, emoji=False)
    doctor.show(found, out)
    return out.file.getvalue()


def test_versions_are_told_without_a_gpu(machine, tmp_path):
    found, told, status = examine(env={**stub(tmp_path), "L0RT_DRIVER": "gpu"}, root=machine.root)
    assert (found["gpu"]["loader"]["version"], found["gpu"]["intel"]["build"]) == ("1.27.0", 39122)
    assert found["gpu"]["intel"]["release"] == "26.27"
    assert (told[:2], status, found["status"]) == (["driver_unusable", "no_gpu"], 1, "none")
    text = shown(found)
    assert re.search(r"^GPU loader +\S+libze_loader\.so\.1, version 1\.27\.0$", text, re.MULTILINE), text
    assert re.search(r"^GPU driver +\S+39122, build 39122 \(26\.27\)$", text, re.MULTILINE), text


def test_a_machine_of_a_folder_is_shown(machine, tmp_path, extent):
    extent.skip_unless_whole()
    machine.gpu(bar=256 << 20)
    machine.file("proc/sys/kernel/yama/ptrace_scope", "1\n")
    machine.file("proc/sys/kernel/osrelease", "6.18.1-test\n")
    machine.file(".dockerenv")
    found, told, status = examine(env={**stub(tmp_path), "L0RT_DRIVER": "gpu"}, root=machine.root)
    assert (found["kernel"], found["ptrace_scope"], found["container"]) == ("6.18.1-test", 1, "/.dockerenv")
    [node] = found["nodes"]
    assert (node["kernel_driver"], node["bar_size"], node["device_id"]) == ("xe", 256 << 20, B580)
    assert ("small_bar_no_start" in told, status, found["status"]) == (True, 4, "broken")
    text = shown(found)
    for expected in ("/.dockerenv shows", "ptrace_scope is 1", "BAR 256.00 MiB"):
        assert expected in text, text


def test_the_exit_status_tells_gpu_cpu_none_and_broken_apart():
    assert examine(CPU)[2] == 0
    assert l0rt("doctor", "--gpu", env=CPU).returncode == 3
    assert l0rt("doctor", "--root", "/no/such/folder", env=CPU).returncode == 2
    works = {"trial": {"devices": [None]}, "driver": {"devices": [{"is_software": False}]}, "simulated": False}
    assert advice.status(works) == "gpu"
    statuses = {status: [advice.exit_status({"status": status}, needs) for needs in (False, True)]
                for status in ("gpu", "cpu", "none", "broken")}  # fmt: skip
    assert statuses == {"gpu": [0, 0], "cpu": [0, 3], "none": [1, 1], "broken": [4, 4]}


CRASHES = "#include <stdlib.h>\n__attribute__((constructor)) static void start(void) { abort(); }"
CASES = {
    "bad_setting": {"L0RT_DISABLE": "gravity"},
    "driver_unusable": {"L0RT_DRIVER": "/no/such/library.so"},
    "cpu_driver": CPU,
    "try_cpu_driver": {"L0RT_DRIVER": "/no/such/library.so"},  # the same question
    "trial_failed": {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:ERROR_DEVICE_LOST"},
    "simulated": {**CPU, "NEOReadDebugKeys": "1", "SetCommandStreamReceiver": "2"},
}


@pytest.mark.parametrize("code", CASES)
def test_what_else_is_told(code, extent):
    if code not in ("cpu_driver", "driver_unusable", "try_cpu_driver"):
        extent.skip_unless_whole()
    found, told, status = examine(env=CASES[code])
    assert code in told
    expected = OTHERS[code].split("|")[-2].strip()
    assert not expected or str(status) in re.findall(r"\d", expected), (status, expected)


A_CARD = """
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
int zeDeviceGetProperties(void *device, char *properties) {
  int (*real)(void *, char *) = (int (*)(void *, char *))dlsym(dlopen(DRIVER, RTLD_NOW), "zeDeviceGetProperties");
  int result = real(device, properties);
  strcpy(properties + 112, "a card");
  return result;
}
#ifdef ENDS_BADLY
__attribute__((destructor)) static void end(void) { abort(); }
#endif
#ifdef FAILS
int zeCommandListAppendMemoryFill(void) { abort(); }
#endif
"""


def card(folder, flag="WORKS"):
    """Compile a driver with a device that does not say that it is the CPU driver's; return its environment."""
    driver = package.cpu_driver_path()
    source = f'#define {flag}\n#define DRIVER "{driver}"\n{A_CARD}'
    return {"L0RT_DRIVER": str(library(folder, source, f"{flag}.so", "-Wl,--no-as-needed", driver))}


def texts(found):
    return {row["code"]: row["text"] for row in found["advice"]}


def test_a_loader_that_crashes(machine, tmp_path, extent):
    extent.skip_unless_whole()
    library(tmp_path, CRASHES, "libze_loader.so.1")
    told = examine(env={"LD_LIBRARY_PATH": str(tmp_path), "L0RT_DRIVER": "cpu"}, root=machine.root)[1]
    assert "gpu_search_failed" in told


def test_a_driver_that_crashes_when_it_is_used_or_at_exit(machine, tmp_path, extent):
    extent.skip_unless_whole()
    found, told, status = examine(card(tmp_path, "FAILS"), machine.root)
    assert ("no_trial" in told, status) == (True, 4)
    assert "SIGABRT while it was opened and used" in texts(found)["no_trial"]
    found, told, status = examine(card(tmp_path, "ENDS_BADLY"), machine.root)
    assert ("crash_at_exit" in told, status) == (True, 0)
    assert "SIGABRT when the process ended" in texts(found)["crash_at_exit"]


REFUSES = """
int zeInit(unsigned flags) { return 0x78000001; }
int zeInitDrivers(unsigned *count, void **drivers, void *wanted) { return 0x78000001; }
"""


def test_what_the_driver_itself_says(tmp_path, extent):
    extent.skip_unless_whole()
    library(tmp_path, REFUSES, "libze_loader.so.1", "-Wl,--no-as-needed", package.cpu_driver_path())
    found, told, status = examine({"LD_LIBRARY_PATH": str(tmp_path), "L0RT_DRIVER": "gpu"})
    assert ("driver_says" in told, status in (1, 4)) == (True, True), json.dumps(found["advice"])
    assert "ERROR_UNINITIALIZED" in texts(found)["driver_says"]


def test_a_package_without_the_cpu_driver(machine, tmp_path, extent):
    """The package again, in another folder, as links; but for that one file."""
    extent.skip_unless_whole()
    whole, part = Path(package.__file__).parent, tmp_path / "l0rt"
    (part / "cpu_driver").mkdir(parents=True)
    for path in whole.iterdir():
        if path.name != "cpu_driver":
            (part / path.name).symlink_to(path)
    found, told, status = examine({"L0RT_DRIVER": "cpu", "PYTHONPATH": str(tmp_path)}, machine.root)
    assert found["cpu_driver"] == {"path": str(part / "cpu_driver/libze_l0rt_cpu.so"), "there": False}
    assert ("no_cpu_driver" in told, status) == (True, 4), told


def test_what_a_device_is_told_of(machine, tmp_path, extent):
    """A card with a small BAR, a driver that shares by descriptors, and nobody who tells of free memory."""
    extent.skip_unless_whole()
    plain = examine(CPU)[1]
    assert not {"small_bar", "ptrace_scope", "free_memory_estimated"} & set(plain)
    env = card(tmp_path)
    machine.gpu("10c4:01:00.0", bar=256 << 20)
    machine.file("proc/sys/kernel/yama/ptrace_scope", "1\n")
    found, _, status = examine({**env, "L0RT_DISABLE": "usable_mem"}, machine.root)
    told = texts(found)
    assert "the host sees 256.00 MiB of" in told["small_bar"]
    assert "sysctl kernel.yama.ptrace_scope=0" in told["ptrace_scope"]
    assert "CAP_PERFMON" in told["free_memory_estimated"]
    assert (status, found["status"]) == (0, "gpu")
    machine.file("proc/sys/kernel/yama/ptrace_scope", "0\n")
    answered.cache_clear()
    told = examine(env, machine.root)[1]
    assert not {"ptrace_scope", "free_memory_estimated"} & set(told)


ELSEWHERE = {
    "gpu_search_failed": test_a_loader_that_crashes,
    "no_trial": test_a_driver_that_crashes_when_it_is_used_or_at_exit,
    "crash_at_exit": test_a_driver_that_crashes_when_it_is_used_or_at_exit,
    "driver_says": test_what_the_driver_itself_says,
    "no_cpu_driver": test_a_package_without_the_cpu_driver,
    "small_bar": test_what_a_device_is_told_of,
    "ptrace_scope": test_what_a_device_is_told_of,
    "free_memory_estimated": test_what_a_device_is_told_of,
}


def test_everything_that_is_told_is_on_the_page_and_made_here():
    assert set(OTHERS) == set(CASES) | set(ELSEWHERE)
    assert all(f'"{code}"' in inspect.getsource(test) for code, test in ELSEWHERE.items())
    source = (ROOT / "l0rt/cli/advice.py").read_text()
    assert set(re.findall(r'say\(\s*"(\w+)"', source)) == set(OTHERS)


def test_a_device_without_virtual_memory_takes_no_two_kinds_of_segments(extent):
    extent.skip_unless_whole()
    text = shown(examine({**CPU, "L0RT_CPU_PROFILE": "arc-a770-i915"})[0])
    assert re.search(r"^  takes +segments of torch's sizes$", text, re.MULTILINE)
    assert re.search(r"^  lacks +vmm: memory comes in whole segments, which do not grow$", text, re.MULTILINE)
    assert re.search(r"^  free +1\d\.\d\d GiB, reported by the driver$", text, re.MULTILINE)


def test_sentences_of_the_report_are_those_of_the_json():
    found = examine(CPU)[0]
    text = shown(found)
    assert found["advice"]
    assert all(row["text"] in text for row in found["advice"])


def test_the_package_of_a_file():
    if not shutil.which("dpkg-query") or "debian" not in platform.freedesktop_os_release().get("ID", ""):
        pytest.skip("needs Debian")
    listed = subprocess.run(["dpkg-query", "-L", "dpkg"], capture_output=True, text=True, check=True).stdout.split()
    file = next(path for path in listed if os.path.isfile(path))
    assert re.match(r"dpkg(:\w+)? \d", doctor.package(file))
    assert doctor.package("/no/such/file") is None


def test_the_permission_of_a_node_is_told(machine):
    node = machine.gpu(node=0o640)
    shown = doctor.node(machine.root / "sys/class/drm/renderD128", machine.root)
    assert shown["mode"] == stat.filemode(node.stat().st_mode)
    assert "group" in shown
    assert doctor.node_text(shown).count("renderD128") == 1
