/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c: what a module says of its kernels: their parameters, and where their source stands. */
#include "spirv/decode/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 5, MAX_VALUE = 1 << 16 /* bytes of a parameter */ };
enum {
  TYPE_QUEUE = 37,
  TYPE_PIPE = 38,
  TYPE_UNTYPED_POINTER = 4417,
};

/* ---- The source -------------------------------------------------------------------------------------------------- */

/* Where to begin, so that the OpLine in front of a function is met too: at the function before it. */
static uint32_t walk_from(const spirv_module *m, uint32_t at) {
  uint32_t from = HEADER;
  for (uint32_t i = 0; i + 1 < m->function_count && m->functions[i + 1].at < at; i++) from = m->functions[i].at;
  return from;
}

/* Counts the instructions that it looks at. */
static spirv_source source_of(const spirv_module *m, uint32_t at, uint64_t *steps) {
  spirv_source source = {""};
  const uint32_t *line = NULL;
  if (!m->has_lines) return source;
  *steps += m->function_count;
  for (uint32_t i = walk_from(m, at); i < at && i < m->count; i += spirv_length(m, i)) { /* that one may be damaged */
    uint32_t op = spirv_op(m, i);
    if (op == OpLine) line = m->words[i + 2] != 0 ? m->words + i : NULL;
    if (op == OpNoLine || op == OpFunctionEnd || (op >= OpBranch && op <= OpUnreachable)) line = NULL;
    ++*steps;
  }
  /* Compilers tell lines in blocks only: a parameter's is the first one of its function, or of that which it calls. */
  bool searches = m->functions_at != 0 && spirv_op(m, at) == OpFunctionParameter, called = false; /* all is checked */
  for (uint32_t i = at; searches && line == NULL && i < m->count; i += spirv_length(m, i)) {
    if (spirv_op(m, i) == OpLine && m->words[i + 2] != 0) line = m->words + i;
    const spirv_id *callee = spirv_op(m, i) == OpFunctionCall && !called ? &m->ids[m->words[i + 3]] : NULL;
    if (callee != NULL && callee->op == OpFunction) {
      called = true;
      i = callee->at;
    }
    searches = spirv_op(m, i) != OpFunctionEnd;
    ++*steps;
  }
  if (line == NULL || m->ids[line[1]].op != OpString) return source;
  const char *file = (const char *)(m->words + m->ids[line[1]].at + 2), *name = strrchr(file, '/');
  snprintf(source.text, sizeof(source.text), " (%.80s:%u)", name == NULL ? file : name + 1, line[2]);
  return source;
}

spirv_source spirv_source_text(const spirv_module *m, uint32_t at) {
  uint64_t steps = 0;
  return source_of(m, at, &steps);
}

const char *spirv_function_name(const spirv_module *m, uint32_t at) {
  const spirv_function *f = NULL;
  for (uint32_t i = 0; i < m->function_count && m->functions[i].at <= at; i++) f = &m->functions[i];
  if (f == NULL) return "";
  const spirv_id *id = &m->ids[f->id];
  return id->name != NULL ? id->name : id->linkage_name != NULL ? id->linkage_name : "";
}

/* ---- Parameters -------------------------------------------------------------------------------------------------- */

/* Is one of the words up to a comma const? */
static bool has_const(const char *qualifiers) {
  for (const char *word = qualifiers; *word != '\0' && *word != ',';) {
    size_t size = strcspn(word, " ,");
    if (size == 5 && strncmp(word, "const", 5) == 0) return true;
    word += size;
    word += strspn(word, " ");
  }
  return false;
}

static void describe_pointer(spirv_module *m, const spirv_type *type, spirv_parameter *p, bool is_const) {
  const spirv_id *id = &m->ids[m->words[p->at + 2]];
  p->storage = type->kind == TYPE_POINTER ? type->storage : m->words[m->ids[type->id].at + 2];
  p->type = type->element;
  p->size = 8;
  p->kind = SPIRV_PARAMETER_POINTER;
  p->reads = !id->no_read;
  p->writes = !id->no_write && !is_const && p->storage != StorageUniformConstant;
  if (p->storage == StorageFunction && type->element != NULL) { /* a structure that is passed by value */
    p->kind = SPIRV_PARAMETER_VALUE;
    p->size = (uint32_t)type->element->size;
    p->reads = true;
    p->writes = false;
  } else if (p->storage == StorageWorkgroup) {
    p->kind = SPIRV_PARAMETER_LOCAL;
    p->size = 0;
    p->reads = p->writes = true;
  }
}

static void describe_handle(spirv_module *m, const spirv_type *type, spirv_parameter *p) {
  uint32_t op = m->ids[type->id].op;
  p->size = 8;
  p->reads = p->writes = true;
  uint64_t steps = 0;
  p->source = spirv_copy_text(m->arena, source_of(m, p->at, &steps).text);
  spirv_spend(m, p->at, steps);
  p->kind = op == OpTypeImage || op == OpTypeSampledImage ? SPIRV_PARAMETER_IMAGE
            : op == OpTypeSampler                         ? SPIRV_PARAMETER_SAMPLER
            : op == TYPE_PIPE                             ? SPIRV_PARAMETER_PIPE
            : op == TYPE_QUEUE                            ? SPIRV_PARAMETER_QUEUE
                                                          : SPIRV_PARAMETER_OTHER;
}

static uint64_t value_size(const spirv_type *type) { return type == NULL ? 0 : type->size; }

static void describe(spirv_module *m, const spirv_entry *entry, const spirv_type *type, spirv_parameter *p,
                     bool is_const) {
  p->type = type;
  p->type_name = spirv_grammar(m->ids[type->id].op)->name;
  p->kind = SPIRV_PARAMETER_VALUE;
  p->reads = true;
  const spirv_type *value = type->kind == TYPE_POINTER && type->storage == StorageFunction ? type->element : type;
  if (value_size(value) > MAX_VALUE)
    REFUSE(m, p->at, "parameter %s of kernel %s has %llu bytes, more than an argument may have", p->name, entry->name,
           (unsigned long long)value->size);
  p->size = (uint32_t)value_size(value);
  bool encoded = type->kind == TYPE_RAW && m->ids[type->id].op == OpTypeFloat;
  bool untyped = type->kind == TYPE_RAW && m->ids[type->id].op == TYPE_UNTYPED_POINTER;
  if (type->kind == TYPE_POINTER || untyped) describe_pointer(m, type, p, is_const);
  else if ((type->kind == TYPE_RAW || type->kind == TYPE_EVENT) && !encoded) describe_handle(m, type, p);
  else if (type->components == 0 && type->kind != TYPE_STRUCT)
    REFUSE(m, p->at, "parameter %s of kernel %s has no size", p->name, entry->name);
}

uint32_t spirv_parameter_count(const spirv_module *m, const spirv_entry *entry) {
  return (uint32_t)m->ids[entry->function].function->type->count;
}

spirv_parameter *spirv_parameters(spirv_module *m, const spirv_entry *entry) {
  const spirv_function *f = m->ids[entry->function].function;
  uint32_t count = spirv_parameter_count(m, entry);
  if (count > SPIRV_MAX_PARAMETERS) UNSUPPORTED(m, entry->at, "kernel %s has %u parameters", entry->name, count);
  spirv_parameter *parameters = SPIRV_ARRAY(m->arena, spirv_parameter, count);
  const char *qualifiers = entry->qualifiers == NULL ? "" : entry->qualifiers;
  for (uint32_t i = 0; i < count; i++) {
    const spirv_id *id = &m->ids[f->parameters[i]];
    parameters[i].name = id->name == NULL ? "" : id->name;
    parameters[i].at = id->at;
    describe(m, entry, f->type->members[i], &parameters[i], has_const(qualifiers));
    qualifiers += strcspn(qualifiers, ",");
    qualifiers += *qualifiers == ',';
  }
  return parameters;
}

/* ---- A description ----------------------------------------------------------------------------------------------- */

static bool read_module(spirv_description *d, const spirv_build *build) {
  if (setjmp(d->arena.out) != 0) {
    if (d->arena.decoding != NULL) d->source = spirv_source_text(d->arena.decoding, d->arena.offset / 4);
    return false;
  }
  d->module = spirv_module_new(&d->arena, build, 0, NULL);
  spirv_module *m = d->module;
  d->parameters = SPIRV_ARRAY(&d->arena, spirv_parameter *, m->entry_count);
  for (uint32_t e = 0; e < m->entry_count; e++) d->parameters[e] = spirv_parameters(m, &m->entries[e]);
  return true;
}

spirv_description *spirv_describe(const void *bytes, size_t size, bool trusted, bool *good) {
  const spirv_binary binary = {.bytes = bytes, .size = size};
  const spirv_build build = {.binaries = &binary, .binary_count = 1, .describe = true, .trusted = trusted};
  spirv_description *d = calloc(1, sizeof(*d));
  if (d != NULL) *good = read_module(d, &build);
  return d;
}

void spirv_description_free(spirv_description *d) {
  spirv_arena_free(&d->arena);
  free(d);
}
