# SPDX-License-Identifier: Apache-2.0
"""A context of other software that l0rt takes instead of its own, and lists of other software in l0rt's context."""

import l0rt.xpu as xpu
import pytest
from l0rt.runtime.streams import devices

from helpers.process import run_python

SOFTWARE = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")
# Somebody who works with Level Zero itself, and knows nothing of l0rt.
FOREIGNER = """
import ctypes, l0rt, l0rt.accelerator as acc, l0rt.xpu as xpu

P = ctypes.c_void_p
lib = ctypes.CDLL(l0rt.cpu_driver_path())

class Desc(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("pNext", P), ("values", ctypes.c_uint32 * 16)]

def call(name, *arguments):
    result = getattr(lib, name)(*arguments)
    assert result == 0, (name, hex(result))

def made(name, *arguments):
    out = P()
    call(name, *arguments, ctypes.byref(out))
    return out

def desc(stype, *values):
    return ctypes.byref(Desc(stype, None, values))

call("zeInit", 1)
driver, count, pair = P(), ctypes.c_uint32(1), (P * 2)()
call("zeDriverGet", ctypes.byref(count), ctypes.byref(driver))
call("zeDeviceGet", driver, ctypes.byref(ctypes.c_uint32(2)), pair)
device = P(pair[0])

def context():
    return made("zeContextCreate", driver, desc(0xd))

def memory(context, nbytes):
    return made("zeMemAllocDevice", context, desc(0x15), ctypes.c_size_t(nbytes), ctypes.c_size_t(64), device)

def list_in(context):
    return made("zeCommandListCreateImmediate", context, device, desc(0xe, 0, 0, 2, 2, 0))

def copy(list, target, source, nbytes):
    call("zeCommandListAppendMemoryCopy", list, P(target), P(source), ctypes.c_size_t(nbytes), None, 0, None)
    call("zeCommandListHostSynchronize", list, ctypes.c_uint64(2**64 - 1))
"""


def ran(code):
    result = run_python(FOREIGNER + code, env=SOFTWARE)
    assert (result.returncode, result.stdout, result.stderr) == QUIET


def test_handles_are_those_of_the_first_layer():
    index = xpu.current_device()
    assert xpu.native_device() == xpu.native_device(index) == devices._devices[index].handle
    assert xpu.native_context() == xpu.native_context("xpu:0") == devices._contexts[0].handle
    assert xpu.native_driver() == devices._devices[index].driver.handle
    for function in (xpu.native_device, xpu.native_context, xpu.native_driver):
        assert function() > 0
        with pytest.raises(IndexError):
            function(77)


def test_it_is_too_late_after_the_first_use():
    xpu.init()
    with pytest.raises(RuntimeError, match="before the first use"):
        xpu.adopt_context(4096)
    for wrong in (0, -1, 1 << 64, 1 << 80):
        with pytest.raises(ValueError, match="must be an address"):
            xpu.adopt_context(wrong)
    for wrong in (None, "x", 1.5, b"1"):
        with pytest.raises(TypeError):
            xpu.adopt_context(wrong)


def test_an_adopted_context_is_shared():
    ran("""
theirs = context()
xpu.adopt_context(theirs.value)
assert xpu.native_context() == theirs.value == xpu.native_context(1)

raw = memory(theirs, 4096)                      # theirs is l0rt's
x = l0rt.Buffer.from_handle(raw.value, 4096, owner=raw)
assert x.kind == "device" and x.device.index == 0
x.copy_from(bytes(range(256)) * 16)

mine = l0rt.empty(4096)                         # and l0rt's is theirs
acc.synchronize()
their_list = list_in(theirs)
copy(their_list, mine.ptr, raw.value, 4096)
assert bytes(mine.numpy()) == bytes(range(256)) * 16

stream = l0rt.Stream.from_handle(their_list.value)  # their list is a stream
assert l0rt.Stream.from_handle(their_list.value) == stream
other = l0rt.empty(4096)
with stream:
    other.copy_from(x)
event = stream.record_event()
event.synchronize()
assert bytes(other.numpy(stream=stream)) == bytes(range(256)) * 16
stream.synchronize()
x.free()
""")


def test_the_owner_lives_as_long_and_is_what_sycl_is_told():
    ran("""
import gc, weakref

class Queue:                                    # as dpctl's
    def _get_capsule(self):
        raise NotImplementedError

theirs, queue = context(), Queue()
alive = weakref.ref(queue)
xpu.adopt_context(theirs.value, owner=queue)
x = l0rt.empty(64)
assert x.__sycl_usm_array_interface__["syclobj"] is queue
del queue, x
gc.collect()
assert alive() is not None
""")


def test_a_context_that_is_none_is_refused_and_the_next_use_goes_on():
    ran("""
gone = context()
call("zeContextDestroy", gone)
for handle in (gone.value, 4096, 2**64 - 1, driver.value):
    xpu.adopt_context(handle)
    assert not xpu.is_initialized()
    try:
        l0rt.empty(64)
    except ValueError as error:
        assert f"{handle:#x}" in str(error) and "adopt_context" in str(error)
    else:
        raise AssertionError(handle)
x = l0rt.empty(64)
assert xpu.native_context() not in (gone.value, 0)
""")


def test_a_context_that_lacks_a_device_is_refused_and_the_next_use_goes_on():
    ran("""
lacking = P()
call("zeContextCreateEx", driver, desc(0xd), ctypes.c_uint32(1), ctypes.byref(device), ctypes.byref(lacking))
xpu.adopt_context(lacking.value)
try:
    l0rt.empty(64)
except ValueError as error:
    assert f"the context {lacking.value:#x} lacks xpu:1" in str(error) and "ZE_AFFINITY_MASK" in str(error), error
else:
    raise AssertionError
assert not xpu.is_initialized()
both = P()
call("zeContextCreateEx", driver, desc(0xd), ctypes.c_uint32(2), pair, ctypes.byref(both))
xpu.adopt_context(both.value)
assert l0rt.empty(64, device=1).fill(3).numpy()[0] == 3 and xpu.native_context() == both.value
""")


def test_memory_of_another_context_is_refused_by_every_door():
    ran("""
x = l0rt.empty(64)
raw = memory(context(), 4096)
told = {**x.__sycl_usm_array_interface__, "data": (raw.value, True)}
foreign = type("Array", (), {"__sycl_usm_array_interface__": told})()
for door in (lambda: l0rt.Buffer.from_handle(raw.value, 64), lambda: l0rt.from_usm(foreign)):
    try:
        door()
    except ValueError as error:
        assert "adopt_context" in str(error), error
    else:
        raise AssertionError
""")


def test_a_list_of_another_context_is_no_stream():
    """It would be given memory that its context does not know."""
    ran("""
acc.synchronize()
elsewhere = context()
for named in (list_in(elsewhere).value, type("S", (), {
        "__l0_stream__": lambda self, list=list_in(elsewhere): (0, "cmdlist_immediate", list.value)})()):
    for device in (None, 0):
        try:
            l0rt.Stream.from_handle(named, device=device)
        except ValueError as error:
            assert "another context" in str(error) and "adopt_context" in str(error), error
        else:
            raise AssertionError
assert acc.stream_pool.state()["adopted"] == 0
""")


def test_an_object_tells_its_list():
    ran("""
class Theirs:
    def __init__(self, *told):
        self.told = told
    def __l0_stream__(self):
        return self.told
list = list_in(P(xpu.native_context()))
stream = l0rt.Stream.from_handle(Theirs(0, "cmdlist_immediate", list.value))
assert stream.native_handle == list.value
assert l0rt.Stream.from_handle(stream) == stream        # l0rt's own tell theirs
for told in ((), (0, "cmdqueue", list.value), (1, "cmdlist_immediate", list.value)):
    try:
        l0rt.Stream.from_handle(Theirs(*told))
    except TypeError as error:
        assert "__l0_stream__" in str(error)
    else:
        raise AssertionError
for wrong in (None, "x", -1):
    try:
        l0rt.Stream.from_handle(Theirs(0, "cmdlist_immediate", wrong))
    except ValueError as error:
        assert "must be an address" in str(error)
    else:
        raise AssertionError
del stream
call("zeCommandListDestroy", list)
""")


def test_a_list_of_a_foreigner_is_a_stream_while_its_object_lives():
    ran("""
import gc
list = list_in(P(xpu.native_context()))
x = l0rt.empty(1 << 16)
stream = l0rt.Stream.from_handle(list.value, device=0)
assert stream.native_handle == list.value and stream.__l0_stream__() == (0, "cmdlist_immediate", list.value)
x.fill(4, stream=stream)
acc.current_stream().wait_stream(stream)
assert (x.numpy() == 4).all()
x.__dlpack__(stream=list.value)
del stream
gc.collect()
call("zeCommandListDestroy", list)
acc.synchronize()
""")
