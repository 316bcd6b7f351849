/* SPDX-License-Identifier: Apache-2.0 */
/* program.c: programs: one or more modules decoded together, their kernels and variables. */
#include "spirv/decode/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv/decode/describe.h"

static void say(const spirv_build *build, const char *kind, uint32_t offset, const char *text) {
  char line[440];
  if (build->log == NULL) return;
  snprintf(line, sizeof(line), "%s: offset %u: %s", kind, offset, text);
  build->log(build->log_context, line);
}

/* Flags for which the engine has nothing to do. The log names all other flags. */
static void check_flags(const spirv_build *build) {
  static const char *const known[] = {"-cl-", "-ze-",    "-O", "-g",   "-vc-codegen",
                                      "-w",   "-Werror", "-x", "spir", "-doubleGRF"};
  const char *p = build->flags == NULL ? "" : build->flags;
  while (*p != '\0') {
    size_t size = strcspn(p, " \t\n");
    bool found = size == 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
      found |= size >= strlen(known[i]) && strncmp(p, known[i], strlen(known[i])) == 0;
    char text[128];
    snprintf(text, sizeof(text), "the build flag %.*s is not known", size > 80 ? 80 : (int)size, p);
    if (!found) say(build, "warning", 0, text);
    p += size;
    p += strspn(p, " \t\n");
  }
}

const spirv_id *spirv_program_find(const spirv_program *program, const char *name, uint32_t op,
                                   const spirv_module **module) {
  for (uint32_t i = 0; i < program->module_count + program->linked_count; i++) {
    const spirv_module *m = program->modules[i];
    for (uint32_t id = 1; id < m->bound; id++) {
      const spirv_id *found = &m->ids[id];
      if (found->op != op || found->linkage == 0 || found->linkage == LinkageImport + 1) continue;
      if (strcmp(found->linkage_name, name) != 0) continue;
      if (op == OpVariable ? found->variable == NULL || found->variable->address == 0
                           : found->function->block_count == 0)
        continue;
      *module = m;
      return found;
    }
  }
  return NULL;
}

uint32_t spirv_program_base(const spirv_program *program, const spirv_module *module) {
  uint32_t i = 0, base = 0;
  while (program->modules[i] != module) base += program->modules[i++]->count;
  return base;
}

spirv_place spirv_program_place(const spirv_program *program, uint32_t word) {
  spirv_place place = {.number = 1, .of = program->module_count + program->linked_count, .at = word};
  while (place.number < place.of && place.at >= program->modules[place.number - 1]->count)
    place.at -= program->modules[place.number++ - 1]->count;
  place.module = program->modules[place.number - 1];
  return place;
}

spirv_place_text spirv_program_tell_place(const spirv_program *program, uint32_t word) {
  spirv_place place = spirv_program_place(program, word);
  spirv_place_text told;
  int size = snprintf(told.text, sizeof(told.text), "%u", place.at * 4);
  if (place.of > 1)
    snprintf(told.text + size, sizeof(told.text) - (size_t)size, " of module %u of %u", place.number, place.of);
  return told;
}

enum { MAX_ARGUMENT = 4096 }; /* bytes */

/* What a launch has to give for a parameter. Returns false if the engine has no arguments of this kind. */
static bool describe_argument(const spirv_parameter *p, spirv_argument *to) {
  to->name = p->name;
  to->size = p->size;
  to->kind = SPIRV_VALUE;
  switch (p->kind) {
    case SPIRV_PARAMETER_VALUE: return p->type->kind != TYPE_RAW && p->size <= MAX_ARGUMENT;
    case SPIRV_PARAMETER_LOCAL: to->kind = SPIRV_LOCAL_POINTER; return p->type != NULL;
    case SPIRV_PARAMETER_POINTER:
      to->kind = p->storage == StorageUniformConstant ? SPIRV_CONSTANT_POINTER : SPIRV_GLOBAL_POINTER;
      return p->type != NULL && (p->storage == StorageCrossWorkgroup || p->storage == StorageGeneric ||
                                 p->storage == StorageUniformConstant);
    case SPIRV_PARAMETER_IMAGE: to->kind = SPIRV_IMAGE; return true;
    case SPIRV_PARAMETER_SAMPLER: to->kind = SPIRV_SAMPLER; return true;
    default: to->kind = SPIRV_HANDLE; return false;
  }
}

static void describe_kernel(spirv_program *program, spirv_module *m, spirv_entry *entry, spirv_kernel *kernel) {
  uint32_t count = spirv_parameter_count(m, entry);
  program->arena.decoding = m;
  const spirv_parameter *parameters = spirv_parameters(m, entry);
  spirv_argument *arguments = SPIRV_ARRAY(&program->arena, spirv_argument, count);
  for (uint32_t i = 0; i < count; i++)
    if (!describe_argument(&parameters[i], &arguments[i]))
      spirv_entry_refuse(m, entry, parameters[i].at, "parameter %.60s of Op%s is not supported", parameters[i].name,
                         parameters[i].type_name);
  kernel->program = program;
  kernel->module = m;
  kernel->entry = entry;
  spirv_kernel_info *info = &kernel->info;
  *info = (spirv_kernel_info){.name = entry->name, .argument_count = count, .arguments = arguments};
  memcpy(info->required_group_size, entry->group_size, sizeof(entry->group_size));
  memcpy(info->hinted_group_size, entry->hinted_size, sizeof(entry->hinted_size));
  info->hinted_vector = entry->hinted_vector;
  info->required_subgroup_size = entry->subgroup_size;
  uint32_t width = entry->subgroup_size;
  bool is_width = width == 8 || width == 16 || width == 32;
  if (width != 0 && !is_width) spirv_entry_refuse(m, entry, entry->at, "sub-groups of %u are not supported", width);
  info->subgroup_size = is_width ? width : SPIRV_SUBGROUP_SIZE;
  info->max_group_size = SPIRV_MAX_GROUP_SIZE;
  for (uint32_t id = 1; id < m->bound; id++) {
    if (m->ids[id].op != OpTypeFloat) continue;
    info->uses_float64 |= m->words[m->ids[id].at + 2] == 64;
    info->uses_float16 |= m->words[m->ids[id].at + 2] == 16;
  }
}

const char *spirv_known_name(const char *mangled) {
  if (spirv_is_llvm_function(mangled)) return mangled;
  if (strncmp(mangled, "_Z", 2) != 0) return NULL;
  const char *p = mangled + 2;
  while (*p >= '0' && *p <= '9') p++;
  static const char *const known[] = {"atomic_", "atom_", "dot_4x8packed_", "dot_acc_sat", "dotDv4_"};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strncmp(p, known[i], strlen(known[i])) == 0) return p;
  return NULL;
}

static void collect_names(spirv_program *program) {
  uint32_t ids = 0;
  for (uint32_t i = 0; i < program->module_count; i++) ids += program->modules[i]->bound;
  program->ranges = SPIRV_ARRAY(&program->arena, spirv_memory_range, ids);
  program->imports = SPIRV_ARRAY(&program->arena, const char *, ids);
  program->exports = SPIRV_ARRAY(&program->arena, const char *, ids);
  for (uint32_t i = 0; i < program->module_count; i++) {
    const spirv_module *m = program->modules[i], *other;
    for (uint32_t id = 1; id < m->bound; id++) {
      const spirv_id *one = &m->ids[id];
      bool exported = one->linkage != 0 && one->linkage != LinkageImport + 1;
      bool variable = one->op == OpVariable && one->at < m->functions_at;
      if (variable && one->variable->address != 0)
        program->ranges[program->range_count++] = (spirv_memory_range){.address = one->variable->address,
                                                                       .size = one->variable->type->size,
                                                                       .constant = one->variable->storage ==
                                                                                   StorageUniformConstant,
                                                                       .name = exported ? one->linkage_name : NULL};
      if (one->op == OpFunction && exported) program->exports[program->export_count++] = one->linkage_name;
      bool builtin = variable && one->variable->builtin >= 0; /* some producers import built-in variables */
      if (one->op == OpFunction && one->linkage == LinkageImport + 1)
        builtin = spirv_known_name(one->linkage_name) != NULL;
      if ((variable || one->op == OpFunction) && !builtin && one->linkage == LinkageImport + 1 &&
          spirv_program_find(program, one->linkage_name, one->op, &other) == NULL)
        program->imports[program->import_count++] = one->linkage_name;
    }
  }
}

static void decode(spirv_program *program, const spirv_build *build) {
  if (build->binary_count == 0 || build->binary_count > SPIRV_MAX_MODULES)
    spirv_refuse(&program->arena, 0, "a program of %u modules", build->binary_count);
  bool *used = SPIRV_ARRAY(&program->arena, bool, build->constant_count);
  uint32_t kernels = 0;
  for (uint32_t i = 0; i < build->binary_count; i++) {
    program->decoding = i;
    program->modules[i] = spirv_module_new(&program->arena, build, i, used);
    if (program->modules[i]->addressing != 2)
      spirv_unsupported(&program->arena, 0, "the addressing model Physical32 is not supported");
    program->module_count = i + 1;
    kernels += program->modules[i]->entry_count;
  }
  for (uint32_t i = 0; i < build->constant_count; i++)
    if (!used[i]) {
      char text[64];
      snprintf(text, sizeof(text), "there is no specialization constant %u", build->constants[i].id);
      say(build, "warning", 0, text);
    }
  program->kernels = SPIRV_ARRAY(&program->arena, spirv_kernel, kernels);
  for (uint32_t i = program->decoding = 0; i < program->module_count; program->decoding = ++i)
    for (uint32_t e = 0; e < program->modules[i]->entry_count; e++)
      describe_kernel(program, program->modules[i], &program->modules[i]->entries[e],
                      &program->kernels[program->kernel_count++]);
  for (uint32_t i = 0; i < program->kernel_count; i++) pthread_mutex_init(&program->kernels[i].lock, NULL);
  collect_names(program);
}

static bool decodes(spirv_program *program, const spirv_build *build) {
  if (setjmp(program->arena.out) != 0) return false;
  decode(program, build);
  return true;
}

spirv_program *spirv_program_new(const spirv_build *build) {
  spirv_program *program = calloc(1, sizeof(*program));
  if (program == NULL) return NULL;
  atomic_store(&program->references, 1);
  check_flags(build);
  if (decodes(program, build)) return program;
  char text[400];
  const spirv_module *m = program->arena.decoding;
  spirv_source source = {""};
  if (m != NULL) source = spirv_source_text(m, program->arena.offset / 4);
  bool several = build->binary_count > 1 && program->decoding < build->binary_count;
  if (several)
    snprintf(text, sizeof(text), "module %u of %u: %.200s%s", program->decoding + 1, build->binary_count,
             program->arena.text, source.text);
  else snprintf(text, sizeof(text), "%.200s%s", program->arena.text, source.text);
  say(build, "error", program->arena.offset, text);
  program->kernel_count = 0; /* their locks do not exist yet */
  spirv_program_release(program);
  return NULL;
}

/* Returns how many of the programs export what is imported. */
static uint32_t exporters(const spirv_program *program, spirv_program *const *others, uint32_t count,
                          const char *name) {
  uint32_t found = 0;
  const spirv_module *module;
  for (uint32_t i = 0; i < count; i++)
    found += others[i] != program && (spirv_program_find(others[i], name, OpFunction, &module) != NULL ||
                                      spirv_program_find(others[i], name, OpVariable, &module) != NULL);
  return found;
}

bool spirv_program_link(spirv_program *program, spirv_program *const *others, uint32_t count, spirv_log log,
                        void *log_context) {
  spirv_build quiet = {.log = log, .log_context = log_context};
  uint32_t modules = program->module_count, left = 0;
  char text[160];
  for (uint32_t i = 0; i < count; i++) modules += others[i] != program ? others[i]->module_count : 0;
  for (uint32_t i = 0; i < program->import_count; i++) {
    if (exporters(program, others, count, program->imports[i]) < 2) continue;
    snprintf(text, sizeof(text), "several programs export %.100s", program->imports[i]);
    say(&quiet, "error", 0, text);
    return false;
  }
  spirv_program **kept = count == 0 ? NULL : malloc(count * sizeof(*kept));
  if (modules > SPIRV_MAX_MODULES || (kept == NULL && count != 0)) {
    say(&quiet, "error", 0, "more modules are linked than there is capacity for");
    free(kept);
    return false;
  }
  free(program->others);
  program->others = kept;
  program->linked_count = program->other_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (others[i] == program) continue;
    kept[program->other_count++] = others[i];
    for (uint32_t m = 0; m < others[i]->module_count; m++)
      program->modules[program->module_count + program->linked_count++] = others[i]->modules[m];
  }
  const spirv_module *module;
  for (uint32_t i = 0; i < program->import_count; i++)
    if (spirv_program_find(program, program->imports[i], OpFunction, &module) == NULL &&
        spirv_program_find(program, program->imports[i], OpVariable, &module) == NULL)
      program->imports[left++] = program->imports[i];
  program->import_count = left;
  return true;
}

void spirv_program_retain(spirv_program *program) { atomic_fetch_add(&program->references, 1); }

void spirv_program_release(spirv_program *program) {
  if (atomic_fetch_sub(&program->references, 1) != 1) return;
  for (uint32_t i = 0; i < program->kernel_count; i++) {
    pthread_mutex_destroy(&program->kernels[i].lock);
    spirv_group_free(program->kernels[i].idle);
    spirv_arena_free(&program->kernels[i].arena);
  }
  spirv_arena_free(&program->arena);
  free(program->others);
  free(program);
}

const char *spirv_program_import(const spirv_program *program, uint32_t index) {
  return index < program->import_count ? program->imports[index] : NULL;
}

const char *spirv_program_export(const spirv_program *program, uint32_t index) {
  return index < program->export_count ? program->exports[index] : NULL;
}

bool spirv_program_global(const spirv_program *program, const char *name, uint64_t *address, uint64_t *size) {
  for (uint32_t i = 0; i < program->range_count; i++) {
    if (program->ranges[i].name == NULL || strcmp(program->ranges[i].name, name) != 0) continue;
    *address = program->ranges[i].address;
    *size = program->ranges[i].size;
    return true;
  }
  return false;
}

bool spirv_program_global_at(const spirv_program *program, uint32_t index, const char **name) {
  for (uint32_t i = 0; i < program->range_count; i++) {
    if (program->ranges[i].name == NULL || index-- != 0) continue;
    *name = program->ranges[i].name;
    return true;
  }
  return false;
}

const spirv_kernel *spirv_program_kernel(const spirv_program *program, const char *name) {
  for (uint32_t i = 0; i < program->kernel_count; i++)
    if (strcmp(program->kernels[i].info.name, name) == 0) return &program->kernels[i];
  return NULL;
}

const spirv_kernel *spirv_program_kernel_at(const spirv_program *program, uint32_t index) {
  return index < program->kernel_count ? &program->kernels[index] : NULL;
}

const spirv_kernel_info *spirv_kernel_look(const spirv_kernel *kernel) { return &kernel->info; }
