# SPDX-License-Identifier: Apache-2.0
"""The ledger catches a leak of every kind in the test that made it, and only there."""

import l0rt

from helpers.ci import skip_unless_ci
from helpers.process import run_python
from helpers.rings import RINGS, TESTS, Ring

# Handles made behind l0rt's back, by the plain entry points of the CPU driver.
PLANTED = '''
import ctypes, struct
import l0rt, pytest

P = ctypes.c_void_p
ze = ctypes.CDLL(l0rt.cpu_driver_path())

def made(call, *args):
    handle = P()
    assert getattr(ze, call)(*args, ctypes.byref(handle)) == 0
    return handle

def first(call, *args):
    count, handle = ctypes.c_uint32(1), P()
    assert getattr(ze, call)(*args, ctypes.byref(count), ctypes.byref(handle)) == 0
    return handle

def desc(stype, *words):
    """A descriptor: its type, no extension, 32-bit members."""
    return ctypes.create_string_buffer(struct.pack(f"QQ{len(words)}I", stype, 0, *words), 64)

assert ze.zeInit(0) == 0
driver = first("zeDriverGet")
device = first("zeDeviceGet", driver)
context = made("zeContextCreate", driver, desc(0xD, 0))
pool = made("zeEventPoolCreate", context, desc(0x10, 1, 8), 0, None)

def test_context(): made("zeContextCreate", driver, desc(0xD, 0))
def test_clean_between(): assert ze.zeContextDestroy(made("zeContextCreate", driver, desc(0xD, 0))) == 0
def test_list(): made("zeCommandListCreateImmediate", context, device, desc(0xE, 0, 0, 0, 2, 0))
def test_pool(): made("zeEventPoolCreate", context, desc(0x10, 1, 8), 0, None)
def test_event(): made("zeEventCreate", pool, desc(0x11, 0, 0, 0))
def test_device_memory():
    made("zeMemAllocDevice", context, desc(0x15, 0, 0), ctypes.c_size_t(64), ctypes.c_size_t(0), device)
def test_host_memory(): made("zeMemAllocHost", context, desc(0x16, 0), ctypes.c_size_t(64), ctypes.c_size_t(0))
def test_nothing(): pass

class Owner:
    def __init__(self): self.context = made("zeContextCreate", driver, desc(0xD, 0))
    def __del__(self): assert ze.zeContextDestroy(self.context) == 0

@pytest.fixture
def owner(): return Owner()
def test_fixture(owner): assert owner.context
def test_cycle(owner): owner.me = owner
'''
KEPT = """
import l0rt, pytest

kept = []
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_buffer(kind): kept.append(l0rt.empty(1 << 20, kind=kind))
@pytest.fixture
def buffer(): return l0rt.empty(1 << 20)
def test_fixture(buffer): assert buffer.nbytes == 1 << 20
def test_dropped(): l0rt.empty(1 << 20)
def test_many_events():
    events = [l0rt.Event() for _ in range(1000)]
    for event in events: event.record()
    events[-1].synchronize()
def test_streams(): [l0rt.Stream(priority=-1).synchronize() for _ in range(100)]
"""


def run_planted(tmp_path, text):
    folder = tmp_path / "core"
    folder.mkdir()
    (folder / "conftest.py").write_text("from helpers.ledger import nothing_leaks, pytest_runtest_makereport, warm")
    (folder / "test_planted.py").write_text(text)
    ring = Ring("planted", (), {"L0RT_DRIVER": "cpu"})
    return ring.run(None, tmp_path, ["-rA", folder / "test_planted.py"], timeout=60)


def leaking(result):
    """Return the tests that the ledger found leaking."""
    lines = result.stdout.splitlines()
    return {line.rpartition("::")[2].partition(" ")[0] for line in lines if line.startswith("ERROR ") and "::" in line}


def test_every_kind_of_leak_fails_the_test_that_made_it(tmp_path):
    result = run_planted(tmp_path, PLANTED)
    assert leaking(result) == {
        "test_context", "test_list", "test_pool", "test_event", "test_device_memory", "test_host_memory"
    }, str(result)  # fmt: skip
    assert "10 passed" in result.stdout, str(result)


SETTINGS = """
from l0rt import config
def test_left(): config.set("alloc_conf", "max_split_size_mb:200")
def test_the_same_again(): config.set("alloc_conf", "max_split_size_mb:200")
def test_another(): config.set("alloc_conf", "")
def test_restored():
    with config.patch({"alloc_conf": "max_split_size_mb:100"}): pass
"""


def test_a_setting_that_stays_fails_the_test_that_left_it(tmp_path):
    result = run_planted(tmp_path, SETTINGS)
    assert leaking(result) == {"test_left", "test_another"}, str(result)
    assert "4 passed" in result.stdout, str(result)


def test_what_l0rt_holds_is_counted_and_its_caches_are_not(tmp_path):
    result = run_planted(tmp_path, KEPT)
    assert leaking(result) == {"test_buffer[device]", "test_buffer[host]", "test_buffer[shared]"}, str(result)
    assert "7 passed" in result.stdout, str(result)


def test_the_driver_is_found_inside_the_loader():
    ring = next(ring for ring in RINGS if ring.name == "loader")
    if ring.missing():
        skip_unless_ci("the loader is not installed (Debian: apt install libze1)")
    code = f"""
import ctypes, sys
sys.path.insert(0, {str(TESTS)!r})
import l0rt
from helpers import ledger
assert ledger.live() is None
assert ctypes.CDLL("libze_loader.so.1").zeInit(0) == 0
assert len(ledger.live()) > 5
"""
    result = run_python(code, ring.environment(l0rt.cpu_driver_path()))
    assert result.returncode == 0, str(result)


def test_without_the_driver_there_is_nothing_to_count():
    code = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from helpers import ledger; print(ledger.live())"
    assert run_python(code).stdout.strip() == "None"
