# SPDX-License-Identifier: Apache-2.0
"""Two tables have the instructions of SPIR-V: those that the engine runs, and all others of the public grammar."""

import json
import re
from pathlib import Path

import pytest
from pages.driver_instructions import specified

from helpers.source import ROOT, plant

FOLDER = "l0rt/cpu_driver/spirv/decode"
RUN, OTHER = f"{FOLDER}/grammar.h", f"{FOLDER}/instructions.h"
PUBLIC = Path("/usr/include/spirv/unified1/spirv.core.grammar.json")


def rows(path, root=ROOT):
    """Return [(opcode, name, pattern)] of a table."""
    found = re.findall(r'X\((\w+), (\d+), "([^"]*)"\)', (root / path).read_text())
    return [(int(opcode), name, pattern) for name, opcode, pattern in found]


def capabilities(root=ROOT):
    text = (root / OTHER).read_text().partition("#define SPIRV_CAPABILITIES")[2]
    ranges = [(int(first), int(last)) for first, last in re.findall(r"\{(\d+), (\d+)\}", text)]
    return {number for first, last in ranges for number in range(first, last + 1)}


def violations(root=ROOT):
    run, other = rows(RUN, root), rows(OTHER, root)
    complaints = [f"{path} is not in ascending order" for path, table in ((RUN, run), (OTHER, other))
                  if [row[0] for row in table] != sorted({row[0] for row in table})]  # fmt: skip
    both = {row[0] for row in run} & {row[0] for row in other}
    complaints += [f"instruction {opcode} is in {RUN}: remove it from {OTHER}" for opcode in sorted(both)]
    known = {name: opcode for opcode, name, _ in run + other}
    complaints += [
        f"Op{name} is {opcode}, and {known.get(name)} in the tables"
        for name, opcode in specified(root).items()
        if known.get(name) != opcode
    ]
    complaints += [f"a pattern of Op{name}" for _, name, p in run + other if not re.fullmatch(r"!|[TRins?*#]*", p)]
    complaints += [f"Op{name} is too long" for _, name, pattern in run + other if len(name) > 71 or len(pattern) > 19]
    return complaints


def test_each_instruction_is_in_one_table():
    assert violations() == []
    assert len(rows(RUN)) + len(rows(OTHER)) >= 858
    assert len(capabilities()) >= 270


@pytest.mark.skipif(not PUBLIC.exists(), reason="needs the public grammar (Debian: apt install spirv-headers)")
def test_all_of_the_public_grammar_is_known():
    grammar = json.loads(PUBLIC.read_text())
    known = {opcode: name for opcode, name, _ in rows(RUN) + rows(OTHER)}
    plain = re.compile("(?:ALTERA|INTEL|KHR|EXT|NV|GOOGLE|AMD)$")
    wrong = [
        (each["opcode"], each["opname"], known.get(each["opcode"]))
        for each in grammar["instructions"]
        if plain.sub("", known.get(each["opcode"], "")) != plain.sub("", each["opname"].removeprefix("Op"))
    ]
    numbers = next(kind for kind in grammar["operand_kinds"] if kind["kind"] == "Capability")["enumerants"]
    assert wrong == []
    assert {each["value"] for each in numbers} <= capabilities()


def test_it_bites(tree):
    for path, before, after in (
        (OTHER, 'X(Kill, 252, "!")', 'X(Kill, 252, "!") X(FMod, 141, "TRii")'),
        (OTHER, 'X(TypeQueue, 37, "R")', 'X(TypeQueue, 36, "R")'),
        (RUN, 'X(LoopMerge, 246, "iin?#")', 'X(LoopMerge, 246, "iix?#")'),
    ):
        text = (tree / path).read_text()
        assert before in text
        plant(tree, path, text.replace(before, after))
    found = "\n".join(violations(tree))
    for words in ("instruction 141 is in", "not in ascending order", "Queue is 37, and 36", "a pattern of OpLoop"):
        assert words in found
