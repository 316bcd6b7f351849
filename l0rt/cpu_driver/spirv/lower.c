/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c: turns a kernel of SPIR-V into the intermediate form: inlines calls, splits blocks, makes phis. */
#include "lower.h"

#include <string.h>

const spirv_type *lower_component(const spirv_type *type) { return type->kind == TYPE_VECTOR ? type->element : type; }

uint32_t *lower_list(lowering *l, const spirv_type *type) {
  if (type->components > MAX_COMPONENTS) WRONG(l, "a value of %llu components", (unsigned long long)type->components);
  return SPIRV_ARRAY(l->arena, uint32_t, type->components + 1);
}

uint32_t lower_number(lowering *l, spirv_lane lane, uint64_t bits) { return ir_constant(l->k, lane, bits); }

uint32_t lower_real(lowering *l, spirv_lane lane, double number) {
  union {
    double d;
    uint64_t u;
  } wide = {.d = number};
  union {
    float f;
    uint32_t u;
  } narrow = {.f = (float)number};
  return ir_constant(l->k, lane, lane == LANE_F64 ? wide.u : narrow.u);
}

static uint64_t half_to_float(uint64_t half) {
  uint32_t sign = (uint32_t)(half >> 15 & 1) << 31, rest = half & 0x7fff;
  union {
    float f;
    uint32_t u;
  } bits;
  if (rest >= 0x7c00) bits.u = 0x7f800000 | (rest & 0x3ff) << 13;
  else if (rest >= 0x400) bits.u = (rest << 13) + 0x38000000;
  else bits.f = (float)rest * 0x1p-24f;
  return bits.u | sign;
}

/* Makes values of the components of a constant. Booleans and halves are represented otherwise there. */
static uint32_t *constants(lowering *l, const spirv_value *value) {
  uint32_t *values = lower_list(l, value->type);
  for (uint64_t i = 0; i < value->type->components; i++) {
    uint64_t offset, bits = value->bits[i];
    spirv_lane lane = spirv_type_lane(spirv_leaf(value->type, i, &offset));
    if (lane == LANE_BOOL) bits = bits != 0 ? UINT32_MAX : 0;
    if (lane == LANE_F16) bits = half_to_float(bits);
    values[i] = ir_constant(l->k, lane, bits);
  }
  return values;
}

static void instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length);

/* Lowers what stands outside of functions: a constant, the address of a variable, or an expression of one. */
static const uint32_t *outside(lowering *l, uint32_t id) {
  const spirv_id *i = &l->m->ids[id];
  const spirv_value *value = spirv_constant_of(l->m, id);
  if (value != NULL) {
    if (l->map[id] == NULL) l->map[id] = constants(l, value);
    return l->map[id];
  }
  uint32_t *address = SPIRV_ARRAY(l->arena, uint32_t, 1);
  if (i->op == OpVariable && i->variable->unsupported)
    UNSUPPORTED(l->m, l->at, "variable %s has storage class %u or an initial value that is not supported",
                i->name == NULL ? "(without a name)" : i->name, i->variable->storage);
  if (i->op == OpVariable && i->variable->storage == StorageWorkgroup) {
    address[0] = lower_local_address(l, i->variable);
    return address;
  }
  if (i->op == OpVariable && i->variable->storage == StorageInput) return lower_input(l, i->variable);
  if (i->op == OpVariable) {
    uint64_t where = i->variable->address;
    if (i->variable->imported) {
      const spirv_module *other;
      const spirv_id *exported = spirv_program_find(l->program, i->linkage_name, OpVariable, &other);
      if (exported == NULL) WRONG(l, "nothing exports %s", i->linkage_name);
      where = exported->variable->address;
    }
    address[0] = ir_constant(l->k, LANE_I64, where);
    return address;
  }
  if (i->op == OpSpecConstantOp) {
    const uint32_t *w = l->m->words + i->at;
    uint32_t copy[32], length = spirv_length(l->m, i->at);
    if (length > 32 || ++l->depth > MAX_DEPTH) WRONG(l, "a constant expression is too deep");
    memcpy(copy + 1, w + 1, 8);
    memcpy(copy + 3, w + 4, (length - 4) * 4);
    for (uint32_t k = 4; k < length; k++)
      if (w[k] == 0 || w[k] >= l->m->bound || l->m->ids[w[k]].at >= i->at) WRONG(l, "id %u is not made before", w[k]);
    l->map[id] = NULL;
    instruction(l, w[3], copy, length - 1);
    l->depth--;
    if (l->map[id] == NULL) UNSUPPORTED(l->m, l->at, "OpSpecConstantOp with operation %u is not supported", w[3]);
    return l->map[id];
  }
  if (i->type != 0) UNSUPPORTED(l->m, l->at, "Op%s is not supported", spirv_grammar(i->op)->name);
  WRONG(l, "id %u is not a value", id);
}

const uint32_t *lower_use(lowering *l, uint32_t id, const spirv_type **type) {
  if (id == 0 || id >= l->m->bound)
    WRONG(l, "id %u is outside the bound", id); /* an operand of an extended instruction may be a literal */
  const spirv_id *i = &l->m->ids[id];
  *type = spirv_type_of_value(l->m, l->at, id);
  if ((*type)->kind == TYPE_POINTER && (*type)->storage == StorageInput && !l->takes_input)
    WRONG(l, "a built-in variable can only be loaded");
  if (i->at < l->m->functions_at) return outside(l, id);
  if (i->op == OpFunction) UNSUPPORTED(l->m, l->at, "pointers to functions are not supported");
  bool dominates;
  if (i->op == OpFunctionParameter) dominates = i->function == l->from->function;
  else
    dominates = i->block != NULL && i->block->function == l->from->function && i->block->order != 0 &&
                (i->block == l->from ? i->at < l->at : spirv_dominates(i->block, l->from));
  if (!dominates || l->map[id] == NULL) WRONG(l, "id %u is used where it is not made yet", id);
  return l->map[id];
}

uint32_t lower_scalar(lowering *l, uint32_t id, const spirv_type **type) {
  const uint32_t *values = lower_use(l, id, type);
  if (!spirv_is_scalar(*type)) WRONG(l, "operand %u is not a scalar", id);
  return values[0];
}

void lower_define(lowering *l, uint32_t id, const uint32_t *values) { l->map[id] = (uint32_t *)values; }

uint32_t lower_emit(lowering *l, ir_insn insn, spirv_lane result) {
  if (++l->k->insn_total > MAX_INSNS) WRONG(l, "the kernel is too long");
  insn.result = ir_value_new(l->k, result);
  insn.at = lower_place(l);
  ir_append(l->k, l->block, insn);
  return insn.result;
}

uint32_t lower_op(lowering *l, ir_op op, spirv_lane lane, uint32_t a, uint32_t b) {
  return lower_emit(l, (ir_insn){.op = (uint16_t)op, .lane = (uint8_t)lane, .a = a, .b = b}, lane);
}

uint32_t lower_compare(lowering *l, ir_op op, spirv_lane lane, uint32_t a, uint32_t b) {
  return lower_emit(l, (ir_insn){.op = (uint16_t)op, .lane = (uint8_t)lane, .a = a, .b = b}, LANE_BOOL);
}

uint32_t lower_select(lowering *l, spirv_lane lane, uint32_t condition, uint32_t yes, uint32_t no) {
  return lower_emit(l, (ir_insn){.op = IR_SELECT, .lane = (uint8_t)lane, .a = condition, .b = yes, .c = no}, lane);
}

uint32_t lower_convert(lowering *l, ir_op op, spirv_lane from, spirv_lane to, uint32_t a) {
  if (from == to && (op == IR_CONVERT_U || op == IR_CONVERT_S || op == IR_CONVERT_F || op == IR_BITS)) return a;
  return lower_emit(l, (ir_insn){.op = (uint16_t)op, .lane = (uint8_t)from, .a = a}, to);
}

static uint32_t new_block(lowering *l) {
  uint32_t block = ir_block_new(l->k);
  l->k->blocks[block].activation = l->activation;
  l->k->blocks[block].label = l->from == NULL ? 0 : l->from->label;
  return block;
}

static void jump(lowering *l, uint32_t to) {
  l->k->blocks[l->block].end = END_JUMP;
  l->k->blocks[l->block].successor[0] = to;
  l->k->blocks[l->block].at = lower_place(l);
}

static void branch(lowering *l, uint32_t condition, uint32_t yes, uint32_t no) {
  ir_block *block = &l->k->blocks[l->block];
  block->end = yes == no ? END_JUMP : END_BRANCH;
  block->condition = condition;
  block->successor[0] = yes;
  block->successor[1] = no;
  block->at = lower_place(l);
}

void lower_barrier(lowering *l) {
  uint32_t next = new_block(l);
  jump(l, next);
  l->k->blocks[l->block].end = END_BARRIER;
  l->k->barriers = true;
  l->block = next;
}

/* The modules do not change any more, and the frame to which their arena would jump has ended. An error from here on
 * jumps to the frame of the kernel's arena. So lowering uses a copy of each module's head with that arena. */
static void enter_module(lowering *l, const spirv_module *m) {
  uint32_t i = 0;
  while (l->program->modules[i] != m) i++;
  if (l->views[i] == NULL) {
    l->views[i] = SPIRV_NEW(l->arena, spirv_module);
    *l->views[i] = *m;
    l->views[i]->arena = l->arena;
    l->views[i]->base = spirv_program_base(l->program, m);
    l->maps[i] = SPIRV_ARRAY(l->arena, uint32_t *, m->bound);
  }
  l->m = l->views[i];
  l->map = l->maps[i];
}

/* The results of a call join in the block to which it returns. */
typedef struct {
  uint32_t block, *blocks, **values, count, capacity;
  const spirv_type *type;
} way_back;

static void inline_function(lowering *l, const spirv_function *f, uint32_t **arguments, way_back *back);

static void call(lowering *l, const uint32_t *w, uint32_t length) {
  const spirv_id *callee = &l->m->ids[w[3]];
  const spirv_module *here = l->m, *there = l->m;
  if (callee->op != OpFunction || callee->function == NULL) WRONG(l, "id %u is no function", w[3]);
  const spirv_function *f = callee->function;
  if (f->type->element != spirv_type_of(l->m, l->at, w[1])) WRONG(l, "the function returns another type");
  if (length - 4 != f->type->count) WRONG(l, "the function has %llu parameters", (unsigned long long)f->type->count);
  uint32_t **arguments = SPIRV_ARRAY(l->arena, uint32_t *, f->type->count + 1);
  for (uint32_t i = 0; i < f->type->count; i++) {
    const spirv_type *type;
    arguments[i] = (uint32_t *)lower_use(l, w[4 + i], &type);
    if (type != f->type->members[i]) WRONG(l, "argument %u has another type", i);
  }
  if (f->block_count == 0) {
    const char *name = callee->linkage_name != NULL ? callee->linkage_name : "(without a name)";
    if (lower_known_function(l, name, w, length)) return;
    const spirv_id *exported = spirv_program_find(l->program, name, OpFunction, &there);
    if (exported == NULL) WRONG(l, "nothing exports the function %s", name);
    const spirv_type *other = exported->function->type;
    bool same = other->count == f->type->count && other->element->components == f->type->element->components;
    for (uint32_t i = 0; same && i < other->count; i++)
      same = other->members[i]->kind == f->type->members[i]->kind &&
             other->members[i]->size == f->type->members[i]->size &&
             other->members[i]->components == f->type->members[i]->components;
    if (!same) WRONG(l, "the exported function %s has another type", name);
    f = exported->function;
  }
  way_back back = {.type = f->type->element, .block = new_block(l)};
  uint32_t at = l->at, activation = l->activation, **map = l->map;
  const spirv_block *from = l->from;
  if (there != here) enter_module(l, there);
  inline_function(l, f, arguments, &back);
  l->m = here;
  l->map = map;
  l->from = from;
  l->at = at;
  l->activation = activation;
  l->block = back.block;
  uint32_t *results = lower_list(l, back.type);
  ir_block *block = &l->k->blocks[l->block];
  for (uint32_t c = 0; c < back.type->components; c++) {
    uint64_t offset;
    results[c] = ir_value_new(l->k, spirv_type_lane(spirv_leaf(back.type, c, &offset)));
    block->phis = spirv_grow(l->arena, block->phis, block->phi_count, &block->phi_capacity, sizeof(ir_phi));
    ir_phi *phi = &block->phis[block->phi_count++];
    phi->result = results[c];
    phi->at = lower_place(l);
    phi->sources = SPIRV_ARRAY(l->arena, uint32_t, back.count + 1);
    for (uint32_t i = 0; i < back.count; i++) phi->sources[i] = back.values[i][c];
  }
  block->predecessors = back.blocks;
  block->predecessor_count = back.count;
  lower_define(l, w[2], results);
}

static void come_back(lowering *l, way_back *back, uint32_t *values) {
  if (back == NULL) {
    l->k->blocks[l->block].end = END_RETURN;
    return;
  }
  jump(l, back->block);
  uint32_t capacity = back->capacity;
  back->blocks = spirv_grow(l->arena, back->blocks, back->count, &capacity, sizeof(uint32_t));
  back->values = spirv_grow(l->arena, back->values, back->count, &back->capacity, sizeof(uint32_t *));
  back->blocks[back->count] = l->block;
  back->values[back->count++] = values;
}

static void terminator(lowering *l, const spirv_block *from, const uint32_t *starts, way_back *back) {
  const uint32_t *w = l->m->words + l->at;
  uint32_t op = spirv_op(l->m, l->at);
  const spirv_type *type;
#define TARGET(i) starts[l->m->ids[from->successors[i]].block->order]
  switch (op) {
    case OpBranch: jump(l, TARGET(0)); break;
    case OpBranchConditional: {
      uint32_t condition = lower_scalar(l, w[1], &type);
      if (type->kind != TYPE_BOOL) WRONG(l, "the condition is not a bool");
      branch(l, condition, TARGET(0), TARGET(1));
      break;
    }
    case OpSwitch: {
      uint32_t selector = lower_scalar(l, w[1], &type), wide = type->width == 64 ? 2 : 1;
      spirv_lane lane = spirv_type_lane(type);
      for (uint32_t i = 1; i < from->successor_count; i++) {
        const uint32_t *literal = w + 3 + (i - 1) * (wide + 1);
        uint64_t bits = wide == 2 ? literal[0] | (uint64_t)literal[1] << 32 : literal[0];
        if (type->width < 32) bits &= (1u << type->width) - 1;
        uint32_t hit = lower_compare(l, IR_EQ, lane, selector, lower_number(l, lane, bits));
        uint32_t next = new_block(l);
        branch(l, hit, TARGET(i), next);
        l->block = next;
      }
      jump(l, TARGET(0));
      break;
    }
    case OpReturn:
      if (from->function->type->element->kind != TYPE_VOID) WRONG(l, "a return without a value");
      come_back(l, back, NULL);
      break;
    case OpReturnValue: {
      const uint32_t *values = lower_use(l, w[1], &type);
      if (type != from->function->type->element) WRONG(l, "the value returned has another type");
      come_back(l, back, (uint32_t *)values);
      break;
    }
    case OpUnreachable: l->k->blocks[l->block].end = END_TRAP; break;
    default: WRONG(l, "Op%s is not supported", spirv_grammar(op)->name);
  }
#undef TARGET
  l->k->blocks[l->block].at = lower_place(l);
}

static void begin_phi(lowering *l, const uint32_t *w, uint32_t length) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]);
  if (length % 2 == 0) WRONG(l, "a value without a block");
  if (type->components == 0) WRONG(l, "a phi of a type without values");
  uint32_t *values = lower_list(l, type);
  for (uint32_t c = 0; c < type->components; c++) {
    uint64_t offset;
    ir_block *block = &l->k->blocks[l->block];
    block->phis = spirv_grow(l->arena, block->phis, block->phi_count, &block->phi_capacity, sizeof(ir_phi));
    values[c] = ir_value_new(l->k, spirv_type_lane(spirv_leaf(type, c, &offset)));
    block->phis[block->phi_count++] = (ir_phi){.result = values[c], .at = lower_place(l)};
  }
  lower_define(l, w[2], values);
}

/* Finds the predecessors of each block of this inlined call. Phis find their sources by the labels of predecessors. */
static void finish_phis(lowering *l, const spirv_function *f, const uint32_t *starts, uint32_t first) {
  ir_kernel *k = l->k;
  uint32_t *counts = SPIRV_ARRAY(l->arena, uint32_t, k->block_count);
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t b = first; b < k->block_count; b++) {
      if (k->blocks[b].activation != l->activation) continue;
      for (int s = 0; s < ir_successors(&k->blocks[b]); s++) {
        ir_block *to = &k->blocks[k->blocks[b].successor[s]];
        if (to->activation != l->activation) continue;
        if (pass == 0) counts[k->blocks[b].successor[s]]++;
        else to->predecessors[to->predecessor_count++] = b;
      }
    }
    if (pass == 1) break;
    for (uint32_t i = 1; i <= f->order_count; i++)
      k->blocks[starts[i]].predecessors = SPIRV_ARRAY(l->arena, uint32_t, counts[starts[i]] + 1);
    for (uint32_t b = first; b < k->block_count; b++)
      if (k->blocks[b].predecessors == NULL && counts[b] != 0)
        k->blocks[b].predecessors = SPIRV_ARRAY(l->arena, uint32_t, counts[b]);
  }
  for (uint32_t i = 1; i <= f->order_count; i++) {
    uint32_t next = 0;
    for (l->at = f->order[i - 1]->first; l->at < f->order[i - 1]->terminator; l->at += spirv_length(l->m, l->at)) {
      const uint32_t *w = l->m->words + l->at;
      if (spirv_op(l->m, l->at) != OpPhi) {
        if (spirv_op(l->m, l->at) == OpLine || spirv_op(l->m, l->at) == OpNoLine) continue;
        break;
      }
      const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *source_type;
      for (uint32_t c = 0; c < type->components; c++)
        k->blocks[starts[i]].phis[next + c].sources = SPIRV_ARRAY(l->arena, uint32_t,
                                                                  k->blocks[starts[i]].predecessor_count + 1);
      for (uint32_t p = 0; p < k->blocks[starts[i]].predecessor_count; p++) {
        uint32_t label = k->blocks[k->blocks[starts[i]].predecessors[p]].label, v = 3;
        while (v < spirv_length(l->m, l->at) && w[v + 1] != label) v += 2;
        if (v >= spirv_length(l->m, l->at)) WRONG(l, "the phi has no value for block %u", label);
        uint32_t at = l->at;
        l->from = l->m->ids[label].block;
        l->at = l->from->terminator;
        l->block = k->blocks[starts[i]].predecessors[p];
        const uint32_t *values = lower_use(l, w[v], &source_type);
        l->at = at;
        if (source_type != type) WRONG(l, "the phi's value %u has another type", w[v]);
        for (uint32_t c = 0; c < type->components; c++) k->blocks[starts[i]].phis[next + c].sources[p] = values[c];
      }
      next += (uint32_t)type->components;
    }
  }
}

static void instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  switch (op) {
    case OpNop:
    case OpLine:
    case OpNoLine:
    case OpLoopMerge:
    case OpSelectionMerge:
    case OpLifetimeStart:
    case OpLifetimeStop:
    case OpAssumeTrueKHR: return;
    case OpPhi: begin_phi(l, w, length); return;
    case OpFunctionCall: call(l, w, length); return;
    case OpExtInst:
      if (w[3] != l->m->opencl_set) {
        const spirv_id *set = &l->m->ids[w[3]];
        if (set->op == OpExtInstImport && spirv_is_for_tools(set->text)) return;
        WRONG(l, "an instruction of an extended set that is not OpenCL.std");
      }
      lower_opencl(l, w, length);
      return;
    default: break;
  }
  if (lower_value_instruction(l, op, w, length) || lower_memory_instruction(l, op, w, length) ||
      lower_group_instruction(l, op, w, length) || lower_dot_instruction(l, op, w, length))
    return;
  const spirv_instruction *known = spirv_grammar(op); /* NULL: as the operation of an OpSpecConstantOp */
  UNSUPPORTED(l->m, l->at, "Op%s (%u) is not supported", known == NULL ? "?" : known->name, op);
}

static void inline_function(lowering *l, const spirv_function *f, uint32_t **arguments, way_back *back) {
  if (++l->depth > MAX_DEPTH) WRONG(l, "calls are nested too deeply, or recursive");
  for (uint64_t i = 0; i < f->type->count; i++) lower_define(l, f->parameters[i], arguments[i]);
  uint32_t first = l->k->block_count, *starts = SPIRV_ARRAY(l->arena, uint32_t, f->order_count + 1);
  uint32_t before = l->block;
  l->activation = ++l->activations;
  for (uint32_t i = 0; i < f->order_count; i++) {
    l->from = f->order[i];
    starts[i + 1] = new_block(l);
  }
  if (l->k->block_count > MAX_INSNS) WRONG(l, "the kernel is too long");
  l->block = before;
  jump(l, starts[1]);
  for (uint32_t i = 0; i < f->order_count; i++) {
    l->from = f->order[i];
    l->block = starts[i + 1];
    for (l->at = l->from->first; l->at < l->from->terminator; l->at += spirv_length(l->m, l->at))
      instruction(l, spirv_op(l->m, l->at), l->m->words + l->at, spirv_length(l->m, l->at));
    terminator(l, l->from, starts, back);
  }
  finish_phis(l, f, starts, first);
  l->depth--;
}

/* The arguments are in one block of memory that all lanes share. Each has the alignment of its type. */
static void parameters(lowering *l, const spirv_function *f, uint32_t **arguments) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < f->type->count; i++) {
    const spirv_type *type = f->type->members[i];
    bool by_value = type->kind == TYPE_POINTER && type->storage == StorageFunction;
    uint64_t size = by_value ? type->element->size : type->size, align = 16;
    uint32_t *values = arguments[i] = lower_list(l, type);
    offset = (offset + align - 1) & ~(align - 1);
    if (by_value) {
      values[0] = lower_emit(l, (ir_insn){.op = IR_ARGUMENT_ADDRESS, .imm = offset, .extra = i, .scale = 1}, LANE_I64);
    } else if (type->kind == TYPE_POINTER && type->storage == StorageWorkgroup) {
      values[0] = lower_emit(l, (ir_insn){.op = IR_LOCAL_ARGUMENT, .imm = i}, LANE_I64);
    } else {
      uint32_t base = lower_emit(l, (ir_insn){.op = IR_ARGUMENT_ADDRESS, .imm = offset, .extra = i}, LANE_I64);
      lower_load(l, type, base, values);
    }
    offset += size;
  }
}

/* Each work-item has its own structure that is passed by value. It gets a copy, unless the kernel only reads it. */
static bool only_read(ir_kernel *k, bool *derived) {
  for (uint32_t b = 0; b < k->block_count; b++) {
    ir_block *block = &k->blocks[b];
    for (uint32_t p = 0; p < block->phi_count; p++)
      for (uint32_t i = 0; i < block->predecessor_count; i++)
        if (derived[block->phis[p].sources[i]]) return false;
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn *insn = &block->insns[n];
      bool address = derived[insn->a];
      if (derived[insn->b] || derived[insn->c] ||
          (address && insn->op != IR_LOAD && insn->op != IR_INDEX && insn->op != IR_ADD))
        return false;
      if (address && insn->op != IR_LOAD) derived[insn->result] = true;
    }
  }
  for (uint32_t p = 0; p < k->printf_count; p++)
    for (uint32_t c = 0; c < k->printfs[p].component_count; c++)
      if (derived[k->printfs[p].components[c]]) return false;
  return true;
}

static void rename_value(ir_kernel *k, ir_block *block, uint32_t from, uint32_t to) {
  for (uint32_t p = 0; p < block->phi_count; p++)
    for (uint32_t i = 0; i < block->predecessor_count; i++)
      if (block->phis[p].sources[i] == from) block->phis[p].sources[i] = to;
  for (uint32_t n = 0; n < block->count; n++)
    for (int o = 0; ir_operand(&block->insns[n], o) != NULL; o++)
      if (*ir_operand(&block->insns[n], o) == from) *ir_operand(&block->insns[n], o) = to;
  for (uint32_t p = 0; p < k->printf_count; p++)
    for (uint32_t c = 0; c < k->printfs[p].component_count; c++)
      if (k->printfs[p].components[c] == from) k->printfs[p].components[c] = to;
}

static void own_copies(lowering *l, const spirv_function *f) {
  ir_kernel *k = l->k;
  uint32_t count = k->blocks[0].count;
  for (uint32_t n = 0; n < count; n++) {
    ir_insn insn = k->blocks[0].insns[n];
    if (insn.op != IR_ARGUMENT_ADDRESS || insn.scale == 0) continue;
    k->blocks[0].insns[n].scale = 0;
    bool *derived = SPIRV_ARRAY(l->arena, bool, k->value_count);
    derived[insn.result] = true;
    if (only_read(k, derived)) continue;
    const spirv_type *type = f->type->members[insn.extra]->element;
    l->block = 0;
    uint32_t own = lower_private(l, type->size, type->align), size = lower_number(l, LANE_I64, type->size);
    uint32_t shared = lower_emit(l, insn, LANE_I64);
    k->blocks[0].insns[k->blocks[0].count - 1].scale = 0;
    ir_append(k, 0, (ir_insn){.op = IR_COPY_MEMORY, .lane = LANE_I64, .a = own, .b = shared, .c = size, .at = insn.at});
    for (uint32_t b = 0; b < k->block_count; b++) rename_value(k, &k->blocks[b], insn.result, own);
  }
}

ir_kernel *spirv_lower(spirv_arena *arena, struct spirv_program *program, const spirv_module *m, const spirv_entry *e) {
  lowering *l = SPIRV_NEW(arena, lowering);
  l->arena = arena;
  l->program = program;
  l->m = m; /* until the function is entered */
  l->k = SPIRV_NEW(arena, ir_kernel);
  l->k->arena = arena;
  l->at = e->at;
  enter_module(l, m);
  if (e->refusal != NULL) UNSUPPORTED(l->m, e->refusal_at, "%s", e->refusal);
  ir_value_new(l->k, LANE_BOOL); /* value 0 is none */
  const spirv_function *f = m->ids[e->function].function;
  l->block = new_block(l);
  if (f->block_count == 0) WRONG(l, "the entry point %s has no body", e->name);
  if (f->type->element->kind != TYPE_VOID) WRONG(l, "the entry point %s returns a value", e->name);
  uint32_t **arguments = SPIRV_ARRAY(arena, uint32_t *, f->type->count + 1);
  parameters(l, f, arguments);
  inline_function(l, f, arguments, NULL);
  own_copies(l, f);
  return l->k;
}
