# SPDX-License-Identifier: Apache-2.0
"""The tables of include/l0rt through ctypes, as their headers declare them: the functions run without the GIL, as an
embedder calls them."""

import ctypes
import re
from pathlib import Path

import l0rt
import l0rt.capi

PTR = ctypes.c_void_p
KINDS = {"int": ctypes.c_int, "size_t": ctypes.c_size_t, "unsigned": ctypes.c_uint, "uint32_t": ctypes.c_uint32,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64}  # fmt: skip
FUNCTION = re.compile(r"^  ([\w ]+?) ?(\*?)\(\*(\w+)\)\(([^)]*)\);", re.MULTILINE)
FLAT_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def kind(text):
    """Return the type of a parameter; a name may follow it."""
    return PTR if "*" in text or "[" in text else KINDS[text.split()[0]]


def declared(header, struct):
    """Return (name, kind of the result, kinds of the parameters) of each function of a table, in its order."""
    text = FLAT_COMMENT.sub("", (Path(l0rt.get_include()) / "l0rt" / header).read_text())
    body = re.search(rf"typedef struct {struct} {{(.*?)^}} {struct};", text, re.DOTALL | re.MULTILINE)[1]
    found = []
    for result, star, name, parameters in FUNCTION.findall(body):
        taken = [] if parameters == "void" else [kind(each) for each in parameters.split(",")]
        found.append((name, PTR if star else None if result == "void" else kind(result), *taken))
    assert len(found) == body.count("(*"), f"a function of {struct} is declared in another way than the others"
    return tuple(found)


SIGNATURES = declared("l0rt.h", "l0rt_api")
GUARD_SIGNATURES = declared("guard_impl.h", "l0rt_guard_impl")


def structure(signatures, *head):
    fields = (("version", ctypes.c_uint32), ("size", ctypes.c_uint32), *head, *((name, PTR) for name, *_ in signatures))
    return type("Table", (ctypes.Structure,), {"_fields_": fields})


Table = structure(SIGNATURES)
GuardTable = structure(GUARD_SIGNATURES, ("type", ctypes.c_char_p))


class PointerInfo(ctypes.Structure):
    _fields_ = (
        ("base", PTR), ("size", ctypes.c_size_t), ("requested", ctypes.c_size_t), ("stream", PTR),
        ("device", ctypes.c_int), ("kind", ctypes.c_int),
    )  # fmt: skip


class Arg(ctypes.Structure):
    _fields_ = (("value", PTR), ("size", ctypes.c_size_t))


def _table():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = PTR, (ctypes.py_object, ctypes.c_char_p)
    return Table.from_address(pointer(l0rt.capi._C_API, b"l0rt.capi._C_API"))


class Failed(RuntimeError):
    """What `last_error` says."""


class Door:
    """Every function of the table as a method; a failure raises `Failed`."""

    def __init__(self):
        self.bind(_table(), SIGNATURES)

    def bind(self, table, signatures):
        assert table.size >= ctypes.sizeof(table)
        for name, *kinds in signatures:
            setattr(self, name, self.checked(ctypes.CFUNCTYPE(*kinds)(getattr(table, name))))

    def checked(self, function):
        """Return the function, with an exception where it fails: it has set one, which ctypes does not expect."""

        def call(*args):
            try:
                return function(*args)
            except SystemError:
                raise Failed(self.last_text()) from None

        return call

    def last_text(self):
        text = ctypes.create_string_buffer(1024)
        self.last_error(text, 1024)
        return text.value.decode(errors="replace")

    def pointer(self, stream):
        """Return the table's stream of an l0rt.Stream."""
        with stream:
            return self.current_stream(-1)


class GuardDoor(Door):
    """Every function of a guard table as a method. It stores no text of a failure: Python's exception has it."""

    def __init__(self, door, type=b"xpu"):
        self.bind(GuardTable.from_address(door.guard_impl_of(type)), GUARD_SIGNATURES)

    def checked(self, function):
        def call(*args):
            try:
                return function(*args)
            except SystemError as error:
                raise Failed(str(error.__cause__)) from error.__cause__

        return call
