# SPDX-License-Identifier: Apache-2.0
"""Arguments whose kind matters: numbers of other types, null pointers, pinned arrays, other devices, natives."""

import array
import ctypes
import math
import os
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

PATH = Path(__file__).with_name("basic.spv")


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(PATH)
    kept = [made[name] for name in made]  # so that no test makes one that stays
    yield made
    del kept
    made.close()


@pytest.fixture(scope="module")
def native(module):
    made = l0rt.Module(module.native_binary())
    kept = [made[name] for name in made]
    yield made
    del kept
    made.close()


class Word(ctypes.Structure):
    _fields_ = [("only", ctypes.c_int)]


# Kinds of numbers: `store` takes an int of 4 bytes, `axpy` a float of 4.


@pytest.mark.parametrize(
    "number",
    [7, np.int32(7), np.uint32(7), ctypes.c_int(7), ctypes.c_uint32(7), np.array(7, "i4"), np.array([7], "u4"),
     array.array("i", [7]), (ctypes.c_int * 1)(7)],
)  # fmt: skip
def test_an_int_is_taken_from_any_type_of_ints(module, number):
    x = l0rt.empty(4, kind="shared")
    module["store"][1, 1](x, number)
    acc.synchronize()


@pytest.mark.parametrize(
    ("number", "got"),
    [
        (ctypes.c_float(1.5), "c_float"), (np.array([1.5], "f4"), "ndarray"), (b"\1\0\0\0", "bytes"),
        (bytearray(4), "bytearray"), (Word(1), "Word"), (np.array([1, 2], "i2"), "ndarray"),
        (memoryview(bytes(4)), "memoryview"),
        (np.float32(1), "float32"), ((ctypes.c_char * 4)(), "c_char_Array_4"), (array.array("f", [1]), "array"),
    ],
)  # fmt: skip
def test_what_is_no_int_is_refused_for_one(module, number, got):
    with pytest.raises(TypeError, match=rf"argument 1 \(value\) must be an int of 4 bytes, got .*{got}"):
        module["store"][1, 1](l0rt.empty(4), number)


@pytest.mark.parametrize("number", [1, 1.5, np.float32(1.5), ctypes.c_float(1.5), np.array([1.5], "f4"), math.inf])
def test_a_float_is_taken_from_any_type_of_floats(module, number):
    x = l0rt.empty(4)
    module["axpy"][1, 1](x, x, number)
    acc.synchronize()


@pytest.mark.parametrize(
    ("number", "got"),
    [(ctypes.c_int(1), "c_int"), (np.int32(1), "int32"), (np.array([1], "i4"), "ndarray"), (b"1234", "bytes"),
     (np.array([1, 2], "f2"), "ndarray"), (True, "bool"), ("1", "str")],
)  # fmt: skip
def test_what_is_no_float_is_refused_for_one(module, number, got):
    x = l0rt.empty(4)
    with pytest.raises(TypeError, match=rf"argument 2 .* must be a float of 4 bytes, got .*{got}"):
        module["axpy"][1, 1](x, x, number)


def test_an_int_beyond_every_double_is_refused_by_its_argument(module):
    x = l0rt.empty(4)
    with pytest.raises(
        ValueError, match=r"axpy\(\) argument 2 \(.*\) must fit a float of 4 bytes, got an int of 1329 b"
    ):
        module["axpy"][1, 1](x, x, 10**400)


@pytest.mark.checks_data
@pytest.mark.parametrize(("number", "found"), [(1e300, np.inf), (-1e300, -np.inf), (10**300, np.inf), (3.4e38, 3.4e38)])
def test_a_float_too_large_for_the_parameter_is_infinity_as_in_c(module, number, found):
    x, one = l0rt.empty(4).fill(0), l0rt.empty(4).copy_from(np.ones(1, "f4"))
    module["axpy"][1, 1](x, one, number)
    assert x.numpy("f4")[0] == np.float32(found)


# Null pointers.


def nothing():
    return [None, 0, l0rt.empty(0), l0rt.empty(64)[64:], l0rt.pinned(0), l0rt.pinned((3, 0), "i4"), l0rt.pinned(4)[4:]]


@pytest.mark.parametrize("which", range(7))
def test_a_null_pointer_is_passed_as_one(module, which):
    """Intel's driver of 2022 refuses the address 0, and takes no value."""
    kernel = module["vector_add"]
    x = l0rt.empty(64)
    for _ in range(2):
        kernel[1, 1](x, nothing()[which], nothing()[which], 0)  # no work-item is below 0: nothing is read
        kernel[1, 1](x, x, x, 1)  # and is an address again
    acc.synchronize()


def test_a_native_kernel_takes_null_pointers(native):
    x = l0rt.empty(64)
    native["vector_add"][1, 1](x, None, l0rt.empty(0), np.uint32(0))
    native["vector_add"][1, 1](x, l0rt.pinned(0), l0rt.pinned((0, 2)), np.uint32(0))
    native["vector_add"][1, 1](x, np.uint64(0), np.uint64(x.ptr), np.uint32(0))
    acc.synchronize()


def test_zero_is_no_null_pointer_where_a_number_belongs(module):
    out = l0rt.empty(64)
    module["values"][1, 1](out, 0, 0, 0, 0, 0.0, bytes(16), bytes(16))
    acc.synchronize()


def test_a_graph_takes_null_pointers(module):
    x, stream = l0rt.empty(64), acc.Stream()
    stream.wait_stream(acc.current_stream())
    graph = acc.Graph()
    with stream, graph:
        module["vector_add"].launch(x, None, None, 0, groups=1, group_size=1)
    assert graph.nodes[0].arguments[1:] == (0, 0, 0)
    for args in {}, {1: x, 2: x}, {1: None, 2: l0rt.empty(0)}:
        graph.nodes[0].update(args=args)
        graph.replay()
        acc.synchronize()  # the next replay changes this one's lists instead of a copy
    assert graph.nodes[0].arguments[1:] == (0, 0, 0)
    graph.reset()


# Pinned arrays.


@pytest.mark.checks_data
def test_a_kernel_reaches_an_array_on_pinned_memory(module):
    x = l0rt.pinned((4, 16), "i4")
    x[:] = 0
    module["store"][1, 16](x[2], 5)
    module["store"][1, 4](np.asarray(memoryview(x[3])), 6)
    acc.synchronize()
    assert x.sum(1).tolist() == [0, 0, 80, 24]


def test_an_array_on_pinned_memory_is_kept_until_the_kernel_has_ended(module):
    flag = l0rt.empty(4, kind="host")
    word = np.frombuffer(flag, np.int32)
    word[0] = 0
    stream = acc.Stream()
    module["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=stream)
    x = l0rt.pinned(1 << 18, "i4")
    address = x.ctypes.data
    module["store"].launch(x, 1, groups=1, group_size=64, stream=stream)
    del x
    others = [l0rt.pinned(1 << 18, "i4") for _ in range(3)]
    assert address not in [other.ctypes.data for other in others]
    word[0] = 1
    stream.synchronize()


class Tensor:
    """As torch's: its memory is asked for by DLPack alone, and it is an index if it has one integer."""

    def __init__(self, device, values=(1, 2)):
        self.device, self.values = device, values

    def __index__(self):
        if len(self.values) != 1 or not isinstance(self.values[0], int):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return self.values[0]

    def __int__(self):
        return int(self.values[0])

    def __dlpack_device__(self):
        if isinstance(self.device, Exception):
            raise self.device
        return self.device

    def __dlpack__(self, **options):
        raise AssertionError("asked although the device tells that it is of no use")


def test_arrays_that_a_kernel_cannot_use_are_refused(module, native):
    with pytest.raises(TypeError, match=r"which is host memory that the kernel cannot reach: copy it to a Buffer"):
        module["store"][1, 1](np.zeros(4, "i4"), 1)
    with pytest.raises(TypeError, match=r"argument 0 \(to\) must be contiguous, got an array with strides \(8,\)"):
        module["store"][1, 1](l0rt.pinned(8, "i4")[::2], 1)
    with pytest.raises(TypeError, match="which is host memory"):  # also without a byte that could be read
        module["store"][1, 1](np.zeros(0, "i4"), 1)
    for host in (Tensor((1, 0)), Tensor((1, 0), [4096]), bytearray(16), memoryview(bytes(16))):
        with pytest.raises(TypeError, match=f"got {type(host).__name__}, which is host memory that the kernel cannot"):
            module["store"][1, 1](host, 1)
    with pytest.raises(TypeError, match=r"got Tensor: l0rt\.from_dlpack\(\) makes a Buffer of memory of the device"):
        module["store"][1, 1](Tensor((14, 0)), 1)
    for kind in (2, 10):  # of CUDA and ROCm, which from_dlpack() refuses
        with pytest.raises(TypeError, match=rf"another kind of device \(DLPack's type {kind}\) that the kernel cannot"):
            module["store"][1, 1](Tensor((kind, 0)), 1)
        with pytest.raises(BufferError, match="device type"):
            l0rt.from_dlpack(Tensor((kind, 0)))
    for other in (Tensor(BufferError("no memory")), np.float32(4), Tensor, "text"):
        with pytest.raises(TypeError, match=r"a Buffer, an address, l0rt\.Pointer\(address\) or None, got \w+$"):
            module["store"][1, 1](other, 1)
    with pytest.raises(TypeError, match="a native module does not tell its types"):
        native["store"][1, 1](np.zeros(4, "i4"), np.int32(1))
    x = l0rt.pinned(8, "i4")
    native["store"][1, 1](x, np.int32(1))
    acc.synchronize()


@pytest.mark.parametrize(("name", "kind"), [("store", "an int"), ("axpy", "a float")])
def test_a_tensor_of_one_integer_is_a_number_and_no_other_is(module, name, kind):
    x = l0rt.empty(64)
    before = (x,) if name == "store" else (x, x)
    at = next(i for i, argument in enumerate(module[name].arguments) if argument.kind == "value")
    rest = (1,) * (len(module[name].arguments) - at - 1)
    module[name][1, 1](*before[:at], Tensor((1, 0), [7]), *rest)
    acc.synchronize()
    for values in ([7.5], [1, 2], []):
        with pytest.raises(TypeError, match=rf"argument {at} \(\w+\) must be {kind} of 4 bytes, got Tensor$"):
            module[name][1, 1](*before[:at], Tensor((1, 0), values), *rest)


def test_torchs_tensors_are_refused_as_numpys_arrays_are(module):
    if os.environ.get("L0RT_TEST_TORCH") != "1":
        pytest.skip("needs torch: set L0RT_TEST_TORCH=1 where pip has installed it")
    import torch

    x = torch.zeros(16, dtype=torch.int32)
    for tensor in (x, x[::2], x[:0], x.float().requires_grad_(), torch.nn.Parameter(x.float())):
        name = type(tensor).__name__
        with pytest.raises(TypeError, match=f"got {name}, which is host memory that the kernel cannot reach: copy it"):
            module["store"][1, 1](tensor, 1)
    with pytest.raises(TypeError, match=r"None, got Tensor$"):
        module["store"][1, 1](x.to("meta"), 1)
    with pytest.raises(TypeError, match=r"which is host memory that the kernel cannot reach"):
        module["store"][1, 1](x[:1], 1)  # no address, although it is an index
    to = l0rt.empty(64).copy_from(x.numpy())
    module["store"][1, 16](to, torch.tensor([7]))
    acc.synchronize()
    for value in (torch.tensor(7.5), x, torch.tensor([7.0])):
        with pytest.raises(TypeError, match=r"store\(\) argument 1 \(value\) must be an int of 4 bytes, got Tensor$"):
            module["store"][1, 16](to, value)


# Native modules.


def test_a_native_kernel_says_how_an_address_is_passed(native):
    x = l0rt.empty(64)
    with pytest.raises(TypeError, match=r"an address as numpy\.uint64\(x\.ptr\).*, got int"):
        native["store"][1, 1](x.ptr, np.int32(1))
    native["store"][1, 1](np.uint64(x.ptr), np.int32(1))
    acc.synchronize()


# Memory of another device.


@pytest.mark.needs_two_devices
def test_memory_of_another_device_is_taken_if_it_can_be_reached(module):
    x = l0rt.empty(64, device=1)
    refused = None
    try:
        module["store"][1, 1](x, 1)
    except ValueError as error:
        refused = str(error)
    acc.synchronize()
    if l0rt.xpu.can_device_access_peer(0, 1):
        assert refused is None
    else:
        assert "argument 0 (to) must be memory that xpu:0 reaches, got <l0rt.Buffer" in refused


# Limits of the device, by figures.


def test_more_local_memory_than_the_device_has_is_refused(module):
    x = l0rt.empty(64)
    with pytest.raises(
        ValueError, match=r"a group of reduce\(\) would have \d+ bytes of local memory: the device has \d+"
    ):
        module["reduce"][1, 8](x, x, 1, l0rt.LocalMemory(1 << 30))


def test_a_cooperative_launch_of_too_many_groups_is_refused(module):
    kernel, x = module["meet"], l0rt.empty(4)
    most = kernel.max_cooperative_groups(1)
    told = rf"a cooperative launch of meet\(\) may have at most {most} groups of this size, got {most + 1} x 1 x 1"
    out = l0rt.empty(4 * (most + 1))
    with pytest.raises(ValueError, match=told):
        kernel.launch(x, out, groups=most + 1, group_size=1, cooperative=True)
    graph = acc.Graph()
    with pytest.raises(ValueError, match=told), acc.Stream(), graph:
        kernel.launch(x, out, groups=most + 1, group_size=1, cooperative=True)
    graph.reset()


def test_the_local_memory_of_a_launch_says_how_many_groups_can_run_at_once(module, native):
    """Whatever the kernel was launched or asked with before."""
    kernel, x = module["reduce"], l0rt.empty(64)
    few, many = l0rt.LocalMemory(64), l0rt.LocalMemory(32 << 10)
    at_first = kernel.max_cooperative_groups(8)
    with_few = kernel.max_cooperative_groups(8, x, x, 1, few)
    with_many = kernel.max_cooperative_groups(8, x, x, 1, many)
    assert at_first >= with_few >= with_many >= 1
    for scratch in (many, few):
        kernel[1, 8](x, x, 1, scratch)
        assert kernel.max_cooperative_groups(8) == at_first
        assert kernel.max_cooperative_groups(8, x, x, 1, few) == with_few
        assert kernel.max_cooperative_groups(8, x, x, 1, many) == with_many
        assert native["reduce"].max_cooperative_groups(8, x, x, np.uint32(1), many) == with_many
        assert native["reduce"].max_cooperative_groups(8, x, x, np.uint32(1), few) == with_few
    acc.synchronize()


def test_the_arguments_of_that_question_are_checked(module):
    kernel = module["reduce"]
    for args, error, why in (
        ((None,), TypeError, r"reduce\(\) takes 4 arguments, got 1"),
        ((None, None, 1, 64), TypeError, r"argument 3 \(scratch\) must be l0rt.LocalMemory\(nbytes\), got int"),
        ((None, l0rt.LocalMemory(8), 1, l0rt.LocalMemory(8)), TypeError, r"argument 1 \(x\) must be a Buffer"),
        ((None, None, 1, l0rt.LocalMemory(1 << 40)), ValueError, r"would have \d+ bytes of local memory"),
    ):
        with pytest.raises(error, match=why):
            kernel.max_cooperative_groups(8, *args)
    closed = l0rt.Module(PATH)
    kernel = closed["reduce"]
    closed.close()
    with pytest.raises(ValueError, match="the module was closed"):
        kernel.max_cooperative_groups(8)


def test_sizes_beyond_a_limit_name_the_kernel_and_the_limit(module):
    x = l0rt.empty(4)
    with pytest.raises(ValueError, match=r"store\(\): group_size must be 1 to \d+ along y, got 1048576"):
        module["store"].launch(x, 1, groups=1, group_size=(1, 1 << 20))


# Group sizes that the driver suggests.


@pytest.mark.parametrize(
    ("groups", "axes"), [(4, {0}), ((4,), {0}), ((1, 4), {1}), ((4, 4), {0, 1}), ((2, 2, 2), {0, 1, 2})]
)
def test_groups_without_a_size_are_as_wide_along_each_axis_as_the_driver_suggests(module, groups, axes):
    out = l0rt.empty(4 * 3 * 64 * 1024)
    module["where"].launch(out, groups=groups)
    acc.synchronize()
    graph = acc.Graph()
    with acc.Stream(), graph:
        module["where"].launch(out, groups=groups)
    size = graph.nodes[0].group_size
    graph.reset()
    assert {axis for axis in range(3) if size[axis] > 1} <= axes
    assert math.prod(size) <= l0rt.xpu.get_device_properties(0).max_work_group_size
