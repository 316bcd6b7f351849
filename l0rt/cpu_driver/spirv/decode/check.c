/* SPDX-License-Identifier: Apache-2.0 */
/* check.c: refuses what is not valid although each instruction by itself is: operands of other kinds or types.
 *
 * The engine finds most of this when it lowers a kernel. Other drivers do not: Intel's of 2022 ends the process. */
#include <string.h>

#include "spirv/decode/module.h"

enum {
  HEADER = 5,
  FIRST_OF_BLOCKS = OpLoad, /* from here on instructions stand in blocks, but for a few */
  EXTENSIONS = 4096,        /* from here on opcodes are those of extensions */
  LAST_OF_OPENCL = 204,
};
enum { /* instructions that take a function, which a device is to enqueue */
       ENQUEUE_KERNEL = 292,
       NDRANGE_SUBGROUP_COUNT = 293,
       NDRANGE_MAX_SUBGROUP_SIZE = 294,
       KERNEL_GROUP_SIZE = 295,
       KERNEL_PREFERRED_MULTIPLE = 296,
       KERNEL_LOCAL_SIZE = 325,
       KERNEL_MAX_SUBGROUPS = 326,
};

typedef struct {
  spirv_module *m;
  const spirv_function *function; /* NULL: outside of functions */
  uint32_t end; /* word of the next function */
  const uint32_t *w;
  uint32_t at, op, length;
} checking;

#define BAD(c, ...) REFUSE((c)->m, (c)->at, __VA_ARGS__)

static const spirv_id *id_of(const checking *c, uint32_t id) { return &c->m->ids[id]; }

static bool is_value(const checking *c, uint32_t id) {
  return id != 0 && id < c->m->bound && id_of(c, id)->type != 0 && id_of(c, id)->op != OpFunction;
}

/* Is it outside of functions, or in the function that is checked? */
static bool is_near(const checking *c, uint32_t id) {
  uint32_t at = id_of(c, id)->at;
  return at < c->m->functions_at || (c->function != NULL && at > c->function->at);
}

/* A value that was made before. */
static void need_value(const checking *c, uint32_t id) {
  if (!is_value(c, id) || id_of(c, id)->at >= c->at || !is_near(c, id)) BAD(c, "there is no value %u here", id);
}

static const spirv_type *type_of(const checking *c, uint32_t value) { return spirv_type_of_value(c->m, c->at, value); }

static void need_type(const checking *c, uint32_t value, const spirv_type *type) {
  if (type_of(c, value) != type) BAD(c, "value %u is of type %u, not %u", value, type_of(c, value)->id, type->id);
}

static const spirv_type *pointee(const checking *c, uint32_t pointer) {
  const spirv_type *type = type_of(c, pointer);
  return type->kind == TYPE_POINTER ? type->element : NULL;
}

/* ---- The kinds of operands --------------------------------------------------------------------------------------- */

/* Does a block of this function begin there? Its end is checked by function.c. */
static void need_label(const checking *c, uint32_t id) {
  const spirv_id *label = id_of(c, id);
  if (label->op != OpLabel || label->block == NULL || label->block->function != c->function)
    BAD(c, "there is no block %u in the function", id);
}

static void check_phi(const checking *c) {
  if (c->length % 2 == 0) BAD(c, "a value without the block that it is from");
  for (uint32_t i = 3; i < c->length; i += 2) {
    if (!is_value(c, c->w[i]) || !is_near(c, c->w[i]) || id_of(c, c->w[i])->at >= c->end)
      BAD(c, "there is no value %u in the function", c->w[i]);
    need_label(c, c->w[i + 1]);
  }
}

static void check_import(const checking *c) {
  const char *name = (const char *)(c->w + 2);
  if (strcmp(name, "OpenCL.std") != 0 && !spirv_is_for_tools(name))
    BAD(c, "there are no extended instructions %.80s", name);
}

static void check_extended(const checking *c) {
  /* vloadn and the roundings of halves end with a number */
  static const uint8_t numbered[] = {CL_vloadn,         CL_vload_halfn,  CL_vstore_half_r,
                                     CL_vstore_halfn_r, CL_vloada_halfn, CL_vstorea_halfn_r};
  if (id_of(c, c->w[3])->op != OpExtInstImport) BAD(c, "id %u is no set of extended instructions", c->w[3]);
  if (c->w[3] != c->m->opencl_set) return;
  if (c->w[4] > LAST_OF_OPENCL) BAD(c, "there is no extended instruction %u", c->w[4]);
  uint32_t end = c->length - (memchr(numbered, (int)c->w[4], sizeof(numbered)) != NULL);
  for (uint32_t i = 5; i < end; i++) need_value(c, c->w[i]);
}

static void need_function(const checking *c, uint32_t id) {
  if (id_of(c, id)->op != OpFunction || id_of(c, id)->function == NULL) BAD(c, "there is no function %u", id);
}

/* The operand of a constant's operation, as of that instruction in a function. */
static void check_constant_operation(const checking *c) {
  uint32_t op = c->w[3], word = 4;
  const spirv_instruction *instruction = spirv_grammar(op);
  if (instruction == NULL || op < FIRST_OF_BLOCKS || strncmp(instruction->pattern, "TRi", 3) != 0)
    BAD(c, "a constant of instruction %u", op);
  for (const char *p = instruction->pattern + 2; *p != '\0' && word < c->length; p++) {
    if (*p == '?') continue;
    if (*p == '#') return;
    if (*p == 'i') need_value(c, c->w[word++]);
    else if (*p == '*')
      for (; word < c->length; word++) need_value(c, c->w[word]);
    else word++;
  }
}

/* Which operand is a function; 0: none. */
static uint32_t function_operand(uint32_t op) {
  switch (op) {
    case ENQUEUE_KERNEL: return 9;
    case NDRANGE_SUBGROUP_COUNT:
    case NDRANGE_MAX_SUBGROUP_SIZE:
    case KERNEL_LOCAL_SIZE: return 4;
    case OpFunctionCall:
    case KERNEL_GROUP_SIZE:
    case KERNEL_PREFERRED_MULTIPLE:
    case KERNEL_MAX_SUBGROUPS: return 3;
    default: return 0;
  }
}

/* Are the ids of an instruction values, if nothing else is said of them? */
static bool takes_values(uint32_t op) {
  switch (op) {
    case OpConstantComposite:
    case OpSpecConstantComposite:
    case OpFunctionCall:
    case OpVariable: return true;
    case OpDecorate:
    case OpMemberDecorate:
    case OpDecorationGroup:
    case OpGroupDecorate:
    case OpGroupMemberDecorate:
    case OpExecutionModeId:
    case OpDecorateId:
    case OpDecorateString:
    case OpAliasDomainDeclINTEL:
    case OpAliasScopeDeclINTEL:
    case OpAliasScopeListDeclINTEL: return false;
    default: return op >= FIRST_OF_BLOCKS && !spirv_is_type(op) && (op < EXTENSIONS || spirv_is_run(op));
  }
}

static bool is_label(uint32_t op, uint32_t word) {
  if (op == OpBranchConditional) return word > 1;
  return op == OpBranch || op == OpLoopMerge || op == OpSelectionMerge;
}

static void check_id(const checking *c, uint32_t word, bool values) {
  uint32_t id = c->w[word];
  if (is_label(c->op, word)) need_label(c, id);
  else if (word == function_operand(c->op)) need_function(c, id);
  else if (values && !(c->op == OpSwitch && word > 1)) need_value(c, id); /* function.c checks the blocks of OpSwitch */
  else if (id_of(c, id)->at == 0) BAD(c, "there is no id %u", id);
}

/* All operands: values must have been made before, types declared, and blocks be the function's. */
static void check_operands(const checking *c) {
  uint32_t word = 1;
  if (c->op == OpPhi) check_phi(c);
  if (c->op == OpExtInstImport) check_import(c);
  if (c->op == OpExtInst) check_extended(c);
  if (c->op == OpSpecConstantOp) check_constant_operation(c);
  bool values = takes_values(c->op);
  for (const char *p = spirv_grammar(c->op)->pattern; *p != '\0' && word < c->length; p++) {
    if (*p == '?') continue;
    if (*p == 's') {
      word += (uint32_t)strlen((const char *)(c->w + word)) / 4 + 1;
      continue;
    }
    if (*p == 'T') {
      spirv_type_of(c->m, c->at, c->w[word]);
      if (id_of(c, c->w[word])->at >= c->at) BAD(c, "id %u is no type that was declared before", c->w[word]);
    }
    if (*p == '#' || c->op == OpPhi) return;
    if (*p == 'i') check_id(c, word, values);
    if (*p == '*')
      for (; word < c->length; word++) check_id(c, word, values);
    word++;
  }
}

/* ---- The types of values ----------------------------------------------------------------------------------------- */

static void check_call(const checking *c) {
  const spirv_type *type = id_of(c, c->w[3])->function->type;
  bool same = type->count == c->length - 4;
  for (uint32_t i = 4; i < c->length && same; i++) same = type_of(c, c->w[i]) == type->members[i - 4];
  if (!same) BAD(c, "function %u takes other arguments", c->w[3]);
  if (type->element != spirv_type_of(c->m, c->at, c->w[1])) BAD(c, "function %u returns another type", c->w[3]);
}

static const spirv_type *part_of(const checking *c, const spirv_type *type, uint32_t index) {
  uint64_t number = 0;
  if (type->kind == TYPE_STRUCT) {
    const spirv_value *value = id_of(c, index)->at < c->m->functions_at ? spirv_constant_of(c->m, index) : NULL;
    number = value == NULL ? UINT64_MAX : value->bits[0];
  }
  const spirv_type *part = spirv_member(type, number);
  if (part == NULL) BAD(c, "type %u has no part of index %u", type->id, index);
  return part;
}

/* The indices lead from the base to what the result points to. */
static void check_chain(const checking *c) {
  const spirv_type *base = type_of(c, c->w[3]), *result = spirv_type_of(c->m, c->at, c->w[1]);
  if (base->kind != TYPE_POINTER || result->kind != TYPE_POINTER || base->storage != result->storage ||
      base->element == NULL)
    BAD(c, "value %u is no pointer, or the result is none", c->w[3]);
  const spirv_type *target = base->element;
  bool skips = c->op == OpPtrAccessChain ||
               c->op == OpInBoundsPtrAccessChain; /* the first index, which is an array's */
  for (uint32_t i = 4; i < c->length; i++) {
    if (type_of(c, c->w[i])->kind != TYPE_INT) BAD(c, "index %u is no int", c->w[i]);
    if (i != 4 || !skips) target = part_of(c, target, c->w[i]);
  }
  if (target != result->element) BAD(c, "the indices lead to type %u, not to what the result points to", target->id);
}

static bool is_between(uint32_t op, uint32_t first, uint32_t last) { return op >= first && op <= last; }

/* What is known of the types of operands. */
static void check_types(const checking *c) {
  const uint32_t *w = c->w;
  uint32_t op = c->op;
  switch (op) {
    case OpFunctionCall: check_call(c); return;
    case OpAccessChain:
    case OpInBoundsAccessChain:
    case OpPtrAccessChain:
    case OpInBoundsPtrAccessChain: check_chain(c); return;
    case OpLoad:
      if (pointee(c, w[3]) != spirv_type_of(c->m, c->at, w[1])) BAD(c, "value %u is no pointer to type %u", w[3], w[1]);
      return;
    case OpStore:
      if (pointee(c, w[1]) != type_of(c, w[2])) BAD(c, "value %u is no pointer to what is stored", w[1]);
      return;
    case OpSelect:
      for (uint32_t i = 4; i < 6; i++) need_type(c, w[i], spirv_type_of(c->m, c->at, w[1]));
      return;
    case OpBranchConditional:
      if (type_of(c, w[1])->kind != TYPE_BOOL) BAD(c, "value %u is no bool", w[1]);
      return;
    case OpReturnValue:
      if (type_of(c, w[1]) != c->function->type->element) BAD(c, "value %u is not what the function returns", w[1]);
      return;
    default: break;
  }
  bool same = is_between(op, OpSNegate, OpFMod) || is_between(op, OpLogicalEqual, OpLogicalNot) ||
              is_between(op, OpBitwiseOr, OpNot);
  bool equal = is_between(op, OpLessOrGreater, OpUnordered) || is_between(op, OpIEqual, OpFUnordGreaterThanEqual) ||
               is_between(op, OpPtrEqual, OpPtrNotEqual);
  for (uint32_t i = 3; same && i < c->length; i++) need_type(c, w[i], spirv_type_of(c->m, c->at, w[1]));
  if (equal && type_of(c, w[3]) != type_of(c, w[4])) BAD(c, "values %u and %u are of different types", w[3], w[4]);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static void check_instruction(const checking *c) {
  bool declares = is_between(c->op, OpDecorate, OpGroupMemberDecorate) || spirv_is_type(c->op) ||
                  !spirv_is_run(c->op) || c->op == OpNoLine || is_between(c->op, OpModuleProcessed, OpDecorateId) ||
                  c->op == OpDecorateString || is_between(c->op, OpAliasDomainDeclINTEL, OpAliasScopeListDeclINTEL);
  if (c->function == NULL && c->op >= FIRST_OF_BLOCKS && !declares) BAD(c, "instruction %u outside of a block", c->op);
  check_operands(c);
  if (c->function != NULL) check_types(c);
}

/* Compilers tell of the arguments in strings: kernel_arg_type.NAME.float*,int, */
static spirv_entry *entry_of(spirv_module *m, uint32_t at, const char *text, uint32_t *last) {
  for (uint32_t i = 0; i < m->entry_count; i++) {
    uint32_t e = (*last + i) % m->entry_count; /* the strings are mostly in the order of the kernels */
    size_t size = strlen(m->entries[e].name);
    spirv_spend(m, at, 1 + size / 16);
    if (strncmp(text, m->entries[e].name, size) != 0 || text[size] != '.') continue;
    *last = e;
    return &m->entries[e];
  }
  return NULL;
}

static void check_string(spirv_module *m, uint32_t at, uint32_t *last) {
  static const char *const kinds[] = {"kernel_arg_type.", "kernel_arg_type_qual."};
  const char *text = (const char *)(m->words + at + 2);
  for (int kind = 0; kind < 2; kind++) {
    size_t size = strlen(kinds[kind]);
    if (strncmp(text, kinds[kind], size) != 0) continue;
    spirv_entry *entry = entry_of(m, at, text + size, last);
    const char *list = entry == NULL ? "" : text + size + strlen(entry->name) + 1;
    uint64_t commas = 0;
    for (const char *p = list; *p != '\0'; p++) commas += *p == ',';
    bool ends = *list == '\0' || list[strlen(list) - 1] == ',';
    if (entry == NULL || !ends || commas != m->ids[entry->function].function->type->count)
      REFUSE(m, at, "a string tells other arguments than those of a kernel: %.80s", text);
    if (kind == 1) entry->qualifiers = list;
  }
}

/* Built-in variables have the types that the specification gives them. */
static void check_builtin(spirv_module *m, uint32_t id) {
  const spirv_id *i = &m->ids[id];
  uint32_t builtin = (uint32_t)i->builtin - 1;
  bool three = (builtin >= BuiltInNumWorkgroups && builtin <= BuiltInGlobalInvocationId) ||
               (builtin >= BuiltInGlobalSize && builtin <= BuiltInGlobalOffset);
  bool one = builtin == BuiltInLocalInvocationIndex || builtin == BuiltInWorkDim || builtin == BuiltInGlobalLinearId ||
             (builtin >= BuiltInSubgroupSize && builtin <= BuiltInSubgroupLocalInvocationId);
  if (i->builtin == 0 || i->type == 0 || (!three && !one)) return;
  const spirv_type *pointer = spirv_type_of_value(m, i->at, id);
  const spirv_type *type = pointer->kind == TYPE_POINTER ? pointer->element : NULL;
  if (type == NULL || type->kind != (three ? TYPE_VECTOR : TYPE_INT))
    REFUSE(m, i->at, "value %u is of another type than built-in %u", id, builtin);
}

void spirv_check(spirv_module *m) {
  checking c = {.m = m};
  uint32_t next = 0, last = 0;
  for (c.at = HEADER; c.at < m->count; c.at += c.length) {
    c.w = m->words + c.at;
    c.op = spirv_op(m, c.at);
    c.length = spirv_length(m, c.at);
    if (c.op == OpFunction) {
      c.function = &m->functions[next++];
      c.end = next < m->function_count ? m->functions[next].at : m->count;
    }
    if (!m->loose) check_instruction(&c);
    if (c.op == OpFunctionEnd) c.function = NULL;
    if (c.op == OpString) check_string(m, c.at, &last);
  }
  for (uint32_t id = 1; id < m->bound && !m->loose; id++) check_builtin(m, id);
}
