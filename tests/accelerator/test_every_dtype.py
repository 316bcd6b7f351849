# SPDX-License-Identifier: Apache-2.0
"""Every function that takes a dtype or an array, with every kind of dtype: the right numbers, or a TypeError."""

import itertools
import re

import l0rt
import l0rt.accelerator as acc
import l0rt.memory
import numpy as np
import pytest
from l0rt import philox

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

pytestmark = pytest.mark.checks_data
SIMPLE = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16", "G"]
TIMES = ["M8[s]", "m8[ns]", "M8", "m8"]
OTHERS = [
    "S3", "U2", "V5", "S0", "U0", "V0", "(2,)f4", "(2,2)>i2", "(0,)f4", "O", "(2,)O",
    [("a", "f4"), ("b", ">i2")], [("a", "u1"), ("b", "(3,)f8")], [("a", "f4"), ("b", "O")], [],
    {"names": ["a"], "formats": ["f4"], "offsets": [4], "itemsize": 12},
]  # fmt: skip
FOREIGN = ["bfloat16", "float8_e5m2", "float8_e4m3fn", "int4", "uint4", "int2"]  # of the package ml_dtypes


def dtypes():
    for text in SIMPLE + TIMES:
        yield np.dtype(text)
        if np.dtype(text).itemsize > 1 and text not in ("M8", "m8"):  # which NumPy does not compare
            yield np.dtype(text).newbyteorder(">")
    yield from map(np.dtype, OTHERS)
    yield np.dtype([("a", "u1"), ("b", "f8")], align=True)
    if ml_dtypes is not None:
        yield from (np.dtype(getattr(ml_dtypes, name)) for name in FOREIGN)


DTYPES = list(dtypes())
COUNT = 48  # elements: a multiple of all sizes' parts


def bytes_for(dtype):
    return np.arange(COUNT * max(dtype.itemsize, 1), dtype=np.uint8).tobytes()


def arrays(dtype):
    """Arrays of the type: with one and two dimensions, of no dimension, strided, empty, read-only."""
    if dtype.hasobject:
        made = np.zeros(COUNT, dtype)
    else:
        made = np.frombuffer(bytes_for(dtype)[: COUNT * dtype.itemsize], np.uint8).copy()
        made = made.view(dtype) if dtype.itemsize and dtype.subdtype is None else np.zeros(COUNT, dtype)
    yield made
    yield made.reshape(2, -1)
    yield made[:1].reshape(made.shape[1:]) if made.ndim > 1 else made[0:1].reshape(())
    yield made[::2]
    yield made[:0]
    yield made[::-1]
    frozen = made.copy()
    frozen.flags.writeable = False
    yield frozen


# --- Functions of a dtype: what each returns is compared with what NumPy does.


def read(dtype):
    buffer = l0rt.empty(COUNT * max(dtype.itemsize, 1), kind="host").copy_from(bytes_for(dtype))
    found = buffer.numpy(dtype)
    expected = np.frombuffer(bytes_for(dtype), dtype)
    assert found.dtype == expected.dtype
    assert found.tobytes() == expected.tobytes()


def pin(dtype):
    made = l0rt.pinned(3, dtype)
    assert (made.shape, made.dtype) == (np.empty(3, dtype).shape, np.empty(3, dtype).dtype)
    made[...] = np.zeros((), dtype)
    assert not made.view(np.uint8).any() if made.size and made.itemsize else True


DRAWS = {
    "uniform": (-1.0, 2.0), "normal": (0.5, 2.0), "exponential": (3.0,), "bernoulli": (0.25,), "randint": (0, 100),
}  # fmt: skip


def draw_of(kind, where):
    def check(dtype):
        if dtype.itemsize == 0:
            with pytest.raises((TypeError, ValueError)):
                getattr(l0rt.empty(64, kind=where), kind + "_")(*DRAWS[kind], dtype=dtype)
            raise TypeError
        one, native = l0rt.Generator().manual_seed(3), l0rt.Generator().manual_seed(3)
        buffers = [l0rt.empty(COUNT * dtype.itemsize, kind=where) for _ in range(2)]
        getattr(buffers[0], kind + "_")(*DRAWS[kind], dtype=dtype, generator=one)
        getattr(buffers[1], kind + "_")(*DRAWS[kind], dtype=dtype.newbyteorder("="), generator=native)
        found, expected = buffers[0].numpy(dtype), buffers[1].numpy(dtype.newbyteorder("="))
        tolerance = 0 if kind in ("bernoulli", "randint") else 1e-2 if dtype.itemsize == 2 else 1e-5
        np.testing.assert_allclose(found.astype("f8"), expected.astype("f8"), rtol=tolerance, atol=tolerance)
        assert one.get_offset() == native.get_offset()

    check.__name__ = f"{kind}_ of {where} memory"
    return check


def draw_on_the_host(kind):
    def check(dtype):
        found = getattr(philox, kind)(1, 0, COUNT, *DRAWS[kind], dtype=dtype)
        expected = getattr(philox, kind)(1, 0, COUNT, *DRAWS[kind], dtype=dtype.newbyteorder("="))
        assert found.dtype == dtype
        assert (found == expected).all()

    check.__name__ = f"philox.{kind}"
    return check


def words(dtype):
    assert philox.words_needed(dtype, 5) == (10 if dtype.itemsize == 8 else 5)
    assert dtype.kind in "fiub"


TAKES_DTYPE = [
    read, pin, words, *map(draw_on_the_host, DRAWS),
    *itertools.starmap(draw_of, itertools.product(DRAWS, ("device", "host"))),
]  # fmt: skip


# --- Functions of an array.


def same(found, array):
    """Whether these are the bytes of the elements; what is between the fields of a structure is nobody's."""
    if not array.dtype.names:
        return found == array.tobytes()
    elements = np.frombuffer(found, array.dtype)
    return all(elements[name].tobytes() == array[name].tobytes() for name in array.dtype.names)


def given(array):
    assert same(l0rt.from_numpy(array).numpy().tobytes(), array)


def copied_in(array):
    buffer = l0rt.empty(array.nbytes)
    buffer.copy_from(array)
    assert buffer.numpy().tobytes() == array.tobytes()


def copied_out(array):
    source = np.arange(array.nbytes, dtype=np.uint8) % 251
    target = array if array.flags.writeable else array.copy()
    l0rt.from_numpy(source).copy_to(target)
    assert np.ascontiguousarray(target).tobytes() == source.tobytes()


def copied_by_address(array):
    buffer = l0rt.empty(array.nbytes)
    l0rt.memcpy(buffer, array, array.nbytes)
    assert buffer.numpy().tobytes() == array.tobytes()


def filled(array):
    buffer = l0rt.empty(array.nbytes * 3)
    buffer.fill(pattern=array)
    assert buffer.numpy().tobytes() == array.tobytes() * 3


def registered(array):
    try:
        buffer = l0rt.memory.register(array)
    except l0rt.UnsupportedError:  # the driver pins no memory that is there already
        with pytest.raises(l0rt.UnsupportedError):
            l0rt.memory.register(np.zeros(10_000, "u1"))
        return
    with buffer:
        assert buffer.nbytes == array.nbytes


def exchanged(array):
    assert l0rt.from_dlpack(array).numpy().tobytes() == array.tobytes()


def counted(array):
    if array.size % 4:
        raise TypeError
    found = philox.philox4x32(array, (1, 2))
    assert array.dtype.kind in "iuO"
    whole = [[int(word) for word in row] for row in array.reshape(-1, 4).tolist()]
    assert found.tolist() == philox.philox4x32(np.array(whole, "u4").reshape(-1, 4), (1, 2)).tolist()


def restored(array):
    generator = l0rt.Generator()
    generator.set_state(array)
    assert generator.get_state() == array.tobytes().ljust(16, b"\0")  # of a seed alone the offset is 0


def shaped(array):
    lengths = np.full(len(array.reshape(-1)[:2]), 3).astype(array.dtype)
    assert l0rt.pinned(lengths, "u1").shape == (3,) * len(lengths)
    assert array.dtype.kind in "iuO" or not len(lengths)


TAKES_ARRAY = [
    given, copied_in, copied_out, copied_by_address, filled, registered, exchanged, counted, restored, shaped
]  # fmt: skip


# What errors say that is right of some of these arrays: of their size, their strides, or the numbers in them.
SIZES = re.compile(
    "is not C-contiguous|a pattern must have 1, 2, 4, 8 or 16 bytes|the memory to register has 0 bytes"
    "|the words of a counter must be from 0|RNG state is wrong size"
)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_number_is_one_or_a_type_error(shape):
    wrong = []
    for dtype in (dtype for dtype in DTYPES if dtype.kind in "?biufcmMSU" and dtype.itemsize):
        value = np.ones(shape, "i8").view(dtype) if dtype.kind in "mM" else np.ones(shape, dtype)
        value = value if shape else value[()]
        for takes in (l0rt.empty(64).normal_, l0rt.empty, lambda number: l0rt.empty(64).randint_(0, number)):
            try:
                takes(value)
            except TypeError:
                continue
            if dtype.kind not in ("iuf" if takes.__name__ == "normal_" else "iu"):
                wrong.append((takes.__name__, str(dtype)))
    assert not wrong


def name_of(what):
    return getattr(what, "__name__", None) or str(what).replace(" ", "")


@pytest.mark.parametrize("function", TAKES_DTYPE, ids=name_of)
def test_a_dtype_is_right_or_a_type_error(function):
    wrong = {}
    for dtype in DTYPES:
        try:
            function(dtype)
        except TypeError:
            continue
        except BaseException as error:
            if "multiple of the 0 bytes" not in str(error):
                wrong[str(dtype)] = repr(error)[:300]
    acc.synchronize()
    assert wrong == {}


@pytest.mark.parametrize("function", TAKES_ARRAY, ids=name_of)
def test_an_array_is_right_or_a_type_error(function):
    """Or one that says what is wrong with this array's layout or its numbers, and changes nothing."""
    wrong = {}
    for dtype in DTYPES:
        for number, array in enumerate(arrays(dtype)):
            try:
                function(array)
            except (TypeError, BufferError):
                continue
            except BaseException as error:
                if not SIZES.search(str(error)):
                    wrong[str(dtype), number] = repr(error)[:300]
    acc.synchronize()
    assert wrong == {}
