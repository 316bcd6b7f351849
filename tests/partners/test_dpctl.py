# SPDX-License-Identifier: Apache-2.0
"""dpctl and l0rt in one context of the CPU driver: memory of each in the other's hands, and copies with both."""

import importlib.util
import os
import re

import pytest
from l0rt.cli import cpu_driver

from helpers.process import run_python
from helpers.source import ROOT

BEGIN = """
import numpy as np
import dpctl, dpctl.memory
import l0rt, l0rt.accelerator as acc
from l0rt import xpu
from l0rt.interop.dpctl import native_context, share_context
queue = dpctl.SyclQueue("level_zero:gpu", property="in_order")
"""

SHARED = """
share_context(queue)
assert xpu.native_context() == native_context(queue) == native_context(queue.sycl_context)
numbers = np.arange(1024, dtype="i4")
for kind in "device", "host", "shared":
    theirs = getattr(dpctl.memory, "MemoryUSM" + kind.capitalize())(4096, queue=queue)
    mine = l0rt.from_usm(theirs)
    assert (mine.ptr, mine.kind, mine.nbytes) == (theirs._pointer, kind, 4096)
    mine.copy_from(numbers)                                     # a copy with l0rt into dpctl's memory
    acc.synchronize()
    assert (theirs.copy_to_host().view("i4") == numbers).all()

    own = l0rt.empty(4096, kind=kind)
    own.fill(0)
    acc.synchronize()
    seen = dpctl.memory.as_usm_memory(own)
    assert (seen._pointer, seen.get_usm_type(), seen.nbytes) == (own.ptr, kind, 4096)
    seen.copy_from_device(theirs)                               # a copy with dpctl into l0rt's memory
    assert (own.numpy("i4") == numbers).all()
    part = dpctl.memory.as_usm_memory(own[400:800])
    assert (part.copy_to_host().view("i4") == numbers[100:200]).all()
del theirs
import gc
gc.collect()
assert (mine.numpy("i4") == numbers).all()                      # l0rt keeps dpctl's memory
print("shared")
"""

STREAM = """
from l0rt.interop import dpctl as door
share_context(queue)
stream = door.stream(queue)
assert (stream.native_handle, stream.device.index) == (door.native_list(queue), 0)
assert door.stream(queue) == stream
numbers = np.arange(1 << 18, dtype="i4")
theirs = [dpctl.memory.MemoryUSMDevice(numbers.nbytes, queue=queue) for _ in range(3)]
mine = [l0rt.from_usm(memory) for memory in theirs]
for round in range(20):                                         # in turn, and nobody waits but the last
    mine[0].fill(round, stream=stream)
    queue.memcpy_async(theirs[1], theirs[0], numbers.nbytes)
    mine[2].copy_from(mine[1], stream=stream)
    queue.memcpy(last := np.empty_like(numbers).view("u1"), theirs[2], numbers.nbytes)
    assert (last == round).all()
mine[0].fill(99, stream=stream)
queue.wait()                                                    # the queue's wait is for what l0rt appended,
assert (theirs[0].copy_to_host() == 99).all()
queue.memcpy_async(theirs[1], theirs[0], numbers.nbytes)
event = stream.record_event()
other = acc.Stream()
other.wait_event(event)                                         # and l0rt's events come behind what dpctl did
with other:
    assert (mine[1].numpy() == 99).all()
with stream:                                                    # it is a stream like others
    x = l0rt.empty(4096).fill(5)
    assert acc.current_stream() == stream
assert bytes(x.numpy(stream=stream)) == bytes([5]) * 4096
x.free()
import gc, weakref
del queue
gc.collect()
assert bytes(mine[1].numpy(stream=stream)[:4]) == bytes([99]) * 4   # the stream keeps the queue
refused = 0
queue = dpctl.SyclQueue("level_zero:gpu")
for wrong, kind, words in (
    (None, TypeError, "a dpctl.SyclQueue"), (queue.sycl_context, TypeError, "a dpctl.SyclQueue"),
    (queue, ValueError, "in order"),
):
    try:
        door.stream(wrong)
    except kind as error:
        assert words in str(error), error
        refused += 1
print("in order", refused)
"""

APART = """
from l0rt.interop.dpctl import stream
x = l0rt.empty(64)                                              # l0rt's own context
theirs = dpctl.memory.MemoryUSMDevice(64, queue=queue)
refused = 0
for function, args in ((l0rt.from_usm, (theirs,)), (dpctl.memory.as_usm_memory, (x, )), (share_context, (queue,)),
                       (native_context, (None,)), (native_context, (x,)), (stream, (queue,))):
    try:
        function(*args)
    except (TypeError, ValueError, RuntimeError) as error:
        refused += bool(str(error))
print(refused, native_context(queue) != xpu.native_context())
"""


@pytest.fixture
def environment():
    if importlib.util.find_spec("dpctl") is None:
        told = "needs dpctl beside l0rt: the extra `partners`"
        (pytest.fail if os.environ.get("L0RT_TEST_PARTNERS") == "1" else pytest.skip)(told)
    return {**cpu_driver.environment(), "L0RT_DRIVER": "cpu"}


@pytest.mark.parametrize("adapter", [0, 1])
def test_a_context_is_shared_and_each_uses_the_others_memory(environment, adapter):
    result = run_python(BEGIN + SHARED, {**environment, "SYCL_UR_USE_LEVEL_ZERO_V2": adapter})
    assert (result.returncode, result.stdout) == (0, "shared\n"), result
    assert result.stderr == ""


def test_a_queue_of_dpctl_is_a_stream(environment):
    result = run_python(BEGIN + STREAM, {**environment, "SYCL_UR_USE_LEVEL_ZERO_V2": 1})
    assert (result.returncode, result.stdout, result.stderr) == (0, "in order 3\n", ""), result


@pytest.mark.parametrize(
    ("adapter", "immediate", "words"),
    [(0, 0, "UR_L0_USE_IMMEDIATE_COMMANDLISTS=1"), (0, 1, "SYCL_UR_USE_LEVEL_ZERO_V2=1")],
)
def test_a_queue_of_the_older_adapter_is_no_stream(environment, adapter, immediate, words):
    code = """
share_context(queue)
from l0rt.interop import dpctl as door
try:
    door.stream(queue)
except ValueError as error:
    print(error)
"""
    settings = {"SYCL_UR_USE_LEVEL_ZERO_V2": adapter, "UR_L0_USE_IMMEDIATE_COMMANDLISTS": immediate}
    result = run_python(BEGIN + code, {**environment, **settings})
    assert result.returncode == 0, result
    assert words in result.stdout, result


@pytest.mark.parametrize("adapter", [0, 1])
def test_without_a_common_context_memory_and_queues_are_refused(environment, adapter):
    result = run_python(BEGIN + APART, {**environment, "SYCL_UR_USE_LEVEL_ZERO_V2": adapter})
    assert (result.returncode, result.stdout) == (0, "6 True\n"), result


def test_the_programs_of_the_docs_run(environment):
    page = (ROOT / "docs/partners.md").read_text()
    programs = re.findall(r"^```\n(import (?:dpctl|os).*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert len(programs) == 2
    for program in programs:
        result = run_python(program, environment)
        assert result.returncode == 0, result
