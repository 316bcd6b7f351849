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

APART = """
x = l0rt.empty(64)                                              # l0rt's own context
theirs = dpctl.memory.MemoryUSMDevice(64, queue=queue)
refused = 0
for function, args in ((l0rt.from_usm, (theirs,)), (dpctl.memory.as_usm_memory, (x, )), (share_context, (queue,)),
                       (native_context, (None,)), (native_context, (x,))):
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


def test_without_a_common_context_memory_is_refused(environment):
    result = run_python(BEGIN + APART, environment)
    assert (result.returncode, result.stdout) == (0, "5 True\n"), result


def test_the_program_of_the_docs_runs(environment):
    page = (ROOT / "docs/partners.md").read_text()
    (program,) = re.findall(r"^```\n(import dpctl.*?)^```$", page, re.DOTALL | re.MULTILINE)
    result = run_python(program, environment)
    assert result.returncode == 0, result
