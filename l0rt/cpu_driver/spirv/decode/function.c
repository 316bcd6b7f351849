/* SPDX-License-Identifier: Apache-2.0 */
/* function.c: functions, their blocks, and the dominators of blocks. */
#include <string.h>

#include "spirv/decode/module.h"

static bool ends_block(uint32_t op) { return (op >= OpBranch && op <= OpUnreachable) && op != OpLabel; }

/* A label may come after its uses. So the blocks are found first, and their targets are looked up later. */
static void find_block(spirv_module *m, spirv_function *f, uint32_t *at) {
  spirv_block *block = &f->blocks[f->block_count++];
  uint32_t end = *at + spirv_length(m, *at);
  block->function = f;
  block->label = m->words[*at + 1];
  block->first = end;
  m->ids[block->label].block = block;
  bool phis = true;
  for (*at = end; *at < m->count; *at += spirv_length(m, *at)) {
    uint32_t op = spirv_op(m, *at);
    if (op == OpLabel || op == OpFunctionEnd || op == OpFunction || op == OpFunctionParameter)
      REFUSE(m, *at, "a block has no end");
    if (op == OpPhi && !phis) REFUSE(m, *at, "OpPhi must come first in a block");
    phis = phis && (op == OpPhi || op == OpLine || op == OpNoLine || op == OpLoopControlINTEL);
    spirv_id *made = NULL;
    const spirv_instruction *known = spirv_grammar(op); /* NULL in a module that is trusted */
    if (known != NULL && known->pattern[0] == 'T') made = &m->ids[m->words[*at + 2]];
    if (made != NULL) made->block = block;
    if (known != NULL && known->pattern[0] == 'R') REFUSE(m, *at, "Op%s inside a function", known->name);
    if (!ends_block(op)) continue;
    block->terminator = *at;
    *at += spirv_length(m, *at);
    return;
  }
  REFUSE(m, block->first, "a block has no end");
}

static void find_successors(spirv_module *m, spirv_block *block) {
  uint32_t at = block->terminator, length = spirv_length(m, at), op = spirv_op(m, at), *w = m->words + at;
  uint32_t wide = 1; /* words of each literal of an OpSwitch */
  block->successors = SPIRV_ARRAY(m->arena, uint32_t, length);
  switch (op) {
    case OpBranch: block->successors[block->successor_count++] = w[1]; break;
    case OpBranchConditional:
      block->successors[block->successor_count++] = w[2];
      block->successors[block->successor_count++] = w[3];
      break;
    case OpSwitch: {
      const spirv_type *type = spirv_type_of_value(m, at, w[1]);
      if (type->kind != TYPE_INT) REFUSE(m, at, "the selector is no integer");
      if (type->width == 64) wide = 2;
      if ((length - 3) % (wide + 1) != 0) REFUSE(m, at, "a case without a target");
      block->successors[block->successor_count++] = w[2];
      for (uint32_t i = 3 + wide; i < length; i += wide + 1) block->successors[block->successor_count++] = w[i];
    }
  }
  for (uint32_t i = 0; i < block->successor_count; i++) {
    uint32_t label = block->successors[i];
    if (label == 0 || label >= m->bound || m->ids[label].op != OpLabel || m->ids[label].block == NULL ||
        m->ids[label].block->function != block->function)
      REFUSE(m, at, "id %u is no block of this function", label);
    if (m->ids[label].block == &block->function->blocks[0]) REFUSE(m, at, "a branch to the entry block");
  }
}

static spirv_block *successor(const spirv_module *m, const spirv_block *block, uint32_t i) {
  return m->ids[block->successors[i]].block;
}

/* Reverse post-order, without recursion: the number of blocks of a function has no limit. */
static void find_order(spirv_module *m, spirv_function *f) {
  uint32_t count = f->block_count, depth = 0, left = count;
  spirv_block **stack = SPIRV_ARRAY(m->arena, spirv_block *, count),
              **order = SPIRV_ARRAY(m->arena, spirv_block *, count);
  uint32_t *next = SPIRV_ARRAY(m->arena, uint32_t, count);
  stack[depth++] = &f->blocks[0];
  f->blocks[0].order = 1;
  while (depth != 0) {
    spirv_block *block = stack[depth - 1];
    uint32_t i = next[block - f->blocks]++;
    if (i < block->successor_count) {
      spirv_block *to = successor(m, block, i);
      if (to->order != 0) continue;
      to->order = 1;
      stack[depth++] = to;
    } else {
      order[--left] = block;
      depth--;
    }
  }
  f->order = order + left;
  f->order_count = count - left;
  for (uint32_t i = 0; i < f->order_count; i++) f->order[i]->order = i + 1;
}

static spirv_block *common(spirv_block *a, spirv_block *b) {
  while (a != b) {
    while (a->order > b->order) a = a->dominator;
    while (b->order > a->order) b = b->dominator;
  }
  return a;
}

/* The algorithm of Cooper, Harvey and Kennedy: a block's dominator is the nearest one that its predecessors share. */
static void find_dominators(spirv_module *m, spirv_function *f) {
  bool changed = true;
  for (uint32_t rounds = 0; changed; rounds++) {
    if (rounds > 64) REFUSE(m, f->at, "the function's flow is too irregular");
    changed = false;
    spirv_block **before = SPIRV_ARRAY(m->arena, spirv_block *, f->block_count);
    for (uint32_t i = 0; i < f->order_count; i++) before[i] = f->order[i]->dominator;
    for (uint32_t i = 0; i < f->order_count; i++) {
      spirv_block *block = f->order[i];
      if (i != 0 && block->dominator == NULL) REFUSE(m, f->at, "a block that nothing reaches is reached");
      for (uint32_t s = 0; s < block->successor_count; s++) {
        spirv_block *to = successor(m, block, s);
        to->dominator = to->dominator == NULL ? block : common(to->dominator, block);
      }
    }
    for (uint32_t i = 0; i < f->order_count; i++) changed |= before[i] != f->order[i]->dominator;
  }
}

/* Numbers the blocks, so that "a dominates b" needs no walk: when a walk of the tree enters and leaves each subtree. */
static void number_tree(spirv_module *m, spirv_function *f) {
  uint32_t count = f->order_count, *children = SPIRV_ARRAY(m->arena, uint32_t, count + 2), clock = 0;
  /* The number of blocks below each one. Children come after their parents, so the last block is counted first. */
  for (uint32_t i = count; i-- > 1;) children[f->order[i]->dominator->order] += children[i + 1] + 1;
  f->order[0]->in = clock;
  f->order[0]->out = children[1];
  uint32_t *used = SPIRV_ARRAY(m->arena, uint32_t, count + 2);
  for (uint32_t i = 1; i < count; i++) {
    spirv_block *block = f->order[i], *parent = block->dominator;
    block->in = parent->in + 1 + used[parent->order];
    block->out = block->in + children[i + 1];
    used[parent->order] += children[i + 1] + 1;
  }
}

bool spirv_dominates(const spirv_block *a, const spirv_block *b) { return a->in <= b->in && b->in <= a->out; }

static void one_function(spirv_module *m, uint32_t *at) {
  const uint32_t *w = m->words + *at;
  spirv_function *f = &m->functions[m->function_count++];
  f->id = w[2];
  f->at = *at;
  f->type = spirv_type_of(m, *at, w[4]);
  if (f->type->kind != TYPE_FUNCTION || f->type->element != spirv_type_of(m, *at, w[1]))
    REFUSE(m, *at, "the function's type is another");
  m->ids[f->id].function = f;
  f->parameters = SPIRV_ARRAY(m->arena, uint32_t, f->type->count);
  uint32_t parameters = 0, blocks = 0;
  for (*at += spirv_length(m, *at); *at < m->count && spirv_op(m, *at) == OpFunctionParameter; *at += 3) {
    if (parameters == f->type->count) REFUSE(m, *at, "too many parameters");
    if (spirv_type_of(m, *at, m->words[*at + 1]) != f->type->members[parameters])
      REFUSE(m, *at, "parameter %u has another type", parameters);
    f->parameters[parameters++] = m->words[*at + 2];
    m->ids[m->words[*at + 2]].function = f;
  }
  if (parameters != f->type->count) REFUSE(m, f->at, "parameters are missing");
  for (uint32_t i = *at; i < m->count && spirv_op(m, i) != OpFunctionEnd; i += spirv_length(m, i))
    blocks += spirv_op(m, i) == OpLabel;
  f->blocks = SPIRV_ARRAY(m->arena, spirv_block, blocks);
  while (*at < m->count && spirv_op(m, *at) != OpFunctionEnd) {
    uint32_t op = spirv_op(m, *at);
    if (op == OpLabel) find_block(m, f, at);
    else if (op == OpLine || op == OpNoLine) *at += spirv_length(m, *at);
    else REFUSE(m, *at, "instruction %u outside of a block", op);
  }
  if (*at >= m->count) REFUSE(m, f->at, "the function has no end");
  *at += 1;
  for (uint32_t i = 0; i < f->block_count; i++) find_successors(m, &f->blocks[i]);
  if (f->block_count == 0 || m->build->describe) return;
  find_order(m, f);
  find_dominators(m, f);
  number_tree(m, f);
}

void spirv_functions_decode(spirv_module *m, uint32_t at) {
  uint32_t count = 0;
  for (uint32_t i = at; i < m->count; i += spirv_length(m, i)) count += spirv_op(m, i) == OpFunction;
  m->functions = SPIRV_ARRAY(m->arena, spirv_function, count);
  m->functions_at = at;
  while (at < m->count) {
    uint32_t op = spirv_op(m, at);
    if (op == OpFunction) one_function(m, &at);
    else if (op == OpLine || op == OpNoLine || op == OpNop) at += spirv_length(m, at);
    else REFUSE(m, at, "instruction %u outside of a function", op);
  }
}
