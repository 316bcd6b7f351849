/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c: reports what one work-item does, step by step: the instruction of the module, its operands, its result.
 *
 *   offset 580      OpFAdd %sum
 *     FADD           f32 0.25, f32 1.5 -> f32 1.75
 *
 * Each step belongs to an instruction. An instruction on vectors has a step for each component. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "spirv/run/watch.h"

static const char *const names[IR_OPERATIONS] = {
#define NAME(name, expression) [IR_##name] = #name,
    IR_INTEGER2(NAME) IR_FLOAT2(NAME) IR_RARE2(NAME) IR_INTEGER_COMPARE(NAME) IR_FLOAT_COMPARE(NAME) IR_INTEGER1(NAME)
        IR_FLOAT1(NAME) IR_FLOAT_CLASS(NAME)
#undef NAME
#define NAME(name) [IR_##name] = #name
            NAME(SELECT),
    NAME(FMA),
    NAME(CONVERT_U),
    NAME(CONVERT_S),
    NAME(CONVERT_F),
    NAME(FLOAT_TO_U),
    NAME(FLOAT_TO_S),
    NAME(BITS),
    NAME(COPY),
    NAME(SPLAT),
    NAME(MATH1),
    NAME(MATH2),
    NAME(MATH2_INT),
    NAME(MATH1_INT),
    NAME(INDEX),
    NAME(BUILTIN),
    NAME(ARGUMENT),
    NAME(ARGUMENT_ADDRESS),
    NAME(LOCAL_ADDRESS),
    NAME(LOCAL_ARGUMENT),
    NAME(PRIVATE_ADDRESS),
    NAME(LOAD),
    NAME(STORE),
    NAME(LOAD_AT),
    NAME(STORE_AT),
    NAME(ATOMIC),
    NAME(COPY_MEMORY),
    NAME(ASYNC_COPY),
    NAME(GENERIC_CAST),
    NAME(GROUP_PUT),
    NAME(GROUP_GET),
    NAME(SUBGROUP),
    NAME(FENCE),
    NAME(PRINTF),
#undef NAME
};

typedef struct {
  char text[512];
  size_t size;
} line;

static __attribute__((format(printf, 2, 3))) void add(line *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int size = vsnprintf(to->text + to->size, sizeof(to->text) - to->size, format, list);
  va_end(list);
  if (size > 0) to->size += (size_t)size;
  if (to->size >= sizeof(to->text)) to->size = sizeof(to->text) - 1;
}

void spirv_tell(const spirv_launch *launch, const char *text) {
  if (launch->tell != NULL) launch->tell(launch->tell_context, text);
  else fprintf(stderr, "%s\n", text);
}

/* Finds the lane of the traced work-item, if it runs. */
static bool traced(const spirv_wave *w, uint32_t *lane) {
  const spirv_group *g = w->group;
  uint64_t item = 0, size = 1;
  for (int d = 0; d < 3; d++) {
    uint64_t place = g->launch->trace_item[d] - g->launch->global_offset[d] - g->id[d] * g->group_size[d];
    if (place >= g->group_size[d]) return false;
    item += place * size;
    size *= g->group_size[d];
  }
  for (uint32_t k = 0; k < w->count; k++)
    if (spirv_item(w, k) == item && spirv_runs(w, k)) {
      *lane = k;
      return true;
    }
  return false;
}

/* Prints a number; a large integer in hexadecimal too, as it may be a pointer: pointers are integers here. */
static void add_value(line *to, const spirv_wave *w, uint32_t place, uint8_t kind, size_t at) {
  switch (kind) {
    case LANE_BOOL: add(to, "%s", REGISTER(uint32_t, place)[at] != 0 ? "true" : "false"); return;
    case LANE_I8: add(to, "i8 %d", REGISTER(int8_t, place)[at]); return;
    case LANE_I16: add(to, "i16 %d", REGISTER(int16_t, place)[at]); return;
    case LANE_F16: add(to, "f16 %.5g", (double)REGISTER(float, place)[at]); return;
    case LANE_F32: add(to, "f32 %.9g", (double)REGISTER(float, place)[at]); return;
    case LANE_F64: add(to, "f64 %.17g", REGISTER(double, place)[at]); return;
    case LANE_I32: {
      int32_t v = REGISTER(int32_t, place)[at];
      add(to, "i32 %d", v);
      if (v > 65535 || v < -65535) add(to, " (0x%x)", (unsigned)v);
      return;
    }
    default: {
      int64_t v = REGISTER(int64_t, place)[at];
      if (v > 65535 || v < -65535) add(to, "i64 0x%" PRIx64, (uint64_t)v);
      else add(to, "i64 %" PRId64, v);
    }
  }
}

static void add_id(line *to, const spirv_module *m, uint32_t id) {
  const char *name = id < m->bound ? m->ids[id].name : NULL;
  if (name != NULL && *name != '\0') add(to, " %%%.40s", name);
  else add(to, " %%%u", id);
}

/* Prints the instruction at a word: its name, its result, and those operands that are ids by its pattern. */
static void tell_instruction(const spirv_wave *w, uint32_t word) {
  const struct spirv_program *program = w->group->kernel->program;
  spirv_place place = spirv_program_place(program, word);
  const spirv_module *m = place.module;
  uint32_t at = place.at;
  line l = {.size = 0};
  add(&l, "offset %-8s", spirv_program_tell_place(program, word).text);
  const spirv_instruction *i = at == 0 || at >= m->count ? NULL : spirv_grammar(spirv_op(m, at));
  if (i != NULL) {
    add(&l, " Op%s", i->name);
    uint32_t length = spirv_length(m, at), word = 1;
    bool rest = false;
    for (const char *p = i->pattern; p != NULL && *p != '\0' && *p != 's' && word < length; p++) {
      if (*p == '?') continue;
      rest = *p == '*';
      do {
        if (*p == 'R' || *p == 'i' || *p == '*') add_id(&l, m, m->words[at + word]);
        else if (*p == 'n' || *p == '#') add(&l, " %u", m->words[at + word]);
        word++;
      } while ((rest || *p == '#') && word < length);
    }
  }
  spirv_tell(w->group->launch, l.text);
}

/* Prints the instruction before its first step. */
static void tell_step(spirv_wave *w, const spirv_step *s, uint32_t lane) {
  const spirv_code *code = w->group->code;
  const spirv_step_info *info = &code->infos[s - code->steps];
  bool first = s == code->steps || s[-1].at != s->at ||
               code->blocks[w->block].steps.first == (uint32_t)(s - code->steps);
  if (first) tell_instruction(w, s->at);
  line l = {.size = 0};
  add(&l, "  %-14s", names[info->op] != NULL ? names[info->op] : "?");
  const uint32_t places[4] = {s->d, s->a, s->b, s->c};
  bool any = false;
  for (int o = 1; o < 4; o++) {
    if ((info->registers >> o & 1) == 0) continue;
    add(&l, any ? ", " : " ");
    any = true;
    add_value(&l, w, places[o], info->lanes[o], info->varying >> o & 1 ? lane : 0);
  }
  spirv_access a = spirv_access_of(w, s, lane, 0);
  if (a.size != 0) add(&l, " at 0x%" PRIx64, a.address);
  if (info->registers & 1) {
    add(&l, " -> ");
    add_value(&l, w, places[0], info->lanes[0], info->varying & 1 ? lane : 0);
  }
  spirv_tell(w->group->launch, l.text);
}

/* Prints a step that has run. Its operands are still there: only the steps of whole waves overwrite them, and those are
 * not traced. */
void spirv_trace_step(spirv_wave *w, const spirv_step *s) {
  uint32_t lane;
  if (w->group->code->infos[s - w->group->code->steps].op == IR_SPLAT || !traced(w, &lane)) return;
  tell_step(w, s, lane);
}

void spirv_trace_end(spirv_wave *w, const spirv_code_block *block) {
  uint32_t lane;
  if (!traced(w, &lane)) return;
  switch (block->end) {
    case END_BRANCH:
      tell_instruction(w, block->at);
      spirv_tell(w->group->launch, REGISTER(uint32_t, block->condition)[block->varying ? lane : 0] != 0
                                       ? "  goes to the first"
                                       : "  goes to the second");
      break;
    case END_BARRIER:
      tell_instruction(w, block->at);
      spirv_tell(w->group->launch, "  waits for its group");
      break;
    case END_RETURN: spirv_tell(w->group->launch, "ends"); break;
    default: break;
  }
}
