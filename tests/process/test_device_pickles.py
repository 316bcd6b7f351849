# SPDX-License-Identifier: Apache-2.0
"""Pickles that name a device: it is found again by its UUID, in processes that number their devices otherwise."""

import pytest

from helpers.process import run_python

TWO = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2}
SECOND = {**TWO, "ZE_AFFINITY_MASK": "1"}
FIRST = {**TWO, "ZE_AFFINITY_MASK": "0"}

SENT = """
import copy, pickle
import l0rt, l0rt.accelerator as acc
named = [l0rt.device(name) for name in ("xpu:0", "xpu:1", "xpu:7", "xpu", "cpu:0")]
unopened = pickle.dumps(named)
assert not l0rt.xpu.is_initialized() and pickle.loads(unopened) == named and not l0rt.xpu.is_initialized()
acc.init()
assert all(copy.copy(d) is d and copy.deepcopy(d) is d for d in named)
first, second, *others = named
with acc.device_index(1):
    x = l0rt.empty(64).fill(7)
    generator = acc.Generator("xpu:1")
for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
    assert pickle.loads(pickle.dumps(named, protocol)) == named
sent = [first, second, others, x, generator, l0rt.empty(9, kind="host", device="xpu:1").copy_from(bytes(9))]
print(*[pickle.dumps(what).hex() for what in sent], unopened.hex())
"""

RECEIVED = """
import pickle
import l0rt, l0rt.accelerator as acc
def received(text):
    try:
        found = pickle.loads(bytes.fromhex(text))
    except Exception as e:
        return f"{type(e).__name__}: {e}"
    if isinstance(found, list):
        return " ".join(map(str, found))
    return str(getattr(found, "device", found)) + (f" {found.numpy().sum()}" if isinstance(found, l0rt.Buffer) else "")
"""


@pytest.fixture(scope="module")
def sent():
    result = run_python(SENT, TWO)
    assert result.returncode == 0, result
    return result.stdout.split()


def received(sent, env, code=""):
    result = run_python(RECEIVED + code + f"\nfor text in {sent}: print(received(text))", env)
    assert result.returncode == 0, result
    return result.stdout.splitlines()


def test_names_and_buffers_and_generators_come_to_the_device_with_the_same_uuid(sent):
    names = "xpu:0 xpu:1 xpu:7 xpu cpu:0"
    assert received(sent, TWO) == ["xpu:0", "xpu:1", "xpu:7 xpu cpu:0", "xpu:1 448", "xpu:1", "xpu:1 0", names]
    # the first device is hidden: the second is number 0, and a name of the first falls back to its index
    assert received(sent, SECOND) == ["xpu:0", "xpu:0", "xpu:7 xpu cpu:0", "xpu:0 448", "xpu:0", "xpu:0 0", names]


CRAFTED = """
from l0rt.buffers.empty import rebuild
from l0rt.runtime.streams import naming
for index in -2, 2, 0x7FFFFFFF:
    try:
        print("not refused", naming._unpickled(index, bytes(range(16))))
    except ValueError:
        assert str(rebuild(b"", "device", "xpu", index).device) == "xpu:0"
"""


def test_a_device_that_is_not_there_is_refused_and_contents_come_to_the_current_one(sent):
    first, second, _, buffer, generator, pinned, _ = received(sent, FIRST, CRAFTED)
    assert first == "xpu:0"
    assert (buffer, pinned) == ("xpu:0 448", "xpu:0 0")
    for refused in (second, generator):
        assert refused.startswith("InvalidArgumentError: the pickled device xpu:1 with UUID ")
        assert "the 1 that" in refused


@pytest.mark.long
def test_without_a_driver_the_error_says_which_device_was_expected(sent):
    first, second, others, buffer, *_ = received(sent, {"L0RT_DRIVER": "/nowhere/libze_loader.so.1"})
    assert others == "xpu:7 xpu cpu:0"
    for device, refused in (("xpu:0", first), ("xpu:1", second)):
        assert refused.startswith("DriverNotFoundError: ")
        assert f"Expected the pickled device {device} with" in refused
    assert buffer.startswith("DriverNotFoundError: ")


@pytest.mark.long
def test_a_forked_child_knows_the_devices_that_it_inherited(sent):
    fork = "import os\nacc.init()\nif pid := os.fork(): os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
    first, second, others, buffer, *_ = received(sent, SECOND, fork)
    assert (first, second, others) == ("xpu:0", "xpu:0", "xpu:7 xpu cpu:0")
    assert buffer.startswith("RuntimeError: Cannot re-initialize XPU in forked subprocess")

