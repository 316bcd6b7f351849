# SPDX-License-Identifier: Apache-2.0
"""Noting what each test asks of the driver: which function, values, flags, structures in chains, with which result.

A library stands between l0rt's table of functions and the driver (driver_notes.c). Its functions have the driver's own
types, so that they see flags and chains; they are written here, from ze_functions.h. What processes that a test starts
ask is not noted.
"""

import ctypes
import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path

import l0rt
import pytest
from l0rt.ze import loader

from helpers import covering, rings
from helpers.source import ROOT

PLACES = 1 << 14  # of driver_notes.c
INCLUDE = Path(l0rt.get_include())
RENAMED = {"EVENT_POOL_COUNTER_BASED_EXP_DESC": "COUNTER_BASED_EVENT_POOL_EXP_DESC"}  # not named like its type
FIELD = r"\b(?:ze_(?!image_format_t)\w+(?<!_bool)_t |uint32_t (?=flags|\w*[oO]rdinal)|const \w+ \*+(?!pNext))(\w+);"
POINTERS = 15  # a field of the function itself: which pointers and handles it got


@cache
def headers():
    return "".join(path.read_text() for path in sorted((INCLUDE / "l0rt").glob("ze_*.h")))


@cache
def constants(prefix):
    """Return name -> value of an enumeration."""
    found = re.findall(rf"\b{prefix}(\w+) = (0x[0-9a-f]+|\d+)", headers())
    return {name: int(value, 0) for name, value in found}


@cache
def functions():
    """Return function -> its parameters as (type, name): those of the table, then those of system management."""
    text = (INCLUDE / "l0rt/ze_functions.h").read_text().replace("\\\n", "")
    found = {}
    for name, parameters in re.findall(r"(?:REQUIRED|OPTIONAL)\(\w+, (\w+), \(([^()]*)\)\)", text):
        found[name] = [re.fullmatch(r"(.*?)(\w+)", " ".join(p.split())).groups() for p in parameters.split(",")]
    for path in sorted((ROOT / "l0rt/core").glob("*.pyx")):
        for name in re.findall(r'"(zes[A-Z]\w+)"', path.read_text()):
            found[name] = [("uint64_t ", word) for word in ("a", "b", "c", "d")]  # none takes more words
    return found


@cache
def structures():
    """Return the structures that begin with their type: name -> (the type's name, its fields that are noted)."""
    found, kinds = {}, constants("ZE_STRUCTURE_TYPE_")
    for body, name in re.findall(r"typedef struct \{[^{}]*?ze_structure_type_t stype;([^{}]*)\} (\w+);", headers()):
        kind = name.removeprefix("ze_").removesuffix("_t").upper()
        kind = RENAMED.get(kind, kind)
        fields = re.findall(FIELD, body) if name.endswith("_desc_t") and kind in kinds else []
        found[name] = kind, fields
    return found


def is_pointer(kind):
    return "*" in kind or ("_handle_t" in kind and "_ipc_" not in kind)


def noted(number, parameters):
    """Yield what is noted of a call: lines of C."""
    pointers = [f"(uint64_t)({name} != 0) << {at}" for at, (kind, name) in enumerate(parameters) if is_pointer(kind)]
    yield f"note({number}, 0, {POINTERS}, {' | '.join(pointers) or 0}, result);"
    for at, (kind, name) in enumerate(parameters):
        base = kind.replace("const", "").replace("*", "").strip()
        if "*" in kind and (base in structures() or name == "pNext"):
            yield f"note_chain({number}, {name}, result);"
        elif name == "timeout":
            yield f"note({number}, 0, {at}, timeout_kind({name}), result);"
        elif base.startswith("ze_") and not is_pointer(kind) and "handle" not in base:
            yield f"note({number}, 0, {at}, {name}, result);"


def source():
    """Return functions.h: the fields that are noted, and a function for each of the driver's."""
    lines = ["static const field fields[] = {"]
    for name, (kind, fields) in structures().items():
        lines += [
            f"    {{ZE_STRUCTURE_TYPE_{kind}, {at}, offsetof({name}, {field}), sizeof((({name} *)0)->{field})}},"
            for at, field in enumerate(fields)
        ]
    lines += ["};"]
    for number, (function, parameters) in enumerate(functions().items(), 1):
        declared = ", ".join(kind + name for kind, name in parameters)
        lines += [
            f"ze_result_t (*original_{function})({declared});",
            f"ze_result_t noted_{function}({declared}) {{",
            f"  ze_result_t result = original_{function}({', '.join(name for _, name in parameters)});",
            *(f"  {line}" for line in noted(number, parameters)),
            "  return result;",
            "}",
        ]
    return "\n".join(lines) + "\n"


def build(folder):
    """Build the library in a folder; return its path."""
    Path(folder, "functions.h").write_text(source())
    library = os.path.join(folder, "libdriver_notes.so")
    flags = ["-shared", "-fPIC", "-O1", f"-I{folder}", f"-I{INCLUDE}"]
    subprocess.run(["cc", *flags, "-o", library, Path(__file__).with_suffix(".c")], check=True)
    return library


@cache
def text_of(note):
    """Return a note of driver_notes.c as text: function(what of its arguments) = result."""
    number, structure, field, value = note >> 56, note >> 38 & 0x3FFFF, note >> 34 & 0xF, note >> 16 & 0x3FFFF
    function, parameters = list(functions().items())[number - 1]
    kinds = {value: name for name, value in constants("ZE_STRUCTURE_TYPE_").items()}
    if structure:
        kind = kinds.get(structure, hex(structure))
        fields = next((fields for name, fields in structures().values() if name == kind), ())
        what = kind if field == POINTERS else f"{kind}.{fields[field]}={value:#x}"
    elif field == POINTERS:
        what = ", ".join(name for at, (_, name) in enumerate(parameters) if value >> at & 1)
    else:
        what = f"{parameters[field][1]}={value:#x}"
    results = {short(code): name for name, code in constants("ZE_RESULT_").items()}
    return f"{function}({what}) = {results.get(note & 0xFFFF, 'a result of its own')}"


def short(result):
    """Return a result's sixteen bits in a note."""
    return (result >> 27 & 0xF) << 12 | (result >> 16 & 0xF) << 8 | (result & 0xFF)


class Notes:
    """What this process asks of its driver; made before l0rt opens it."""

    def __init__(self, library):
        self._library = ctypes.CDLL(library)
        self._keys = (ctypes.c_uint64 * PLACES)()
        address = loader.Library.address
        loader.Library.address = lambda opened, name: self._between(name, address(opened, name))

    def _between(self, name, address):
        if not address or name not in functions():
            return address
        original = ctypes.c_void_p.in_dll(self._library, f"original_{name}")
        if original.value not in (None, address):
            return address  # of a second library
        original.value = address
        return ctypes.cast(getattr(self._library, f"noted_{name}"), ctypes.c_void_p).value

    def take(self):
        """Return what was noted since the last time."""
        assert ctypes.c_uint64.in_dll(self._library, "lost").value == 0
        return set(self._keys[: self._library.take_notes(self._keys)])


class Noting:
    """A plugin of pytest: a test that asks what no test asked before fails, or all notes are written to a file."""

    def __init__(self, library, file=None):
        self._notes, self._file, self._told = Notes(library), file and os.path.abspath(file), {}
        self._known, self._always = set() if file else covering.asked(), set()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef):
        value = yield
        if fixturedef.scope == "session":
            self._always |= self._notes.take()  # not of the test that happens to be the first
        return value

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        self._always |= self._notes.take()
        self._began = sum(os.times()[:4])
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        yield
        asked = {text_of(note) for note in self._notes.take()}
        if self._file:
            conditional = any(item.get_closest_marker(mark) for mark in covering.CONDITIONS)
            self._told[item.nodeid] = sum(os.times()[:4]) - self._began, sorted(asked), conditional
        elif rings.runs_on_a_driver(item.path) and (new := covering.steady(asked - self._known)):
            message = "it asks of the driver what tests/rings.txt does not have; `make rings` writes that file:\n  "
            pytest.fail(message + "\n  ".join(sorted(new)), pytrace=False)

    def pytest_sessionfinish(self):
        if self._file:
            self._told[covering.ALWAYS] = 0, sorted(map(text_of, self._always)), False
            Path(self._file).write_text(json.dumps(self._told))
