# SPDX-License-Identifier: Apache-2.0
"""Compiled code asks isinstance() about one Python class at a time.

With a tuple of types of which one is built in, Cython writes calls of PyObject_IsInstance() that do not look whether
they failed: the exception of a signal handler, or of a class's own check, is lost, and the answer is "yes".
"""

import re

import pytest

from helpers.source import ROOT, files, lines, none_of, plant

# What Cython checks without a call that can fail: its own types, and classes of C.
BUILT_IN = set("bool int float complex str bytes bytearray list tuple dict set frozenset slice type".split())
C_CLASS = re.compile(r"^\s*cdef class (\w+)", re.MULTILINE)
CALL = re.compile(r"\bisinstance\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*?, \(([^()]*)\)\)")


def violations(root):
    classes = {name for path in files(root, ".pyx", ".pxd") for name in C_CLASS.findall(path.read_text())}
    return [
        f"{path.relative_to(root)}:{line.number}: isinstance() of a tuple with {name}, a class of Python: the tuple's "
        "types one by one, with `or`"
        for path in files(root, ".pyx", ".pxd")
        for line in lines(path.read_text())
        for names in CALL.findall(line.text)
        for name in (name.strip() for name in names.split(",") if name.strip())
        if name not in BUILT_IN | classes
    ]


def test_no_tuple_of_isinstance_has_a_class_of_python():
    none_of(violations(ROOT))


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(x, (str, os.PathLike))",
        "isinstance(f(g(x), 1), (np.ndarray, memoryview))",
        "not (a or isinstance(x[1], (float,\n            np.floating)))",
        "isinstance(x, (Sequence,))",
    ],
)
def test_it_bites(tree, test):
    plant(tree, "l0rt/core/planted.pyx", f"def f(x):\n    return {test}\n")
    assert any("planted" in found for found in violations(tree))


@pytest.mark.parametrize(
    "test", ["isinstance(x, (str, bytes))", "isinstance(x, os.PathLike)", "isinstance(x, (C, int))"]
)
def test_it_lets_these_be(tree, test):
    plant(tree, "l0rt/core/planted.pyx", f"cdef class C:\n    pass\n\n\ndef f(x):\n    return {test}\n")
    assert not any("planted" in found for found in violations(tree))
