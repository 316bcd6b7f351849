# SPDX-License-Identifier: Apache-2.0
"""Every driver call runs without the GIL: inside `with nogil:` or a function that ends in nogil."""

import re

import pytest

from helpers.source import DRIVER_CALL, FUNCTION, ROOT, calls, files, lines, none_of, plant


def holds_the_gil(line):
    """Does the nearest block that says anything about the GIL leave it held?"""
    for block in (line, *reversed(line.parents)):
        if re.match(r"with nogil\b.*:", block.text):
            return False
        if re.match(r"with gil\b.*:", block.text):
            return True
        if FUNCTION.match(block.text):
            header = re.match(r".*?\)\s*([^()]*):", block.text) if block is line else None
            signature = header.group(1) if header else block.text.rstrip(": ")
            return not re.search(r"\bnogil$", signature.strip())
    return True


def violations(root):
    return [
        f"{path.relative_to(root)}:{line.number}: {name} is called with the GIL held"
        for path in files(root, ".pyx", ".pxd")
        for line in lines(path.read_text())
        for _, name, _ in calls(line.text, DRIVER_CALL)
        if holds_the_gil(line)
    ]


def test_every_driver_call_runs_without_the_gil():
    none_of(violations(ROOT))


@pytest.mark.parametrize(
    "text",
    [
        "CHECK(ze.zeInit(0))\n",
        "def f():\n    CHECK(ze.zeInit(0))\n",
        "cdef int f() except -1:\n    CHECK(ze.zeInit(0))\n",
        "cdef int f(\n    int a,\n) except -1:\n    CHECK(ze.zeInit(0))\n",
        "cdef int f() except -1 nogil:\n    with gil:\n        CHECK(ze.zeInit(0))\n",
        "def f():\n    with nogil:\n        g()\n    CHECK(ze.zeInit(0))\n",
        "cdef int f() except -1: return CHECK(ze.zeInit(0))\n",
        "cdef int nogil_looking() noexcept:\n    # nogil\n    CHECK(ze.zeInit(0))\n",
    ],
)
def test_it_bites(tree, text):
    plant(tree, "l0rt/core/planted.pyx", text)
    assert any("planted" in found for found in violations(tree))


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    with nogil:\n        if a:\n            CHECK(ze.zeInit(0))\n",
        "def f():\n    with nogil: CHECK(ze.zeInit(0))\n",
        "cdef int f() except -1:\n    if g():\n        with nogil:\n            CHECK(\n    ze.zeInit(0))\n",
        "cdef int f(int a,\n           int b) except -1 nogil:\n    CHECK(ze.zeInit(0))\n",
        "cdef inline int f() except -1 nogil: return CHECK(ze.zeInit(0))\n",
        "cdef int f() noexcept with gil:\n    with nogil:\n        CHECK(ze.zeInit(0))\n",
    ],
)
def test_what_releases_it_may_stay(tree, text):
    plant(tree, "l0rt/core/planted.pyx", text)
    assert not [found for found in violations(tree) if "planted" in found]
