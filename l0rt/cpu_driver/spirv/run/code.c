/* SPDX-License-Identifier: Apache-2.0 */
/* code.c: makes steps from the intermediate form of a kernel: it places registers and chooses handlers.
 *
 * A value that lives in one block only shares its register with other values of the block. A value that lives longer
 * has a register of its own: a value of a lane that waits may be computed again, and must then be the same. */
#include <string.h>

#include "spirv/run/run.h"

enum {
  REGISTER_BUDGET = 512 << 10, /* bytes of a wave that stay in a near cache; a kernel with more has narrower waves */
  REGISTER_LIMIT = 64 << 20,
  SLOT_SIZES = 4,
};

typedef struct {
  spirv_arena *arena; /* of the code; the intermediate form has another, which ends when the code is made */
  ir_kernel *k;
  const spirv_handlers *handlers;
  spirv_code *code;
  uint32_t step_capacity, info_capacity, step_count;
  uint32_t lane_bytes, uniform_bytes; /* allocated so far */
  uint32_t *last_use;                 /* where a block uses a value last that lives in that block only */
  uint32_t *free_slots[SLOT_SIZES];
  uint32_t free_count[SLOT_SIZES], free_capacity[SLOT_SIZES];
  bool *needs_wide;
  uint32_t *splat_lane; /* where the wide copy lies */
  uint16_t ranges;
} coder;

static bool varying(const coder *c, uint32_t value) { return c->k->values[value].varying; }

/* ---- Which form ------------------------------------------------------------------------------------------------------- */

static bool is_rare(uint32_t op) {
#define CASE(name, expression) case IR_##name:
  switch (op) {
    IR_RARE2(CASE) return true;
    default: return false;
  }
}

static bool is_per_lane(const ir_insn *insn) { /* its handler reads each operand in every lane */
  switch (insn->op) {
    case IR_ATOMIC:
    case IR_COPY_MEMORY:
    case IR_ASYNC_COPY:
    case IR_GROUP_PUT:
    case IR_GROUP_GET:
    case IR_SUBGROUP:
    case IR_IMAGE:
    case IR_PRINTF: return true;
    default: return false;
  }
}

/* Returns the form of an instruction, and, as bits, which uniform operands it needs in every lane. */
static int form_of(const coder *c, ir_insn *insn, unsigned *wide) {
  bool a = varying(c, insn->a), b = varying(c, insn->b), third = varying(c, insn->c), d = varying(c, insn->result);
  *wide = 0;
  if (is_per_lane(insn)) {
    *wide = 15;
    return FORM_VV;
  }
  switch (insn->op) {
    case IR_STORE:
      if (!a && !b) return FORM_SS;
      *wide = 3;
      return FORM_VV;
    case IR_LOAD:
      if (!d) return FORM_SS;
      *wide = 1;
      return FORM_VV;
    case IR_LOAD_AT: *wide = 2; return FORM_VV;
    case IR_STORE_AT: *wide = 6; return FORM_VV;
    case IR_COPY: return d && !a ? FORM_VS : d ? FORM_VV : FORM_SS;
    case IR_SELECT:
      if (!d) return FORM_SS;
      if (a && !b && !third) return FORM_VS;
      *wide = 7;
      return FORM_VV;
    default: break;
  }
  if (!d) return FORM_SS;
  if (insn->op == IR_FMA || insn->op == IR_MATH2 || insn->op == IR_MATH2_INT || insn->op == IR_GENERIC_CAST ||
      insn->b == 0 || is_rare(insn->op)) {
    *wide = 7;
    return FORM_VV;
  }
  if (!a && !b) {
    *wide = 1;
    return FORM_VS;
  }
  return a && b ? FORM_VV : a ? FORM_VS : FORM_SV;
}

/* ---- Registers ---------------------------------------------------------------------------------------------------------- */

static int size_class(uint32_t size) { return size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3; }

static uint32_t lane_slot(coder *c, uint32_t lane) {
  uint32_t size = spirv_lane_size[lane];
  c->lane_bytes = (c->lane_bytes + size - 1) / size * size;
  uint32_t place = c->lane_bytes;
  c->lane_bytes += size;
  return place;
}

static uint32_t take_slot(coder *c, uint32_t lane) {
  int size = size_class(spirv_lane_size[lane]);
  return c->free_count[size] != 0 ? c->free_slots[size][--c->free_count[size]] : lane_slot(c, lane);
}

static void give_slot(coder *c, uint32_t lane, uint32_t slot) {
  int size = size_class(spirv_lane_size[lane]);
  c->free_slots[size] = spirv_grow(c->k->arena, c->free_slots[size], c->free_count[size], &c->free_capacity[size],
                                   sizeof(uint32_t));
  c->free_slots[size][c->free_count[size]++] = slot;
}

static void note_use(coder *c, uint32_t value, uint32_t block, uint32_t at) {
  ir_value *v = &c->k->values[value];
  if (v->constant) return;
  if (v->block != block + 1) v->across = true;
  if (c->last_use[value] < at) c->last_use[value] = at;
}

/* Finds where values are made and used, and which uniform ones are needed in every lane. */
static void survey(coder *c) {
  ir_kernel *k = c->k;
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t p = 0; p < block->phi_count; p++) k->values[block->phis[p].result].across = true;
    for (uint32_t n = 0; n < block->count; n++) {
      ir_value *made = &k->values[block->insns[n].result];
      if (made->block != 0 && made->block != i + 1) made->across = true;
      made->block = i + 1;
    }
    for (uint32_t n = block->whole_tail; n < block->whole_count; n++) k->values[block->whole[n].result].block = i + 1;
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn *insn = &block->insns[n];
      unsigned wide;
      form_of(c, insn, &wide);
      for (int o = 0; ir_operand(insn, o) != NULL; o++) {
        uint32_t value = *ir_operand(insn, o);
        if (value == 0) continue;
        note_use(c, value, i, n + 1);
        if ((wide >> o & 1) != 0 && !varying(c, value)) c->needs_wide[value] = true;
      }
      if (insn->op != IR_PRINTF) continue;
      const ir_printf *print = &k->printfs[insn->imm];
      for (uint32_t v = 0; v < print->component_count; v++) {
        note_use(c, print->components[v], i, n + 1);
        if (!varying(c, print->components[v])) c->needs_wide[print->components[v]] = true;
      }
    }
    for (uint32_t n = block->whole_tail; n < block->whole_count; n++) /* these are not in the order of the others */
      for (int o = 0; ir_operand(&block->whole[n], o) != NULL; o++)
        note_use(c, *ir_operand(&block->whole[n], o), i, block->count + 1);
    if (block->end == END_BRANCH) note_use(c, block->condition, i, block->count + 1);
  }
}

/* Does its handler leave the register of a lane that does not run as it is? All others compute it anew in every lane. */
static bool is_masked(uint32_t op) {
  return op == IR_LOAD || op == IR_LOAD_AT || op == IR_ATOMIC || op == IR_COPY || op == IR_GROUP_GET ||
         op == IR_SUBGROUP;
}

/* A lane that has left a loop waits while others run its blocks again. What it waits with is computed anew, from what
 * the block has loaded for the lane before. So that must not share its register with others, which would be in it now. */
static void keep_what_lasting_values_need(coder *c) {
  ir_kernel *k = c->k;
  bool *needed = SPIRV_TEMPORARY(k->arena, bool, k->value_count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    if (block->loop == IR_EXIT && !k->irreducible) continue;
    for (uint32_t n = block->count; n-- > 0;) {
      ir_insn *insn = &block->insns[n];
      ir_value *made = &k->values[insn->result];
      if (insn->result == 0 || (!made->across && !needed[insn->result])) continue;
      made->across |= is_masked(insn->op);
      if (is_masked(insn->op)) continue;
      for (int o = 0; ir_operand(insn, o) != NULL; o++) needed[*ir_operand(insn, o)] = true;
    }
  }
  spirv_free(k->arena, needed);
}

/* A uniform register has eight bytes. Until the width is known, `place` of a varying one is in bytes of one lane. */
static void place_uniform(coder *c, ir_value *v) {
  v->place = c->uniform_bytes;
  c->uniform_bytes += 8;
}

static void place_lasting(coder *c) {
  ir_kernel *k = c->k;
  c->uniform_bytes = 64; /* of value 0 */
  for (uint32_t i = 1; i < k->value_count; i++) {
    ir_value *v = &k->values[i];
    if (!v->constant && v->block == 0) continue; /* no instruction makes it */
    if (v->constant && c->last_use[i] == 0 && !v->used) continue;
    if (!v->varying) place_uniform(c, v);
    else if (v->across) v->place = lane_slot(c, v->lane);
    if (c->needs_wide[i] && !v->varying) c->splat_lane[i] = lane_slot(c, v->lane) + 1;
  }
}

static void place_in_block(coder *c, const ir_block *block) {
  ir_kernel *k = c->k;
  for (uint32_t n = 0; n < block->count; n++) {
    ir_insn *insn = &block->insns[n];
    ir_value *made = &k->values[insn->result];
    if (insn->result != 0 && made->varying && !made->across) made->place = take_slot(c, made->lane);
    for (int o = -1; o < 4; o++) {
      uint32_t value = o < 0 ? insn->result : ir_operand(insn, o) == NULL ? 0 : *ir_operand(insn, o);
      const ir_value *v = &k->values[value];
      if (value == 0 || !v->varying || v->across || v->constant || c->last_use[value] > n + 1) continue;
      if (o < 0 && c->last_use[value] != 0) continue; /* it is used later */
      give_slot(c, v->lane, v->place);
      c->last_use[value] = UINT32_MAX; /* it is released once */
    }
  }
  for (uint32_t n = 0; n < block->count; n++) { /* the branch's condition, and what printf keeps */
    uint32_t value = block->insns[n].result;
    const ir_value *v = &k->values[value];
    if (value == 0 || !v->varying || v->across || c->last_use[value] == UINT32_MAX) continue;
    give_slot(c, v->lane, v->place);
    c->last_use[value] = UINT32_MAX;
  }
}

static uint32_t final_place(const coder *c, uint32_t value) {
  const ir_value *v = &c->k->values[value];
  return v->varying ? c->uniform_bytes + v->place * c->code->width : v->place;
}

static uint32_t wide_place(const coder *c, uint32_t value) {
  if (varying(c, value) || value == 0) return final_place(c, value);
  return c->uniform_bytes + (c->splat_lane[value] - 1) * c->code->width;
}

/* Lists the registers that lanes keep for longer than a block. */
static void list_lasting(coder *c) {
  ir_kernel *k = c->k;
  spirv_code *code = c->code;
  uint32_t capacity = 0;
  for (uint32_t i = 1; i < k->value_count; i++) {
    const ir_value *v = &k->values[i];
    uint32_t size = spirv_lane_size[v->lane];
    bool made = v->varying && v->across && v->block != 0, wide = !v->varying && !v->constant && c->splat_lane[i] != 0;
    if (!made && !wide) continue;
    code->lasting = spirv_grow(c->arena, code->lasting, code->lasting_count, &capacity, sizeof(spirv_lasting));
    code->lasting[code->lasting_count++] = (spirv_lasting){.place = made ? final_place(c, i) : wide_place(c, i),
                                                           .size = size};
    code->lasting_bytes += size;
  }
}

/* ---- Loops whose lanes may be compacted ------------------------------------------------------------------------------- */

/* Does the operation depend on the position of its lane? */
static bool is_placed(const coder *c, const ir_insn *insn) {
  switch (insn->op) {
    case IR_BUILTIN:
    case IR_ARGUMENT_ADDRESS:
    case IR_LOCAL_ADDRESS:
    case IR_LOCAL_ARGUMENT:
    case IR_PRIVATE_ADDRESS: return varying(c, insn->result);
    case IR_ASYNC_COPY:
    case IR_GROUP_PUT:
    case IR_GROUP_GET:
    case IR_SUBGROUP:
    case IR_PRINTF: return true;
    default: return false;
  }
}

/* From the header of a loop to its last block, all of which stand together. */
static void find_compactable(coder *c) {
  ir_kernel *k = c->k;
  spirv_code *code = c->code;
  for (uint32_t i = 0; i < k->order_count && !k->irreducible; i++) {
    uint32_t header = k->order[i], last = i, steps = 0;
    if (k->blocks[header].loop != header) continue;
    for (uint32_t p = 0; p < k->blocks[header].predecessor_count; p++) {
      uint32_t order = k->blocks[k->blocks[header].predecessors[p]].order - 1;
      if (order > last) last = order;
    }
    bool good = i != 0 && k->blocks[header].unsettled;
    for (uint32_t b = i; b <= last && good; b++) {
      const ir_block *block = &k->blocks[k->order[b]];
      good = block->end != END_BARRIER;
      for (uint32_t n = 0; n < block->count; n++) good = good && !is_placed(c, &block->insns[n]);
      steps += code->blocks[b].steps.count + 1;
    }
    if (!good) continue;
    code->blocks[i].loop_end = last;
    code->blocks[i].loop_steps = steps;
    code->compacts = true;
  }
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------- */

static spirv_step *step_new(coder *c, uint32_t op) {
  c->code->steps = spirv_grow(c->arena, c->code->steps, c->step_count, &c->step_capacity, sizeof(spirv_step));
  c->code->infos = spirv_grow(c->arena, c->code->infos, c->step_count, &c->info_capacity, sizeof(spirv_step_info));
  c->code->infos[c->step_count] = (spirv_step_info){.op = (uint16_t)op};
  return &c->code->steps[c->step_count++];
}

static void describe(coder *c, ir_insn *insn, unsigned wide) {
  spirv_step_info *info = &c->code->infos[c->step_count - 1];
  for (int o = -1; o < 3; o++) {
    uint32_t value = o < 0 ? insn->result : *ir_operand(insn, o);
    if (value == 0) continue;
    info->lanes[o + 1] = c->k->values[value].lane;
    info->registers |= (uint8_t)(1u << (o + 1));
    if (varying(c, value) || (o >= 0 && (wide >> o & 1) != 0)) info->varying |= (uint8_t)(1u << (o + 1));
  }
}

static void splat(coder *c, uint32_t value, uint32_t at) {
  uint32_t lane = c->k->values[value].lane;
  spirv_step *s = step_new(c, IR_SPLAT);
  s->run = c->handlers->find(IR_SPLAT, (spirv_lane)lane, (spirv_lane)lane, FORM_VS, 0);
  s->d = wide_place(c, value);
  s->a = final_place(c, value);
  s->at = at;
}

static spirv_handler *uniform_copy(const coder *c, spirv_lane lane) {
  static const spirv_lane integers[] = {0, LANE_I8, LANE_I16, 0, LANE_I32, 0, 0, 0, LANE_I64};
  lane = integers[spirv_lane_size[lane]];
  return c->handlers->find(IR_BITS, lane, lane, FORM_SS, 0);
}

static void step_of(coder *c, ir_insn *insn) {
  unsigned wide;
  int form = form_of(c, insn, &wide);
  spirv_lane lane = (spirv_lane)insn->lane,
             result = insn->result == 0 ? lane : (spirv_lane)c->k->values[insn->result].lane;
  spirv_step *s = step_new(c, insn->op);
  describe(c, insn, wide);
  *s = (spirv_step){.d = final_place(c, insn->result),
                    .imm = insn->imm,
                    .extra = insn->extra,
                    .at = insn->at,
                    .scale = insn->scale,
                    .lane = insn->lane};
  uint32_t *places[3] = {&s->a, &s->b, &s->c};
  for (int o = 0; o < 3; o++) {
    uint32_t value = *ir_operand(insn, o);
    *places[o] = wide >> o & 1 ? wide_place(c, value) : final_place(c, value);
  }
  bool remembers = insn->op == IR_LOAD || insn->op == IR_STORE || insn->op == IR_LOAD_AT || insn->op == IR_STORE_AT ||
                   insn->op == IR_ATOMIC || insn->op == IR_IMAGE;
  if (remembers && c->ranges < UINT16_MAX) s->range = c->ranges++;
  if (insn->op == IR_ASYNC_COPY) s->extra = wide_place(c, insn->extra);
  bool is_math = insn->op == IR_MATH1 || insn->op == IR_MATH2 || insn->op == IR_MATH2_INT || insn->op == IR_MATH1_INT;
  if (is_math) s->run = spirv_math((ir_op)insn->op, lane, insn->extra, form == FORM_SS);
  else if (insn->op == IR_COPY && form == FORM_SS) s->run = uniform_copy(c, lane);
  else s->run = c->handlers->find((ir_op)insn->op, lane, result, form, insn->extra);
  if (s->run == NULL) {
    s->run = spirv_special((ir_op)insn->op, lane);
    if (insn->op == IR_BUILTIN || insn->op == IR_ARGUMENT_ADDRESS || insn->op == IR_LOCAL_ADDRESS ||
        insn->op == IR_LOCAL_ARGUMENT || insn->op == IR_GENERIC_CAST || insn->op == IR_GROUP_GET ||
        insn->op == IR_IMAGE_QUERY)
      s->scale = varying(c, insn->result); /* whether it is done for each lane */
  }
  if (s->run == NULL)
    spirv_unsupported(c->arena, insn->at, "operation %u on lanes of kind %u is not supported", insn->op, lane);
  if (insn->result != 0 && c->needs_wide[insn->result] && !varying(c, insn->result)) splat(c, insn->result, insn->at);
}

static void constants(coder *c) {
  spirv_code *code = c->code;
  ir_kernel *k = c->k;
  uint32_t capacity = 0;
  for (uint32_t i = 1; i < k->value_count; i++) {
    const ir_value *v = &k->values[i];
    if (!v->constant || v->place == 0) continue;
    code->constants = spirv_grow(c->arena, code->constants, code->constant_count, &capacity,
                                 sizeof(spirv_code_constant));
    code->constants[code->constant_count++] = (spirv_code_constant){
        .bits = v->bits, .place = v->place, .lane = v->lane, .wide = c->needs_wide[i] ? wide_place(c, i) : 0};
  }
}

static void printfs(coder *c) {
  ir_kernel *k = c->k;
  c->code->printf_count = k->printf_count;
  c->code->printfs = SPIRV_ARRAY(c->arena, spirv_code_printf, k->printf_count);
  for (uint32_t i = 0; i < k->printf_count; i++) {
    const ir_printf *from = &k->printfs[i];
    spirv_code_printf *to = &c->code->printfs[i];
    to->arguments = SPIRV_ARRAY(c->arena, uint8_t, from->argument_count);
    if (from->argument_count != 0) memcpy(to->arguments, from->arguments, from->argument_count);
    to->argument_count = from->argument_count;
    to->component_count = from->component_count;
    to->places = SPIRV_ARRAY(c->arena, uint32_t, from->component_count);
    to->lanes = SPIRV_ARRAY(c->arena, uint8_t, from->component_count);
    for (uint32_t v = 0; v < from->component_count; v++) {
      const ir_value *value = &k->values[from->components[v]];
      bool made = value->constant || value->block != 0; /* false for a printf that is unreachable */
      to->places[v] = made ? wide_place(c, from->components[v]) : 0;
      to->lanes[v] = value->lane;
    }
  }
}

/* Checks that the operands of each instruction have the lane kinds that its handler reads, whatever the module says. */
static void check_lanes(coder *c, const ir_insn *insn) {
  const ir_value *v = c->k->values;
  bool good = true;
  uint8_t size = spirv_lane_size[insn->lane];
#define SAME(x) (v[x].lane == insn->lane)
  if (insn->op < IR_SELECT || insn->op == IR_FMA || insn->op == IR_COPY) {
    good = SAME(insn->a) && (insn->b == 0 || SAME(insn->b)) && (insn->c == 0 || SAME(insn->c));
  } else if (insn->op == IR_SELECT) {
    good = v[insn->a].lane == LANE_BOOL && spirv_lane_size[v[insn->b].lane] == size &&
           spirv_lane_size[v[insn->c].lane] == size;
  } else if (insn->op == IR_LOAD || insn->op == IR_STORE || insn->op == IR_ATOMIC) {
    good = v[insn->a].lane == LANE_I64 && (insn->b == 0 || SAME(insn->b)) && (insn->c == 0 || SAME(insn->c));
  } else if (insn->op == IR_LOAD_AT || insn->op == IR_STORE_AT) {
    good = v[insn->a].lane == LANE_I64 && v[insn->b].lane == (insn->extra == IR_INDEX_64 ? LANE_I64 : LANE_I32) &&
           (insn->c == 0 || SAME(insn->c));
  } else if (insn->op >= IR_CONVERT_U && insn->op <= IR_BITS) {
    good = SAME(insn->a);
  } else if (insn->op == IR_INDEX) {
    good = v[insn->a].lane == LANE_I64 && SAME(insn->b);
  } else if (insn->op == IR_IMAGE || insn->op == IR_IMAGE_QUERY) {
    good = v[insn->a].lane == LANE_I64 && (insn->b == 0 || v[insn->b].lane == LANE_I64) &&
           (insn->c == 0 || v[insn->c].lane == LANE_I64);
  }
#undef SAME
  if (!good) spirv_refuse(c->arena, insn->at, "operation %u has operands of other types", insn->op);
}

/* From `tail` on, the results are phis. */
static spirv_steps steps_of(coder *c, const ir_block *block, ir_insn *insns, uint32_t count, uint32_t tail) {
  spirv_steps made = {.first = c->step_count};
  for (uint32_t p = 0; p < block->phi_count; p++) {
    uint32_t value = block->phis[p].result;
    if (c->needs_wide[value] && !varying(c, value)) splat(c, value, block->at);
  }
  for (uint32_t n = 0; n < count; n++) {
    uint32_t result = insns[n].result;
    bool wide = c->needs_wide[result], to_phi = insns[n].op == IR_COPY && c->k->values[result].across;
    check_lanes(c, &insns[n]);
    if (to_phi || n >= tail) c->needs_wide[result] = false; /* the phi's block spreads it */
    step_of(c, &insns[n]);
    c->needs_wide[result] = wide;
  }
  made.count = c->step_count - made.first;
  return made;
}

/* About: so that their array need not grow. A kernel without steps has an array too: the address of a block's steps is
 * computed from it. */
static uint32_t count_steps(const coder *c) {
  const ir_kernel *k = c->k;
  uint32_t count = 1;
  for (uint32_t i = 0; i < k->order_count; i++)
    count += k->blocks[k->order[i]].count + k->blocks[k->order[i]].whole_count;
  for (uint32_t v = 0; v < k->value_count; v++)
    count += c->needs_wide[v] && !k->values[v].varying && !k->values[v].constant;
  return count;
}

static void make_steps(coder *c) {
  c->step_capacity = c->info_capacity = count_steps(c);
  c->code->steps = SPIRV_ARRAY(c->arena, spirv_step, c->step_capacity);
  c->code->infos = SPIRV_ARRAY(c->arena, spirv_step_info, c->info_capacity);
  ir_kernel *k = c->k;
  spirv_code *code = c->code;
  code->block_count = k->order_count;
  code->blocks = SPIRV_ARRAY(c->arena, spirv_code_block, k->order_count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    spirv_code_block *made = &code->blocks[i];
    made->steps = steps_of(c, block, block->insns, block->count, block->count);
    made->whole = made->steps;
    if (block->whole_count != 0) made->whole = steps_of(c, block, block->whole, block->whole_count, block->whole_tail);
    made->end = block->end;
    made->at = block->at;
    if (block->end == END_BRANCH) {
      if (k->values[block->condition].lane != LANE_BOOL)
        spirv_refuse(c->arena, block->at, "the condition is not a bool");
      made->varying = varying(c, block->condition);
      made->condition = final_place(c, block->condition);
    }
    for (int s = 0; s < ir_successors(block); s++) made->successor[s] = k->blocks[block->successor[s]].order - 1;
  }
}

/* Private memory is slow: each lane has its own, and an access takes its lanes one by one. A variable that a promoted one
 * points to may be promoted after it. */
static void leave_private_memory(ir_kernel *k) {
  enum { STEPS = 4 };
  for (int i = 0; i < STEPS && ir_promote(k); i++) continue;
  ir_unroll(k);
  ir_fold(k);
  ir_find_varying(k);
  ir_simplify(k);
  ir_find_order(k);
  for (int i = 0; i < STEPS && ir_promote(k); i++) continue;
  ir_fold(k);
}

const spirv_code *spirv_code_new(spirv_arena *arena, ir_kernel *k, const spirv_handlers *handlers, uint32_t width,
                                 uint32_t subgroup) {
  ir_find_order(k);
  if (k->private_bytes != 0 && !k->irreducible) leave_private_memory(k);
  ir_find_varying(k);
  ir_simplify(k);
  ir_find_order(k);
  ir_find_varying(k);
  ir_cheapen(k);
  ir_fuse(k);
  ir_remove_unused(k);
  ir_hoist(k);
  ir_join_products(k); /* what is left of them in loops, and outside of addresses */
  ir_replace_phis(k);
  coder c = {.arena = arena, .k = k, .handlers = handlers, .code = SPIRV_NEW(arena, spirv_code)};
  c.last_use = SPIRV_ARRAY(k->arena, uint32_t, k->value_count);
  c.needs_wide = SPIRV_ARRAY(k->arena, bool, k->value_count);
  c.splat_lane = SPIRV_ARRAY(k->arena, uint32_t, k->value_count);
  survey(&c);
  keep_what_lasting_values_need(&c);
  for (uint32_t i = 1; i < k->value_count; i++) k->values[i].used |= c.needs_wide[i];
  place_lasting(&c);
  for (uint32_t i = 0; i < k->order_count; i++) place_in_block(&c, &k->blocks[k->order[i]]);
  c.uniform_bytes = (c.uniform_bytes + 63) & ~63u;
  uint32_t chosen = width != 0 ? width : MAX_LANES;
  while (width == 0 && chosen > 32 && (uint64_t)c.lane_bytes * chosen > REGISTER_BUDGET) chosen /= 2;
  if (chosen < subgroup) chosen = subgroup;
  spirv_code *code = c.code;
  code->handlers = handlers;
  code->width = chosen;
  code->subgroup = subgroup;
  code->register_bytes = c.uniform_bytes + (uint64_t)c.lane_bytes * chosen;
  if (code->register_bytes > REGISTER_LIMIT) spirv_refuse(arena, 0, "the kernel has too many values");
  code->local_bytes = k->local_bytes;
  code->private_bytes = (k->private_bytes + 15) & ~(uint64_t)15;
  code->barriers = k->barriers;
  c.ranges = 1; /* 0 stands for no range */
  list_lasting(&c);
  make_steps(&c);
  find_compactable(&c);
  constants(&c);
  printfs(&c);
  code->range_count = c.ranges + 1;
  return code;
}
