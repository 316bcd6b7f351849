# SPDX-License-Identifier: Apache-2.0
"""Owners in core/ hold one handle, their parent and plain C values, and the garbage collector never sees them."""

import re

import pytest

from helpers.source import ROOT, classes, files, none_of, plant

FIELD = re.compile(
    r"cdef\s+(?:(?:public|readonly|const|unsigned|signed|struct)\s+)*([\w.]+)[\s*\[\]\w]*?\s[*\s]*(\w+)(?:\[\w*\])?$"
)
PYTHON_TYPES = set("object list dict str tuple set frozenset bytes bytearray type memoryview".split())


def fields(header, body):
    """Yield (line, type, name) of the C fields of a class body."""
    for line in body:
        if line.parents[-1] == header and "(" not in line.text and (field := FIELD.match(line.text)):
            yield line, field.group(1), field.group(2)


def explicit_constructor(header, body):
    """Does `__init__` refuse, or is there none and the handle comes in `__cinit__`?"""
    own = {line.text.partition("(")[0]: line for line in body if line.parents[-1] == header}
    if (init := own.get("def __init__")) is None:
        return "def __cinit__" in own
    if re.search(r":\s*raise TypeError\b", init.text):
        return True
    inside = [line.text for line in body if line.parents[-1] == init]
    return bool(inside) and inside[0].startswith("raise TypeError")


def violations(root):
    pxd = files(root, ".pxd", under=("l0rt/core",))
    owners = {name for path in pxd for name in classes(path)}
    complaints = []
    for path in pxd:
        for name, (header, _, body) in classes(path).items():
            for line, kind, field in fields(header, body):
                last = kind.split(".")[-1]
                if field != "__weakref__" and (last in PYTHON_TYPES or (last[0].isupper() and last not in owners)):
                    complaints.append(f"{path.relative_to(root)}:{line.number}: {name}.{field} is a {kind}")
    for path in files(root, ".pyx", under=("l0rt/core",)):
        for name, (header, decorators, body) in classes(path).items():
            where = f"{path.relative_to(root)}:{header.number}: {name}"
            complaints += [f"{where} lacks {d}" for d in ("@cython.final", "@cython.no_gc") if d not in decorators]
            complaints += [f"{where}.{field} belongs into the .pxd" for _, _, field in fields(header, body)]
            if not explicit_constructor(header, body):
                complaints.append(f"{where}: __init__ must raise TypeError, or __cinit__ take the handle")
    return complaints


def test_owners_are_plain():
    none_of(violations(ROOT))


GOOD_PXD = """
cdef class Planted:
    cdef ze_event_handle_t _h
    cdef readonly Context context
    cdef l0rt_caps* caps
    cdef unsigned long long many[4]
    cdef object __weakref__
    cdef int f(self, object x) except -1
"""
GOOD_PYX = """
cimport cython

@cython.final
@cython.no_gc  # a child must outlive its handle
cdef class Planted:
    \"\"\"What it is.\"\"\"

    def __init__(self):
        \"\"\"Refuse.\"\"\"
        raise TypeError("made by create()")

    cdef int f(self, object x) except -1:
        cdef list found = []
        return 0
"""


@pytest.mark.parametrize(
    ("pxd", "pyx", "complaint"),
    [
        (("ze_event_handle_t _h", "object _h"), ("", ""), "Planted._h is a object"),
        (("l0rt_caps* caps", "list caps"), ("", ""), "Planted.caps is a list"),
        (("Context context", "str context"), ("", ""), "Planted.context is a str"),
        (("Context context", "Stranger context"), ("", ""), "Planted.context is a Stranger"),
        (("", ""), ("@cython.final\n", ""), "lacks @cython.final"),
        (("", ""), ("@cython.no_gc", "# @cython.no_gc"), "lacks @cython.no_gc"),
        (("", ""), ("    def __init__", "    cdef dict cache\n\n    def __init__"), "cache belongs into the .pxd"),
        (("", ""), ('raise TypeError("made by create()")', "self.x = 1"), "__init__ must raise TypeError"),
        (("", ""), ("def __init__", "def other"), "__init__ must raise TypeError"),
    ],
)
def test_it_bites(tree, pxd, pyx, complaint):
    plant(tree, "l0rt/core/stranger.pxd", "cdef class Context:\n    cdef ze_context_handle_t _h\n")
    plant(tree, "l0rt/core/planted.pxd", GOOD_PXD.replace(*pxd) if pxd[0] else GOOD_PXD)
    plant(tree, "l0rt/core/planted.pyx", GOOD_PYX.replace(*pyx) if pyx[0] else GOOD_PYX)
    assert any("planted" in found and complaint in found for found in violations(tree)), violations(tree)


def test_what_is_plain_may_stay(tree):
    plant(tree, "l0rt/core/stranger.pxd", "cdef class Context:\n    cdef ze_context_handle_t _h\n")
    plant(tree, "l0rt/core/planted.pxd", GOOD_PXD)
    plant(tree, "l0rt/core/planted.pyx", GOOD_PYX)
    assert not [found for found in violations(tree) if "planted" in found]
    plant(tree, "l0rt/core/planted.pyx", GOOD_PYX.replace("__init__", "__cinit__"))
    assert not [found for found in violations(tree) if "planted" in found]
