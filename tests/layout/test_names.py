# SPDX-License-Identifier: Apache-2.0
"""A helper's name means one thing in l0rt/runtime: each C-level function of a module has a name of its own."""

import re

import pytest

from helpers.source import ROOT, files, lines, none_of, plant

# Functions that do the same thing, each for its own module.
SAME = {
    "_forget": "what a module drops in a forked child: it is handed to lazy.on_fork_child",
    "_make": "what calling a public class makes, of whichever device type: it is handed to naming.set_slots",
}
DEFINITION = re.compile(r"cdef (?!extern\b|class\b|struct\b|enum\b|union\b)[^=(]*?\b(\w+)\(")


def defined(root):
    """Return name -> the modules of l0rt/runtime that define a C-level function of this name."""
    found = {}
    for path in files(root, ".pyx", ".pxd", under=("l0rt/runtime",)):
        module = str(path.relative_to(root).with_suffix(""))
        for line in lines(path.read_text()):
            if line.indent == 0 and (match := DEFINITION.match(line.text)):
                found.setdefault(match[1], set()).add(module)
    return found


def violations(root):
    return [
        f"{name}: {', '.join(sorted(modules))}"
        for name, modules in sorted(defined(root).items())
        if len(modules) > 1 and name not in SAME
    ]


def test_each_name_is_defined_in_one_module():
    none_of(violations(ROOT))


def test_the_exceptions_are_needed():
    assert [name for name in SAME if len(defined(ROOT).get(name, ())) < 2] == []


@pytest.mark.parametrize(
    "text",
    [
        "cdef int heap_grow(int x) noexcept nogil:\n    return 0\n",
        "cdef inline l0rt_block* heap_grow(\n    int x\n) noexcept nogil:\n    return NULL\n",
        "cdef const char* heap_grow() noexcept:\n    return NULL\n",
    ],
)
def test_it_bites(tree, text):
    plant(tree, "l0rt/runtime/streams/planted.pyx", text)
    assert violations(tree) == ["heap_grow: l0rt/runtime/alloc/reclaim, l0rt/runtime/streams/planted"]
