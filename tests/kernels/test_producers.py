# SPDX-License-Identifier: Apache-2.0
"""Modules of other producers: LLVM's translator at -O0 and -O2, and LLVM's own SPIR-V target through llvmlite."""

import ctypes

import l0rt
import numpy as np
import pytest

from helpers.producers import KERNELS, MODULES

checks_data = pytest.mark.checks_data
NAMES = ["collatz", "convolve", "histogram", "reduce", "rows", "vectors"]


@pytest.fixture(scope="module", params=MODULES)
def module(request):
    with l0rt.Module(KERNELS / request.param) as made:
        kept = [made[name] for name in NAMES]  # so that no test makes one that stays
        yield made
        del kept


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_it_has_the_kernels(module):
    assert sorted(module.kernels) == NAMES
    kinds = {name: [argument.kind for argument in module[name].arguments] for name in NAMES}
    assert kinds["reduce"] == ["pointer", "pointer", "local"]
    assert kinds["rows"] == ["pointer", "value", "value"]
    module["collatz"].launch(l0rt.empty(4 * 100), global_size=100)


@checks_data
def test_constants_of_the_module_and_calls(module, rng):
    x, to = rng.standard_normal(300).astype("f4"), l0rt.empty(4 * 256)
    module["convolve"].launch(to, l0rt.from_numpy(x), np.int32(7), global_size=256)
    weights = (0.5, -1.25, 2.0, 3.5)
    expected = sum(weights[k & 3] * x[k : k + 256].astype("f8") for k in range(7))
    np.testing.assert_allclose(to.numpy("f4", (256,)), expected, rtol=0, atol=1e-5)


@checks_data
def test_barriers_and_local_memory(module, rng):
    x, sums = rng.integers(-(2**31), 2**31, 512).astype("i4"), l0rt.empty(8 * 8)
    module["reduce"].launch(sums, l0rt.from_numpy(x), l0rt.LocalMemory(64 * 8), groups=8, group_size=64)
    assert (sums.numpy("i8", (8,)) == x.reshape(8, 64).sum(1, dtype="i8")).all()


@checks_data
def test_atomics(module, rng):
    x, counts = rng.integers(0, 256, 4096).astype("u1"), l0rt.empty(1024).fill(0)
    module["histogram"].launch(counts, l0rt.from_numpy(x), global_size=4096)
    assert (counts.numpy("u4", (256,)) == np.bincount(x, minlength=256)).all()


@checks_data
def test_vectors(module, rng):
    x, pick = rng.standard_normal((64, 4)).astype("f4"), rng.integers(-1, 2, (64, 4)).astype("i4")
    to = l0rt.empty(64 * 16)
    module["vectors"].launch(to, l0rt.from_numpy(x), l0rt.from_numpy(pick), np.float32(2.5), global_size=64)
    turned = x[:, ::-1]
    expected = np.where(pick > 0, turned * np.float32(2.5), turned) + (turned * x).sum(1, keepdims=True)
    np.testing.assert_allclose(to.numpy("f4", (64, 4)), expected, rtol=0, atol=1e-5)


@checks_data
def test_loops_of_different_lengths(module):
    def taken(n):
        return 0 if n == 1 else 1 + taken(3 * n + 1 if n % 2 else n // 2)

    steps = l0rt.empty(4 * 100)
    module["collatz"].launch(steps, global_size=100)
    assert steps.numpy("u4", (100,)).tolist() == [taken(n) for n in range(1, 101)]


@checks_data
def test_a_structure_by_value_and_a_switch(module):
    class Row(ctypes.Structure):
        _fields_ = [("count", ctypes.c_int), ("scale", ctypes.c_float * 3)]

    to, x = l0rt.empty(4 * 16 * 5), np.arange(16)
    module["rows"].launch(to, Row(1, (0.5, -3, 7)), np.uint32(16), global_size=(16, 5))
    found = to.numpy("f4", (5, 16))
    expected = [0.5 * x, x - 3, np.full(16, 2**31), np.rint(np.sqrt(7 * x)), np.full(16, -(2**31))]
    np.testing.assert_array_equal(found, np.array(expected, "f4"))
