# SPDX-License-Identifier: Apache-2.0
"""SYCL's kernels: l0rt reads the modules that dpnp's libraries have in them, and a driver builds them.

Only the files of the wheel are needed (`pip install --no-deps dpnp`): nothing imports it.
"""

import importlib.util
import struct
from array import array
from pathlib import Path

import l0rt
import pytest
from l0rt.launch.spirv import MAGIC, Spirv

IMAGES = 150  # of a library


def modules(data):
    """Yield the SPIR-V modules in a library but for the last, whose end only its loader knows."""
    magic = struct.pack("<I", MAGIC)
    begins = []
    at = data.find(magic)
    while at >= 0 and len(begins) <= IMAGES:
        begins.append(at)
        at = data.find(magic, at + 4)
    for begin, behind in zip(begins, begins[1:], strict=False):
        words = array("I", data[begin : begin + (behind - begin) // 4 * 4])
        end = 5
        while end < len(words) and words[end] >> 16:  # zeros align the next one
            end += words[end] >> 16
        if words[1] >> 16 == 1 and end <= len(words):
            yield words[:end].tobytes()


@pytest.fixture(scope="module")
def libraries():
    found = importlib.util.find_spec("dpnp")
    if found is None:
        pytest.skip("dpnp is not installed: pip install --no-deps dpnp")
    paths = sorted(Path(found.origin).parent.rglob("*.so"), key=lambda path: path.stat().st_size)
    return [(path.name, list(modules(path.read_bytes()))) for path in paths]


def test_every_module_of_sycl_is_read_and_tells_its_kernels(libraries):
    read = 0
    for name, codes in libraries:
        for number, code in enumerate(codes):
            try:
                found = Spirv(code)
            except l0rt.ModuleBuildError as error:
                raise AssertionError(f"module {number} of {name}: {error}") from None
            assert all(argument.size <= 1 << 16 for kernel in found.kernels.values() for argument in kernel.arguments)
            read += bool(found.kernels)
    assert read > 500


def test_a_few_are_loaded_and_their_kernels_are_found(libraries):
    loaded, logs = 0, []
    for _, codes in libraries:
        for code in codes[:2]:
            try:
                with l0rt.Module(code) as module:
                    loaded += all(module[name].attributes["argument_count"] >= 1 for name in module)
            except l0rt.ModuleBuildError as error:
                logs.append(error.log)
    assert all("is not supported" in log for log in logs), logs  # an instruction that this driver does not have
    assert loaded > 4 * len(logs)
