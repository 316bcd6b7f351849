# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/doctor.md, made: by a folder in place of the root, a library that plays a driver, a variable, or the
facts of a version."""

import contextlib
import io
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest
from l0rt.cli import advice, doctor
from l0rt.ze import loader, obstacles, versions
from rich.console import Console

from helpers.cli import l0rt
from helpers.source import ROOT

PAGE = (ROOT / "docs/doctor.md").read_text()
NOBODY = 65534
B580, A770, LUNAR_LAKE = 0xE20B, 0x56A0, 0x64A0


def codes(title):
    """Return the codes of a table of the page, with their lines."""
    chapter = PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return {found.group(1): found.group(0) for found in re.finditer(r"^\| `(\w+)` \|.*$", chapter, re.MULTILINE)}


REASONS = codes("Why no GPU is seen")
OTHERS = codes("What else is told")
VERSIONS = codes("Versions that are known to be bad")


class Machine:
    """A folder that stands for the root of a machine; anybody may enter it."""

    def __init__(self, root):
        self.root = root

    def file(self, path, text=""):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def gpu(self, address="0000:03:00.0", number=128, driver="xe", device=B580, bar=16 << 30, node=0o666):
        """Put an Intel GPU in: without a kernel driver, or without a node in /dev, if that is None."""
        folder = f"sys/bus/pci/devices/{address}"
        for name, text in (("class", "0x030000"), ("vendor", "0x8086"), ("device", hex(device))):
            self.file(f"{folder}/{name}", text + "\n")
        first = 0x4000000000
        self.file(f"{folder}/resource", f"{first:#x} {first + bar - 1:#x} 0x14220c\n")
        if driver is None:
            return None
        (self.root / "sys/bus/pci/drivers" / driver).mkdir(parents=True, exist_ok=True)
        (self.root / folder / "driver").symlink_to(self.root / "sys/bus/pci/drivers" / driver)
        drm = self.root / "sys/class/drm" / f"renderD{number}"
        (self.root / folder / "drm" / drm.name).mkdir(parents=True)
        drm.mkdir(parents=True)
        (drm / "device").symlink_to(self.root / folder)
        if node is None:
            return None
        made = self.file(f"dev/dri/renderD{number}")
        made.chmod(node)
        return made


@pytest.fixture
def machine():
    with tempfile.TemporaryDirectory(prefix="l0rt-root-") as folder:
        os.chmod(folder, 0o755)
        yield Machine(Path(folder))


@pytest.fixture
def libraries(monkeypatch, machine):
    """Let the loader and Intel's driver be libraries that can be loaded."""
    monkeypatch.setattr(loader, "LOADER", str(library(machine.root, "int a;", "loader.so")))
    monkeypatch.setattr(obstacles, "INTEL_DRIVER", str(library(machine.root, "int b;", "driver.so")))


def library(folder, source, name):
    """Compile a shared library to play a part."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = folder / name
    words = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", path, f"-Wl,-soname,{name}"]
    subprocess.run(words, input=source, text=True, check=True)
    return path


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
    return "apt install libze1"


def broken_loader(machine, monkeypatch):
    monkeypatch.setattr(loader, "LOADER", str(machine.file("torn.so", "not a library")))
    return "cannot be loaded"


def no_driver(machine, monkeypatch):
    monkeypatch.setattr(obstacles, "INTEL_DRIVER", "libze_intel_gpu_absent.so.1")
    return "apt install intel-opencl-icd; on newer systems, libze-intel-gpu1"


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


def small_bar_no_start(machine, *_):
    machine.gpu(bar=256 << 20)
    return "its window to the host is 256 MiB: enable resizable BAR"


def no_start(machine, *_):
    machine.gpu(bar=16 << 30)
    return "the driver did not start on it"


MADE = {
    each.__name__: each
    for each in (no_loader, broken_loader, no_driver, broken_driver, wsl_no_gpu, no_kernel_driver, container_no_gpu,
                 no_gpu, node_not_handed, login_again, container_no_permission, no_permission, small_bar_no_start,
                 no_start)
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


def test_an_integrated_gpus_bar_is_small_by_nature(machine, libraries):
    machine.gpu(address=obstacles.INTEGRATED, bar=256 << 20)
    assert reason(machine)[0] == "no_start"


def test_another_vendors_gpu_is_not_intels(machine, libraries):
    machine.gpu()
    machine.file("sys/bus/pci/devices/0000:03:00.0/vendor", "0x10de\n")
    assert reason(machine)[0] == "no_gpu"


def test_one_node_that_may_be_opened_is_enough(machine, libraries):
    machine.gpu(node=0o600)
    machine.gpu("0000:04:00.0", 129)
    code, text = reason(machine)
    assert code == "no_start"
    assert "renderD129" in text or os.getuid() == 0


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

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
A_LOADER = """
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdlib.h>
struct version { char name[64]; uint32_t spec; int major, minor, patch; };
int zelLoaderGetVersions(size_t *count, struct version *out) {
  if (out) { strcpy(out->name, "loader"); out->spec = 0; out->major = %d; out->minor = %d; out->patch = %d; }
  *count = 1;
  return 0;
}
int zeInit(uint32_t flags) { return %s; }
"""


def stub(tmp_path, version=(1, 27, 0), answer="0x78000001", driver="libze_intel_gpu.so.1.15.39122"):
    """Libraries of a folder that stand for the loader and Intel's driver; the environment that selects them."""
    library(tmp_path, A_LOADER % (*version, answer), "libze_loader.so.1")
    library(tmp_path, "int nothing;", driver)
    link = tmp_path / "libze_intel_gpu.so.1"
    if not link.exists():
        link.symlink_to(driver)
    return {"LD_LIBRARY_PATH": str(tmp_path)}


@cache
def answered(words, env):
    result = l0rt("doctor", "--json", *words, env=dict(env))
    return result.stdout, result.returncode


def examine(env, root=None):
    """Return what the doctor finds, the codes of its advice, and its exit status. The same question is asked once."""
    words = ("--root", str(root)) if root else ()
    output, status = answered(words, tuple(sorted(env.items())))
    found = json.loads(output)
    return found, [row["code"] for row in found["advice"]], status


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


def test_a_loader_that_crashes_and_one_that_ends_badly(machine, tmp_path, extent):
    extent.skip_unless_whole()
    library(tmp_path, CRASHES, "libze_loader.so.1")
    found, told, status = examine(env={"LD_LIBRARY_PATH": str(tmp_path), "L0RT_DRIVER": "cpu"}, root=machine.root)
    assert "gpu_search_failed" in told
    found["trial"], found["driver"]["crash"] = {"error": "it hung"}, "the driver ended its process by SIGSEGV"
    found["cpu_driver"]["there"] = False
    assert {"crash_at_exit", "no_trial", "no_cpu_driver"} <= {row["code"] for row in advice.advise(found)}
    text = [row["text"] for row in advice.advise({**found, "gpu": {"count": 0, "why": "no", "code": "no_gpu"},
                                                  "driver": {"error": "no (zeInit said so)"}})]  # fmt: skip
    assert "zeInit said so." in text


def test_what_a_device_is_told_of():
    """A GPU with a small BAR, a driver that shares by descriptors, and nobody who tells of free memory."""
    found = examine(CPU)[0]
    assert not {"small_bar", "ptrace_scope", "free_memory_estimated"} & {row["code"] for row in found["advice"]}
    [device] = found["driver"]["devices"]
    device.update(is_software=False, integrated=False, bar_size=256 << 20)
    device["capabilities"]["memory_ipc"] = True
    device["memory"] = {"free": 1, "total": 2, "source": "total less what this process has reserved"}
    found["ptrace_scope"] = 1
    told = {row["code"]: row["text"] for row in advice.advise(found)}
    assert "the host sees 256.00 MiB of" in told["small_bar"]
    assert "sysctl kernel.yama.ptrace_scope=0" in told["ptrace_scope"]
    assert "CAP_PERFMON" in told["free_memory_estimated"]
    device["memory"]["trust"] = True
    assert "free_memory_estimated" not in {row["code"] for row in advice.advise(found)}


ELSEWHERE = {"small_bar", "ptrace_scope", "free_memory_estimated", "gpu_search_failed", "crash_at_exit", "no_trial",
             "no_cpu_driver", "driver_says"}  # fmt: skip


def test_everything_that_is_told_is_on_the_page_and_made_here():
    assert set(OTHERS) == set(CASES) | ELSEWHERE
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


# --- Versions.

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
    assert all(row.what and row.remedy and row.source and row.component in ("loader", "driver", "kernel")
               for row in versions.DEFECTS)  # fmt: skip


@pytest.mark.parametrize("code", KNOWN)
def test_a_bad_version_is_known_and_the_next_is_not(code):
    bad, good = KNOWN[code]
    assert code in [row.code for row in versions.known(versions.Facts(**bad))]
    assert code not in [row.code for row in versions.known(versions.Facts(**good))]


def test_nothing_is_bad_of_which_nothing_is_known():
    assert versions.known(versions.Facts()) == ()


def test_a_machine_with_bad_versions_is_told_of_them(machine, tmp_path, extent):
    """Versions come from a loader's answer, the driver's file name, the kernel's files and the environment."""
    extent.skip_unless_whole()
    for number in (128, 129):
        machine.gpu(f"0000:0{number - 125}:00.0", number, device=B580 if number == 128 else A770)
    machine.file("proc/sys/kernel/osrelease", "6.18.1\n")
    old = stub(tmp_path, version=(1, 8, 12), driver="libze_intel_gpu.so.1.14.36300")
    _, told, _ = examine(env={**old, **CPU, "ZE_ENABLE_VALIDATION_LAYER": "1"}, root=machine.root)
    assert {"loader_without_sysman", "loader_validates_too_little", "driver_aborts_on_this_kernel", "alchemist_on_xe",
            "free_memory_needs_privileges"} <= set(told)  # fmt: skip


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
