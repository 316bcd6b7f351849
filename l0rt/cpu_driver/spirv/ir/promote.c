/* SPDX-License-Identifier: Apache-2.0 */
/* promote.c: keeps private variables in registers, if all accesses are loads and stores at constant offsets, or copies to
 * them, as producers write initialisers.
 *
 * Each element that is accessed is a slot. A slot gets phis in the iterated dominance frontier of its stores, as Cytron et
 * al. describe it ("Efficiently computing static single assignment form and the control dependence graph", 1991); those
 * that nothing needs are removed later. */
#include <stdlib.h>

#include "spirv/ir/ir.h"

enum { MOST_SLOTS = 512, MOST_LOOKS = 1 << 26, MOST_WALKS = 1 << 28 }; /* the latter: slots × values, × blocks twice */

typedef struct {
  uint32_t base; /* the value that an IR_PRIVATE_ADDRESS makes */
  uint64_t place, end; /* of its variable in private memory */
  bool stays; /* in memory */
} variable;

typedef struct {
  uint64_t place;
  uint32_t lane, variable;
} slot;

typedef struct {
  ir_kernel *k;
  variable *variables;
  slot *slots;
  uint32_t variable_count, variable_capacity, slot_count, slot_capacity;
  bool wild; /* an access is outside of its variable */
  uint32_t *variable_of; /* of each address: its variable, from 1; 0: it is another value */
  uint64_t *place_of; /* of each address: in private memory */
  uint32_t *alias; /* of each value that a load made: the one that replaces it */
} promoter;

static int by_place(const void *a, const void *b) {
  const variable *x = a, *y = b;
  return x->place < y->place ? -1 : x->place > y->place;
}

static void find_variables(promoter *p) {
  ir_kernel *k = p->k;
  for (uint32_t n = 0; n < k->blocks[0].count; n++) {
    const ir_insn *insn = &k->blocks[0].insns[n];
    if (insn->op != IR_PRIVATE_ADDRESS) continue;
    p->variables = spirv_grow(k->arena, p->variables, p->variable_count, &p->variable_capacity, sizeof(variable));
    p->variables[p->variable_count++] = (variable){.base = insn->result, .place = insn->imm};
  }
  if (p->variable_count != 0) qsort(p->variables, p->variable_count, sizeof(variable), by_place);
  for (uint32_t i = 0; i < p->variable_count; i++) {
    variable *v = &p->variables[i];
    bool last = i + 1 == p->variable_count;
    v->end = last ? k->private_bytes : p->variables[i + 1].place;
    p->variable_of[v->base] = i + 1;
    p->place_of[v->base] = v->place;
    if (last || v->end != v->place) continue;
    v->stays = p->variables[i + 1].stays = true; /* two addresses of one variable */
  }
}

static void keep(promoter *p, uint32_t value) {
  if (p->variable_of[value] != 0) p->variables[p->variable_of[value] - 1].stays = true;
}

/* Is the access one of the variable? Otherwise it may be one of any other. */
static bool is_inside(promoter *p, uint32_t address, uint64_t place, uint64_t size) {
  const variable *v = &p->variables[p->variable_of[address] - 1];
  if (place >= v->place && place <= v->end && size <= v->end - place) return true;
  p->wild = true;
  return false;
}

static void note_access(promoter *p, const ir_insn *insn) {
  uint64_t place = p->place_of[insn->a] + insn->imm, size = spirv_memory_size[insn->lane];
  uint32_t number = p->variable_of[insn->a];
  if (!is_inside(p, insn->a, place, size) || p->variables[number - 1].stays) return;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    const slot *s = &p->slots[i];
    if (s->place == place && s->lane == insn->lane) return;
    if (s->place < place + size && place < s->place + spirv_memory_size[s->lane]) {
      keep(p, insn->a); /* it is accessed by parts, or as another type */
      return;
    }
  }
  if (p->slot_count == MOST_SLOTS) {
    keep(p, insn->a);
    return;
  }
  p->slots = spirv_grow(p->k->arena, p->slots, p->slot_count, &p->slot_capacity, sizeof(slot));
  p->slots[p->slot_count++] = (slot){.place = place, .lane = insn->lane, .variable = number};
}

static bool is_copy(const promoter *p, const ir_insn *insn) {
  return insn->op == IR_COPY_MEMORY && p->variable_of[insn->a] != 0 && p->k->values[insn->c].constant;
}

/* An address plus a constant is an address; every other use lets the variable stay in memory. */
static void note_uses(promoter *p, ir_insn *insn) {
  const ir_value *second = &p->k->values[insn->b];
  if (p->variable_of[insn->a] != 0 && second->constant && insn->lane == LANE_I64 && insn->op == IR_ADD) {
    p->variable_of[insn->result] = p->variable_of[insn->a];
    p->place_of[insn->result] = p->place_of[insn->a] + second->bits;
    return;
  }
  bool copies = is_copy(p, insn), accesses = insn->op == IR_LOAD || insn->op == IR_STORE || copies;
  if (copies) is_inside(p, insn->a, p->place_of[insn->a], p->k->values[insn->c].bits);
  else if (accesses && p->variable_of[insn->a] != 0) note_access(p, insn);
  for (int o = accesses ? 1 : 0; ir_operand(insn, o) != NULL; o++) keep(p, *ir_operand(insn, o));
}

static void find_slots(promoter *p) {
  ir_kernel *k = p->k;
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) note_uses(p, &block->insns[n]);
    if (block->end == END_BRANCH) keep(p, block->condition);
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t f = 0; f < block->phi_count; f++)
      for (uint32_t s = 0; s < block->predecessor_count; s++) keep(p, block->phis[f].sources[s]);
  }
  for (uint32_t f = 0; f < k->printf_count; f++)
    for (uint32_t c = 0; c < k->printfs[f].component_count; c++) keep(p, k->printfs[f].components[c]);
}

/* What is copied in part stays in memory. */
static void check_copies(promoter *p) {
  const ir_kernel *k = p->k;
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      const ir_insn *insn = &block->insns[n];
      if (!is_copy(p, insn)) continue;
      uint64_t begin = p->place_of[insn->a], end = begin + k->values[insn->c].bits;
      for (uint32_t s = 0; s < p->slot_count; s++) {
        uint64_t first = p->slots[s].place, last = first + spirv_memory_size[p->slots[s].lane];
        if (last > begin && first < end && (first < begin || last > end)) keep(p, insn->a);
      }
    }
  }
}

/* Notes in each access the number of its slot, from 1; 0: the access stays. */
static void number_access(const promoter *p, ir_insn *insn) {
  uint32_t number = insn->op == IR_LOAD || insn->op == IR_STORE ? p->variable_of[insn->a] : 0;
  if (number == 0 || p->variables[number - 1].stays) return;
  while (p->slots[insn->extra].place != p->place_of[insn->a] + insn->imm) insn->extra++;
  insn->extra++;
}

/* A copy becomes a load and a store of each slot. */
static void number_accesses(promoter *p) {
  ir_kernel *k = p->k;
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    ir_insn *insns = NULL;
    uint32_t count = 0, capacity = 0;
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn insn = block->insns[n];
      if (!is_copy(p, &insn) || p->variables[p->variable_of[insn.a] - 1].stays) {
        number_access(p, &insn);
        ir_push(k, &insns, &count, &capacity, insn);
        continue;
      }
      uint64_t begin = p->place_of[insn.a], end = begin + k->values[insn.c].bits;
      for (uint32_t s = 0; s < p->slot_count; s++) {
        if (p->slots[s].place < begin || p->slots[s].place >= end) continue;
        uint8_t lane = (uint8_t)p->slots[s].lane;
        uint64_t offset = p->slots[s].place - begin;
        uint32_t value = ir_value_new(k, lane);
        ir_push(k, &insns, &count, &capacity,
                (ir_insn){.op = IR_LOAD, .lane = lane, .result = value, .a = insn.b, .imm = offset, .at = insn.at});
        ir_push(
            k, &insns, &count, &capacity,
            (ir_insn){
                .op = IR_STORE, .lane = lane, .a = insn.a, .b = value, .imm = offset, .extra = s + 1, .at = insn.at});
      }
    }
    block->insns = insns;
    block->count = count;
    block->capacity = capacity;
  }
}

static uint32_t slot_of(const ir_insn *insn) { return insn->op == IR_LOAD || insn->op == IR_STORE ? insn->extra : 0; }

/* Adds a phi without sources to each block of the iterated dominance frontier of the blocks that store to the slot. */
static void place_phis(promoter *p, uint32_t number, uint32_t *phi_of, uint32_t *stack, bool *listed) {
  ir_kernel *k = p->k;
  uint32_t depth = 0;
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    listed[k->order[i]] = false;
    for (uint32_t n = 0; n < block->count && !listed[k->order[i]]; n++)
      if (block->insns[n].op == IR_STORE && slot_of(&block->insns[n]) == number) {
        listed[k->order[i]] = true;
        stack[depth++] = k->order[i];
      }
  }
  while (depth != 0) {
    uint32_t from = stack[--depth];
    for (uint32_t i = 0; i < k->order_count; i++) { /* the frontier: joins behind what `from` dominates */
      uint32_t join = k->order[i];
      if (k->blocks[join].predecessor_count < 2 || phi_of[join] != 0) continue;
      bool reaches = false;
      for (uint32_t s = 0; s < k->blocks[join].predecessor_count && !reaches; s++)
        for (uint32_t at = k->blocks[join].predecessors[s]; !reaches && at != k->blocks[join].dominator;
             at = k->blocks[at].dominator)
          reaches = at == from;
      if (!reaches) continue;
      ir_block *block = &k->blocks[join];
      block->phis = spirv_grow(k->arena, block->phis, block->phi_count, &block->phi_capacity, sizeof(ir_phi));
      ir_phi *phi = &block->phis[block->phi_count++];
      *phi = (ir_phi){.result = ir_value_new(k, (spirv_lane)p->slots[number - 1].lane), .at = block->at};
      phi->sources = SPIRV_ARRAY(k->arena, uint32_t, block->predecessor_count + 1);
      phi_of[join] = phi->result;
      if (!listed[join]) stack[depth++] = join;
      listed[join] = true;
    }
  }
}

/* Replaces the loads and stores of a slot. The blocks come in an order in which dominators are first. */
static void rename_slot(promoter *p, uint32_t number, const uint32_t *phi_of, uint32_t *last) {
  ir_kernel *k = p->k;
  uint32_t undefined = ir_constant(k, (spirv_lane)p->slots[number - 1].lane, 0);
  for (uint32_t i = 0; i < k->order_count; i++) {
    uint32_t b = k->order[i], value = i == 0 ? undefined : last[k->blocks[b].dominator];
    if (phi_of[b] != 0) value = phi_of[b];
    for (uint32_t n = 0; n < k->blocks[b].count; n++) {
      ir_insn *insn = &k->blocks[b].insns[n];
      if (slot_of(insn) != number) continue;
      if (insn->op == IR_STORE) value = insn->b;
      else p->alias[insn->result] = value;
    }
    last[b] = value;
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    if (phi_of[k->order[i]] == 0) continue;
    ir_phi *phi = &block->phis[block->phi_count - 1];
    while (phi->result != phi_of[k->order[i]]) phi--;
    for (uint32_t s = 0; s < block->predecessor_count; s++) phi->sources[s] = last[block->predecessors[s]];
  }
}

static void remove_accesses(promoter *p) {
  ir_kernel *k = p->k;
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    uint32_t kept = 0;
    for (uint32_t n = 0; n < block->count; n++)
      if (slot_of(&block->insns[n]) == 0) block->insns[kept++] = block->insns[n];
    block->count = kept;
  }
}

bool ir_promote(ir_kernel *k) {
  promoter p = {.k = k};
  uint32_t count = k->value_count; /* before slots become values */
  p.variable_of = SPIRV_TEMPORARY(k->arena, uint32_t, count);
  p.place_of = SPIRV_TEMPORARY(k->arena, uint64_t, count);
  find_variables(&p);
  find_slots(&p);
  check_copies(&p);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < p.slot_count; i++)
    if (!p.variables[p.slots[i].variable - 1].stays) p.slots[kept++] = p.slots[i];
  p.slot_count = kept;
  bool promotes = kept != 0 && !p.wild && (uint64_t)kept * count <= MOST_LOOKS &&
                  (uint64_t)kept * k->order_count * k->order_count <= MOST_WALKS;
  if (promotes) {
    number_accesses(&p);
    p.alias = SPIRV_TEMPORARY(k->arena, uint32_t, count);
    uint32_t *phi_of = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count);
    uint32_t *work = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count);
    bool *listed = SPIRV_TEMPORARY(k->arena, bool, k->block_count);
    for (uint32_t number = 1; number <= p.slot_count; number++) {
      for (uint32_t b = 0; b < k->block_count; b++) phi_of[b] = 0;
      place_phis(&p, number, phi_of, work, listed);
      rename_slot(&p, number, phi_of, work);
    }
    remove_accesses(&p);
    bool all = true;
    for (uint32_t i = 0; i < p.variable_count; i++) all = all && !p.variables[i].stays;
    if (all) k->private_bytes = 0;
    ir_replace_values(k, p.alias, count);
    spirv_free(k->arena, p.alias);
    spirv_free(k->arena, phi_of);
    spirv_free(k->arena, work);
    spirv_free(k->arena, listed);
  }
  spirv_free(k->arena, p.variable_of);
  spirv_free(k->arena, p.place_of);
  return promotes;
}
