# SPDX-License-Identifier: Apache-2.0
"""Functions in place of the driver's memory, and how a process with such functions forks and ends."""

import l0rt
import pytest
from l0rt import memory
from l0rt.memory import PluggableAllocator

from helpers.process import run_python

CURRENT = """
import ctypes, gc, os, sys, l0rt, l0rt.accelerator as acc
from l0rt import memory
libc = ctypes.CDLL(None)
libc.aligned_alloc.restype = ctypes.c_void_p
libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
live = {}
def alloc(nbytes, device, stream):
    ptr = libc.aligned_alloc(65536, nbytes)
    live[ptr] = nbytes
    return ptr
def free(ptr, nbytes, device, stream):
    assert live.pop(ptr) == nbytes
    libc.free(ptr)
    if sys.is_finalizing() or report:
        print("freed", nbytes, flush=True)
report = False
allocator = memory.PluggableAllocator(alloc, free)
"""


def test_the_current_allocator_can_be_changed_before_its_first_use():
    result = run_python(CURRENT + """
acc.device_count(), acc.current_stream()
memory.change_current_allocator(memory.PluggableAllocator(free, alloc))
l0rt.xpu.change_current_allocator(allocator)
a, b = l0rt.empty(100), l0rt.empty(70000)
assert sorted(live.values()) == [65536, 131072], live
assert memory.memory_reserved() == 3 * 65536
with memory.use_mem_pool(memory.MemPool()):
    c = l0rt.empty(1)
assert len(live) == 3
a.free(), b.free(), c.free()
assert not live
assert memory.memory_allocated() == memory.memory_reserved() == 0
try:
    memory.change_current_allocator(allocator)
except RuntimeError as e:
    print(e)
""")
    assert result.returncode == 0, result
    assert result.stdout == "Can't swap an already initialized allocator\n"
    assert result.stderr == ""


def test_an_allocator_in_use_stays():
    buffer = l0rt.empty(1)
    with pytest.raises(RuntimeError, match="^Can't swap an already initialized allocator$"):
        memory.change_current_allocator(PluggableAllocator(len, len))
    buffer.free()


def test_a_current_allocator_that_asks_itself_is_told():
    result = run_python(CURRENT + """
memory.change_current_allocator(memory.PluggableAllocator(lambda n, d, s: l0rt.empty(n).ptr, free))
try:
    l0rt.empty(1)
except l0rt.L0Error as e:
    print(e)
""")
    assert "allocates from its own pool" in result.stdout, result


def test_all_is_given_back_at_exit():
    result = run_python(CURRENT + """
report = True
pool = memory.MemPool(allocator)
with memory.use_mem_pool(pool):
    kept = l0rt.empty(3 << 20)
    l0rt.empty(1).free()
""")
    assert result.returncode == 0, result
    assert sorted(result.stdout.split("\n")) == ["", "freed 2097152", "freed 3145728"], result
    assert result.stderr == ""


def test_a_forked_child_calls_nothing():
    result = run_python(CURRENT + """
report = True
pool = memory.MemPool(allocator)
with memory.use_mem_pool(pool):
    kept = l0rt.empty(3 << 20)
if os.fork() == 0:
    try:
        with memory.use_mem_pool(pool):
            l0rt.empty(1)
    except RuntimeError as e:
        assert "fork" in str(e), e
    kept.free()
    pool.empty_cache()
    del kept, pool
    gc.collect()
    os._exit(0)
assert os.wait()[1] == 0
print("parent")
""")
    assert result.returncode == 0, result
    assert result.stdout == "parent\nfreed 3145728\n", result
