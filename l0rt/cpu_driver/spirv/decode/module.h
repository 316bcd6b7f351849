/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: one decoded SPIR-V module: its ids, types, constants, variables and functions. */
#ifndef L0RT_CPU_SPIRV_MODULE_H
#define L0RT_CPU_SPIRV_MODULE_H

#include "spirv/decode/arena.h"
#include "spirv/decode/grammar.h"
#include "spirv/spirv.h"

/* What one lane of a register contains. */
typedef enum {
  LANE_BOOL, /* in a register 32 bits, 0 or ~0; in memory one byte */
  LANE_I8,
  LANE_I16,
  LANE_I32,
  LANE_I64, /* also pointers */
  LANE_F16, /* in a register a float, whose value a half can represent */
  LANE_F32,
  LANE_F64,
  LANE_KINDS,
} spirv_lane;

extern const uint8_t spirv_lane_size[LANE_KINDS];   /* in a register */
extern const uint8_t spirv_memory_size[LANE_KINDS]; /* in memory */

typedef enum {
  TYPE_VOID,
  TYPE_BOOL,
  TYPE_INT,
  TYPE_FLOAT,
  TYPE_POINTER,
  TYPE_EVENT, /* of an async copy, which is complete when its instruction is */
  TYPE_RAW, /* bits that the engine only moves: handles of images, pipes and queues, floats of other encodings */
  TYPE_VECTOR,
  TYPE_ARRAY,
  TYPE_STRUCT,
  TYPE_FUNCTION,
  TYPE_OPAQUE,
} spirv_type_kind;

typedef struct spirv_type spirv_type;
struct spirv_type {
  spirv_type_kind kind;
  uint32_t id;
  uint32_t width;             /* of numbers, in bits */
  uint32_t storage;           /* storage class of pointers */
  uint32_t nesting;           /* depth of composites; 0: a scalar */
  uint64_t count;             /* of elements, members or parameters */
  uint64_t components;        /* number of scalars in a value of this type */
  uint64_t size, align;       /* in memory */
  const spirv_type *element;  /* of vectors, arrays, pointers (once known); of functions: the result */
  const spirv_type **members; /* of structures; of functions: the parameters */
  uint64_t *offsets;          /* of members, in bytes */
  spirv_type *pointers, *next_pointer; /* the types of pointers to this one; of a pointer: the next of them */
};

/* The scalars of a constant: integers zero-extended, floats as bits, booleans as 0 or 1, pointers as addresses. */
typedef struct {
  const spirv_type *type;
  uint64_t *bits;
} spirv_value;

typedef struct {
  const spirv_type *type; /* of the variable, not of the pointer to it */
  uint32_t id, storage;
  uint64_t address; /* in the program's memory; Workgroup variables have an offset in each kernel instead */
  int32_t builtin;  /* -1: none */
  bool imported;
  bool unsupported; /* the engine has no such storage class, or cannot compute the initial value */
} spirv_variable;

typedef struct spirv_function spirv_function;

typedef struct spirv_block {
  spirv_function *function;
  uint32_t label, first, terminator; /* words: `first` comes after OpLabel, `terminator` is the last instruction */
  uint32_t *successors;              /* labels; OpSwitch has one for each target */
  uint32_t successor_count;
  struct spirv_block *dominator; /* the immediate dominator; NULL for the entry */
  uint32_t order;                /* number in reverse post-order, from 1; 0: unreachable */
  uint32_t in, out;              /* numbers of a walk over the dominator tree */
} spirv_block;

struct spirv_function {
  uint32_t id, at;
  const spirv_type *type;
  uint32_t *parameters;
  spirv_block *blocks; /* in the order of the module */
  uint32_t block_count;
  spirv_block **order; /* reachable blocks in reverse post-order */
  uint32_t order_count;
  bool irreducible;
};

typedef struct {
  uint32_t at; /* word of the instruction that defines it; 0: none does */
  uint32_t type;
  uint16_t op;
  uint8_t linkage; /* plus 1; 0: none */
  uint8_t rounding; /* plus 1; 0: none */
  bool saturated, packed, by_value, has_spec_id;
  uint32_t spec_id, alignment;
  int32_t builtin; /* plus 1; 0: none */
  bool no_read, no_write; /* of what a parameter points to */
  union {
    spirv_type *made_type;
    spirv_value *value;
    spirv_variable *variable;
    spirv_function *function;
    spirv_block *block; /* of a label: its block; of a result in a function: the block that defines it */
    const char *text;   /* of OpString and OpExtInstImport */
  };
  const char *name, *linkage_name;
} spirv_id;

typedef struct {
  uint32_t function, at;
  const char *name;
  uint32_t group_size[3], subgroup_size;
  uint32_t hinted_size[3], hinted_vector; /* zeros: no hint; the vector as the module has it */
  const char *qualifiers; /* of the parameters in the source, each with a comma; NULL: the module does not tell */
  const char *refusal; /* why the engine cannot run it; NULL: it can, as far as its declaration tells */
  uint32_t refusal_at; /* word of what is not supported */
} spirv_entry;

typedef struct spirv_module {
  spirv_arena *arena;
  uint32_t *words;
  uint32_t count; /* of words */
  uint32_t base; /* of a kernel's copy of this head: the words of the modules before it; 0 while it is decoded */
  uint32_t bound;
  spirv_id *ids;
  uint32_t functions_at; /* word of the first function; what is defined behind it is inside a function */
  uint32_t addressing; /* the addressing model: 1 is Physical32, 2 is Physical64 */
  uint32_t capability_count;
  bool has_lines; /* of the source: OpLine */
  bool loose; /* it has instructions that nobody knows, so what they declare is not known either */
  uint64_t steps; /* done by what may take longer than the module is long */
  uint32_t opencl_set; /* id of OpenCL.std; 0: not imported */
  spirv_function *functions;
  uint32_t function_count;
  spirv_entry *entries;
  uint32_t entry_count, entry_capacity;
  const spirv_build *build; /* valid while the module is decoded */
  const spirv_binary *binary;
  bool *spec_used; /* one for each constant of the build */
} spirv_module;

typedef struct {
  uint16_t number;
  char pattern[20], name[72]; /* no pointers: loading a library would have to relocate each */
} spirv_instruction;
const spirv_instruction *spirv_grammar(uint32_t opcode); /* NULL: there is no such instruction */
bool spirv_is_run(uint32_t opcode); /* is it in grammar.h? */
bool spirv_is_type(uint32_t opcode); /* does it declare a type? */

/* Decodes the whole module. After an error it jumps to arena->out. */
spirv_module *spirv_module_new(spirv_arena *arena, const spirv_build *build, uint32_t index, bool *spec_used);
/* Counts steps, and refuses a module that takes too many. */
void spirv_spend(spirv_module *m, uint32_t at, uint64_t steps);
/* Notes why the engine cannot run a kernel, unless there is a reason already. */
void spirv_entry_refuse(spirv_module *m, spirv_entry *entry, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Is an extended instruction set only for debuggers and other tools? */
bool spirv_is_for_tools(const char *set);

/* check.c: refuses what is not valid although each instruction by itself is: operands of other kinds or types. */
void spirv_check(spirv_module *m);

/* type.c */
void spirv_type_decode(spirv_module *m, uint32_t at);
const spirv_type *spirv_type_of(const spirv_module *m, uint32_t at, uint32_t id); /* of the id of a type */
const spirv_type *spirv_type_of_value(const spirv_module *m, uint32_t at, uint32_t id);
bool spirv_is_scalar(const spirv_type *type);
spirv_lane spirv_type_lane(const spirv_type *type);                                    /* of a scalar type */
const spirv_type *spirv_leaf(const spirv_type *type, uint64_t index,
                             uint64_t *offset); /* type and offset of a component */
uint64_t spirv_first_component(const spirv_type *type, uint64_t member);
const spirv_type *spirv_member(const spirv_type *type, uint64_t member); /* NULL: there is none */

/* constant.c */
void spirv_constant_decode(spirv_module *m, uint32_t at);
const spirv_value *spirv_constant_of(const spirv_module *m, uint32_t id); /* NULL: there is none */
void spirv_variable_decode(spirv_module *m, uint32_t at);
void spirv_write_constant(const spirv_value *value, char *memory);

/* function.c */
void spirv_functions_decode(spirv_module *m, uint32_t at);
bool spirv_dominates(const spirv_block *a, const spirv_block *b);

static inline uint32_t spirv_op(const spirv_module *m, uint32_t at) { return m->words[at] & 0xffff; }
static inline uint32_t spirv_length(const spirv_module *m, uint32_t at) { return m->words[at] >> 16; }

#define REFUSE(m, at, ...) spirv_refuse((m)->arena, (m)->base + (at), __VA_ARGS__)
#define UNSUPPORTED(m, at, ...) spirv_unsupported((m)->arena, (m)->base + (at), __VA_ARGS__)

#endif
