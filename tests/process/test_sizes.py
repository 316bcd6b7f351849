# SPDX-License-Identifier: Apache-2.0
"""Sizes beyond the memory of the device or the machine are out of memory, and no driver is asked: Intel's ends the
process at 2^45 bytes of host memory or of physical memory."""

import json

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

# Of every call that takes memory or addresses, the size.
PROGRAM = f"""
import ctypes, json, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.wrapped import wrap
PLACES = {{"zeMemAllocDevice": 2, "zeMemAllocHost": 2, "zeMemAllocShared": 3, "zeVirtualMemReserve": 2}}
asked = []
def noted(name, original):
    def call(*args):
        if name in PLACES:
            asked.append((name, args[PLACES[name]]))
        else:   # in a structure: behind its type, its chain and its flags
            asked.append((name, ctypes.c_uint64.from_address(args[2] + 24).value))
        return original(*args)
    return call if name in PLACES or name == "zePhysicalMemCreate" else None
wrap(noted)
import l0rt, l0rt.accelerator as acc
refused = []
for kind in ("device", "host", "shared"):
    l0rt.empty(4 << 20, kind=kind).fill(1)
    for power in range(44, 62):
        try:
            l0rt.empty(1 << power, kind=kind)
        except l0rt.OutOfMemoryError:
            refused.append((kind, power))
acc.synchronize()
before = len(asked)
try:
    l0rt.memory.register(1 << 46, 1 << 45)
except (ValueError, l0rt.OutOfMemoryError, l0rt.UnsupportedError):   # ValueError: the program has no such memory
    refused.append(("registered", 45))
print(json.dumps([refused, sorted({{name for name, _ in asked}}), max(size for _, size in asked)]))
"""


@pytest.mark.parametrize("env", [{}, {"L0RT_DISABLE": "vmm"}, {"L0RT_CPU_PROFILE": "arc-b580"}], ids=str)
def test_no_driver_is_asked_for_more_than_there_is(env):
    result = run_python(PROGRAM, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_MEMORY": None} | env)
    assert (result.returncode, result.stderr) == (0, ""), result
    refused, asked, largest = json.loads(result.stdout)
    assert len(refused) == 3 * 18 + 1
    assert {"zeMemAllocHost", "zeMemAllocShared"} <= set(asked)
    assert largest < 1 << 44
