/* SPDX-License-Identifier: Apache-2.0 */
/* lower.h: shared by the files that turn SPIR-V into the intermediate form. */
#ifndef L0RT_CPU_SPIRV_LOWER_H
#define L0RT_CPU_SPIRV_LOWER_H

#include "spirv/decode/program.h"
#include "spirv/ir/ir.h"

enum {
  MAX_COMPONENTS = 1024, /* of a value that is loaded, stored or passed */
  MAX_DEPTH = 64,        /* of calls */
};

typedef struct {
  spirv_arena *arena;
  struct spirv_program *program;
  ir_kernel *k;
  const spirv_module *m;
  uint32_t **maps[SPIRV_MAX_MODULES]; /* for each module and id: the values of its components; NULL: none yet */
  spirv_module *views[SPIRV_MAX_MODULES]; /* copies of the modules' heads; see spirv_lower */
  uint32_t **map;                     /* the one of module m */
  const spirv_block *from;            /* the block that is lowered; NULL before the first one */
  struct {
    const spirv_variable *variable;
    uint64_t offset;
  } *locals; /* the Workgroup variables of the kernel */
  uint32_t local_count, local_capacity;
  uint32_t builtins[64][3]; /* values in the entry block; 0: none yet */
  struct {
    const spirv_variable *variable;
    uint64_t place;
  } *inputs; /* the built-in variables whose address the kernel takes, and where they are in private memory */
  uint32_t input_count, input_capacity;
  uint32_t at, block, activation, activations, depth;
  uint32_t image_place; /* the address of coordinates and texel of IR_IMAGE; 0: none yet */
} lowering;

#define WRONG(l, ...) REFUSE((l)->m, (l)->at, __VA_ARGS__)

/* What the intermediate form and the code have of the instruction: its word, counted through all modules. */
static inline uint32_t lower_place(const lowering *l) { return l->m->base + l->at; }

/* Returns the components of an operand, whose definition must dominate its use. */
const uint32_t *lower_use(lowering *l, uint32_t id, const spirv_type **type);
/* The same for a scalar, which has one component. */
uint32_t lower_scalar(lowering *l, uint32_t id, const spirv_type **type);
void lower_dominated(lowering *l, uint32_t id); /* its definition must dominate its use */
void lower_define(lowering *l, uint32_t id, const uint32_t *values);
uint32_t *lower_list(lowering *l, const spirv_type *type);
uint32_t lower_emit(lowering *l, ir_insn insn, spirv_lane result);
uint32_t lower_op(lowering *l, ir_op op, spirv_lane lane, uint32_t a, uint32_t b);
uint32_t lower_compare(lowering *l, ir_op op, spirv_lane lane, uint32_t a, uint32_t b);
uint32_t lower_select(lowering *l, spirv_lane lane, uint32_t condition, uint32_t yes, uint32_t no);
uint32_t lower_convert(lowering *l, ir_op op, spirv_lane from, spirv_lane to, uint32_t a);
/* Converts to a narrower float in a given rounding mode. */
uint32_t lower_round_float(lowering *l, spirv_lane from, spirv_lane to, uint32_t value, uint32_t rounding);
/* The upper half of a float, rounded to the nearest even one; `widens`: the float that has such a half. */
uint32_t lower_brain_float(lowering *l, bool widens, uint32_t a);
uint32_t lower_number(lowering *l, spirv_lane lane, uint64_t bits);
uint32_t lower_real(lowering *l, spirv_lane lane, double number);
void lower_barrier(lowering *l);
const spirv_type *lower_component(const spirv_type *type); /* the type itself of a scalar, the element of a vector */

/* Each returns false if it does not lower such instructions. `w`: the words; w[1]: type of the result, w[2]: its id. */
bool lower_value_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length); /* lower_value.c */
bool lower_memory_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length); /* lower_memory.c */
bool lower_group_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length); /* lower_group.c */
bool lower_image_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length); /* lower_image.c */
bool lower_dot_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length); /* lower_dot.c */
bool lower_dot_function(lowering *l, const char *name, const uint32_t *w, uint32_t length); /* without its _Z3 */
void lower_opencl(lowering *l, const uint32_t *w, uint32_t length); /* lower_opencl.c */
bool lower_vector_function(lowering *l, const uint32_t *w, uint32_t length); /* lower_vector.c */
bool lower_llvm_function(lowering *l, const char *name, const uint32_t *w, uint32_t length); /* lower_llvm.c */
bool lower_known_function(lowering *l, const char *name, const uint32_t *w, uint32_t length); /* lower_group.c */

void lower_load(lowering *l, const spirv_type *type, uint32_t address, uint32_t *values);
void lower_store(lowering *l, const spirv_type *type, uint32_t address, const uint32_t *values);
uint32_t lower_offset(lowering *l, uint32_t address, uint64_t bytes); /* returns address + bytes */
uint32_t lower_index(lowering *l, uint32_t address, uint32_t index, spirv_lane lane, uint64_t scale);
uint32_t lower_private(lowering *l, uint64_t size, uint64_t align);
/* Is the result a constant distance from the address of a built-in variable? Then no instruction makes it. */
bool lower_is_input(lowering *l, const uint32_t *w);
uint32_t *lower_input_address(lowering *l, uint32_t id); /* such an address; NULL: it is another value */
uint32_t lower_builtin(lowering *l, uint32_t builtin, uint32_t dimension);
uint32_t lower_local_address(lowering *l, const spirv_variable *variable);
uint64_t lower_local(lowering *l, const spirv_variable *variable);

#endif
