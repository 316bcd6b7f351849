# SPDX-License-Identifier: Apache-2.0
"""Every list of entry points names the same functions, with the same arguments, in the same order."""

import re

from helpers.source import ROOT, blank, plant

HEADER, DECLARATION = "include/l0rt/ze_functions.h", "l0rt/ze/api.pxd"


def arguments(text):
    return [re.findall(r"\w+", argument)[-1] for argument in text.split(",") if argument.strip()]


def in_header(root):
    """Return [(name, argument names)] of the X-macro list."""
    text = blank((root / HEADER).read_text(), c=True).replace("\\\n", " ")
    found = re.findall(r"\b(?:REQUIRED|OPTIONAL)\(\s*\d+_\d+\s*,\s*(\w+)\s*,\s*\((.*?)\)\s*\)", text, re.DOTALL)
    return [(name, arguments(args)) for name, args in found]


def in_declaration(root):
    """Return [(name, argument names)] of the Cython struct."""
    text = blank((root / DECLARATION).read_text())
    body = re.search(r"ctypedef struct l0rt_ze_table:\n((?:[ ]{8}.*\n|\s*\n)+)", text).group(1)
    return [(name, arguments(args)) for name, args in re.findall(r"\(\*(\w+)\)\((.*?)\)", body, re.DOTALL)]


def test_both_lists_agree():
    assert len(in_header(ROOT)) > 40
    assert in_header(ROOT) == in_declaration(ROOT)


def test_every_line_of_the_header_is_understood():
    text = (ROOT / HEADER).read_text()
    assert len(in_header(ROOT)) == len(re.findall(r"\b(?:REQUIRED|OPTIONAL)\(\d", text))


def test_it_bites(tree):
    text = (tree / DECLARATION).read_text()
    init, get = re.search(r"(.*\(\*zeInit\).*\n)(.*\(\*zeDriverGet\).*\n)", text).groups()
    more, other = init.replace("flags", "flags, int more"), init.replace("zeInit", "zeOther")
    for change in (get, init, get + init, more + get, other + get):
        plant(tree, DECLARATION, text.replace(init + get, change))
        assert in_header(tree) != in_declaration(tree)
