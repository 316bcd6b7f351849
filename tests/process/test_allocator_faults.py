# SPDX-License-Identifier: Apache-2.0
"""What the allocator makes of a driver that does not take memory back, and of a machine without host memory."""

import subprocess

import pytest

from helpers import plain  # noqa: F401 - compiled before a shim lets it have no memory
from helpers.process import run_python
from helpers.rings import TESTS

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}


def assert_runs(code, **env):
    result = run_python(code, {**CPU, **env})
    assert (result.returncode, result.stdout) == (0, "done\n"), result


# The driver refuses to map something over what is mapped already: whatever it has not unmapped stays where it is.
STUCK = "zeVirtualMemUnmap:3:ERROR_UNKNOWN"     # the first ones are probes'

SLEEPS = """
import warnings, l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, use_mem_pool
warnings.simplefilter("ignore", ResourceWarning)
pool = MemPool()
with use_mem_pool(pool):
    kept = [l0rt.empty(n) for n in (4096, 5 << 20)]
for _ in range(3):
    pool.sleep()
    pool.wake()
for each in kept:
    each.fill(7)
acc.synchronize()
assert acc.memory_reserved() == acc.memory_stats()["reserved_bytes.all.current"] == (5 << 20) + (256 << 10)
print("done")
"""


def test_a_pool_wakes_after_an_unmap_that_failed_in_its_sleep():
    assert_runs(SLEEPS, L0RT_CPU_FAIL=STUCK)


GROWS = """
import warnings, l0rt, l0rt.accelerator as acc
warnings.simplefilter("ignore", ResourceWarning)
for _ in range(2):
    kept = [l0rt.empty(20 << 20), l0rt.empty(4096)]     # of many pieces while there is nothing yet
    for each in kept:
        each.fill(1)
    acc.synchronize()
    assert acc.memory_stats()["reserved_bytes.all.current"] == acc.memory_reserved() > 20 << 20
    del kept, each
    acc.empty_cache()
assert acc.memory_reserved() == 0, acc.memory_reserved()
print("done")
"""


@pytest.mark.parametrize("nth", [4, 6, 11])
def test_growing_goes_on_after_a_mapping_that_could_not_be_undone(nth):
    assert_runs(GROWS, L0RT_CPU_FAIL=f"zeVirtualMemMap:{nth}:ERROR_OUT_OF_DEVICE_MEMORY,{STUCK}")


SHIM = r"""
#include <errno.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static __thread long left __attribute__((tls_model("initial-exec"))) = -1, most, failed;
void fail_from(long nth, long count) { left = nth; most = count; failed = 0; }
long fail_no_more(void) { left = -1; return failed; }
int call_without_memory(int (*call)(void *)) {
  fail_from(0, 1000);
  int result = call(NULL);
  fail_no_more();
  return result;
}
static int fails(void) {
  if (left < 0 || left-- > 0) return 0;
  left = ++failed < most ? 0 : -1;
  return 1;
}
void *malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t alignment, size_t n) { return fails() ? NULL : __libc_memalign(alignment, n); }
int posix_memalign(void **out, size_t alignment, size_t n) {
  void *made = fails() ? NULL : __libc_memalign(alignment, n);
  if (made == NULL) return ENOMEM;
  *out = made;
  return 0;
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """A library whose functions let host allocations of the calling thread fail; to be loaded before everything."""
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "shim.so", folder / "shim.c"], check=True)
    return folder / "shim.so"


PLAIN = """
import ctypes, itertools, sys
from l0rt.config import alloc_options
from l0rt.runtime.alloc.allocator import Allocator, Pool
sys.path.insert(0, TESTS)
from helpers.plain import PlainMemory
libc = ctypes.PyDLL(None)
MIB, COUNT, VIRTUAL = 1 << 20, int(sys.argv[1]), int(sys.argv[2])

def work(allocator, pool, live):
    for n in (512, 3 * MIB, MIB, 9 * MIB):
        live.append(allocator.malloc(n, 1))
        live.append(allocator.malloc(n, 2, pool))
    pool.keep(True)
    try:
        place = allocator.find(live[-1])
        allocator.free(live.pop())
        allocator.restore(pool, [place])
        live.append(place[0])
    finally:
        pool.keep(False)
    allocator.record_stream(live[1], 3)
    allocator.record_use(live[3], 4)
    while len(live) > 1:
        allocator.free(live[-1])
        live.pop()
    live.append(allocator.malloc(20 * MIB, 1))
    live.append(allocator.malloc(700, 1))
    allocator.empty_cache()

for nth in itertools.count():
    memory = PlainMemory(virtual=VIRTUAL)
    allocator, pool, live = Allocator(memory), Pool(), []
    libc.fail_from(nth, COUNT)
    try:
        work(allocator, pool, live)
    except MemoryError:
        pass
    failed = libc.fail_no_more()
    live.append(allocator.malloc(4096, 1))
    live.append(allocator.malloc(6 * MIB, 2, pool))
    for address in live:
        allocator.free(address)
    allocator.empty_cache()
    allocator.empty_cache(pool)
    assert allocator.reserved_bytes == allocator.allocated_bytes == 0, (nth, allocator.stats())
    del allocator
    left = memory.counters
    assert left["used"] == left["physicals"] == left["ranges"] == 0 and left["records"] == left["drops"], (nth, left)
    if failed == 0:
        break
assert nth > 3
print("done")
"""


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("virtual", [0, 1 << 34], ids=["segments", "ranges"])
def test_every_lack_of_host_memory_leaves_an_allocator_that_works(shim, count, virtual):
    code = f"import sys; TESTS = {str(TESTS)!r}; sys.argv = ['', '{count}', '{virtual}']\n{PLAIN}"
    assert_runs(code, LD_PRELOAD=shim)


DEVICE = """
import ctypes, itertools, sys
import l0rt, l0rt.accelerator as acc
libc = ctypes.PyDLL(None)
MIB = 1 << 20

def work(live, s):
    live.append(l0rt.empty(4096))
    live.append(l0rt.empty(5 * MIB))
    live[-1].record_stream(s)
    del live[-1]
    live.append(l0rt.empty(4096, stream=s))
    live.append(l0rt.empty(8 * MIB, kind="host"))
    live.clear()
    acc.empty_cache()
    live.append(l0rt.empty(40 * MIB))

s, live = acc.Stream(), []
work(live, s)
for nth in itertools.count():
    live.clear()
    acc.empty_cache()
    acc.empty_host_cache()
    libc.fail_from(nth, 4)
    try:
        work(live, s)
    except MemoryError:
        pass
    failed = libc.fail_no_more()
    small, large = l0rt.empty(4096), l0rt.empty(64 * MIB)
    small.fill(1)
    large.fill(2)
    acc.synchronize()
    del small, large
    if failed == 0:
        break
assert nth > 3
print("done")
"""


def test_memory_is_had_again_once_there_is_host_memory(shim):
    assert_runs(DEVICE, LD_PRELOAD=shim)


LOST = """
import l0rt, l0rt.accelerator as acc
x, y = l0rt.empty(4096, kind="shared"), l0rt.empty(4096, kind="shared")
x.free()                            # the driver says that the device is gone
for kind in ("shared", "device"):
    try:
        l0rt.empty(4096, kind=kind)
    except l0rt.DeviceLostError:
        pass
    else:
        raise AssertionError(kind)
print("done")
"""


def test_a_device_that_is_lost_gives_no_shared_memory():
    assert_runs(LOST, L0RT_CPU_FAIL="zeMemFreeExt:1:ERROR_DEVICE_LOST")


WAITS = """
import l0rt, l0rt.accelerator as acc
for _ in range(20):
    s = acc.Stream()
    x = l0rt.empty(64 << 20, kind="shared")
    x.fill(1, stream=s)
    x.free()
    assert s.query()
print("done")
"""


def test_shared_memory_is_freed_once_no_work_uses_it_whatever_the_driver_can():
    assert_runs(WAITS, L0RT_DISABLE="free_ext")


FIRST = """
import threading, l0rt, l0rt.accelerator as acc
from l0rt import memory
acc.init() if hasattr(acc, "init") else acc.synchronize()
import sys; sys.setswitchinterval(1e-6)
gate, kept = threading.Barrier(8), []
def first(kind):
    gate.wait()
    kept.append(l0rt.empty(4096, kind=kind))
threads = [threading.Thread(target=first, args=(kind,)) for kind in ("host", "device") * 4]
for t in threads: t.start()
for t in threads: t.join()
assert memory.host_memory_stats()["active_requests.current"] == 4, memory.host_memory_stats()
assert acc.memory_stats()["allocation.all.current"] == 4
print("done")
"""


@pytest.mark.parametrize("turn", range(4))
def test_all_threads_that_are_first_have_one_heap(turn):
    assert_runs(FIRST)


FIRST_WITH_A_LIMIT = """
import threading, l0rt, l0rt.accelerator as acc
acc.synchronize()
import sys; sys.setswitchinterval(1e-6)
gate, kept = threading.Barrier(8), []
def first():
    gate.wait()
    try:
        kept.append(l0rt.empty(8 << 20))
    except l0rt.OutOfMemoryError:
        pass
threads = [threading.Thread(target=first) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
assert len(kept) == 4, len(kept)
assert acc.memory_reserved() <= 32 << 20
print("done")
"""


@pytest.mark.parametrize("turn", range(4))
def test_the_first_allocations_keep_to_the_configured_limit(turn):
    configuration = {"L0RT_CPU_MEMORY": "256MiB", "L0RT_ALLOC_CONF": "per_process_memory_fraction:0.125"}
    assert_runs(FIRST_WITH_A_LIMIT, **configuration)


BAD = """
import l0rt
for kind in ("device", "host") * 2:
    try:
        l0rt.empty(64, kind=kind)
    except ValueError as wrong:
        assert "L0RT_ALLOC_CONF" in str(wrong)
    else:
        raise AssertionError(kind)
print("done")
"""


def test_a_bad_configuration_is_told_each_time():
    assert_runs(BAD, L0RT_ALLOC_CONF="nonsense:1")


SETTING = """
import l0rt, l0rt.accelerator as acc, l0rt.xpu
for use in (acc.init, l0rt.Stream, acc.current_stream, lambda: l0rt.empty(64), lambda: l0rt.Event().record()) * 2:
    try:
        use()
    except ValueError as wrong:
        assert "{name}='nonsense' is not valid: expected" in str(wrong), wrong
    else:
        raise AssertionError(use)
    assert not l0rt.xpu.is_initialized()
print("done")
"""


@pytest.mark.parametrize(
    "name", ["L0RT_LAZY_INIT", "L0RT_STREAM_POOL_SIZE", "L0RT_EVENTS", "L0RT_DISABLE", "L0RT_DRIVER"]
)
def test_a_bad_setting_of_the_opening_is_told_each_time(name):
    assert_runs(SETTING.format(name=name), **{name: "nonsense"})


REFUSED = """
import ctypes, threading
import l0rt
l0rt.empty(64)
libc, driver = ctypes.CDLL(None), ctypes.CDLL(l0rt.cpu_driver_path())
call = ctypes.cast(driver.zeEventDestroy, ctypes.c_void_p)
results = []
thread = threading.Thread(target=lambda: results.append(libc.call_without_memory(call)))
thread.start()
thread.join()
assert results == [0x78000005], results      # INVALID_NULL_HANDLE
print("done")
"""


def test_a_threads_first_refused_call_needs_no_host_memory(shim):
    """Its error has no text then. The C library would end the process for want of a thread's variables."""
    assert_runs(REFUSED, LD_PRELOAD=shim)
