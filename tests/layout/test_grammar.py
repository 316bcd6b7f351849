# SPDX-License-Identifier: Apache-2.0
"""Two tables say what the words of SPIR-V's instructions are: that of l0rt's reader agrees with the CPU driver's."""

import re
import runpy

from helpers.source import ROOT, plant

READER, ENGINE = "l0rt/launch/grammar.py", "l0rt/cpu_driver/spirv/grammar.h"
# Opcode -> why the patterns differ.
DIFFERENT = {
    22: "the engine knows no other encodings of floats than IEEE 754, which later versions of SPIR-V name",
    5912: "the reader lets through any number of ids where SPIR-V has one or two",
}


def engines(root=ROOT):
    """Return {opcode: (name, pattern)} of the CPU driver's table."""
    found = re.findall(r'X\((\w+), (\d+), "([^"]*)"\)', (root / ENGINE).read_text())
    return {int(opcode): (name, pattern) for name, opcode, pattern in found}


def readers(root=ROOT):
    """Return {opcode: pattern} of the reader's table, in the CPU driver's letters: all ids are alike."""
    table = runpy.run_path(str(root / READER))
    found = {}
    for pattern, text in table["_PATTERNS"].items():
        head, _, tail = pattern.strip().partition("+")
        told = re.sub("[tvlf]", "i", head) + {"": "", "n": "?#"}.get(tail, "?*")
        found.update(dict.fromkeys(table["_opcodes"](text), told))
    return found


def differences(root=ROOT):
    """Return {opcode: (name, the engine's pattern, the reader's)} of those that are not the same."""
    reader = readers(root)
    return {
        opcode: (name, pattern, reader.get(opcode))
        for opcode, (name, pattern) in engines(root).items()
        if reader.get(opcode) != pattern.replace("?i", "?*").replace("?n", "?#")  # it has no letters for one or none
    }


def test_the_reader_knows_each_instruction_of_the_engine_as_the_engine_does():
    assert len(engines()) > 200
    assert differences().keys() == DIFFERENT.keys(), differences()


def test_it_bites(tree):
    for path, before, after in (
        (READER, '"TRvnv": "264-271 342 6401-6408"', '"TRvnv": "265-271 342 6401-6408"'),
        (READER, '"TRn+v": "59"', '"TRv+v": "59"'),
        (ENGINE, 'X(LoopMerge, 246, "iin?#")', 'X(LoopMerge, 246, "iin")'),
    ):
        text = (tree / path).read_text()
        assert before in text
        plant(tree, path, text.replace(before, after))
    assert differences(tree).keys() == {*DIFFERENT, 59, 246, 264}
