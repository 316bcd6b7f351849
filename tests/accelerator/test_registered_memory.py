# SPDX-License-Identifier: Apache-2.0
"""Host memory that is there already becomes pinned memory, where the driver can do that."""

import ctypes
import gc
import mmap
import random
import warnings

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory

from helpers.process import run_python

MIB = 1 << 20


@pytest.fixture(scope="module")
def can():
    try:
        memory.register(np.zeros(4096, np.uint8)).unregister()
    except l0rt.UnsupportedError:
        pytest.skip("this driver pins no memory that is there already")


def own_pages(nbytes):
    """NumPy places two arrays next to each other now and then, on one page; of each page there is one registration."""
    whole = np.zeros(nbytes + 2 * 4096, np.uint8)
    start = -whole.ctypes.data % 4096
    return whole[start : start + nbytes]


@pytest.fixture
def array():
    array = own_pages(3 * MIB)
    array[:] = np.arange(3 * MIB, dtype=np.uint8)
    return array


@pytest.mark.usefixtures("can")
def test_an_address_may_be_a_numpy_integer(array):
    with memory.register(np.uint64(array.ctypes.data), np.int64(array.nbytes)) as registered:
        assert registered.ptr == array.ctypes.data


@pytest.mark.usefixtures("can")
def test_memory_that_was_registered_stays_the_programs(extent):
    """A driver may keep freed host memory, and hand it out again; some look at what they keep ten seconds later."""
    rng, kept = random.Random(1), []
    for turn in range(extent(60, 600, 20000)):
        array = own_pages(rng.choice([4096, 64 << 10, MIB, 3 * MIB]))
        array[:] = turn % 251
        memory.register(array).unregister()
        held = l0rt.empty(array.nbytes, kind="host")
        np.frombuffer(held, np.uint8)[:] = 255
        kept.append((array, held, turn % 251))
        if len(kept) > 12:
            array, held, value = kept.pop(rng.randrange(12))
            assert (array == value).all()
            assert (np.frombuffer(held, np.uint8) == 255).all()
        if turn % 7 == 0:
            acc.empty_host_cache()
        del array, held


@pytest.mark.usefixtures("can")
def test_it_is_pinned_within_and_ordinary_after(array):
    assert not memory.is_pinned(array)
    with memory.register(array) as registered:
        assert (registered.ptr, registered.nbytes) == (array.ctypes.data, array.nbytes)
        assert memory.is_pinned(array)
        assert memory.is_pinned(array[100:200])
        assert memory.is_pinned(array.ctypes.data + array.nbytes - 1)
        assert not memory.is_pinned(array.ctypes.data + array.nbytes)
    assert (registered.ptr, registered.nbytes) == (0, 0)
    assert not memory.is_pinned(array)
    registered.unregister()  # twice is harmless
    with pytest.raises(ValueError, match="not registered any more"), registered:
        pass


@pytest.mark.usefixtures("can")
@pytest.mark.checks_data
def test_copies_are_non_blocking_both_ways(array):
    device, back = l0rt.empty(array.nbytes), own_pages(array.nbytes)
    stream = acc.Stream()
    with memory.register(array), memory.register(back):
        device.copy_from(array, stream=stream, non_blocking=True)
        device.copy_to(back, stream=stream, non_blocking=True)
        stream.synchronize()
        np.testing.assert_array_equal(back, array)
        part = l0rt.empty(5000)
        part.copy_from(array[777:5777])
        part.copy_to(back[:5000])
        np.testing.assert_array_equal(back[:5000], array[777:5777])
    with pytest.raises(ValueError, match="pinned"):
        device.copy_from(array, non_blocking=True)


@pytest.mark.usefixtures("can")
@pytest.mark.checks_data
def test_the_end_waits_for_the_copies(array):
    back = np.zeros_like(array)
    devices = [l0rt.empty(array.nbytes).fill(i + 1) for i in range(4)]
    streams = [acc.Stream() for _ in devices]
    registered = memory.register(back)
    for device, stream in zip(devices, streams, strict=True):
        stream.wait_stream(acc.current_stream())
        for _ in range(5):
            device.copy_to(back, stream=stream, non_blocking=True)
    registered.unregister()
    assert all(stream.query() for stream in streams)
    assert back[0] in (1, 2, 3, 4)


@pytest.mark.usefixtures("can")
def test_the_object_cannot_go_meanwhile():
    data = bytearray(5000)
    with memory.register(data), pytest.raises(BufferError):
        data.append(1)
    data.append(1)


@pytest.mark.usefixtures("can")
def test_an_address_is_registered_with_its_size(array):
    with memory.register(array.ctypes.data + 5, 10_000):
        assert memory.is_pinned(array[5:10_005])
        assert not memory.is_pinned(array[4:10_005])
        assert not memory.is_pinned(array[5:10_006])


@pytest.mark.usefixtures("can")
def test_no_page_is_registered_twice(array):
    with memory.register(array):
        for part in (array, array[10:20], memoryview(array)[-1:]):
            with pytest.raises(ValueError, match="already registered, or shares a page"):
                memory.register(part)
    with memory.register(array[10:20]):
        pass


@pytest.mark.usefixtures("can")
def test_dropped_memory_stays_pinned_and_is_warned_of():
    result = run_python("""
import gc, warnings, numpy as np, l0rt
array = np.zeros(10_000, np.uint8)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    l0rt.memory.register(array)
    gc.collect()
assert [w.category for w in told] == [ResourceWarning] and "unregister()" in str(told[0].message), told
assert l0rt.memory.is_pinned(array)
""")
    assert result.returncode == 0, result


@pytest.mark.usefixtures("can")
def test_an_interrupt_during_that_warning_arrives_after_it():
    """A destructor can raise nothing."""
    result = run_python("""
import warnings, numpy as np, l0rt
def shown(*args, **kwargs):
    raise KeyboardInterrupt
warnings.simplefilter("always")
warnings.showwarning = shown
try:
    l0rt.memory.register(np.zeros(10_000, np.uint8))
    for _ in range(100):
        pass
except KeyboardInterrupt:
    print("interrupted")
""")
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\n", "")


@pytest.mark.usefixtures("can")
def test_a_registration_that_ends_is_nothing_to_warn_of(array):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with memory.register(array):
            pass
        gc.collect()


@pytest.mark.usefixtures("can")
def test_a_forked_child_lets_go_without_the_driver():
    result = run_python("""
import os, numpy as np, l0rt
array = np.zeros(10_000, np.uint8)
registered = l0rt.memory.register(array)
pid = os.fork()
if pid == 0:
    registered.unregister()
    assert not l0rt.memory.is_pinned(array)
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert l0rt.memory.is_pinned(array)
registered.unregister()
""")
    assert result.returncode == 0, result


def test_a_driver_that_cannot_is_told_of():
    result = run_python(
        """
import numpy as np, l0rt, sys
array = np.zeros(10_000, np.uint8)
count = sys.getrefcount(array)
try:
    l0rt.memory.register(array)
except l0rt.UnsupportedError as e:
    assert "ZE_extension_external_memmap_sysmem" in str(e) and "staged" in str(e)
else:
    raise AssertionError
assert not l0rt.memory.is_pinned(array)
assert sys.getrefcount(array) == count      # nothing holds it; under Python 3.14 resize() does not know
""",
        {"L0RT_DISABLE": "memmap"},
    )
    assert result.returncode == 0, result


def test_pinned_memory_is_known():
    x = l0rt.empty(5000, kind="host")
    assert memory.is_pinned(x)
    assert memory.is_pinned(np.frombuffer(x, np.uint8))
    assert memory.is_pinned(x.ptr + 4999)
    assert not memory.is_pinned(l0rt.empty(5000))
    assert not memory.is_pinned(b"ordinary")
    assert not memory.is_pinned(0)
    with pytest.raises(ValueError, match="already pinned memory of l0rt"):
        memory.register(x)


@pytest.mark.usefixtures("can")
@pytest.mark.parametrize("nbytes", [1, 4096, 3 * 4096])
def test_only_memory_that_the_process_can_read_is_registered(nbytes):
    """Without memory behind it, or in a part of it, or closed to the process."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, *[ctypes.c_long] * 5]
    pages = libc.mmap(None, 3 * 4096, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    end = ctypes.c_void_p(pages + nbytes - 1 & ~4095)
    assert libc.mprotect(end, 4096, 0) == 0
    for _ in range(2):
        with pytest.raises(ValueError, match=f"{nbytes} bytes at {pages:#x} are not all memory that this process can"):
            memory.register(pages, nbytes)
        assert not memory.is_pinned(pages)
        assert libc.munmap(end, 4096) == 0
    libc.munmap(ctypes.c_void_p(pages), 3 * 4096)


@pytest.mark.usefixtures("can")
def test_memory_of_l0rt_or_the_driver_is_not_registered():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        private = l0rt.empty(MIB)
    buffers = [private, *[l0rt.empty(nbytes) for nbytes in (100, 3 * MIB)], l0rt.empty(5000, kind="shared")]
    for buffer in buffers:
        for ptr, nbytes in ((buffer.ptr, buffer.nbytes), (buffer.ptr + 50, 1), (buffer.ptr - 4096, 8192)):
            with pytest.raises(ValueError, match="l0rt's own|the driver's already|not all memory"):
                memory.register(ptr, nbytes)
    cached = buffers.pop(1).ptr  # freed, and l0rt's even so
    with pytest.raises(ValueError, match="l0rt's own"):
        memory.register(cached, 100)
    pinned = l0rt.empty(5000, kind="host")
    with pytest.raises(ValueError, match="already pinned memory of l0rt"):
        memory.register(pinned.ptr + 7, 10)
    with pytest.raises(BufferError, match="the host cannot read device memory"):
        memory.register(private)


@pytest.mark.parametrize(("arguments", "error", "words"), [
    ((b"",), ValueError, "has 0 bytes"),
    ((1.5,), TypeError, "buffer protocol"),
    ((None,), TypeError, "buffer protocol"),
    ((True,), TypeError, "buffer protocol"),
    ((4096,), TypeError, "takes nbytes too"),
    ((4096, 0), ValueError, "has 0 bytes"),
    ((4096, -1), ValueError, "negative"),
    ((4096, 1.5), TypeError, "size"),
    ((0, 4096), ValueError, "an address must be from 1"),
    ((1 << 64, 4096), ValueError, "an address must be from 1"),
    (((1 << 64) - 4096, 4096), ValueError, "exceed the address space"),
    ((b"four", 4), TypeError, "with an address only"),
    ((np.zeros((4, 4))[:, ::2],), (ValueError, BufferError), "contiguous"),
])  # fmt: skip
def test_wrong_memory(arguments, error, words):
    with pytest.raises(error, match=words):
        memory.register(*arguments)


@pytest.mark.parametrize(("argument", "error"), [
    (1.5, TypeError), (None, TypeError), (-1, ValueError), (1 << 64, ValueError), (True, TypeError)])  # fmt: skip
def test_wrong_questions(argument, error):
    with pytest.raises(error):
        memory.is_pinned(argument)


def test_a_registration_is_made_by_register_alone():
    with pytest.raises(TypeError, match="register"):
        memory.Registration()
    assert memory.Registration.__new__(memory.Registration).ptr == 0


@pytest.mark.parametrize("device", [1.5, object()])
def test_wrong_devices(array, device):
    with pytest.raises(TypeError):
        memory.register(array, device=device)


class Tensor:
    """As torch's of one integer: memory by DLPack, and an index."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        raise AssertionError("no call takes it for what it is not")

    def __index__(self):
        return 1 << 20


@pytest.mark.parametrize("call", [
    lambda tensor: memory.register(tensor, 4096), memory.register, memory.is_pinned, l0rt.Pointer,
    lambda tensor: l0rt.memcpy(l0rt.empty(64), tensor, 64),
])  # fmt: skip
def test_a_tensor_of_one_integer_is_no_address(call):
    with pytest.raises(TypeError, match="Tensor|an object knows its size"):
        call(Tensor())
