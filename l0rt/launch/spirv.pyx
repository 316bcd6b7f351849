# SPDX-License-Identifier: Apache-2.0
"""SPIR-V: is a module valid, and what does it say of its kernels?

The CPU driver's decoder reads it (cpu_driver/spirv), which is linked in here. No driver gets a module before: Intel's
drivers end the process on some that are not valid. Whether the CPU driver's engine could run it plays no part.
"""

from collections import namedtuple

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport strlen

from l0rt.errors import ModuleBuildError

__all__ = ["Argument", "Interface", "Specialization", "Spirv", "is_spirv"]

cdef extern from "spirv/decode/describe.h" nogil:
    ctypedef unsigned char c_bool "_Bool"       # Cython's bint is an int
    ctypedef enum spirv_type_kind:
        TYPE_BOOL
        TYPE_INT
        TYPE_FLOAT
        TYPE_POINTER
        TYPE_RAW
        TYPE_VECTOR
        TYPE_ARRAY
        TYPE_STRUCT
    ctypedef struct spirv_type:
        spirv_type_kind kind
        uint32_t id
        uint64_t count
        uint64_t size
        const spirv_type* element
        const spirv_type** members
        uint64_t* offsets
    ctypedef struct spirv_value:
        const spirv_type* type
    ctypedef struct spirv_id:
        uint32_t at
        unsigned short op
        uint8_t linkage
        bint has_spec_id
        int builtin
        uint32_t spec_id
        spirv_value* value
        const char* linkage_name
    ctypedef struct spirv_entry:
        uint32_t at
        const char* name
        uint32_t[3] group_size
        uint32_t subgroup_size
    ctypedef struct spirv_module:
        uint32_t* words
        uint32_t functions_at
        uint32_t bound
        spirv_id* ids
        spirv_entry* entries
        uint32_t entry_count
    ctypedef struct spirv_arena:
        uint32_t offset
        bint exhausted
        bint unsupported
        char* text
    ctypedef struct spirv_source:
        char* text
    ctypedef enum spirv_parameter_kind:
        SPIRV_PARAMETER_VALUE
        SPIRV_PARAMETER_POINTER
        SPIRV_PARAMETER_LOCAL
        SPIRV_PARAMETER_IMAGE
        SPIRV_PARAMETER_SAMPLER
        SPIRV_PARAMETER_PIPE
        SPIRV_PARAMETER_QUEUE
        SPIRV_PARAMETER_OTHER
    ctypedef struct spirv_parameter:
        const char* name
        const char* source
        const spirv_type* type
        spirv_parameter_kind kind
        uint32_t size
        uint32_t storage
        bint reads
        bint writes
    ctypedef struct spirv_description:
        spirv_arena arena
        spirv_module* module
        spirv_parameter** parameters
        spirv_source source
    uint32_t spirv_op(const spirv_module* module, uint32_t at)
    uint32_t spirv_length(const spirv_module* module, uint32_t at)
    uint32_t spirv_parameter_count(const spirv_module* module, const spirv_entry* entry)
    spirv_description* spirv_describe(const void* code, size_t size, c_bool trusted, c_bool* good)
    void spirv_description_free(spirv_description* description)
    enum:
        OpCapability
        OpFunction
        OpSpecConstantTrue
        OpSpecConstant
        LinkageImport

cdef enum:
    HEADER_WORDS = 5
    MOST_LETTERS = 1 << 24      # of the layouts of a module, which may be hostile; the others are empty

MAGIC = 0x07230203

cdef dict SPACES = {0: "constant", 4: "local", 5: "global", 8: "generic"}
cdef dict KINDS = {
    SPIRV_PARAMETER_VALUE: "value", SPIRV_PARAMETER_POINTER: "pointer", SPIRV_PARAMETER_LOCAL: "local",
    SPIRV_PARAMETER_IMAGE: "image", SPIRV_PARAMETER_SAMPLER: "sampler", SPIRV_PARAMETER_PIPE: "pipe",
    SPIRV_PARAMETER_QUEUE: "queue", SPIRV_PARAMETER_OTHER: "handle",
}
cdef dict NUMBERS = {TYPE_BOOL: "bool", TYPE_INT: "int", TYPE_FLOAT: "float"}
# Of `Argument.layout`. Floats of other encodings than IEEE 754's are bits, as integers are.
cdef dict LETTERS = {
    **{kind: {1: "b", 2: "h", 4: "i", 8: "q"} for kind in (TYPE_BOOL, TYPE_INT, TYPE_RAW)},
    TYPE_FLOAT: {2: "e", 4: "f", 8: "d"}, TYPE_POINTER: {8: "P"},
}
# Built-ins that parts of a launch have for themselves: NumWorkgroups, WorkgroupId, GlobalSize, EnqueuedWorkgroupSize,
# GlobalOffset, GlobalLinearId.
cdef tuple COUNTS = (24, 26, 31, 32, 33, 34)

Argument = namedtuple(
    "Argument", "name kind size address_space number reads writes layout source", defaults=("", ""),
    module=__name__,
)
Argument.__doc__ = """One argument of a kernel, as the module tells of it.

Parameters
----------
name : str
    Its name in the source; empty if the module does not tell.
kind : str
    ``pointer``, ``local`` (a size of local memory), ``value``, or what no launch can give: ``image``, ``sampler``,
    ``pipe``, ``queue`` or another ``handle``.
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
source : str
    Where an argument that no launch can give is declared, as in ``blur.cl:3``; empty if the module does not tell.
"""

Interface = namedtuple("Interface", "arguments required_group_size counts_items required_subgroup_size")
Interface.__doc__ = """What a module says of a kernel.

``counts_items``: it may ask how many groups or work-items there are, or which group it is in.
"""
Specialization = namedtuple("Specialization", "number size")


def is_spirv(code):
    """Return whether the first word is SPIR-V's, in either byte order."""
    check_bytes(code)
    return code[:4] in (MAGIC.to_bytes(4, "little"), MAGIC.to_bytes(4, "big"))


cdef int check_bytes(code) except -1:
    if not isinstance(code, bytes):
        raise TypeError(f"a module must be bytes, got {type(code).__name__}")
    return 0


cdef str text(const char* chars):
    return chars.decode("utf-8", "replace")


@cython.binding(False)
cdef class Spirv:
    """Spirv(code, trusted=False)
--

What a module says of itself.

Parameters
----------
code : bytes
    The module.
trusted : bool, optional
    Whether instructions and capabilities that the public grammar of SPIR-V does not have are passed over.

Raises
------
ModuleBuildError
    The module is not valid, or not supported. ``log`` names the word, and the line of the source if the module has it.
"""
    cdef readonly dict kernels          # name -> Interface
    cdef readonly dict constants        # SpecId -> Specialization
    cdef readonly tuple capabilities    # their numbers
    cdef readonly tuple version         # major, minor
    cdef readonly tuple imports         # functions that the module declares and has no body of

    def __cinit__(self, code, bint trusted=False):
        cdef spirv_description* d
        cdef c_bool good = False
        cdef const char* words
        cdef size_t size
        check_bytes(code)
        words, size = code, len(code)
        with nogil:
            d = spirv_describe(words, size, trusted, &good)
        if d == NULL:
            raise MemoryError()
        try:
            if not good:
                raise refusal(d)
            Spirv_take(self, d)
        finally:
            spirv_description_free(d)


cdef object refusal(spirv_description* d):
    if d.arena.exhausted:
        return MemoryError()
    word = d.arena.offset // 4
    log = f"SPIR-V, word {word} (byte {4 * word}): {text(d.arena.text)}{text(d.source.text)}"
    return ModuleBuildError(f"the module is not {'supported' if d.arena.unsupported else 'valid'}: {log}", None, log)


cdef int Spirv_take(Spirv self, spirv_description* d) except -1:
    cdef spirv_module* module = d.module
    cdef spirv_entry* entry
    cdef spirv_id* one
    cdef uint32_t at = HEADER_WORDS, i
    cdef dict layouts = {}          # of types, by id
    version = module.words[1]
    self.version = version >> 16, version >> 8 & 0xFF
    self.kernels, self.constants = {}, {}
    capabilities, imports = [], []
    while at < module.functions_at and spirv_op(module, at) == OpCapability:    # they come first
        capabilities.append(module.words[at + 1])
        at += spirv_length(module, at)
    self.capabilities = tuple(capabilities)
    for i in range(1, module.bound):
        one = &module.ids[i]
        if one.has_spec_id and OpSpecConstantTrue <= one.op <= OpSpecConstant and one.value != NULL:
            self.constants[one.spec_id] = Specialization(NUMBERS.get(one.value.type.kind, "int"), one.value.type.size)
        if one.op == OpFunction and one.linkage == LinkageImport + 1:
            imports.append(text(one.linkage_name))
    self.imports = tuple(imports)
    counts = {i for i in range(module.bound) if module.ids[i].builtin - 1 in COUNTS}
    named = [counts.intersection(variables_of(module, &module.entries[i])) for i in range(module.entry_count)]
    unnamed = counts.difference(*named)     # a kernel must name what it uses, but not all compilers write that
    for i in range(module.entry_count):
        entry = &module.entries[i]
        arguments = [
            argument_of(&d.parameters[i][number], layouts) for number in range(spirv_parameter_count(module, entry))
        ]
        size = entry.group_size[0], entry.group_size[1], entry.group_size[2]
        self.kernels[text(entry.name)] = Interface(
            tuple(arguments), size if any(size) else None, bool(named[i] or unnamed), entry.subgroup_size or None)
    return 0


cdef list variables_of(const spirv_module* module, const spirv_entry* entry):
    """The variables that an entry point names: they stand behind its name."""
    cdef uint32_t at = entry.at + 4 + strlen(entry.name) // 4, end = entry.at + spirv_length(module, entry.at)
    return [module.words[at] for at in range(at, end)]


cdef object argument_of(const spirv_parameter* p, dict layouts):
    cdef bint is_value = p.kind == SPIRV_PARAMETER_VALUE
    cdef bint is_handle = p.kind >= SPIRV_PARAMETER_IMAGE
    space = "" if is_value or is_handle else SPACES.get(p.storage, "generic")
    number = NUMBERS.get(p.type.kind, "") if is_value else ""
    number = "" if number == "bool" else number
    layout = layout_of(p.type, layouts) if is_value and not number else ""
    return Argument(
        text(p.name), KINDS[p.kind], p.size, space, number, p.reads, p.writes, layout,
        text(p.source)[2:-1] if p.source != NULL else "")


cdef str layout_of(const spirv_type* type, dict layouts):
    """The layout of a type. Each type's is made once: structures share their members' types."""
    if type.id not in layouts:
        layouts[0] = layouts.get(0, 0) + type.size      # no id is 0: the sum
        layouts[type.id] = new_layout(type, layouts) if layouts[0] <= MOST_LETTERS else ""
    return layouts[type.id]


cdef str new_layout(const spirv_type* type, dict layouts):
    cdef uint64_t i
    cdef str out = ""
    if type.kind == TYPE_VECTOR:
        out = layout_of(type.element, layouts) * type.count
    elif type.kind == TYPE_ARRAY:
        out = layout_of(type.element, layouts) * (type.count if type.size != 0 else 0)
    elif type.kind == TYPE_STRUCT:
        parts = []
        for i in range(type.count):     # the padding before a member, and the member
            told = layout_of(type.members[i], layouts)
            parts.append(("" if i == 0 else "x" * (type.offsets[i] - end)) + told)
            end = type.offsets[i] + len(told)
        out = "".join(parts)
    else:
        return LETTERS.get(type.kind, {}).get(type.size, "x").ljust(type.size, ".")
    return out.ljust(type.size, "x")
