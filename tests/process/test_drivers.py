# SPDX-License-Identifier: Apache-2.0
"""Which driver is used, what happens without one, with two, and with one that lacks what newer ones have."""

import shutil

import l0rt
import pytest
from l0rt.ze import table

from helpers.ci import skip_unless_ci
from helpers.fallbacks import USES
from helpers.process import run_python
from helpers.rings import LOADER, TESTS, installed

QUIET = (0, "", "")
NO_DRIVER = dict.fromkeys(
    ("L0RT_DRIVER", "L0RT_CPU_DEVICES", "ZE_ENABLE_ALT_DRIVERS", "NEOReadDebugKeys", "SetCommandStreamReceiver")
)


def outcome(result):
    return result.returncode, result.stdout, result.stderr


WITHOUT = """
import l0rt, l0rt.accelerator as acc
assert acc.is_available() is False and acc.device_count() == 0
assert acc.current_accelerator() == l0rt.device("xpu") and acc.current_accelerator(check_available=True) is None
assert l0rt.xpu.memory_stats() == {} and l0rt.xpu.memory_allocated() == 0
with acc.device_index(None):
    pass
e = l0rt.Event()
assert e.query()
for use in (lambda: l0rt.empty(64), acc.current_stream, acc.Stream, acc.synchronize, acc.current_device_index,
            lambda: acc.set_device_index(0), e.record, acc.empty_cache, acc.get_memory_info, acc.default_stream,
            acc.get_device_capability, acc.memory_stats, acc.memory_allocated, l0rt.xpu.init,
            lambda: acc.device_index(0).__enter__(),
            l0rt.xpu.get_device_name, lambda: l0rt.memory.set_memory_limit(1 << 20)):
    for _ in range(2):
        try:
            use()
        except l0rt.DriverNotFoundError as error:
            text = str(error)
            assert text.startswith("Cannot access accelerator device when none is available."), text
            assert WHY in text and "L0RT_DRIVER=cpu" in text and "l0rt doctor" in text, text
            assert isinstance(error, RuntimeError)
        else:
            raise AssertionError(use)
acc.set_device_index(-1)
"""


@pytest.mark.parametrize(
    ("driver", "why"),
    [
        (None, ""),
        ("gpu", ""),
        ("/nowhere/libze_missing.so", "/nowhere/libze_missing.so cannot be opened"),
        (shutil.which("sh"), "cannot be opened"),
        ("/lib/x86_64-linux-gnu/libm.so.6", "is not a Level Zero library: it lacks zeInit"),
    ],
)
def test_without_a_gpu_nothing_crashes_and_every_call_says_why(driver, why):
    """Debian's loader with no driver in it unloads itself after a failed zeInit: any further call would crash."""
    assert outcome(run_python(f"WHY = {why!r}\n{WITHOUT}", {**NO_DRIVER, "L0RT_DRIVER": driver})) == QUIET


@pytest.mark.parametrize("variable", ["L0RT_DRIVER", "L0RT_DISABLE", "L0RT_STREAM_POOL_SIZE"])
def test_a_wrong_setting_is_an_error_that_lists_the_right_ones(variable):
    code = f"""
import l0rt, l0rt.accelerator as acc
acc.is_available()
try:
    acc.Stream().synchronize()
except ValueError as error:
    assert "{variable}='nonsense' is not valid: expected" in str(error), error
else:
    raise AssertionError
"""
    assert outcome(run_python(code, {"L0RT_DRIVER": "cpu", variable: "nonsense"})) == QUIET


def test_an_empty_setting_is_an_unset_one():
    code = "import l0rt.accelerator as acc; acc.Stream().synchronize()"
    assert outcome(run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_DISABLE": "", "L0RT_STREAM_POOL_SIZE": ""})) == QUIET


def test_auto_says_that_it_is_no_gpu():
    code = """
import warnings, l0rt
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    l0rt.empty(64)
assert [w.category for w in caught] == [UserWarning], caught
assert "not a GPU" in str(caught[0].message)
assert l0rt.xpu.get_device_properties().is_software
assert l0rt.accelerator.device_count() == 1
"""
    assert outcome(run_python(code, {**NO_DRIVER, "L0RT_DRIVER": "auto"})) == QUIET


def test_a_path_is_a_driver():
    code = "import l0rt; l0rt.empty(64).fill(1); assert l0rt.accelerator.device_count() == 1"
    assert outcome(run_python(code, {**NO_DRIVER, "L0RT_DRIVER": l0rt.cpu_driver_path()})) == QUIET


def test_settings_cannot_change_once_the_driver_is_open():
    code = """
import l0rt
l0rt.config.set("driver", "cpu")
l0rt.config.set("stream_pool_size", 4)
streams = {l0rt.Stream() for _ in range(40)}
assert len(streams) == 4
for path in ("driver", "disable", "stream_pool_size"):
    try:
        l0rt.config.set(path, {"driver": "gpu", "disable": "inorder", "stream_pool_size": 5}[path])
    except RuntimeError as error:
        assert "cannot change any more" in str(error)
    else:
        raise AssertionError(path)
"""
    assert outcome(run_python(code, NO_DRIVER)) == QUIET


OPTIONAL = [name for name, _, required in table.entry_points() if not required]

WORK = f"""
import sys
from l0rt.ze import loader, table
found = loader.Library.address
loader.Library.address = lambda self, name: 0 if name in LACKING else found(self, name)
{USES}
assert set(LACKING) <= set(table.missing()), table.missing()
try:
    l0rt.empty(1 << 50)
except l0rt.OutOfMemoryError:
    pass
"""


@pytest.mark.parametrize("lacking", [[name] for name in OPTIONAL] + [OPTIONAL], ids=lambda names: "+".join(names)[:40])
def test_every_optional_function_has_a_fallback(lacking):
    assert outcome(run_python(f"LACKING = {lacking}\n{WORK}", {**NO_DRIVER, "L0RT_DRIVER": "cpu"})) == QUIET


def test_a_missing_required_function_is_named():
    code = """
import l0rt
from l0rt.ze import loader
found = loader.Library.address
loader.Library.address = lambda self, name: 0 if name == "zeEventCreate" else found(self, name)
try:
    l0rt.empty(64)
except l0rt.DriverNotFoundError as error:
    assert "is not a Level Zero library: it lacks zeEventCreate" in str(error), error
else:
    raise AssertionError
"""
    assert outcome(run_python(code, {**NO_DRIVER, "L0RT_DRIVER": "cpu"})) == QUIET


TWO = """
import l0rt, l0rt.accelerator as acc, numpy as np
from l0rt.runtime.streams import devices
assert acc.device_count() == 2
l0rt.xpu.init()
assert len({d.driver.index for d in devices._devices}) == 2
for i in range(2):
    assert l0rt.xpu.get_device_properties(i).driver_version   # asked through an extension function, by the own handle
    with acc.device_index(i):
        x, y = l0rt.empty(4096), np.empty(4096, "u1")
        x.fill(i + 1)
        assert (x.copy_to(y) == i + 1).all()
        h = l0rt.empty(4096, kind="host")
        x.copy_to(h)
        assert bytes(h)[0] == i + 1
assert not l0rt.xpu.can_device_access_peer(0, 1)
acc.synchronize(0); acc.synchronize(1)
"""


APART = """
import l0rt, l0rt.accelerator as acc
x, graph = l0rt.empty(4096), acc.Graph()
here, there = l0rt.Stream(device=0), l0rt.Stream(device=1)
acc.synchronize(0)
with acc.graph(graph, stream=here):
    x.fill(7, stream=here)
    try:
        there.wait_stream(here)
        print("joined")
    except RuntimeError as error:
        assert "another driver's device cannot join the capture" in str(error), error
    assert here.is_capturing() and not there.is_capturing()
    x[:8].fill(9, stream=here)
there.synchronize()
with here:
    graph.replay()
assert x.numpy(stream=here)[:9].tolist() == [9] * 8 + [7]
"""


def test_two_drivers_in_the_loader(tmp_path):
    """The loader then hands out wrapped handles, which a driver's extension functions do not know."""
    if not installed(LOADER):
        skip_unless_ci(f"{LOADER} is not installed (Debian: apt install libze1)")
    copies = [shutil.copy(l0rt.cpu_driver_path(), tmp_path / f"libze_l0rt_cpu_{i}.so") for i in range(2)]
    environment = {**NO_DRIVER, "L0RT_DRIVER": "gpu", "ZE_ENABLE_ALT_DRIVERS": ",".join(map(str, copies))}
    assert outcome(run_python(TWO, environment)) == QUIET
    assert outcome(run_python(APART, environment)) == QUIET


VERSION = f"""
import ctypes, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.wrapped import wrap
TEXT = b"1.15.39122"
ctypes.memset(ctypes.create_string_buffer(1 << 12), 0x41, 1 << 12)

@ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t))
def version(driver, text, size):    # as Intel's: a size of 0 asks for it, else neither the size nor the end is written
    if size[0] == 0:
        size[0] = len(TEXT)
    else:
        ctypes.memmove(text, TEXT, min(len(TEXT), size[0]))
    return 0

def told(name, original):
    def call(*args):
        result = original(*args)
        if ctypes.string_at(args[1]) == b"zeIntelGetDriverVersionString":
            ctypes.c_void_p.from_address(args[2]).value = ctypes.cast(version, ctypes.c_void_p).value
        return result
    return call if name == "zeDriverGetExtensionFunctionAddress" else None
wrap(told)
import l0rt
print(l0rt.xpu.get_device_properties().driver_version)
"""


def test_a_version_that_the_driver_does_not_end_is_read_whole():
    assert outcome(run_python(VERSION, {"L0RT_DRIVER": "cpu"})) == (0, "1.15.39122\n", "")
