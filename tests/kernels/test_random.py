# SPDX-License-Identifier: Apache-2.0
"""Random numbers by kernels: those of the reference in NumPy, whatever their type, size, place and parameters."""

import random
import warnings

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import philox
from l0rt.runtime.streams import hooks

from helpers.process import run_python

FLOATS, WHOLE = ("f2", "f4", "f8"), ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")


@pytest.fixture
def launches():
    """The kernels launched meanwhile."""
    seen = []

    def note(stream, kernel):
        seen.append(kernel)

    hooks.add("kernel_launch", note)
    yield seen
    hooks.remove("kernel_launch", note)


def assert_drawn(got, want, kind, first, second):
    """Whole numbers and uniform ones are equal; the others to the last places that `l0rt.philox` documents."""
    if kind in ("uniform", "randint", "bernoulli"):
        assert got.tolist() == want.tolist()
        return
    exact, size = want.astype("f8"), np.abs(want).astype("f8")
    if kind == "normal":
        size = np.full(len(want), abs(first) + 8 * second)
    with np.errstate(over="ignore"):
        places = np.spacing(np.maximum(size.astype(want.dtype), np.finfo(want.dtype).tiny)).astype("f8")
    near = np.abs(got.astype("f8") - exact) <= 8 * places
    assert (near | (got == want)).all(), (got[~near][:4], want[~near][:4])


def parameters(choice, kind, dtype):
    """Return two parameters of a kind, ordinary ones and the limits of the type."""
    if kind == "uniform":
        most = float(np.finfo(dtype).max)
        low = max(choice.choice([0.0, -1.0, 2.5, -1e30, -6e4, 1e-30]), -most)
        return low, min(low + choice.choice([0.0, 1.0, 1e-3, 7.0, 1e30, 1.2e5]), most)
    if kind == "normal":
        return choice.choice([0.0, -3.0, 100.0]), choice.choice([0.0, 1.0, 0.125, 30.0])
    if kind == "exponential":
        return choice.choice([1.0, 0.5, 3.0, 1e-3]), None
    if kind == "bernoulli":
        return choice.choice([0.0, 1.0, 0.5, 2.0**-32, 0.999]), None
    limits = np.iinfo(dtype)
    low = choice.choice([int(limits.min), 0, 1])
    return low, choice.choice([int(limits.max) + 1, low + 1, low + 7])


def draw_and_compare(choice):
    kind = choice.choice(["uniform", "normal", "exponential", "bernoulli", "randint"])
    dtype = np.dtype(choice.choice({"randint": WHOLE, "bernoulli": (*WHOLE, *FLOATS, "?")}.get(kind, FLOATS)))
    first, second = parameters(choice, kind, dtype)
    count = choice.choice([0, 1, 2, 3, 4, 5, 255, 1023, 1024, 1025, choice.randrange(5000)])
    start = choice.choice([0, dtype.itemsize, 1, 64])  # an odd address is no kernel's
    behind = choice.choice([0, 1, 100])
    where = choice.choice(["device", "device", "device", "host", "shared"])
    index = choice.randrange(acc.device_count())
    stream = choice.choice([None, acc.Stream(index), acc.Stream(index, priority=-1)])
    with acc.device_index(index):
        whole = l0rt.empty(start + count * dtype.itemsize + behind, kind=where)
        whole.fill(0xA5)
        part = whole[start : start + count * dtype.itemsize]
        seed, offset = choice.choice([0, 1, 2**64 - 1, choice.getrandbits(64)]), 4 * choice.choice([0, 1, 2**31, 2**61])
        generator = l0rt.Generator().manual_seed(seed)
        generator.set_offset(offset)
        if stream is not None:
            stream.wait_stream(acc.current_stream())
        arguments = (first,) if second is None else (first, second)
        call = getattr(part, f"{kind}_")
        options = {"generator": generator, "stream": stream, "non_blocking": choice.random() < 0.5}
        assert call(*arguments, dtype=dtype, **options) is part
        if stream is not None:
            acc.current_stream().wait_stream(stream)
        acc.synchronize()
        words = count if kind == "bernoulli" or dtype.itemsize < 8 else 2 * count
        assert generator.get_offset() == (offset + (words + 3) // 4 * 4) % 2**64
        back = whole.numpy()
        want = getattr(philox, kind)(seed, offset, count, *arguments, dtype=dtype)
    assert_drawn(back[start : start + count * dtype.itemsize].view(dtype), want, kind, first, second)
    assert (back[:start] == 0xA5).all()
    assert (back[start + count * dtype.itemsize :] == 0xA5).all()


@pytest.mark.checks_data
def test_draws_of_every_kind_equal_the_reference(extent):
    for seed in range(extent(150, 500, 5000)):
        draw_and_compare(random.Random(seed))


def test_kernels_make_them_in_the_order_of_a_stream(launches):
    for kind, dtype in (("uniform_", "f4"), ("normal_", "f2"), ("exponential_", "f4"), ("bernoulli_", "?")):
        getattr(l0rt.empty(4096), kind)(dtype=dtype)
    l0rt.empty(4096).randint_(0, 9)
    assert len(launches) == 5
    if acc.current_accelerator() and xpu.get_device_properties().has_fp64:
        l0rt.empty(4096).uniform_(dtype="f8")
        assert len(launches) == 6
    acc.synchronize()


@pytest.mark.checks_data
def test_what_no_kernel_can_make_is_made_on_the_host(launches):
    def drawn(buffer, *arguments, dtype="f4", **options):
        buffer.uniform_(*arguments, dtype=dtype, generator=l0rt.Generator().manual_seed(3), **options)
        got = buffer.numpy(dtype)
        assert got.tolist() == philox.uniform(3, 0, len(got), *arguments, dtype=dtype).tolist()

    drawn(l0rt.empty(401)[1:])  # an address that is no multiple of the size
    drawn(l0rt.empty(400), -3e38, 3e38)  # a difference beyond float32
    copies = acc.stream_pool.copy_stream()
    with copies:
        drawn(l0rt.empty(400), stream=copies)
    if copies.hw_queue[0] == acc.current_stream().hw_queue[0]:  # the device has no engine that only copies
        launches.clear()
    assert launches == []

    class Odd:
        def philox_engine_inputs(self, increment):
            return 5, 3  # in the middle of a block

    got = l0rt.empty(400).uniform_(generator=Odd()).numpy("f4")
    assert got.tolist() == philox.uniform(5, 3, 100).tolist()
    assert launches == []


@pytest.mark.needs_two_devices
@pytest.mark.checks_data
def test_a_stream_of_another_device_copies_them(launches):
    buffer, stream = l0rt.empty(400, device=1), acc.Stream(0)
    buffer.uniform_(generator=l0rt.Generator(1).manual_seed(3), stream=stream)
    stream.synchronize()
    assert buffer.numpy("f4").tolist() == philox.uniform(3, 0, 100).tolist()
    assert launches == []


@pytest.mark.checks_data
def test_numbers_do_not_depend_on_how_they_are_asked_for():
    """One draw of all, and draws of parts on two streams, use the same words."""
    whole, parts = l0rt.empty(4 << 14), l0rt.empty(4 << 14)
    whole.normal_(generator=l0rt.Generator().manual_seed(9))
    streams = acc.Stream(), acc.Stream()
    generator = l0rt.Generator().manual_seed(9)
    for i in range(16):
        streams[i % 2].wait_stream(acc.current_stream())
        parts[i << 12 : (i + 1) << 12].normal_(generator=generator, stream=streams[i % 2])
    acc.synchronize()
    assert whole.numpy().tobytes() == parts.numpy().tobytes()


def test_a_driver_that_does_not_build_the_kernels_is_told_of_once():
    code = """
import warnings
import l0rt, numpy as np
from l0rt import philox
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    for _ in range(3):
        x = l0rt.empty(400).uniform_(generator=l0rt.Generator().manual_seed(3))
assert x.numpy("f4").tolist() == philox.uniform(3, 0, 100).tolist()
texts = [str(each.message) for each in seen if each.category is RuntimeWarning]
assert len(texts) == 1, texts
assert "does not build the kernels" in texts[0]
assert seen[0].filename == "<string>"
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": "zeModuleCreate:1:ERROR_MODULE_BUILD_FAILURE"})
    assert result.returncode == 0, result


def test_threads_that_draw_first_make_one_module():
    code = """
import threading
import l0rt
start = threading.Barrier(8)
buffers = [l0rt.empty(4096) for _ in range(8)]
def draw(buffer):
    start.wait()
    buffer.uniform_(generator=l0rt.Generator().manual_seed(1))
threads = [threading.Thread(target=draw, args=(buffer,)) for buffer in buffers]
[each.start() for each in threads]
[each.join() for each in threads]
assert len({each.numpy().tobytes() for each in buffers}) == 1
"""
    for seed in range(1, 4):
        result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_CHAOS": seed})
        assert result.returncode == 0, result
        assert result.stderr == "", result


def test_a_failed_launch_is_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        buffer = l0rt.empty(400)
        buffer.free()
        with pytest.raises(ValueError, match="the buffer was freed"):
            buffer.uniform_()


def drawn_by_a_kernel(generator, count, stream=None):
    """Return the words that a kernel makes which finds the state where `philox_state` says."""
    seed, offset, before = generator.philox_state(count)
    assert before == 0
    out = l0rt.empty(16, stream=stream)
    l0rt.memcpy(out, seed, 8, stream=stream)
    l0rt.memcpy(out[8:], offset, 8, stream=stream)
    return out


@pytest.mark.checks_data
def test_a_kernel_finds_the_state_as_it_was_at_the_call():
    generator = l0rt.Generator().manual_seed(-3)
    found = [drawn_by_a_kernel(generator, 5) for _ in range(200)]  # more than there are places
    assert generator.get_offset() == 200 * 8
    for i, each in enumerate(found):
        assert each.numpy("u8").tolist() == [2**64 - 3, 8 * i]


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_states_are_on_the_generators_device_in_the_order_of_its_current_stream(extent):
    for seed in range(extent(20, 100)):
        choice = random.Random(seed)
        generators = [l0rt.Generator(i).manual_seed(i) for i in range(2)]
        streams = [[acc.Stream(i) for _ in range(3)] for i in range(2)]
        expected, found = [0, 0], []
        for _ in range(40):
            index, increment = choice.randrange(2), choice.randrange(9)
            stream = choice.choice(streams[index])
            with stream:
                found.append((drawn_by_a_kernel(generators[index], increment, stream), index, expected[index]))
            expected[index] += (increment + 3) // 4 * 4
        acc.synchronize(0)
        acc.synchronize(1)
        for each, index, offset in found:
            assert each.numpy("u8").tolist() == [index, offset]


def test_wrong_uses_of_a_state_leave_the_generator_where_it_was():
    generator = l0rt.Generator()
    with pytest.raises(ValueError, match="an increment must be from 0"):
        generator.philox_state(-1)
    assert generator.get_offset() == 0
    with pytest.raises(l0rt.UnsupportedError, match="philox_engine_inputs"):
        l0rt.Generator("cpu").philox_state(4)


@pytest.mark.parametrize("name", ["l0rt.Generator", "l0rt.xpu.Generator", "l0rt.accelerator.Generator"])
def test_a_state_is_there_whatever_was_imported(name):
    code = f"import {name.rpartition('.')[0]}; print(len({name}().philox_state(4)))"
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert result.stdout == "3\n", result
