# SPDX-License-Identifier: Apache-2.0
"""Every C-level function says how it fails, and nothing is implicit."""

import re

import pytest

from helpers.source import ROOT, closing, files, lines, none_of, plant

DECLARED = re.compile(
    r"(?:cdef|cpdef)\s+(?:(?:inline|public|api)\s+)*(?P<type>\([^)]*\)|[\w.\s*\[\]]*?)\s*\b(?P<name>\w+)\s*\("
)
POINTER = re.compile(r"(?:cdef\s+|ctypedef\s+)?(?P<type>[\w.\s*]*?)\s*\(\s*\*\s*(?P<name>\w*)\s*(?:\[\d*\]\s*)?\)\s*\(")
CLAUSES = re.compile(r"(?P<fails>noexcept|except\??\s*[-\w.]+|except\s*[*+])?\s*(?P<gil>nogil|with gil)?$")
NOT_FUNCTIONS = {"class", "struct", "enum", "union", "extern", "packed"}
OBJECTS = {"", "object", "type", "list", "dict", "tuple", "set", "frozenset", "str", "bytes", "bytearray"}


def is_object(kind):
    """Does this return type carry an exception by being NULL? Extension types have capital names."""
    last = kind.split(".")[-1].strip()
    return last in OBJECTS or (last[:1].isupper() and last.isidentifier())


def signatures(text):
    """Yield (line, return type, name, clauses) for every C-level function and function pointer outside `extern`."""
    for line in lines(text):
        if any(re.match(r"cdef extern\b", p.text) for p in line.parents):
            continue
        member = any(re.match(r"(cdef|ctypedef) (packed )?(struct|union)\b", p.text) for p in line.parents)
        declared = member or line.text.startswith(("cdef", "ctypedef"))
        found = (declared and POINTER.match(line.text)) or DECLARED.match(line.text)
        if found and not NOT_FUNCTIONS & set(found["type"].split()):
            after = line.text[closing(line.text, found.end() - 1) + 1 :]
            yield line, found["type"].strip(), found["name"], re.split(r"[:=,;)]", after, maxsplit=1)[0].strip()


def violations(root):
    complaints = []
    for path in files(root, ".pyx", ".pxd"):
        for line, kind, name, clauses in signatures(path.read_text()):
            where = f"{path.relative_to(root)}:{line.number}: {name}"
            said = CLAUSES.match(clauses)
            if said is None:
                complaints.append(f"{where}: `{clauses}` is not: noexcept or except, then nogil last")
            elif kind == "void" and said["fails"] != "noexcept":
                complaints.append(f"{where}: a void function that can raise")
            elif said["fails"] is None and not is_object(kind):
                complaints.append(f"{where}: says neither noexcept nor except")
    return complaints


def test_every_function_says_how_it_fails():
    none_of(violations(ROOT))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("cdef int planted(int a):\n    return a\n", "neither noexcept nor except"),
        ("cdef int planted() nogil\n", "neither"),
        ("cdef inline size_t planted(size_t n,\n    int b) nogil: return n\n", "neither"),
        ("cpdef bint planted(self):\n    return 1\n", "neither"),
        ("cdef Thing* planted(int a)\n", "neither"),
        ("cdef class T:\n    cdef int planted(self)\n", "neither"),
        ("cdef (int, int) planted()\n", "neither"),
        ("cdef void planted()\n", "void function that can raise"),
        ("cdef void planted() except *\n", "void function that can raise"),
        ("cdef int planted() nogil except -1\n", "nogil last"),
        ("cdef int planted() nogil noexcept:\n    pass\n", "nogil last"),
        ("ctypedef int (*planted)(void*) nogil\n", "neither"),
        ("cdef struct ops:\n    void (*planted)(void*, size_t) nogil\n", "void function that can raise"),
        ("cdef int (*planted)(int)\n", "neither"),
    ],
)
def test_it_bites(tree, text, complaint):
    plant(tree, "l0rt/runtime/planted.pxd", text)
    assert any("planted.pxd" in found and complaint in found for found in violations(tree)), violations(tree)


@pytest.mark.parametrize(
    "text",
    [
        "cdef int f(int (*g)(int) noexcept nogil) except -1 nogil\n",
        "cdef void f(Thing t) noexcept nogil: pass\n",
        "cdef size_t f() except? 0\n",
        "cdef Event create(EventPool pool, unsigned index)\n",
        "cdef create(x)\n",
        "cdef str f()\n",
        "cdef core.Event f()\n",
        "cdef int x = f(3)\ncdef int y\ncdef char* z = <char*>g(1)\n",
        "cdef extern from 'a.h' nogil:\n    int f(int)\n    ctypedef struct t:\n        int (*g)(int)\n",
        "cdef class A(B):\n    cdef int x\n    def f(self): pass\n",
        "ctypedef int (*f)(void*) except -1 nogil\n",
        "cdef struct ops:\n    int (*f)(void*) noexcept nogil\n    size_t n\n",
        "cdef int f(int n) except ERROR nogil:\n    return g(n)\n",
        "cdef int[4] numbers\ncdef inline bint f(l0rt_caps* c) noexcept nogil:\n    return (c.x)\n",
    ],
)
def test_what_is_said_may_stay(tree, text):
    plant(tree, "l0rt/runtime/planted.pxd", text)
    assert not [found for found in violations(tree) if "planted" in found]
