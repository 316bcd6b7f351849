/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c: turns a kernel of SPIR-V into the intermediate form: inlines calls, splits blocks, makes phis. */
#include "spirv/ir/lower.h"

#include <math.h>
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
  uint32_t *address = lower_input_address(l, id);
  if (address != NULL) return address;
  if (i->op == OpVariable && i->variable->unsupported)
    UNSUPPORTED(l->m, l->at, "variable %s has storage class %u or an initial value that is not supported",
                i->name == NULL ? "(without a name)" : i->name, i->variable->storage);
  address = SPIRV_ARRAY(l->arena, uint32_t, 1);
  if (i->op == OpVariable && i->variable->storage == StorageWorkgroup) {
    address[0] = lower_local_address(l, i->variable);
    return address;
  }
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

void lower_dominated(lowering *l, uint32_t id) {
  const spirv_id *i = &l->m->ids[id];
  bool dominates = i->at < l->m->functions_at;
  if (i->op == OpFunctionParameter) dominates = i->function == l->from->function;
  else if (!dominates)
    dominates = i->block != NULL && i->block->function == l->from->function && i->block->order != 0 &&
                (i->block == l->from ? i->at < l->at : spirv_dominates(i->block, l->from));
  if (!dominates) WRONG(l, "id %u is used where it is not made yet", id);
}

const uint32_t *lower_use(lowering *l, uint32_t id, const spirv_type **type) {
  if (id == 0 || id >= l->m->bound)
    WRONG(l, "id %u is outside the bound", id); /* an operand of an extended instruction may be a literal */
  const spirv_id *i = &l->m->ids[id];
  *type = spirv_type_of_value(l->m, l->at, id);
  if (i->at < l->m->functions_at) return outside(l, id);
  if (i->op == OpFunction) UNSUPPORTED(l->m, l->at, "pointers to functions are not supported");
  lower_dominated(l, id);
  if (l->map[id] == NULL && lower_input_address(l, id) == NULL) WRONG(l, "id %u is used where it is not made yet", id);
  return l->map[id];
}

uint32_t lower_scalar(lowering *l, uint32_t id, const spirv_type **type) {
  const uint32_t *values = lower_use(l, id, type);
  if (!spirv_is_scalar(*type)) WRONG(l, "operand %u is not a scalar", id);
  return values[0];
}

void lower_define(lowering *l, uint32_t id, const uint32_t *values) { l->map[id] = (uint32_t *)values; }

uint32_t lower_emit(lowering *l, ir_insn insn, spirv_lane result) {
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

/* To a narrower float in a rounding mode: the nearest float, and one step back if it is on the wrong side. */
uint32_t lower_round_float(lowering *l, spirv_lane from, spirv_lane to, uint32_t value, uint32_t rounding) {
  uint32_t near = lower_convert(l, IR_CONVERT_F, from, to, value);
  uint32_t back = lower_convert(l, IR_CONVERT_F, to, from, near), wrong;
  double far = rounding == RoundingRTP ? HUGE_VAL : rounding == RoundingRTN ? -HUGE_VAL : 0;
  if (rounding == RoundingRTP) {
    wrong = lower_compare(l, IR_FOLT, from, back, value);
  } else if (rounding == RoundingRTN) {
    wrong = lower_compare(l, IR_FOLT, from, value, back);
  } else {
    uint32_t size = lower_op(l, IR_FABS, from, value, 0);
    wrong = lower_compare(l, IR_FOLT, from, size, lower_op(l, IR_FABS, from, back, 0));
  }
  uint32_t towards = lower_real(l, to, far);
  uint32_t step = lower_emit(
      l, (ir_insn){.op = IR_MATH2, .lane = (uint8_t)to, .a = near, .b = towards, .extra = CL_nextafter}, to);
  return lower_select(l, to, wrong, step, near);
}

/* The block goes on as this one of the module, of this inlined call. */
static void go_on(lowering *l, uint32_t block, const spirv_block *from) {
  l->k->blocks[block].activation = l->activation;
  l->k->blocks[block].label = from == NULL ? 0 : from->label;
}

static uint32_t new_block(lowering *l, const spirv_block *from) {
  uint32_t block = ir_block_new(l->k);
  l->k->blocks[block].begun = l->activation;
  go_on(l, block, from);
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
  uint32_t next = new_block(l, l->from);
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

/* The blocks that return from a call, and with what. */
typedef struct {
  uint32_t *blocks, **values, count, capacity;
} way_back;

static void inline_function(lowering *l, const spirv_function *f, uint32_t **arguments, way_back *back);

/* Goes on behind a call: in the block that returns from it, if there is one, and otherwise in a block where all join.
 * Returns the results. */
static uint32_t *come_back(lowering *l, const way_back *back, const spirv_type *type) {
  ir_kernel *k = l->k;
  if (back->count == 1) {
    l->block = back->blocks[0];
    go_on(l, l->block, l->from);
    return back->values[0];
  }
  uint32_t *results = lower_list(l, type);
  l->block = new_block(l, l->from);
  ir_block *block = &k->blocks[l->block];
  block->predecessors = back->blocks;
  block->predecessor_count = back->count;
  for (uint32_t i = 0; i < back->count; i++) {
    k->blocks[back->blocks[i]].end = END_JUMP;
    k->blocks[back->blocks[i]].successor[0] = l->block;
  }
  block->phis = SPIRV_ARRAY(l->arena, ir_phi, type->components);
  for (; block->phi_count < type->components; block->phi_count++) {
    uint64_t offset, c = block->phi_count;
    results[c] = ir_value_new(k, spirv_type_lane(spirv_leaf(type, c, &offset)));
    ir_phi *phi = &block->phis[c];
    *phi = (ir_phi){.result = results[c], .at = lower_place(l)};
    phi->sources = SPIRV_ARRAY(l->arena, uint32_t, back->count);
    for (uint32_t i = 0; i < back->count; i++) phi->sources[i] = back->values[i][c];
  }
  return results;
}

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
  way_back back = {.count = 0};
  uint32_t at = l->at, activation = l->activation, **map = l->map;
  const spirv_block *from = l->from;
  if (there != here) enter_module(l, there);
  inline_function(l, f, arguments, &back);
  l->m = here;
  l->map = map;
  l->from = from;
  l->at = at;
  l->activation = activation;
  uint32_t *results = come_back(l, &back, f->type->element);
  lower_define(l, w[2], results);
}

static void end_call(lowering *l, way_back *back, uint32_t *values) {
  l->k->blocks[l->block].end = END_RETURN; /* for now, if it is an inlined call */
  if (back == NULL) return;
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
        uint32_t next = new_block(l, from);
        branch(l, hit, TARGET(i), next);
        l->block = next;
      }
      jump(l, TARGET(0));
      break;
    }
    case OpReturn:
      if (from->function->type->element->kind != TYPE_VOID) WRONG(l, "a return without a value");
      end_call(l, back, NULL);
      break;
    case OpReturnValue: {
      const uint32_t *values = lower_use(l, w[1], &type);
      if (type != from->function->type->element) WRONG(l, "the value returned has another type");
      end_call(l, back, (uint32_t *)values);
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
  if (l->from->order == 1) WRONG(l, "a phi in the first block of a function");
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
  if (f->order_count == 1) return;
  uint32_t *counts = SPIRV_TEMPORARY(l->arena, uint32_t, k->block_count - first);
  for (int pass = 0; pass < 2; pass++) {
    /* The first block may be one of the caller's, which goes on here. Where there is a branch to began here. */
    for (uint32_t b = starts[1]; b < k->block_count; b = b < first ? first : b + 1) {
      if (k->blocks[b].activation != l->activation) continue;
      for (int s = 0; s < ir_successors(&k->blocks[b]); s++) {
        ir_block *to = &k->blocks[k->blocks[b].successor[s]];
        if (to->begun != l->activation) continue;
        if (pass == 0) counts[k->blocks[b].successor[s] - first]++;
        else to->predecessors[to->predecessor_count++] = b;
      }
    }
    for (uint32_t b = first; pass == 0 && b < k->block_count; b++)
      if (counts[b - first] != 0) k->blocks[b].predecessors = SPIRV_ARRAY(l->arena, uint32_t, counts[b - first]);
  }
  spirv_free(l->arena, counts);
  for (uint32_t i = 2; i <= f->order_count; i++) {
    uint32_t next = 0;
    for (l->at = f->order[i - 1]->first; l->at < f->order[i - 1]->terminator; l->at += spirv_length(l->m, l->at)) {
      const uint32_t *w = l->m->words + l->at;
      uint32_t op = spirv_op(l->m, l->at);
      if (op == OpLine || op == OpNoLine || op == OpLoopControlINTEL) continue;
      if (op != OpPhi) break;
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
    case OpLoopControlINTEL:
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
      lower_group_instruction(l, op, w, length) || lower_image_instruction(l, op, w, length) ||
      lower_dot_instruction(l, op, w, length))
    return;
  const spirv_instruction *known = spirv_grammar(op); /* NULL: as the operation of an OpSpecConstantOp */
  UNSUPPORTED(l->m, l->at, "Op%s (%u) is not supported", known == NULL ? "?" : known->name, op);
}

static void inline_function(lowering *l, const spirv_function *f, uint32_t **arguments, way_back *back) {
  if (++l->depth > MAX_DEPTH) WRONG(l, "calls are nested too deeply, or recursive");
  for (uint64_t i = 0; i < f->type->count; i++) lower_define(l, f->parameters[i], arguments[i]);
  uint32_t first = l->k->block_count, *starts = SPIRV_ARRAY(l->arena, uint32_t, f->order_count + 1);
  l->activation = ++l->activations;
  starts[1] = l->block; /* which goes on as the first block of the function */
  go_on(l, l->block, f->order[0]);
  for (uint32_t i = 1; i < f->order_count; i++) starts[i + 1] = new_block(l, f->order[i]);
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
  l->block = new_block(l, NULL);
  if (f->block_count == 0) WRONG(l, "the entry point %s has no body", e->name);
  if (f->type->element->kind != TYPE_VOID) WRONG(l, "the entry point %s returns a value", e->name);
  uint32_t **arguments = SPIRV_ARRAY(arena, uint32_t *, f->type->count + 1);
  parameters(l, f, arguments);
  uint32_t entry = new_block(l, NULL); /* block 0 stays the one before all others: what dominates them is added to it */
  jump(l, entry);
  l->block = entry;
  inline_function(l, f, arguments, NULL);
  own_copies(l, f);
  return l->k;
}
