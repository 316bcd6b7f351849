# SPDX-License-Identifier: Apache-2.0
"""Pinned memory on a node of the machine: which system calls that makes, by a library that stands before libc's
``syscall``; and none where there is one node."""

import json
import shutil
import subprocess

import pytest

from helpers.process import run_python

MBIND, SET, GET = 237, 238, 239  # x86-64
PREFERRED, MOVE = 1, 2
# What is called instead of Linux: notes the call, and plays a process that has the policy OLD.
SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
static int mode;
static unsigned long mask;
static int begun;
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long);
  va_end(list);
  if (!begun) { begun = 1; mode = getenv("OLD") ? atoi(getenv("OLD")) : 0; }
  if (number == SYS_get_mempolicy) {
    if (getenv("REFUSES")) { errno = EPERM; return -1; }
    *(int *)a[0] = mode;
    if (a[1]) *(unsigned long *)a[1] = mask;
    return 0;
  }
  if (number == SYS_set_mempolicy) {
    mode = (int)a[0];
    mask = *(unsigned long *)a[1];
    fprintf(stderr, "[\\"set\\", %ld, %lu]\\n", a[0], mask);
    return 0;
  }
  if (number == SYS_mbind && a[3]) {  /* OpenBLAS has calls without nodes */
    fprintf(stderr, "[\\"bind\\", %ld, %lu, %ld, %ld, %d]\\n", a[2], *(unsigned long *)a[3], a[5], a[1],
            a[0] % 4096 == 0 && a[1] % 4096 == 0);
    return 0;
  }
  long (*next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""
BEGIN = """
import os
import l0rt
from l0rt import memory
from l0rt.runtime.memory import pinned
from l0rt.runtime.streams import devices
pinned.sysfs = "SYSFS"
devices.lazy.init()
for index, node in enumerate(NODES):
    folder = f"SYSFS/bus/pci/devices/{devices.properties(index)['pci']}"
    os.makedirs(folder)
    with open(folder + "/numa_node", "w") as file:
        file.write(str(node))
def said():
    os.write(2, b"0\\n")
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("shim") / "shim.so"
    words = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", path, "-ldl"]
    subprocess.run(words, input=SHIM, text=True, check=True)
    return path


@pytest.fixture
def calls(shim, tmp_path):
    """Run a program on a machine with these nodes; return its output, and the calls between marks."""

    def run(code, *, memory="0-1", near=(0, 1), **env):
        place = tmp_path / "sys"
        (place / "devices/system/node").mkdir(parents=True)
        (place / "devices/system/node/has_memory").write_text(memory + "\n")
        begin = BEGIN.replace("SYSFS", str(place)).replace("NODES", repr(near))
        environment = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": len(near), "LD_PRELOAD": shim, **env}
        result = run_python(begin + code, environment)
        assert result.returncode == 0, result
        parts, lines = [[]], result.stderr.splitlines()
        for line in lines:
            if line == "0":
                parts.append([])
            else:
                parts[-1].append(json.loads(line) if line.startswith("[") else line)
        return result.stdout, parts

    return run


def placed(node, nbytes):
    """The calls that place a new segment on a node, of a thread that had no policy."""
    return [["set", PREFERRED, 1 << node], ["set", 0, 0], ["bind", PREFERRED, 1 << node, MOVE, nbytes, 1]]


def test_pinned_memory_is_near_its_device_and_cached_blocks_stay_on_their_node(calls):
    code = """
near = l0rt.empty(4 << 20, kind="host", device=1).fill(1)
said()
far = l0rt.empty(4 << 20, kind="host", device=1, numa=0).fill(2)
said()
other = l0rt.empty(4 << 20, kind="host", device=0)      # near node 0, which has nothing free
said()
place = far.ptr
far.free()
again = l0rt.empty(4 << 20, kind="host", device=1, numa=1)
said()
assert again.ptr != place
assert l0rt.empty(4 << 20, kind="host", device=0).ptr == place
array = l0rt.pinned(4 << 20, "u1", numa=0)
assert l0rt.memory.is_pinned(array) and l0rt.memory.is_pinned(near)
said()
any = l0rt.empty(4 << 20, kind="host", numa="any").fill(3)
assert bytes(near[:9]) == b"\\1" * 9
del near, far, other, again, array, any
memory.empty_host_cache()
print(memory.host_memory_stats()["allocated_bytes.current"])
"""
    out, parts = calls(code)
    nodes = [[call[2] for call in part if call[0] == "bind"] for part in parts]
    assert nodes[:4] == [[1 << 1], [1 << 0], [1 << 0], [1 << 1]]
    assert parts[0] == placed(1, parts[0][-1][4])
    assert parts[0][-1][4] >= 4 << 20
    assert parts[-1] == []
    assert out == "0\n"


@pytest.mark.parametrize(("nodes", "near"), [("0", (0,)), ("0-1", (-1,)), ("", (0,))])
def test_no_call_is_made_where_there_is_one_node_or_nobody_knows(calls, nodes, near, extent):
    if nodes != "0":
        extent.skip_unless_whole()
    _, parts = calls("l0rt.empty(4 << 20, kind='host').fill(1); l0rt.pinned(100)", memory=nodes, near=near)
    assert parts == [[]]


def test_a_process_that_has_a_policy_keeps_it_but_for_what_is_asked(calls):
    code = "l0rt.empty(4 << 20, kind='host'); said(); l0rt.empty(4 << 20, kind='host', numa=0)"
    _, parts = calls(code, near=(1,), OLD=2)
    assert parts[0] == []
    assert [call[:3] for call in parts[1]] == [["set", PREFERRED, 1], ["set", 2, 0], ["bind", PREFERRED, 1]]


def test_where_linux_refuses_memory_is_where_it_is_and_who_asks_is_told(calls):
    code = "l0rt.empty(4 << 20, kind='host').fill(1); said(); l0rt.empty(4 << 20, kind='host', numa=1).fill(1)"
    _, parts = calls(code, REFUSES=1)
    assert parts[0] == []
    assert "a container needs the capability SYS_NICE" in parts[1][0]


def test_what_is_no_node_is_refused(calls):
    code = """
for kind, numa, error in (("host", 2, ValueError), ("host", -1, ValueError), ("host", "x", ValueError),
                          ("host", 1.5, TypeError), ("host", True, TypeError), ("device", 0, ValueError),
                          ("shared", 0, ValueError), ("host", 1 << 70, ValueError)):
    try:
        l0rt.empty(64, kind=kind, numa=numa)
    except error as e:
        print(str(e)[:4])
    else:
        print(kind, numa)
try:
    l0rt.empty(64, kind="host", device="cpu", numa=0)
except ValueError:
    print("numa")
"""
    out, _ = calls(code)
    assert out == "numa\n" * 9


def test_this_machine_has_the_nodes_that_it_has():
    code = """
import l0rt
from l0rt.runtime.memory import pinned
for node in pinned.nodes():
    assert bytes(l0rt.empty(1 << 20, kind="host", numa=node).fill(7)[:3]) == b"\\7" * 3
assert l0rt.pinned((4, 4), "f4", numa="any").shape == (4, 4)
print(l0rt.xpu.get_device_properties(0).numa_node in (None, *pinned.nodes()))
"""
    assert run_python(code, {"L0RT_DRIVER": "cpu"}).stdout == "True\n"
