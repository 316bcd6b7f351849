# SPDX-License-Identifier: Apache-2.0
"""How types of SPIR-V lie in memory, as OpenCL C lays them out (OpenCL C specification, 6.1.5)."""

from l0rt.errors import ModuleBuildError

__all__: list[str] = []

DEEPEST = 32  # types within types
MOST_BYTES = 1 << 16  # of an argument
BOOL, INT, FLOAT, VECTOR, ARRAY, STRUCT, POINTER = 20, 21, 22, 23, 28, 30, 32  # opcodes of the types
C_PACKED = 10  # the decoration
LETTERS = {  # of `Argument.layout`
    **{(INT, 1 << i): letter for i, letter in enumerate("bhiq")},
    **{(FLOAT, 2 << i): letter for i, letter in enumerate("efd")},
    (BOOL, 1): "b", (POINTER, 8): "P",
}  # fmt: skip


def refused(why, word=0):
    """Return the error of a module that is not whole."""
    log = f"SPIR-V, word {word} (byte {4 * word}): {why}"
    return ModuleBuildError(f"the module is not valid: {log}", None, log)


class Layouts:
    """The layouts of a module's types.

    Parameters
    ----------
    types : dict of int to (int, tuple)
        Opcode and operands of each type.
    values : dict of int to (int, tuple)
        Type and words of each constant.
    decorations : dict of (int, int) to list
        Operands of each decoration.
    """

    def __init__(self, types, values, decorations):
        self.types, self.values, self.decorations = types, values, decorations
        self.found = {}  # type -> (size, alignment)

    def of(self, kind, depth=0):
        """Return (size, alignment) of a type in bytes, as OpenCL C lays it out (OpenCL C specification, 6.1.5)."""
        if kind not in self.found:
            if depth > DEEPEST:
                raise refused(f"type {kind} contains itself, or {DEEPEST} types in each other")
            self.found[kind] = self._of(kind, depth)
            if self.found[kind][0] > MOST_BYTES:
                raise refused(f"type {kind} has {self.found[kind][0]} bytes, more than an argument may have")
        return self.found[kind]

    def _of(self, kind, depth):
        opcode, facts = self.types.get(kind, (0, ()))
        if opcode in (INT, FLOAT):
            return facts[0] // 8, facts[0] // 8
        if opcode == BOOL:
            return 1, 1
        if opcode == POINTER:
            return 8, 8
        if opcode == VECTOR:
            size = self.of(facts[0], depth + 1)[0] * (4 if facts[1] == 3 else facts[1])
            return size, size
        if opcode == ARRAY:
            size, alignment = self.of(facts[0], depth + 1)
            count = self.values.get(facts[1], (0, (0,)))[1][0]
            return size * count, alignment
        if opcode == STRUCT:
            return self._structure(kind, facts, depth)
        raise refused(f"type {kind} has no size that is known here")

    def letters(self, kind):
        """Return the `Argument.layout` of a type whose size is known."""
        opcode, facts = self.types[kind]
        size = self.of(kind)[0]
        if opcode == VECTOR:
            return (self.letters(facts[0]) * facts[1]).ljust(size, "x")
        if opcode == ARRAY:
            one = self.letters(facts[0])
            return one * (size // max(len(one), 1))
        if opcode != STRUCT:
            return LETTERS[opcode, size].ljust(size, ".")
        text = ""
        for member in facts:
            alignment = 1 if (kind, C_PACKED) in self.decorations else max(self.of(member)[1], 1)
            text = text.ljust(-(-len(text) // alignment) * alignment, "x") + self.letters(member)
        return text.ljust(size, "x")

    def _structure(self, kind, members, depth):
        packed = (kind, C_PACKED) in self.decorations
        size, widest = 0, 1
        for member in members:
            nbytes, alignment = self.of(member, depth + 1)
            alignment = 1 if packed else alignment
            size = -(-size // max(alignment, 1)) * max(alignment, 1) + nbytes
            widest = max(widest, alignment)
        return -(-size // widest) * widest, widest
