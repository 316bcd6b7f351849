# SPDX-License-Identifier: Apache-2.0
"""Vectors and structures take the elements that they are made of, and pointers take addresses of memory."""

import array
import ctypes
import os
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

PATH = Path(__file__).with_name("elements.spv")


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(PATH)
    kept = [made[name] for name in made]  # so that no test makes one that stays
    yield made
    del kept
    made.close()


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int), ("second", ctypes.c_long)]


class Swapped(ctypes.BigEndianStructure):
    _fields_ = [("first", ctypes.c_int), ("second", ctypes.c_longlong)]


class Reversed(ctypes.Structure):
    _fields_ = [("first", ctypes.c_long), ("second", ctypes.c_int)]


class Nested(ctypes.Structure):
    _fields_ = [("pair", Pair), ("scale", ctypes.c_float * 2), ("kind", ctypes.c_ubyte)]


PAIR = np.dtype({"names": ["a", "b"], "formats": ["i4", "i8"], "offsets": [0, 8], "itemsize": 16})
NESTED = np.dtype(
    {"names": ["p", "s", "k"], "formats": [PAIR, ("f4", 2), "u1"], "offsets": [0, 16, 24], "itemsize": 32}
)
GOOD = {
    "float4s": [np.ones(4, "f4"), np.ones((2, 2), "f4"), np.ones(2, "c8"), (ctypes.c_float * 4)(1, 1, 1, 1), bytes(16),
                array.array("f", [1] * 4), bytearray(16), np.void(bytes(16)), np.zeros(16, "u1"), memoryview(bytes(16)),
                np.ones(1, [("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")])],
    "float3s": [np.ones(4, "f4"), np.zeros(1, [("xyz", "f4", 3), ("pad", "i4")])],
    "short8s": [np.ones(8, "i2"), np.ones(8, "u2"), bytes(16)],
    "half2s": [np.ones(2, "f2")],
    "double2s": [np.ones(2, "f8"), np.ones(1, "c16")],
    "pairs": [Pair(1, 2), np.zeros(1, PAIR), np.zeros((), PAIR)[()], bytes(16)],
    "nesteds": [Nested(), np.zeros(1, NESTED), bytes(32)],
    "packeds": [np.zeros(1, [("a", "i1"), ("b", "f4")]), bytes(5)],
}  # fmt: skip
WRONG = {
    "float4s": [(np.ones(4, "i4"), "4 x float of 4 bytes, got ndarray of int32"), (np.ones(2, "f8"), "of float64"),
                (np.ones(8, "f2"), "of float16"), (np.ones(4, ">f4"), "of >f4"), ((ctypes.c_int * 4)(), "of int32"),
                (array.array("d", [1, 1]), "array of float64"), (np.ones(2, "c8").view("i8"), "of int64"),
                (Pair(1, 2), "4 x float of 4 bytes, got Pair of"), (np.zeros(1, "c16"), "of complex128"),
                (np.zeros(2, "M8[s]").view("V8"), None)],
    "float3s": [(np.ones(4, "i4"), "3 x float of 4 bytes, padding of 4 bytes")],
    "short8s": [(np.ones(8, "f2"), "8 x int of 2 bytes, got ndarray of float16"), (np.ones(16, "i1"), "of int8"),
                (np.ones(8, ">i2"), "of >i2")],
    "half2s": [(np.ones(2, "i2"), "2 x float of 2 bytes"), (np.ones(1, "f4"), "got ndarray of float32")],
    "double2s": [(np.ones(2, "i8"), "2 x float of 8 bytes")],
    "pairs": [(Reversed(), "int of 4 bytes, padding of 4 bytes, int of 8 bytes, got Reversed"),
              (Swapped(), "got Swapped of"), (np.zeros(4, "i4"), "of int32"), (np.zeros(2, "i8"), "of int64"),
              (np.zeros(1, [("a", "f4"), ("p", "i4"), ("b", "i8")]), "got ndarray of")],
    "nesteds": [(np.zeros(8, "f4"), "int of 4 bytes, padding of 4 bytes, int of 8 bytes, 2 x float of 4 bytes, "
                                    "int of 1 byte, padding of 7 bytes")],
    "packeds": [((ctypes.c_byte * 5)(), "int of 1 byte, float of 4 bytes")],
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_elements_of_the_right_kind_are_taken(module, name):
    out = l0rt.empty(64)
    for value in GOOD[name] * 2:  # the second time the format is known
        module[name][1, 1](out, value)
        acc.synchronize()
        if os.environ.get("L0RT_TEST_NO_DATA") != "1":
            data = memoryview(value).tobytes()
            assert out.numpy("u1")[: len(data)].tobytes() == data or name in ("float3s", "pairs", "nesteds")


@pytest.mark.parametrize("name", WRONG)
def test_other_elements_of_the_same_size_are_refused(module, name):
    out = l0rt.empty(64)
    for value, why in WRONG[name]:
        if why is None:
            module[name][1, 1](out, value)
            continue
        with pytest.raises(TypeError, match=rf"{name}\(\) argument 1 \(v\) must be ") as caught:
            module[name][1, 1](out, value)
        assert why in str(caught.value)
    module[name][1, 1](out, GOOD[name][0])  # what was refused is not taken for known
    with pytest.raises(TypeError, match="must be "):
        module[name][1, 1](out, WRONG[name][0][0])
    acc.synchronize()


def test_a_wrong_number_of_elements_is_refused(module):
    out = l0rt.empty(64)
    for value in (np.ones(3, "f4"), np.ones(5, "f4"), b"", np.float32(1)):
        with pytest.raises(TypeError, match=r"float4s\(\) argument 1 \(v\) must have 16 bytes, got"):
            module["float4s"][1, 1](out, value)


def test_what_the_module_tells_of_elements_is_an_attribute(module):
    layouts = {name: module[name].arguments[1].layout for name in GOOD}
    assert layouts["float4s"] == "f..." * 4
    assert layouts["float3s"] == "f..." * 3 + "xxxx"
    assert layouts["nesteds"] == "i...xxxxq......." + "f..." * 2 + "b" + "x" * 7
    assert layouts["packeds"] == "bf..."
    assert module["float4s"].arguments[0].layout == ""


def test_a_graph_refuses_other_elements_too(module):
    out, graph = l0rt.empty(64), acc.Graph()
    with acc.Stream(), graph:
        module["float4s"][1, 1](out, np.ones(4, "f4"))
    with pytest.raises(TypeError, match="4 x float of 4 bytes, got ndarray of int32"):
        graph.nodes[0].update(args={1: np.ones(4, "i4")})
    graph.nodes[0].update(args={1: np.full(4, 2, "f4")})
    graph.replay()
    acc.synchronize()
    graph.reset()


# Addresses.


def test_an_int_is_a_pointer_if_memory_is_known_there(module):
    kernel, value = module["float4s"], np.ones(4, "f4")
    host = l0rt.pinned(16, "f4")
    pieces = [l0rt.empty(64, kind=kind) for kind in ("device", "host", "shared")]
    freed = l0rt.empty(1 << 21)
    gone = freed.ptr
    freed.free()
    for address in [*(piece.ptr for piece in pieces), pieces[0].ptr + 48, host.ctypes.data, np.uint64(pieces[0].ptr)]:
        kernel[1, 1](address, value)
        kernel[1, 1](l0rt.Pointer(address), value)
    acc.synchronize()
    plain = np.zeros(16, "f4")
    for wrong, why in ((1, "neither l0rt nor the driver knows memory there"), (plain.ctypes.data, "knows memory there"),
                       (0x7FFFFFFFF000, "knows memory there"), (gone, "in memory that was freed|knows memory there"),
                       (plain.nbytes, r"l0rt\.Pointer\(0x40\)")):  # fmt: skip
        with pytest.raises(ValueError, match=rf"float4s\(\) argument 0 \(out\) is {wrong:#x}.*({why})"):
            kernel[1, 1](wrong, value)


def test_an_int_in_a_graph_is_checked_alike(module):
    out, graph = l0rt.empty(64), acc.Graph()
    with acc.Stream(), graph:
        module["float4s"][1, 1](out.ptr, np.ones(4, "f4"))
        with pytest.raises(ValueError, match="knows memory there"):
            module["float4s"][1, 1](4096, np.ones(4, "f4"))
    with pytest.raises(ValueError, match="knows memory there"):
        graph.nodes[0].update(args={0: 4096})
    graph.nodes[0].update(args={0: l0rt.Pointer(out.ptr)})
    graph.replay()
    acc.synchronize()
    graph.reset()


def test_memory_of_another_library_in_the_context_is_known(module):
    """The driver is asked: it was allocated beside l0rt."""
    out = l0rt.empty(64, kind="shared")
    registered = np.zeros(1 << 16, "u1")
    address = registered.ctypes.data
    with pytest.raises(ValueError, match="knows memory there"):
        module["float4s"][1, 1](address, np.ones(4, "f4"))
    module["float4s"][1, 1](out.ptr + 16, np.ones(4, "f4"))
    acc.synchronize()


def test_pointers_are_values():
    pointer = l0rt.Pointer(0x1000)
    assert (repr(pointer), pointer.address) == ("l0rt.Pointer(0x1000)", 4096)
    assert pointer == l0rt.Pointer(np.int64(4096))
    assert pointer != l0rt.Pointer(0)
    assert pointer != 4096
    assert len({pointer, l0rt.Pointer(4096)}) == 1
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match="address"):
            l0rt.Pointer(wrong)
    for wrong in ("1", None, 1.5, True):
        with pytest.raises(TypeError, match="an address must be an int, got"):
            l0rt.Pointer(wrong)


def test_a_native_kernel_takes_pointers(module):
    native, out = l0rt.Module(module.native_binary()), l0rt.empty(64)
    native["float4s"][1, 1](l0rt.Pointer(out.ptr), bytes(16))
    acc.synchronize()
    with pytest.raises(TypeError, match=r"float4s\(\) argument 1 \(v\) must be "):
        module["float4s"][1, 1](out, l0rt.Pointer(0))
