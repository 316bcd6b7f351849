# SPDX-License-Identifier: Apache-2.0
"""SPIR-V: is a module whole, and what does it say of its kernels?

No driver sees a module before `read` has found that its header and its instructions are in order: Intel's driver of
2022 ends the process on some that are not.
"""

import struct
from array import array
from collections import namedtuple

from l0rt.kernels.grammar import GRAMMAR, TERMINATORS, VENDORS
from l0rt.kernels.layouts import Layouts, refused

MAGIC = 0x07230203
HEADER_WORDS = 5
NEWEST = (1, 6)
MOST_IDS = 1 << 22  # the bound that every implementation has to take (SPIR-V specification, 2.17)

OPENCL_MEMORY, OPENCL = 2, "OpenCL.std"
IMPORTS = (OPENCL, "OpenCL.DebugInfo.100", "DebugInfo", "SPIRV.debug")
ARGUMENT_STRINGS = ("kernel_arg_type", "kernel_arg_type_qual")

# Opcodes, storage classes, decorations and execution modes: SPIR-V specification, section 3.
OP_NAME, OP_MEMORY_MODEL, OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY = 5, 14, 15, 16, 17
OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR = 20, 21, 22, 23
OP_TYPE_IMAGE, OP_TYPE_SAMPLER, OP_TYPE_SAMPLED_IMAGE = 25, 26, 27
OP_TYPE_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER = 28, 30, 32
OP_TYPE_VOID, OP_TYPE_FUNCTION, OP_TYPE_FORWARD = 19, 33, 39
OP_TRUE, OP_FALSE, OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT, OP_SPEC_OPERATION = (
    41, 42, 43, 48, 49, 50, 52)  # fmt: skip
OP_STRING, OP_IMPORT, OP_EXTENDED, OP_LOAD, OP_PHI, OP_LABEL, OP_SWITCH, OP_DECORATE_STRING = (
    7, 11, 12, 61, 245, 248, 251, 5632)  # fmt: skip
OP_FUNCTION, OP_PARAMETER, OP_FUNCTION_END = 54, 55, 56
OP_DECORATE = 71
SPACES = {0: "constant", 4: "local", 5: "global", 7: "private", 8: "generic"}
SPEC_ID, NON_WRITABLE, NON_READABLE, FUNC_PARAM_ATTR = 1, 24, 25, 38
BUILT_IN, LINKAGE = 11, 41
OF_THREE = (*range(24, 29), 31, 32, 33)  # built-ins along x, y and z
BUILT_INS = frozenset((*OF_THREE, 29, 30, 34, *range(36, 42)))
# Built-ins that parts of a launch have for themselves: NumWorkgroups, WorkgroupId, GlobalSize, EnqueuedWorkgroupSize,
# GlobalOffset, GlobalLinearId.
COUNTS = (24, 26, 31, 32, 33, 34)
BY_VALUE, NO_WRITE = 2, 6
KERNEL = 6  # the execution model
LOCAL_SIZE = 17

Argument = namedtuple("Argument", "name kind size address_space number reads writes layout", defaults=("",))
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
layout : str
    What each byte of a vector, an array or a structure is: the letter of a number begins it (``b``, ``h``, ``i``,
    ``q``: an int of 1, 2, 4, 8 bytes; ``e``, ``f``, ``d``: a float of 2, 4, 8; ``P``: a pointer), ``.`` continues it,
    and ``x`` is padding. Empty for other arguments.
"""

Interface = namedtuple("Interface", "arguments required_group_size counts_items")
Interface.__doc__ = """What a module says of a kernel.

``counts_items``: it may ask how many groups or work-items there are, or which group it is in.
"""
Specialization = namedtuple("Specialization", "number size")


def is_spirv(code):
    """Return whether the first word is SPIR-V's, in either byte order."""
    _check_bytes(code)
    return len(code) >= 4 and MAGIC in struct.unpack("<I", code[:4]) + struct.unpack(">I", code[:4])


def _check_bytes(code):
    if not isinstance(code, bytes):
        raise TypeError(f"a module must be bytes, got {type(code).__name__}")


def _words_of(code):
    """Return the words of a module whose header is in order."""
    _check_bytes(code)
    if len(code) % 4 or len(code) < 4 * HEADER_WORDS:
        told = f"a module must have whole words, and at least {HEADER_WORDS}, got {len(code)} bytes"
        raise refused(told, len(code) // 4)
    words = array("I")
    words.frombytes(code)
    if words[0] != MAGIC:
        words.byteswap()
    if words[0] != MAGIC:
        raise refused(f"the first word must be {MAGIC:#x}, got {words[0]:#x}")
    version = words[1] >> 16 & 0xFF, words[1] >> 8 & 0xFF
    if words[1] & 0xFF0000FF or version[0] != 1 or version > NEWEST:
        raise refused(f"the version must be 1.0 to {NEWEST[0]}.{NEWEST[1]}, got {words[1]:#x}", 1)
    if not 0 < words[3] <= MOST_IDS:
        raise refused(f"the bound of the ids must be 1 to {MOST_IDS}, got {words[3]}", 3)
    if words[4] != 0:
        raise refused(f"the reserved word must be 0, got {words[4]}", 4)
    return words


TYPES = frozenset((*range(OP_TYPE_VOID, OP_TYPE_FORWARD), 322, 327))
CONSTANTS = (OP_CONSTANT, OP_SPEC_TRUE, OP_SPEC_FALSE, OP_SPEC_CONSTANT)
WIDTHS = {OP_TYPE_INT: (8, 16, 32, 64), OP_TYPE_FLOAT: (16, 32, 64)}
COMPONENTS = (1, 2, 3, 4, 8, 16)  # the specification has no vector of one, and libocloc makes some
STORAGE_CLASSES = frozenset((*range(13), 5936, 5937))
# Instructions of a module's own; all others from OP_LOAD on are a function's.
OUTSIDE = frozenset((*range(71, 76), 317, 322, 323, 327, 330, 331, 332, 5632, 5911, 5912, 5913))
LAST_OF_OPENCL = 204  # of the extended instructions
NUMBER_LAST = frozenset((171, 174, 176, 178, 179, 181))  # their last operand is a number: vloadn, roundings of halves


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
        self.bytes = self.words.tobytes()
        self.names = {}
        self.types, self.values = dict[int | None, tuple](), dict[int, tuple]()
        self.decorations = dict[tuple, list]()  # (id, decoration) -> its operands
        self.entries = dict[str, int]()  # a kernel's name -> its function
        self.built_ins = dict[str, tuple]()  # a kernel's name -> the variables that it names, built-ins among them
        self.modes = dict[int, tuple]()  # a function -> the group size that it requires
        self.modes_of = set()  # functions that have any mode
        self.functions = {}  # id -> [(parameter's id, its type)]
        self.layouts = Layouts(self.types, self.values, self.decorations)
        self.imports = {}  # id -> the name of a set of extended instructions
        self.qualifiers = {}  # a kernel's name -> the qualifiers of its arguments, if the compiler tells them
        self.value_types = dict[int, int]()  # a value -> its type
        self.told = []  # (a kernel's name, what the compiler's strings tell of its arguments)
        self.forward = set()  # types that will be pointers
        self.globals = set[int]()  # values outside of functions
        self.visible = self.globals  # values that the next instruction may take
        self.wanted_functions, self.wanted = set(), set()  # ids that are needed, and perhaps made later
        # Of the function: what begins a block; blocks that are branched to, that values come from; those values.
        self.labels, self.wanted_labels, self.phi_labels, self.wanted_values = [], set(), set(), set()
        self.returns, self.calls = 0, []  # what it returns; where functions are called
        self.inside, self.awaited, self.in_block = None, [], False  # a function's parameters, those that are to come
        self._read()
        self.constants = self._constants()
        self.kernels = {name: self._interface(name, function) for name, function in self.entries.items()}

    def _read(self):
        words, bound, made_ids, seen = self.words, self.words[3], set(), set()
        value_types = self.value_types
        is_loose = False  # what extensions declare is not known
        end = HEADER_WORDS
        while end < len(words):
            at, opcode = end, words[end] & 0xFFFF
            end += words[at] >> 16
            if end == at or end > len(words):
                raise refused(f"an instruction of {end - at} words where {len(words) - at} are left", at)
            row = GRAMMAR.get(opcode)
            if row is None:
                if opcode < VENDORS:
                    raise refused(f"there is no instruction {opcode}", at)
                is_loose = True
                continue
            least, most, typed, result, values, others = row
            if end - at < least or most and end - at != most:
                told = f"at least {least} are" if most == 0 or end - at < least else f"{most} are"
                raise refused(f"instruction {opcode} has {end - at} words, {told} needed", at)
            if opcode == OP_NAME:  # a third of a module
                self._name(at, end)
                continue
            if typed and words[at + 1] not in self.types and not is_loose:
                raise refused(f"id {words[at + 1]} is no type that was declared before", at)
            if result:
                made = words[at + result]
                if not 0 < made < bound:
                    raise refused(f"id {made} is not below the bound {bound}", at)
                if made in made_ids:
                    raise refused(f"id {made} is made twice", at)
                made_ids.add(made)
            if values and not is_loose:
                self._need(at, words[at + values[0] : at + values[1] if values[1] else end])
            alike = ALIKE.get(opcode)
            if alike is not None and not is_loose:
                alike(self, at, end)
            if typed:
                value_types[made] = words[at + 1]
                if opcode != OP_FUNCTION:
                    self.visible.add(made)
            for letter, first, last in others:
                self._look(letter, at, at + first, at + last if last else end, end, is_loose)
            if opcode >= OP_LOAD and opcode not in OUTSIDE and not self.in_block and opcode != OP_LABEL:
                raise refused(f"instruction {opcode} outside of a block", at)
            seen.add(opcode)
            special = SPECIAL.get(opcode)
            if special is not None:
                special(self, at, end)
        if self.inside is not None:
            raise refused("a function without an end", len(words))
        if OP_CAPABILITY not in seen or OP_MEMORY_MODEL not in seen:
            raise refused("the module declares no capability or no memory model", HEADER_WORDS)
        if not is_loose:
            self._check_wanted(made_ids)
            self._check_strings()
            self._check_calls()
            self._check_decorations()

    def _check_wanted(self, made_ids):
        """Refuse ids that nothing makes, or something of another kind."""
        for what, lost in (
            ("function", self.wanted_functions.difference(self.functions)),
            ("id", self.wanted.difference(made_ids)),
        ):
            if lost:
                raise refused(f"there is no {what} {min(lost)}", HEADER_WORDS)

    def _check_strings(self):
        """Intel's driver of 2022 takes for granted that they have something for each argument."""
        for name, told in self.told:
            function = self.entries.get(name)
            if function is None or len(told) - 1 != len(self.functions.get(function, ())) or told[-1]:
                raise refused(f"a string tells other arguments than those of {name}", HEADER_WORDS)

    def _check_decorations(self):
        for function in self.modes_of:
            if function not in self.entries.values():
                raise refused(f"an execution mode of {function}, which is no entry point", HEADER_WORDS)
        for (made, decoration), operands in self.decorations.items():
            if decoration == BUILT_IN and made in self.value_types and operands[0]:
                pointed = self.types.get((*self._kind(made)[1], 0, 0)[1], (0, ()))
                wanted = OP_TYPE_VECTOR if operands[0][0] in OF_THREE else OP_TYPE_INT
                if operands[0][0] in BUILT_INS and pointed[0] != wanted:
                    raise refused(f"value {made} is of another type than built-in {operands[0][0]}", HEADER_WORDS)

    def _look(self, letter, at, first, last, end, is_loose):
        """Look at an operand, or at those up to the last, other than values."""
        words = self.words
        if letter == "t":
            for kind in words[first:last]:
                if kind not in self.types and kind not in self.forward and not is_loose:
                    raise refused(f"id {kind} is no type that was declared before", at)
        elif letter == "l":
            self.wanted_labels.update(words[first:last])
        elif letter == "f":
            self.wanted_functions.update(words[first:last])
        elif letter == "s":
            self._behind(first, end, words[at] & 0xFFFF not in (OP_ENTRY_POINT, OP_DECORATE_STRING))
        elif words[at] & 0xFFFF != OP_ENTRY_POINT:
            self.wanted.update(words[first:last])

    def _behind(self, at, end, is_last=False):
        """Return the word behind a string."""
        last = self.bytes.find(b"\0", 4 * at, 4 * end)
        if last < 0 or (is_last and last // 4 + 1 != end):
            raise refused(f"a string {'without an end' if last < 0 else 'that ends before its instruction'}", at)
        return last // 4 + 1

    def _text(self, at, end):
        """Return a string, and the word behind it."""
        behind = self._behind(at, end)
        return self.bytes[4 * at : 4 * behind].split(b"\0", 1)[0].decode("utf-8", "replace"), behind

    def _name(self, at, end):
        self._behind(at + 2, end, is_last=True)
        self.wanted.add(self.words[at + 1])
        self.names[self.words[at + 1]] = at + 2, end  # few are asked for

    def _string(self, at, end):
        """What libocloc tells of qualifiers: kernel_arg_type_qual.NAME.const,,volatile const,"""
        text = self._text(at + 2, end)[0]
        what, _, rest = text.partition(".")
        if what in ARGUMENT_STRINGS:
            kernel, _, told = rest.partition(".")
            self.told.append((kernel, told.split(",")))
            if what == "kernel_arg_type_qual":
                self.qualifiers[kernel] = told.split(",")

    def _entry(self, at, end):
        words = self.words
        name, behind = self._text(at + 3, end)
        self.wanted.update(words[behind:end])
        if words[at + 1] == KERNEL:
            self.entries[name], self.built_ins[name] = words[at + 2], tuple(words[behind:end])

    def _mode(self, at, end):
        words = self.words
        self.modes_of.add(words[at + 1])
        if words[at + 2] == LOCAL_SIZE and end - at >= 6:
            self.modes[words[at + 1]] = tuple(words[at + 3 : at + 6])

    def _decorate(self, at, end):
        words = self.words
        if words[at + 2] == LINKAGE and (self._text(at + 3, end)[1] != end - 1 or words[end - 1] > 2):
            raise refused("a linkage without a name or a type", at)
        self.decorations.setdefault((words[at + 1], words[at + 2]), []).append(tuple(words[at + 3 : end]))

    def _type(self, at, end):
        words = self.words
        opcode, made, operands = words[at] & 0xFFFF, words[at + 1], tuple(words[at + 2 : end])
        if opcode in WIDTHS and operands[0] not in WIDTHS[opcode]:
            raise refused(f"a number of {operands[0]} bits", at)
        if opcode == OP_TYPE_VECTOR:
            component = self.types.get(operands[0], (0,))[0]
            if operands[1] not in COMPONENTS or component not in (OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT):
                raise refused(f"a vector of {operands[1]} components of type {operands[0]}", at)
        if opcode == OP_TYPE_POINTER and operands[0] not in STORAGE_CLASSES:
            raise refused(f"there is no storage class {operands[0]}", at)
        if opcode == OP_TYPE_ARRAY and operands[1] not in self.value_types:
            raise refused(f"the length of an array must be a constant, got id {operands[1]}", at)
        self.types[made] = (opcode, operands)

    def _forward(self, at, end):
        self.forward.add(self.words[at + 1])

    def _import(self, at, end):
        name = self._text(at + 2, end)[0]
        if name not in IMPORTS and not name.startswith("NonSemantic."):
            raise refused(f"there are no extended instructions {name!r}", at)
        self.imports[self.words[at + 1]] = name

    def _extended(self, at, end):
        words = self.words
        name = self.imports.get(words[at + 3])
        if name is None:
            raise refused(f"id {words[at + 3]} is no set of extended instructions", at)
        if name == OPENCL:
            if words[at + 4] > LAST_OF_OPENCL:
                raise refused(f"there is no extended instruction {words[at + 4]}", at)
            self._need(at, words[at + 5 : end - 1 if words[at + 4] in NUMBER_LAST else end])

    def _constant(self, at, end):
        words = self.words
        opcode, facts = self.types.get(words[at + 1], (0, ()))
        if words[at] & 0xFFFF in (OP_CONSTANT, OP_SPEC_CONSTANT) and (
            opcode not in WIDTHS or end - at != (5 if facts[0] == 64 else 4)
        ):
            raise refused(f"a constant of type {words[at + 1]} in {end - at - 3} words", at)
        if words[at] & 0xFFFF in (48, 49, 41, 42) and opcode != OP_TYPE_BOOL:
            raise refused(f"a bool of type {words[at + 1]}", at)
        self.values[words[at + 2]] = (words[at + 1], tuple(words[at + 3 : end]))

    def _need(self, at, ids):
        if not self.visible.issuperset(ids):
            raise refused(f"there is no value {min(set(ids) - self.visible)} here", at)

    def _constant_operation(self, at, end):
        words = self.words
        row = GRAMMAR.get(words[at + 3])
        if row is None or not row.result or not row.values or words[at + 3] < OP_LOAD:
            raise refused(f"a constant of instruction {words[at + 3]}", at)
        first, last = row.values
        self._need(at, words[at + first + 1 : at + last + 1 if last else end])

    def _function(self, at, end):
        words = self.words
        if self.inside is not None:
            raise refused("a function inside a function", at)
        opcode, facts = self.types.get(words[at + 4], (0, ()))
        if opcode != OP_TYPE_FUNCTION or facts[0] != words[at + 1]:
            raise refused(f"type {words[at + 4]} is no type of a function that returns type {words[at + 1]}", at)
        self.inside = self.functions[words[at + 2]] = []
        self.awaited, self.returns = list(facts[1:]), facts[0]
        self.visible = set(self.globals)
        self.labels, self.wanted_labels, self.phi_labels, self.wanted_values = [], set(), set(), set()

    def _parameter(self, at, end):
        words = self.words
        if self.inside is None or not self.awaited or self.awaited.pop(0) != words[at + 1]:
            raise refused(f"a parameter of type {words[at + 1]}, which the type of the function does not have", at)
        self.inside.append((words[at + 2], words[at + 1]))

    def _function_end(self, at, end):
        if self.inside is None:
            raise refused("the end of a function that did not begin", at)
        if self.in_block or self.awaited:
            raise refused("a function that ends before its parameters or its last block", at)
        for what, lost in (
            ("block", self.wanted_labels.difference(self.labels[1:])),
            ("block", self.phi_labels.difference(self.labels)),
            ("value", self.wanted_values - self.visible),
        ):
            if lost:
                raise refused(f"there is no {what} {min(lost)} in the function", at)
        self.inside, self.visible = None, self.globals

    def _label(self, at, end):
        if self.inside is None or self.in_block or self.awaited:
            raise refused("a block outside of a function, or inside another one", at)
        self.in_block = True
        self.labels.append(self.words[at + 1])

    def _block_end(self, at, end):
        self.in_block = False

    def _memory_model(self, at, end):
        if self.words[at + 1] not in (1, 2) or self.words[at + 2] != OPENCL_MEMORY:
            raise refused("the memory must be OpenCL's, with physical addresses", at)

    def _kind(self, value):
        """Return the opcode of a value's type, and its operands."""
        return self.types.get(self.value_types.get(value), (0, ()))

    def _same(self, at, end):
        """All operands have the type of the result."""
        words, kinds = self.words, self.value_types
        for value in words[at + 3 : end]:
            if kinds[value] != words[at + 1]:
                raise refused(f"value {value} is of type {kinds[value]}, not {words[at + 1]}", at)

    def _equal(self, at, end):
        """Both operands have one type."""
        words, kinds = self.words, self.value_types
        if kinds[words[at + 3]] != kinds[words[at + 4]]:
            raise refused(f"values {words[at + 3]} and {words[at + 4]} are of different types", at)

    def _select(self, at, end):
        words, kinds = self.words, self.value_types
        if kinds[words[at + 4]] != words[at + 1] or kinds[words[at + 5]] != words[at + 1]:
            raise refused(f"a choice between other types than {words[at + 1]}", at)

    def _load(self, at, end):
        words = self.words
        opcode, facts = self._kind(words[at + 3])
        if opcode != OP_TYPE_POINTER or facts[1] != words[at + 1]:
            raise refused(f"value {words[at + 3]} is no pointer to type {words[at + 1]}", at)

    def _store(self, at, end):
        words = self.words
        opcode, facts = self._kind(words[at + 1])
        if opcode != OP_TYPE_POINTER or facts[1] != self.value_types[words[at + 2]]:
            raise refused(f"value {words[at + 1]} is no pointer to what is stored", at)

    def _chain(self, at, end):
        """The indices lead from the base to what the result points to."""
        words = self.words
        kind, facts = self._kind(words[at + 3])
        made, made_facts = self.types.get(words[at + 1], (0, (0,)))
        if kind != OP_TYPE_POINTER or made != OP_TYPE_POINTER or facts[0] != made_facts[0]:
            raise refused(f"value {words[at + 3]} is no pointer, or the result is none", at)
        target = facts[1]
        for number, value in enumerate(words[at + 4 : end]):
            if self._kind(value)[0] != OP_TYPE_INT:
                raise refused(f"index {value} is no int", at)
            if number or words[at] & 0xFFFF in (65, 66):  # the first of the others is one of an array's
                target = self._member(target, value, at)
        if target != made_facts[1]:
            raise refused(f"the indices lead to type {target}, not {made_facts[1]}", at)

    def _member(self, kind, index, at):
        """Return the type of a part of a type."""
        opcode, facts = self.types.get(kind, (0, ()))
        if opcode in (OP_TYPE_VECTOR, OP_TYPE_ARRAY):
            return facts[0]
        number = self.values.get(index, (0, ()))[1]
        if opcode != OP_TYPE_STRUCT or not number or number[0] >= len(facts):
            raise refused(f"type {kind} has no part of index {index}", at)
        return facts[number[0]]

    def _choose(self, at, end):
        if self._kind(self.words[at + 1])[0] != OP_TYPE_BOOL:
            raise refused(f"value {self.words[at + 1]} is no bool", at)

    def _return(self, at, end):
        if self.value_types[self.words[at + 1]] != self.returns:
            raise refused(f"value {self.words[at + 1]} is not what the function returns", at)

    def _call(self, at, end):
        self.calls.append((at, end))

    def _check_calls(self):
        words = self.words
        for at, end in self.calls:
            wanted = [kind for _, kind in self.functions.get(words[at + 3], ())]
            if [self.value_types[value] for value in words[at + 4 : end]] != wanted:
                raise refused(f"function {words[at + 3]} takes other arguments", at)
            if self.value_types[words[at + 3]] != words[at + 1]:
                raise refused(f"function {words[at + 3]} returns another type", at)

    def _phi(self, at, end):
        if (end - at) % 2 == 0:
            raise refused("a value without the block that it is from", at)
        self.wanted_values.update(self.words[at + 3 : end : 2])
        self.phi_labels.update(self.words[at + 4 : end : 2])

    def _switch(self, at, end):
        kind = self.types.get(self.value_types.get(self.words[at + 1]), (0, ()))
        step = 3 if kind[0] == OP_TYPE_INT and kind[1][0] == 64 else 2
        if (end - at - 3) % step:
            raise refused("a case without its block", at)
        self.wanted_labels.update(self.words[at + 2 + step : end : step])
        self.in_block = False

    def _constants(self):
        """Return the specialisation constants; several may have one SpecId, and then are of one type."""
        found = {}
        for (made, decoration), operands in self.decorations.items():
            if decoration == SPEC_ID and made in self.values and operands[0]:
                opcode, facts = self.types.get(self.values[made][0], (OP_TYPE_BOOL, ()))
                number = {OP_TYPE_BOOL: "bool", OP_TYPE_FLOAT: "float"}.get(opcode, "int")
                found[operands[0][0]] = Specialization(number, facts[0] // 8 if facts else 1)
        return found

    def _interface(self, name, function):
        qualifiers = [*self.qualifiers.get(name, ()), *[""] * len(self.functions[function])]
        arguments = tuple(
            self._argument(made, kind, "const" in told.split())
            for (made, kind), told in zip(self.functions[function], qualifiers, strict=False)
        )
        return Interface(arguments, self.modes.get(function), self._counts_items(name))

    def _counts_items(self, name):
        """Whether the kernel names one of these built-ins, or no kernel of the module does, which must."""
        counts = {
            made
            for (made, decoration), operands in self.decorations.items()
            if decoration == BUILT_IN and operands[0] and operands[0][0] in COUNTS
        }
        named = set().union(*self.built_ins.values())
        return bool(counts.intersection(self.built_ins[name]) or counts - named)

    def _argument(self, made, kind, is_const):
        name = self._text(*self.names[made])[0] if made in self.names else ""
        opcode, facts = self.types.get(kind, (0, ()))
        if opcode == OP_TYPE_POINTER:
            return self._pointer(made, name, SPACES.get(facts[0], "generic"), facts[1], is_const)
        if opcode in (OP_TYPE_IMAGE, OP_TYPE_SAMPLED_IMAGE, OP_TYPE_SAMPLER):
            return Argument(name, "sampler" if opcode == OP_TYPE_SAMPLER else "image", 8, "", "", True, True)
        return self._value(name, kind, {OP_TYPE_INT: "int", OP_TYPE_FLOAT: "float"}.get(opcode, ""))

    def _value(self, name, kind, number):
        size = self.layouts.of(kind)[0]
        return Argument(name, "value", size, "", number, True, False, "" if number else self.layouts.letters(kind))

    def _pointer(self, made, name, space, target, is_const):
        if space == "private":  # a structure that is passed by value
            return self._value(name, target, "")
        if space == "local":
            return Argument(name, "local", 0, space, "", True, True)
        attributes = {operand[0] for operand in self.decorations.get((made, FUNC_PARAM_ATTR), ()) if operand}
        reads = (made, NON_READABLE) not in self.decorations
        writes = not (
            is_const or space == "constant" or NO_WRITE in attributes or (made, NON_WRITABLE) in self.decorations
        )
        return Argument(name, "pointer", 8, space, "", reads, writes)


# What is known of the types of operands.
ALIKE = {
    **dict.fromkeys((126, 127, *range(128, 142), *range(164, 169), *range(197, 201)), Spirv._same),
    **dict.fromkeys((*range(161, 164), *range(170, 192), 401, 402), Spirv._equal),
    **dict.fromkeys((65, 66, 67, 70), Spirv._chain),
    57: Spirv._call, OP_LOAD: Spirv._load, 62: Spirv._store, 169: Spirv._select, 250: Spirv._choose, 254: Spirv._return,
}  # fmt: skip
SPECIAL = {
    OP_MEMORY_MODEL: Spirv._memory_model,
    OP_STRING: Spirv._string, OP_ENTRY_POINT: Spirv._entry, OP_EXECUTION_MODE: Spirv._mode,
    OP_IMPORT: Spirv._import, OP_EXTENDED: Spirv._extended, OP_DECORATE: Spirv._decorate,
    OP_TYPE_FORWARD: Spirv._forward, OP_SPEC_OPERATION: Spirv._constant_operation, OP_FUNCTION: Spirv._function,
    OP_PARAMETER: Spirv._parameter, OP_FUNCTION_END: Spirv._function_end, OP_LABEL: Spirv._label, OP_PHI: Spirv._phi,
    **dict.fromkeys(TYPES, Spirv._type), **dict.fromkeys((OP_TRUE, OP_FALSE, *CONSTANTS), Spirv._constant),
    **dict.fromkeys(TERMINATORS, Spirv._block_end), OP_SWITCH: Spirv._switch,
}  # fmt: skip
