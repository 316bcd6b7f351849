# SPDX-License-Identifier: Apache-2.0
"""SPIR-V: is a module whole, and what does it say of its kernels?

No driver sees a module before `read` has found that its header and its instructions are in order: Intel's driver of
2022 ends the process on some that are not.
"""

import struct
from array import array
from collections import namedtuple

from l0rt.errors import ModuleBuildError

MAGIC = 0x07230203
HEADER_WORDS = 5
NEWEST = (1, 6)
MOST_IDS = 1 << 22  # the bound that every implementation has to take (SPIR-V specification, 2.17)

DEEPEST = 32  # types within types
MOST_BYTES = 1 << 16  # of an argument

# Opcodes, storage classes, decorations and execution modes: SPIR-V specification, section 3.
OP_NAME, OP_MEMORY_MODEL, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY = 5, 14, 15, 16, 17
OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR = 20, 21, 22, 23
OP_TYPE_IMAGE, OP_TYPE_SAMPLER, OP_TYPE_SAMPLED_IMAGE = 25, 26, 27
OP_TYPE_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER = 28, 30, 32
OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT = 43, 48, 49, 50
OP_FUNCTION, OP_PARAMETER, OP_FUNCTION_END = 54, 55, 56
OP_DECORATE = 71
SPACES = {0: "constant", 4: "local", 5: "global", 7: "private", 8: "generic"}
SPEC_ID, C_PACKED, NON_WRITABLE, NON_READABLE, FUNC_PARAM_ATTR = 1, 10, 24, 25, 38
BY_VALUE, NO_WRITE = 2, 6
KERNEL = 6  # the execution model
LOCAL_SIZE = 17

Argument = namedtuple("Argument", "name kind size address_space number reads writes")
Argument.__doc__ = """One argument of a kernel, as the module tells of it.

Parameters
----------
name : str
    Its name in the source; empty if the module does not tell.
kind : str
    ``pointer``, ``local`` (a size of local memory), ``value``, or ``image`` or ``sampler``, which are not supported.
size : int
    The bytes of a value; 8 for pointers; 0 for local memory.
address_space : str
    ``global``, ``constant``, ``local`` or ``generic`` for pointers, otherwise empty.
number : str
    What a value is: ``int``, ``float``, or empty for vectors, arrays and structures.
reads, writes : bool
    Whether the kernel may read or write what a pointer points to.
"""

Interface = namedtuple("Interface", "arguments required_group_size")
Specialization = namedtuple("Specialization", "number size")


def is_spirv(code):
    """Return whether the first word is SPIR-V's, in either byte order."""
    _check_bytes(code)
    return len(code) >= 4 and MAGIC in struct.unpack("<I", code[:4]) + struct.unpack(">I", code[:4])


def _refused(why, word=0):
    """Return the error of a module that is not whole."""
    log = f"SPIR-V, word {word} (byte {4 * word}): {why}"
    return ModuleBuildError(f"the module is not valid: {log}", None, log)


def _check_bytes(code):
    if not isinstance(code, bytes):
        raise TypeError(f"a module must be bytes, got {type(code).__name__}")


def _words_of(code):
    """Return the words of a module whose header is in order."""
    _check_bytes(code)
    if len(code) % 4 or len(code) < 4 * HEADER_WORDS:
        told = f"a module must have whole words, and at least {HEADER_WORDS}, got {len(code)} bytes"
        raise _refused(told, len(code) // 4)
    words = array("I")
    words.frombytes(code)
    if words[0] != MAGIC:
        words.byteswap()
    if words[0] != MAGIC:
        raise _refused(f"the first word must be {MAGIC:#x}, got {words[0]:#x}")
    version = words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF
    if words[1] & 0xFF0000FF or version[0] != 1 or version > NEWEST:
        raise _refused(f"the version must be 1.0 to {NEWEST[0]}.{NEWEST[1]}, got {words[1]:#x}", 1)
    if not 0 < words[3] <= MOST_IDS:
        raise _refused(f"the bound of the ids must be 1 to {MOST_IDS}, got {words[3]}", 3)
    if words[4] != 0:
        raise _refused(f"the reserved word must be 0, got {words[4]}", 4)
    return words


def _instructions(words):
    """Yield (opcode, first word, last word + 1); ModuleBuildError where one does not fit."""
    at, end = HEADER_WORDS, len(words)
    while at < end:
        length = words[at] >> 16
        if length == 0 or at + length > end:
            raise _refused(f"an instruction of {length} words where {end - at} are left", at)
        yield words[at] & 0xFFFF, at, at + length
        at += length


def _text(words, at, end):
    """Return a string, and the word behind it."""
    raw = words[at:end].tobytes()
    size = raw.find(b"\0")
    if size < 0:
        raise _refused("a string without an end", at)
    return raw[:size].decode("utf-8", "replace"), at + size // 4 + 1


# The least number of words of the instructions that are looked at.
LEAST = {
    OP_NAME: 3, OP_MEMORY_MODEL: 3, OP_ENTRY_POINT: 4, OP_EXECUTION_MODE: 3, OP_CAPABILITY: 2, OP_TYPE_BOOL: 2,
    OP_TYPE_INT: 4, OP_TYPE_FLOAT: 3, OP_TYPE_VECTOR: 4, OP_TYPE_IMAGE: 9, OP_TYPE_SAMPLER: 2,
    OP_TYPE_SAMPLED_IMAGE: 3, OP_TYPE_ARRAY: 4, OP_TYPE_STRUCT: 2, OP_TYPE_POINTER: 4, OP_CONSTANT: 4,
    OP_SPEC_TRUE: 3, OP_SPEC_FALSE: 3, OP_SPEC_CONSTANT: 4, OP_FUNCTION: 5, OP_PARAMETER: 3, OP_FUNCTION_END: 1,
    OP_DECORATE: 3,
}  # fmt: skip
# Which operand is the id that the instruction makes.
RESULT = {
    **dict.fromkeys((OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_IMAGE, OP_TYPE_SAMPLER,
                     OP_TYPE_SAMPLED_IMAGE, OP_TYPE_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER), 1),
    **dict.fromkeys((OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT, OP_FUNCTION, OP_PARAMETER), 2),
}  # fmt: skip
TYPES = range(OP_TYPE_BOOL, OP_TYPE_POINTER + 1)
CONSTANTS = (OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT)


class Spirv:
    """What a module says: ``kernels``, a dict of name to `Interface`, and ``constants``, of SpecId to type and size.

    Parameters
    ----------
    code : bytes
        The module.

    Raises
    ------
    ModuleBuildError
        The module is not whole. ``log`` names the word.
    """

    def __init__(self, code):
        self.words = _words_of(code)
        self.names, self.types, self.values = {}, {}, {}
        self.decorations = {}  # (id, decoration) -> its operands
        self.entries = dict[str, int]()  # a kernel's name -> its function
        self.modes = dict[int, tuple]()  # a function -> the group size that it requires
        self.functions = {}  # id -> [(parameter's id, its type)]
        self.layouts = {}  # type -> (size, alignment)
        self._read()
        self.constants = self._constants()
        self.kernels = {name: self._interface(function) for name, function in self.entries.items()}

    def _read(self):
        words, inside, seen = self.words, None, set()
        bound = words[3]
        for opcode, at, end in _instructions(words):
            if end - at < LEAST.get(opcode, 1):
                raise _refused(f"instruction {opcode} has {end - at} words, at least {LEAST[opcode]} are needed", at)
            seen.add(opcode)
            made = words[at + RESULT[opcode]] if opcode in RESULT else 1
            if not 0 < made < bound:
                raise _refused(f"id {made} is not below the bound {bound}", at)
            if opcode in TYPES:
                self.types[made] = (opcode, tuple(words[at + 2 : end]))
            elif opcode in CONSTANTS:
                self.values[made] = (words[at + 1], tuple(words[at + 3 : end]))
            elif opcode == OP_FUNCTION:
                if inside is not None:
                    raise _refused("a function inside a function", at)
                inside = self.functions[made] = []
            elif opcode == OP_PARAMETER and inside is not None:
                inside.append((made, words[at + 1]))
            elif opcode == OP_FUNCTION_END:
                if inside is None:
                    raise _refused("the end of a function that did not begin", at)
                inside = None
            else:
                self._read_annotation(opcode, at, end)
        if inside is not None:
            raise _refused("a function without an end", len(words))
        if OP_CAPABILITY not in seen or OP_MEMORY_MODEL not in seen:
            raise _refused("the module declares no capability or no memory model", HEADER_WORDS)
        for name, function in self.entries.items():
            if function not in self.functions:
                raise _refused(f"kernel {name} has no function", HEADER_WORDS)

    def _read_annotation(self, opcode, at, end):
        words = self.words
        if opcode == OP_NAME:
            self.names[words[at + 1]] = _text(words, at + 2, end)[0]
        elif opcode == OP_ENTRY_POINT:
            name, _ = _text(words, at + 3, end)
            if words[at + 1] == KERNEL:
                self.entries[name] = words[at + 2]
        elif opcode == OP_EXECUTION_MODE and words[at + 2] == LOCAL_SIZE and end - at >= 6:
            self.modes[words[at + 1]] = tuple(words[at + 3 : at + 6])
        elif opcode == OP_DECORATE:
            self.decorations.setdefault((words[at + 1], words[at + 2]), []).append(tuple(words[at + 3 : end]))

    def _constants(self):
        """Return the specialisation constants; several may have one SpecId, and then are of one type."""
        found = {}
        for (made, decoration), operands in self.decorations.items():
            if decoration == SPEC_ID and made in self.values and operands[0]:
                opcode, facts = self.types.get(self.values[made][0], (OP_TYPE_BOOL, ()))
                number = {OP_TYPE_BOOL: "bool", OP_TYPE_FLOAT: "float"}.get(opcode, "int")
                found[operands[0][0]] = Specialization(number, facts[0] // 8 if facts else 1)
        return found

    def _interface(self, function):
        arguments = tuple(self._argument(made, kind) for made, kind in self.functions[function])
        return Interface(arguments, self.modes.get(function))

    def _argument(self, made, kind):
        name = self.names.get(made, "")
        opcode, facts = self.types.get(kind, (0, ()))
        if opcode == OP_TYPE_POINTER:
            return self._pointer(made, name, SPACES.get(facts[0], "generic"), facts[1])
        if opcode in (OP_TYPE_IMAGE, OP_TYPE_SAMPLED_IMAGE, OP_TYPE_SAMPLER):
            return Argument(name, "sampler" if opcode == OP_TYPE_SAMPLER else "image", 8, "", "", True, True)
        number = {OP_TYPE_INT: "int", OP_TYPE_FLOAT: "float"}.get(opcode, "")
        return Argument(name, "value", self._layout(kind)[0], "", number, True, False)

    def _pointer(self, made, name, space, target):
        if space == "private":  # a structure that is passed by value
            return Argument(name, "value", self._layout(target)[0], "", "", True, False)
        if space == "local":
            return Argument(name, "local", 0, space, "", True, True)
        attributes = {operand[0] for operand in self.decorations.get((made, FUNC_PARAM_ATTR), ()) if operand}
        reads = (made, NON_READABLE) not in self.decorations
        writes = space != "constant" and NO_WRITE not in attributes and (made, NON_WRITABLE) not in self.decorations
        return Argument(name, "pointer", 8, space, "", reads, writes)

    def _layout(self, kind, depth=0):
        """Return (size, alignment) of a type in bytes, as OpenCL C lays it out (OpenCL C specification, 6.1.5)."""
        if kind not in self.layouts:
            if depth > DEEPEST:
                raise _refused(f"type {kind} contains itself, or {DEEPEST} types in each other")
            self.layouts[kind] = self._layout_of(kind, depth)
            if self.layouts[kind][0] > MOST_BYTES:
                raise _refused(f"type {kind} has {self.layouts[kind][0]} bytes, more than an argument may have")
        return self.layouts[kind]

    def _layout_of(self, kind, depth):
        opcode, facts = self.types.get(kind, (0, ()))
        if opcode in (OP_TYPE_INT, OP_TYPE_FLOAT):
            return facts[0] // 8, facts[0] // 8
        if opcode == OP_TYPE_BOOL:
            return 1, 1
        if opcode == OP_TYPE_POINTER:
            return 8, 8
        if opcode == OP_TYPE_VECTOR:
            size = self._layout(facts[0], depth + 1)[0] * (4 if facts[1] == 3 else facts[1])
            return size, size
        if opcode == OP_TYPE_ARRAY:
            size, alignment = self._layout(facts[0], depth + 1)
            count = self.values.get(facts[1], (0, (0,)))[1][0]
            return size * count, alignment
        if opcode == OP_TYPE_STRUCT:
            return self._structure(kind, facts, depth)
        raise _refused(f"type {kind} has no size that is known here")

    def _structure(self, kind, members, depth):
        packed = (kind, C_PACKED) in self.decorations
        size, widest = 0, 1
        for member in members:
            nbytes, alignment = self._layout(member, depth + 1)
            alignment = 1 if packed else alignment
            size = -(-size // max(alignment, 1)) * max(alignment, 1) + nbytes
            widest = max(widest, alignment)
        return -(-size // widest) * widest, widest
