# SPDX-License-Identifier: Apache-2.0
"""Slices of buffers: parts of the same memory, which keep it, end with it, and go wherever a buffer goes."""

import gc
import weakref

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.runtime.streams import hooks

KINDS = [{"kind": "device"}, {"kind": "host"}, {"kind": "shared"}, {"device": "cpu"}]
NBYTES = 1000
BOUNDS = [None, 0, 1, 7, 500, 999, 1000, 1001, -1, -7, -999, -1000, -1001, 1 << 80, -(1 << 80)]


def kinds(function):
    return pytest.mark.parametrize("options", KINDS, ids=lambda options: "-".join(options.values()))(function)


@kinds
def test_bounds_are_those_of_python(options):
    x, model = l0rt.empty(NBYTES, **options), range(NBYTES)
    for a in BOUNDS:
        for b in BOUNDS:
            part, expected = x[a:b], model[a:b]
            assert len(part) == part.nbytes == len(expected)
            assert part.ptr == (x.ptr + expected[0] if expected else 0)
            assert (part.kind, part.device) == (x.kind, x.device)


@pytest.mark.checks_data
@kinds
def test_a_slice_is_the_same_memory(options):
    data = np.random.default_rng(1).integers(0, 256, NBYTES, "u1")
    x, model = l0rt.empty(NBYTES, **options).copy_from(data), data.copy()
    assert np.array_equal(x[100:300].copy_to(np.empty(200, "u1")), data[100:300])
    assert x[3:7].copy_from(b"abcd").nbytes == 4
    model[3:7] = np.frombuffer(b"abcd", "u1")
    x[-11:].fill(pattern=b"x")
    model[-11:] = ord("x")
    x[501:509].fill(pattern=b"yz")
    model[501:509] = np.frombuffer(b"yz" * 4, "u1")
    x[20:40].copy_from(x[900:920])
    model[20:40] = model[900:920]
    x[50:70].copy_to(x[70:90])
    model[70:90] = model[50:70]
    generator = l0rt.Generator(options.get("device"))
    expected = l0rt.philox.randint(generator.initial_seed(), 0, 24, 0, 256, "uint8")
    x[200:224].randint_(0, 256, dtype="uint8", generator=generator)
    model[200:224] = expected
    x[10:10].fill(9)
    assert np.array_equal(x.copy_to(np.empty(NBYTES, "u1")), model)
    assert np.array_equal(x[100:][50:-50][1:].copy_to(np.empty(NBYTES - 201, "u1")), model[151:-50])


@pytest.mark.checks_data
def test_slices_are_copied_between_all_kinds():
    data = np.random.default_rng(2).integers(0, 256, NBYTES, "u1")
    for source_options in KINDS:
        for target_options in KINDS:
            source, target = l0rt.empty(NBYTES, **source_options).copy_from(data), l0rt.empty(NBYTES, **target_options)
            target.fill(0)
            target[10:110].copy_from(source[300:400])
            source[500:507].copy_to(target[993:])
            out = target.copy_to(np.empty(NBYTES, "u1"))
            assert np.array_equal(out[10:110], data[300:400])
            assert np.array_equal(out[993:], data[500:507])
            assert not out[110:993].any()


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_slices_are_copied_between_devices():
    x, y = l0rt.empty(NBYTES, device=0), l0rt.empty(NBYTES, device=1)
    for i in range(20):
        x.fill(i)
        y.fill(i + 100)
        y[i : i + 500].copy_from(x[500 - i : 1000 - i])
        out = y.copy_to(np.empty(NBYTES, "u1"))
        assert (out[i : i + 500] == i).all()
        assert (out[:i] == i + 100).all()
        assert (out[i + 500 :] == i + 100).all()


@kinds
def test_a_slice_keeps_the_memory_and_dropping_it_frees_nothing(options):
    x = l0rt.empty(NBYTES, **options)
    address, alive = x.ptr, weakref.ref(x)
    part = x[100:][50:60]
    del x
    gc.collect()
    assert alive().ptr == address
    assert part.ptr == address + 150
    seen = weakref.ref(part)
    del part
    assert seen() is None
    assert alive() is None


def test_slices_are_as_cheap_for_the_collector_as_buffers():
    x = l0rt.empty(NBYTES)
    assert not gc.is_tracked(x)
    assert not gc.is_tracked(x[1:])


def test_dropped_slices_give_no_memory_back():
    before = acc.memory_allocated()
    x = l0rt.empty(1 << 20)
    held, seen = acc.memory_allocated(), []

    def note(address):
        seen.append(address)

    hooks.add("memory_deallocation", note)
    try:
        for i in range(100):
            x[i : i + 100].fill(1)
            assert acc.memory_allocated() == held
        assert seen == []
        address, part = x.ptr, x[5:]
        del x
        assert acc.memory_allocated() == held
        del part
        assert seen == [address]
    finally:
        hooks.remove("memory_deallocation", note)
    assert acc.memory_allocated() == before


USES = {
    "ptr": lambda part: part.ptr,
    "a slice": lambda part: part[1:],
    "fill": lambda part: part.fill(0),
    "copy_from": lambda part: part.copy_from(bytes(part.nbytes)),
    "copy_to": lambda part: part.copy_to(bytearray(part.nbytes)),
    "copy_from a buffer": lambda part: part.copy_from(l0rt.empty(part.nbytes)),
    "copy_to a buffer": lambda part: part.copy_to(l0rt.empty(part.nbytes)),
    "copy of it": lambda part: l0rt.empty(part.nbytes).copy_from(part),
    "copy of it to the host": lambda part: l0rt.empty(part.nbytes, device="cpu").copy_from(part),
    "uniform_": lambda part: part.uniform_(),
    "randint_": lambda part: part.randint_(0, 9),
    "record_use": lambda part: part.record_use(),
    "free": lambda part: part.free(),
}


@kinds
@pytest.mark.parametrize("use", USES)
def test_a_slice_of_freed_memory_refuses_everything(use, options):
    x = l0rt.empty(NBYTES, **options)
    part = x[100:900][100:700]
    x.free()
    assert "freed" in repr(part)
    with pytest.raises(ValueError, match="the buffer was freed"):
        USES[use](part)


def test_a_view_of_a_slice_of_freed_memory_is_refused():
    for options in KINDS[1:]:
        x = l0rt.empty(NBYTES, **options)
        part = x[10:]
        x.free()
        with pytest.raises(ValueError, match="the buffer was freed"):
            memoryview(part)


@kinds
def test_a_slice_is_not_freed_by_itself(options):
    x = l0rt.empty(NBYTES, **options)
    for part in (x[10:20], x[:], x[5:5]):
        with pytest.raises(ValueError, match="free the Buffer that it was taken from"):
            part.free()
    x.fill(1)
    x.free()


@pytest.mark.parametrize("options", KINDS[1:], ids=["host", "shared", "cpu"])
def test_a_view_of_a_slice_keeps_its_buffer_from_being_freed(options):
    x = l0rt.empty(NBYTES, **options)
    view = memoryview(x[10:20])
    assert (view.nbytes, view.readonly) == (10, False)
    view[:] = b"0123456789"
    assert bytes(memoryview(x)[9:21])[1:-1] == b"0123456789"
    with pytest.raises(BufferError, match="in use by a memoryview"):
        x.free()
    view.release()
    x.free()
    array = np.frombuffer(l0rt.empty(NBYTES, **options)[500:504], "u4")
    gc.collect()
    array[0] = 7
    assert array[0] == 7


CALLS = {
    "fill": lambda part, s: part.fill(1, stream=s),
    "copy_from a slice": lambda part, s: part.copy_from(l0rt.empty(2 * part.nbytes)[: part.nbytes], stream=s),
    "copy to a slice": lambda part, s: part.copy_to(l0rt.empty(2 * part.nbytes)[: part.nbytes], stream=s),
    "copy_from bytes": lambda part, s: part.copy_from(bytes(part.nbytes), stream=s),
    "copy_to an array": lambda part, s: part.copy_to(bytearray(part.nbytes), stream=s),
    "randint_": lambda part, s: part.randint_(0, 9, dtype="uint8", stream=s),
    "record_stream": lambda part, s: part.record_stream(s),
    "record_use": lambda part, s: part.record_use(s),
}


@pytest.mark.parametrize("kind", ["device", "host", "shared"])
@pytest.mark.parametrize("call", CALLS)
def test_a_callback_cannot_free_the_buffer_of_a_slice_at_work(call, kind):
    x, told = l0rt.empty(4096, kind=kind), []

    def free(*values):
        with pytest.raises(BufferError, match="has not returned"):
            x.free()
        told.append(values)

    names = ("memory_use", "copy", "fill", "event_record")
    for name in names:
        hooks.add(name, free)
    try:
        CALLS[call](x[10:20], acc.Stream())
    finally:
        for name in names:
            hooks.remove(name, free)
    assert told or kind == "shared"
    x.free()


@pytest.mark.checks_data
def test_the_use_of_a_slice_by_another_stream_keeps_freed_memory():
    """The stream is kept busy: the freed memory would be written over before the copy reads it."""
    a, b = acc.Stream(), acc.Stream()
    for use in (lambda part: part.record_stream(b), lambda part: part.record_use(b), None):
        for i in range(15):
            x, big = l0rt.empty(1 << 20, stream=a), l0rt.empty(16 << 20, stream=b)
            x.fill(i, stream=a)
            b.wait_stream(a)
            big.fill(0, stream=b)
            out = l0rt.empty(1 << 19, stream=b)
            if use is None:
                out.copy_from(x[1 << 19 :], stream=b)  # a copy announces its use itself
            else:
                l0rt.memory.record_use(x[: 1 << 19], b)
                with b:
                    out.copy_from(x[1 << 19 :])
                use(x[100:])
            x.free()
            l0rt.empty(1 << 20, stream=a).fill(255, stream=a)
            assert (out.copy_to(np.empty(1 << 19, "u1"), stream=b) == i).all()


def test_the_allocation_is_told_of_its_use_by_a_slice():
    x, stream, seen = l0rt.empty(4096), acc.Stream(), []

    def note(address, stream):
        seen.append(address)

    hooks.add("memory_use", note)
    try:
        x[1000:].record_stream(stream)
        x[1000:].record_use(stream)
        x[1000:].fill(0, stream=stream)
    finally:
        hooks.remove("memory_use", note)
    assert seen == [x.ptr] * 3


def test_slices_of_pinned_memory_are_pinned():
    h, x = l0rt.empty(4096, kind="host"), l0rt.empty(4096)
    assert l0rt.memory.is_pinned(h[100:200])
    x[:100].copy_from(h[100:200], non_blocking=True)
    x[:100].copy_to(memoryview(h[100:200]), non_blocking=True)
    assert not l0rt.memory.is_pinned(x[100:200])
    acc.synchronize()


@kinds
def test_parts_that_overlap_are_not_copied_onto_each_other(options):
    x = l0rt.empty(NBYTES, **options)
    for source, target in ((x[0:100], x[50:150]), (x[50:150], x[0:100]), (x[1:], x[:-1])):
        with pytest.raises(ValueError, match="overlap: .* Copy through another buffer"):
            target.copy_from(source)
    x[0:100].copy_from(x[100:200])
    x[50:150].copy_from(x[50:150])
    if options.get("kind") != "device":
        with pytest.raises(ValueError, match="overlap"):
            x[0:100].copy_from(memoryview(x)[50:150])
        with pytest.raises(ValueError, match="overlap"):
            x[0:100].copy_to(memoryview(x)[50:150])


@kinds
def test_wrong_indices_say_what_is_right(options):
    x = l0rt.empty(NBYTES, **options)
    for wrong in (0, -1, NBYTES, "a", None, (slice(1), slice(2)), ..., 1.5, [1, 2]):
        with pytest.raises(TypeError, match=r"x\[a:b\] is the part from byte a to byte b"):
            x[wrong]
    for step in (2, -1, 1 << 80):
        with pytest.raises(ValueError, match="a slice of a Buffer has step 1, got"):
            x[::step]
    with pytest.raises(ValueError, match="slice step cannot be zero"):
        x[::0]
    for wrong in ("a", 1.5, []):
        with pytest.raises(TypeError, match="slice indices must be integers"):
            x[wrong:]
    with pytest.raises(TypeError, match="only parts"):
        list(x)
    with pytest.raises(ValueError, match="never allocated"):
        l0rt.Buffer.__new__(l0rt.Buffer)[1:2]


@kinds
def test_a_bound_that_frees_the_buffer_finds_it_freed(options):
    class Number:
        def __index__(self):
            x.free()
            return 3

    x = l0rt.empty(NBYTES, **options)
    with pytest.raises(ValueError, match="the buffer was freed"):
        x[Number() :]


def test_a_buffer_of_another_type_does_not_pass_for_device_memory():
    other = l0rt.empty(64, device="cpu")
    with pytest.raises(ValueError, match="needs memory of the device type xpu, not a Buffer on cpu"):
        l0rt.Buffer.fill(other, 0)
