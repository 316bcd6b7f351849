/* SPDX-License-Identifier: Apache-2.0 */
/* unroll.c: writes the rounds of a loop one after the other, if it indexes private memory by what each round knows.
 *
 * Then the indices are constants, and promote.c keeps the elements in registers. Producers leave such loops to the
 * driver. A loop is unrolled that has one entry, one way out, and a number of rounds that follows from constants; the
 * innermost first. An outer loop is unrolled, too, if the rounds of a loop inside follow from its own. */
#include <string.h>

#include "spirv/ir/ir.h"

enum {
  MOST_ROUNDS = 128,
  MOST_ADDED = 16384, /* instructions of a kernel */
  MOST_LOOKS = 1 << 24, /* loops that are looked at × values: a kernel may be large */
};

typedef struct {
  ir_kernel *k;
  uint32_t values; /* how many there are before the loop is unrolled */
  uint32_t header, latch, before, exit; /* the blocks: `exit` is the one in the loop that leaves it */
  uint32_t *blocks, count; /* of the loop, in order */
  uint32_t *number; /* of each block: its place among `blocks`, from 1; 0: it is outside */
  uint32_t rounds; /* how often the header runs */
  bool *known; /* of each value: is it a constant in the round that is evaluated? */
  bool *depends; /* of each value: is it computed from what is known of a round? */
  uint64_t *bits;
} unroller;

static uint32_t outside(const unroller *u) { /* which successor of `exit` leaves the loop */
  return u->number[u->k->blocks[u->exit].successor[0]] == 0 ? 0 : 1;
}

/* Finds the blocks and edges of the loop; false: it has another form. */
static bool outline(unroller *u) {
  ir_kernel *k = u->k;
  uint32_t entries = 0, latches = 0, exits = 0;
  for (uint32_t i = 0; i < k->order_count; i++) {
    uint32_t b = k->order[i];
    if (!ir_is_inside(k, b, u->header)) continue;
    u->blocks[u->count++] = b;
    u->number[b] = u->count;
  }
  for (uint32_t p = 0; p < k->blocks[u->header].predecessor_count; p++) {
    uint32_t from = k->blocks[u->header].predecessors[p];
    if (u->number[from] != 0) u->latch = from, latches++;
    else u->before = from, entries++;
  }
  for (uint32_t i = 0; i < u->count; i++) {
    const ir_block *block = &k->blocks[u->blocks[i]];
    if (block->end != END_JUMP && block->end != END_BRANCH) return false;
    for (int s = 0; s < ir_successors(block); s++)
      if (u->number[block->successor[s]] == 0) u->exit = u->blocks[i], exits++;
    for (uint32_t n = 0; n < block->count; n++)
      if (block->insns[n].op == IR_PRINTF || block->insns[n].op == IR_GROUP_PUT || block->insns[n].op == IR_GROUP_GET)
        return false;
  }
  return entries == 1 && latches == 1 && exits == 1 && k->blocks[u->exit].end == END_BRANCH;
}

static uint32_t edge(const unroller *u, uint32_t from) { /* which predecessor of the header */
  return u->k->blocks[u->header].predecessors[0] == from ? 0 : 1;
}

static bool read(const unroller *u, uint32_t value, uint64_t *bits) {
  const ir_value *v = &u->k->values[value];
  *bits = v->constant ? v->bits : u->bits[value];
  return v->constant || u->known[value];
}

/* Evaluates what the block computes from constants and from what is known of the round. */
static void evaluate(unroller *u, uint32_t b) {
  ir_block *block = &u->k->blocks[b];
  for (uint32_t n = 0; n < block->count; n++) {
    ir_insn *insn = &block->insns[n];
    uint64_t operands[3] = {0};
    bool known = insn->op < IR_COPY_MEMORY && insn->a != 0, depends = false;
    if (insn->result == 0) continue;
    for (int o = 0; o < 3; o++) {
      uint32_t value = *ir_operand(insn, o);
      if (value != 0) known = read(u, value, &operands[o]) && known;
      depends = depends || u->depends[value];
    }
    u->depends[insn->result] = depends && (insn->op < IR_COPY || insn->op == IR_INDEX);
    uint64_t bits = 0;
    u->known[insn->result] = known && ir_evaluate(u->k, insn, operands, &bits);
    unsigned size = spirv_lane_size[u->k->values[insn->result].lane];
    u->bits[insn->result] = size < 8 ? bits & ((UINT64_C(1) << size * 8) - 1) : bits;
  }
}

static bool compares(const ir_insn *insn) { return insn->op >= IR_EQ && insn->op <= IR_SLE; }

/* Does the loop access private memory at an index that follows from the round, or at one of a loop inside, whose beginning
 * or end does? `private`: which values are such addresses. */
static bool is_worth_it(const unroller *u, const bool *private) {
  const ir_kernel *k = u->k;
  bool accesses = false, bounds = false;
  for (uint32_t i = 0; i < u->count; i++) {
    uint32_t b = u->blocks[i];
    const ir_block *block = &k->blocks[b];
    for (uint32_t n = 0; n < block->count; n++) {
      const ir_insn *insn = &block->insns[n];
      if ((insn->op == IR_INDEX || insn->op == IR_ADD) && private[insn->a] && !k->values[insn->b].constant) {
        if (u->depends[insn->b]) return true;
        accesses = true;
      }
      if (compares(insn) && !u->known[insn->result] && (u->depends[insn->a] || u->depends[insn->b])) bounds = true;
    }
    for (uint32_t p = 0; p < block->phi_count && b != u->header; p++)
      for (uint32_t s = 0; s < block->predecessor_count && k->blocks[b].loop == b; s++)
        if (u->depends[block->phis[p].sources[s]]) bounds = true;
  }
  return accesses && bounds;
}

/* Finds how often the header runs: it does all rounds with what is constant in them. */
static bool count_rounds(unroller *u, const bool *private) {
  ir_kernel *k = u->k;
  ir_block *header = &k->blocks[u->header];
  uint32_t size = 0, entry = edge(u, u->before), back = edge(u, u->latch), leaves = outside(u);
  uint64_t bits, *next = SPIRV_ARRAY(k->arena, uint64_t, header->phi_count + 1);
  bool *certain = SPIRV_ARRAY(k->arena, bool, header->phi_count + 1);
  for (uint32_t i = 0; i < u->count; i++) size += k->blocks[u->blocks[i]].count;
  for (uint32_t p = 0; p < header->phi_count; p++) {
    uint32_t phi = header->phis[p].result;
    u->known[phi] = u->depends[phi] = read(u, header->phis[p].sources[entry], &u->bits[phi]);
  }
  for (u->rounds = 1; u->rounds <= MOST_ROUNDS && (uint64_t)u->rounds * size <= MOST_ADDED; u->rounds++) {
    for (uint32_t i = 0; i < u->count; i++) evaluate(u, u->blocks[i]);
    if (u->rounds == 1 && !is_worth_it(u, private)) return false;
    if (!read(u, k->blocks[u->exit].condition, &bits)) return false;
    if (((bits & 1) != 0 ? 0u : 1u) == leaves) return true;
    for (uint32_t p = 0; p < header->phi_count; p++) certain[p] = read(u, header->phis[p].sources[back], &next[p]);
    for (uint32_t p = 0; p < header->phi_count; p++) {
      u->known[header->phis[p].result] = certain[p];
      u->bits[header->phis[p].result] = next[p];
    }
  }
  return false;
}

static uint32_t mapped(const uint32_t *map, uint32_t value) { return map[value] != 0 ? map[value] : value; }

/* Where a jump of the copy goes. `first`: the number of the round's first copy. */
static uint32_t target(const unroller *u, uint32_t to, uint32_t first, bool last) {
  if (to == u->header)
    return last ? IR_EXIT : first + u->count; /* the copies of a loop are numbered as its blocks are */
  return u->number[to] == 0 ? to : first + u->number[to] - 1;
}

static void copy_block(unroller *u, uint32_t b, uint32_t first, const uint32_t *map, bool last) {
  ir_kernel *k = u->k;
  uint32_t to = first + u->number[b] - 1;
  ir_block made = k->blocks[b];
  made.insns = SPIRV_ARRAY(k->arena, ir_insn, made.count + 1);
  made.capacity = made.count + 1;
  for (uint32_t n = 0; n < made.count; n++) {
    made.insns[n] = k->blocks[b].insns[n];
    if (made.insns[n].result != 0) made.insns[n].result = map[made.insns[n].result];
    for (int o = 0; ir_operand(&made.insns[n], o) != NULL; o++)
      *ir_operand(&made.insns[n], o) = mapped(map, *ir_operand(&made.insns[n], o));
  }
  made.phis = NULL;
  made.phi_capacity = 0;
  if (b == u->header) {
    made.phi_count = made.predecessor_count = 0;
  } else {
    uint32_t count = made.predecessor_count;
    made.phis = SPIRV_ARRAY(k->arena, ir_phi, made.phi_count + 1);
    made.predecessors = SPIRV_ARRAY(k->arena, uint32_t, count + 1);
    for (uint32_t p = 0; p < count; p++) made.predecessors[p] = first + u->number[k->blocks[b].predecessors[p]] - 1;
    for (uint32_t p = 0; p < made.phi_count; p++) {
      made.phis[p] = k->blocks[b].phis[p];
      made.phis[p].result = map[made.phis[p].result];
      made.phis[p].sources = SPIRV_ARRAY(k->arena, uint32_t, count + 1);
      for (uint32_t s = 0; s < count; s++) made.phis[p].sources[s] = mapped(map, k->blocks[b].phis[p].sources[s]);
    }
  }
  uint32_t on[2] = {target(u, made.successor[0], first, last), 0};
  if (made.end == END_BRANCH) {
    made.condition = mapped(map, made.condition);
    on[1] = target(u, made.successor[1], first, last);
  }
  if (b == u->exit) {
    on[0] = on[last ? outside(u) : 1 - outside(u)];
    made.end = END_JUMP;
    made.condition = 0;
  }
  if (on[0] == IR_EXIT) made.end = END_RETURN; /* behind the way out of the last round: it is never reached */
  memcpy(made.successor, on, sizeof(on));
  k->blocks[to] = made;
}

/* Gives each value of the loop one of the round's own. */
static void map_values(unroller *u, uint32_t round, const uint32_t *previous, uint32_t *map) {
  ir_kernel *k = u->k;
  const ir_block *header = &k->blocks[u->header];
  for (uint32_t p = 0; p < header->phi_count; p++) {
    const ir_phi *phi = &header->phis[p];
    map[phi->result] = round == 0 ? phi->sources[edge(u, u->before)]
                                  : mapped(previous, phi->sources[edge(u, u->latch)]);
  }
  for (uint32_t i = 0; i < u->count; i++) {
    const ir_block *block = &k->blocks[u->blocks[i]];
    for (uint32_t p = 0; p < block->phi_count && u->blocks[i] != u->header; p++)
      map[block->phis[p].result] = ir_value_new(k, (spirv_lane)k->values[block->phis[p].result].lane);
    for (uint32_t n = 0; n < block->count; n++)
      if (block->insns[n].result != 0)
        map[block->insns[n].result] = ir_value_new(k, (spirv_lane)k->values[block->insns[n].result].lane);
  }
}

static void unroll(unroller *u) {
  ir_kernel *k = u->k;
  uint32_t *maps[2], leaves = k->blocks[u->exit].successor[outside(u)], exit = u->exit;
  for (int i = 0; i < 2; i++) maps[i] = SPIRV_TEMPORARY(k->arena, uint32_t, u->values);
  uint32_t first = k->block_count;
  for (uint32_t i = 0; i < u->rounds * u->count; i++) ir_block_new(k);
  for (uint32_t round = 0; round < u->rounds; round++) {
    uint32_t *map = maps[round % 2];
    map_values(u, round, maps[1 - round % 2], map);
    for (uint32_t i = 0; i < u->count; i++)
      copy_block(u, u->blocks[i], first + round * u->count, map, round + 1 == u->rounds);
  }
  ir_block *before = &k->blocks[u->before], *after = &k->blocks[leaves];
  for (int s = 0; s < ir_successors(before); s++)
    if (before->successor[s] == u->header) before->successor[s] = first + u->number[u->header] - 1;
  for (uint32_t p = 0; p < after->predecessor_count; p++)
    if (after->predecessors[p] == exit)
      after->predecessors[p] = first + (u->rounds - 1) * u->count + u->number[exit] - 1;
  for (uint32_t i = 0; i < u->count; i++) { /* of the loop nothing is left */
    k->blocks[u->blocks[i]].count = k->blocks[u->blocks[i]].phi_count = k->blocks[u->blocks[i]].predecessor_count = 0;
    k->blocks[u->blocks[i]].end = END_RETURN;
    k->blocks[u->blocks[i]].condition = 0;
  }
  ir_replace_values(k, maps[(u->rounds - 1) % 2], u->values);
  for (int i = 0; i < 2; i++) spirv_free(k->arena, maps[i]);
}

/* Marks the addresses that are private memory's plus an offset. */
static bool *private_addresses(ir_kernel *k) {
  bool *private = SPIRV_TEMPORARY(k->arena, bool, k->value_count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      const ir_insn *insn = &block->insns[n];
      if (insn->op == IR_PRIVATE_ADDRESS || ((insn->op == IR_INDEX || insn->op == IR_ADD) && private[insn->a]))
        private[insn->result] = true;
    }
  }
  return private;
}

static bool unroll_one(ir_kernel *k, uint32_t *budget, uint32_t *looks) {
  bool *private = private_addresses(k), done = false;
  for (uint32_t i = k->order_count; i-- > 0 && !done;) {
    uint32_t header = k->order[i];
    if (k->blocks[header].loop != header) continue;
    if (k->value_count > *looks) break;
    *looks -= k->value_count;
    unroller u = {.k = k,
                  .values = k->value_count,
                  .header = header,
                  .blocks = SPIRV_TEMPORARY(k->arena, uint32_t, k->order_count),
                  .number = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count),
                  .known = SPIRV_TEMPORARY(k->arena, bool, k->value_count),
                  .depends = SPIRV_TEMPORARY(k->arena, bool, k->value_count),
                  .bits = SPIRV_TEMPORARY(k->arena, uint64_t, k->value_count)};
    if (outline(&u) && count_rounds(&u, private)) {
      uint32_t added = 0;
      for (uint32_t b = 0; b < u.count; b++) added += u.rounds * (k->blocks[u.blocks[b]].count + 1);
      done = added <= *budget;
      if (done) unroll(&u);
      if (done) *budget -= added;
    }
    spirv_free(k->arena, u.blocks);
    spirv_free(k->arena, u.number);
    spirv_free(k->arena, u.known);
    spirv_free(k->arena, u.depends);
    spirv_free(k->arena, u.bits);
  }
  spirv_free(k->arena, private);
  if (!done) return false;
  ir_find_order(k);
  ir_fold(k); /* the bounds of loops inside become constants */
  return true;
}

void ir_unroll(ir_kernel *k) {
  uint32_t budget = MOST_ADDED, looks = MOST_LOOKS;
  while (!k->irreducible && unroll_one(k, &budget, &looks)) continue;
}
