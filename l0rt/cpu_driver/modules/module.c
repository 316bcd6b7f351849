/* SPDX-License-Identifier: Apache-2.0 */
/* module.c: making modules, and what they say of themselves. */
#include "modules/module.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "modules/build_log.h"
#include "modules/native.h"
#include "modules/spec_constant.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

/* Guards `programs` of all modules against those who look for an address in any of them. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

cpu_programs *cpu_programs_new(spirv_program *const *items, uint32_t count) {
  cpu_programs *programs = malloc(sizeof(*programs) + count * sizeof(*items));
  if (programs == NULL) return NULL;
  atomic_init(&programs->holds, 1);
  atomic_init(&programs->spare, NULL);
  programs->count = count;
  memcpy(programs->items, items, count * sizeof(*items));
  return programs;
}

void cpu_programs_let_go(cpu_programs *programs) {
  if (atomic_fetch_sub(&programs->holds, 1) != 1) return;
  for (uint32_t i = 0; i < programs->count; i++) spirv_program_release(programs->items[i]);
  free(atomic_load(&programs->spare));
  free(programs);
}

void cpu_module_set_programs(cpu_module *module, cpu_programs *programs) {
  pthread_rwlock_wrlock(&lock);
  cpu_programs *before = module->programs;
  module->programs = programs;
  pthread_rwlock_unlock(&lock);
  if (before != NULL) cpu_programs_let_go(before);
}

bool cpu_module_is_unlinked(const cpu_module *module) {
  return spirv_program_import(cpu_module_program(module), 0) != NULL;
}

/* One of the program's modules, as the caller describes it. */
typedef struct {
  const uint8_t *bytes;
  size_t size;
  const ze_module_constants_t *constants;
} input;

/* The values are read where they are: a container keeps a copy. Those of no constant are left out. */
static bool take_constants(const input *in, cpu_build_log *log, spirv_binary *binary) {
  uint32_t count = in->constants == NULL ? 0 : in->constants->numConstants;
  spirv_constant *constants = calloc((size_t)count + 1, sizeof(*constants));
  if (constants == NULL) return false;
  *binary = (spirv_binary){.bytes = in->bytes, .size = in->size, .constants = constants};
  for (uint32_t i = 0; i < count; i++) {
    uint32_t id = in->constants->pConstantIds[i];
    size_t size = cpu_spec_constant_size(in->bytes, in->size, id);
    if (size == 0) {
      char line[80];
      snprintf(line, sizeof(line), "warning: no specialisation constant has the id %u", id);
      cpu_build_log_add(log, line);
    } else {
      constants[binary->constant_count++] = (spirv_constant){
          .id = id, .size = size, .value = in->constants->pConstantValues[i]};
    }
  }
  return true;
}

static ze_result_t refuse(cpu_build_log *log, const char *why) {
  char line[160];
  snprintf(line, sizeof(line), "error: native binary: %s", why);
  cpu_build_log_add(log, line);
  cpu_failure_describe(line);
  return ZE_RESULT_ERROR_INVALID_NATIVE_BINARY;
}

/* Adds what is in a container to the source; containers in a program are taken apart. */
static ze_result_t take_native(const input *in, cpu_build_log *log, cpu_source *source, uint32_t *capacity) {
  cpu_source unpacked;
  const char *wrong = cpu_native_unpack(in->bytes, in->size, &unpacked);
  ze_result_t result = wrong == NULL ? ZE_RESULT_SUCCESS : refuse(log, wrong);
  if (wrong == NULL && source->count + unpacked.count > *capacity) {
    *capacity = source->count + unpacked.count;
    spirv_binary *more = realloc(source->binaries, *capacity * sizeof(*more));
    if (more == NULL) result = CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
    if (more != NULL) source->binaries = more;
  }
  if (result == ZE_RESULT_SUCCESS) {
    memcpy(source->binaries + source->count, unpacked.binaries, unpacked.count * sizeof(*unpacked.binaries));
    source->count += unpacked.count;
    if (source->flags[0] == '\0') source->flags = unpacked.flags;
    unpacked.count = 0; /* the constants are the source's now */
  }
  cpu_source_free(&unpacked);
  return result;
}

static ze_result_t take_inputs(const input *inputs, uint32_t count, ze_module_format_t format, cpu_build_log *log,
                               cpu_source *source) {
  uint32_t capacity = count;
  source->binaries = calloc(count, sizeof(*source->binaries));
  CPU_REFUSE_IF(source->binaries == NULL, ERROR_OUT_OF_HOST_MEMORY);
  for (uint32_t i = 0; i < count; i++) {
    if (format == ZE_MODULE_FORMAT_NATIVE) {
      ze_result_t result = take_native(&inputs[i], log, source, &capacity);
      if (result != ZE_RESULT_SUCCESS) return result;
    } else {
      CPU_REFUSE_IF(!take_constants(&inputs[i], log, &source->binaries[i]), ERROR_OUT_OF_HOST_MEMORY);
      source->count = i + 1;
    }
  }
  return ZE_RESULT_SUCCESS;
}

static ze_result_t build(const cpu_source *source, cpu_build_log *log, cpu_module *module) {
  const spirv_build order = {.binaries = source->binaries,
                             .binary_count = source->count,
                             .flags = source->flags[0] == '\0' ? NULL : source->flags,
                             .log = cpu_build_log_add,
                             .log_context = log};
  spirv_program *program = spirv_program_new(&order);
  CPU_REFUSE_IF(program == NULL, ERROR_MODULE_BUILD_FAILURE);
  cpu_programs *programs = cpu_programs_new(&program, 1);
  if (programs == NULL) spirv_program_release(program);
  cpu_module_set_programs(module, programs);
  module->native = cpu_native_pack(source, &module->native_size);
  CPU_REFUSE_IF(programs == NULL || module->native == NULL, ERROR_OUT_OF_HOST_MEMORY);
  module->hash = cpu_native_hash(module->native, module->native_size);
  return ZE_RESULT_SUCCESS;
}

static void end(cpu_module *module) {
  cpu_context *context = module->context;
  if (!cpu_retire(module)) return; /* another thread was first */
  cpu_module_set_programs(module, NULL);
  free(module->native);
  cpu_recycle(module);
  cpu_context_let_go(context);
}

/* Intel's compiler faults, which ends a process that handles SIGSEGV. Capabilities are a module's first instructions. */
static void refuse_enqueues(const input *in) {
  enum { HEADER = 5, CAPABILITY = 2 << 16 | 17, DEVICE_ENQUEUE = 19 };
  uint32_t words[2];
  for (size_t at = HEADER * 4; in->size >= sizeof(words) && at <= in->size - sizeof(words); at += sizeof(words)) {
    memcpy(words, in->bytes + at, sizeof(words));
    if (words[0] != CAPABILITY) return;
    if (words[1] != DEVICE_ENQUEUE) continue;
    fprintf(stderr, "l0rt CPU driver: aborting: a module whose kernels enqueue others (fatal_enqueues)\n");
    abort();
  }
}

static ze_result_t create(cpu_context *context, cpu_device *device, const input *inputs, uint32_t count,
                          const char *flags, ze_module_format_t format, cpu_build_log *log, cpu_module **out) {
  cpu_module *module = cpu_new(CPU_MODULE);
  CPU_REFUSE_IF(module == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_context_hold(context);
  module->context = context;
  module->device = device;
  cpu_source source = {.flags = flags == NULL ? "" : flags};
  for (uint32_t i = 0; i < count && format == ZE_MODULE_FORMAT_IL_SPIRV; i++)
    if (cpu_has_quirk(CPU_QUIRK_FATAL_ENQUEUES)) refuse_enqueues(&inputs[i]);
  ze_result_t result = take_inputs(inputs, count, format, log, &source);
  if (result == ZE_RESULT_SUCCESS) result = build(&source, log, module);
  cpu_source_free(&source);
  if (result == ZE_RESULT_SUCCESS) *out = module;
  else end(module);
  return result;
}

static const ze_module_program_exp_desc_t *program_in(const ze_base_desc_t *d) {
  while (d != NULL && d->stype != ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC) d = d->pNext;
  return (const ze_module_program_exp_desc_t *)d;
}

/* The flags of all modules of a program, after one another; to be freed. */
static char *join_flags(const ze_module_program_exp_desc_t *program) {
  size_t length = 1;
  for (uint32_t i = 0; i < program->count && program->pBuildFlags != NULL; i++)
    if (program->pBuildFlags[i] != NULL) length += strlen(program->pBuildFlags[i]) + 1;
  char *flags = calloc(1, length);
  for (uint32_t i = 0; i < program->count && flags != NULL && program->pBuildFlags != NULL; i++) {
    if (program->pBuildFlags[i] == NULL || program->pBuildFlags[i][0] == '\0') continue;
    if (flags[0] != '\0') strcat(flags, " ");
    strcat(flags, program->pBuildFlags[i]);
  }
  return flags;
}

static ze_result_t create_program(cpu_context *context, cpu_device *device, const ze_module_program_exp_desc_t *program,
                                  ze_module_format_t format, cpu_build_log *log, cpu_module **out) {
  input *inputs = calloc(program->count, sizeof(*inputs));
  char *flags = join_flags(program);
  ze_result_t result = inputs == NULL || flags == NULL ? CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL)
                                                       : ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < program->count && result == ZE_RESULT_SUCCESS; i++) {
    inputs[i] = (input){program->pInputModules[i], program->inputSizes[i],
                        program->pConstants == NULL ? NULL : program->pConstants[i]};
    if (inputs[i].bytes == NULL) result = CPU_REFUSED(ERROR_INVALID_NULL_POINTER, "a module of the program");
    else if (inputs[i].size == 0) result = CPU_REFUSED(ERROR_INVALID_SIZE, "a module of the program has no bytes");
  }
  if (result == ZE_RESULT_SUCCESS) result = create(context, device, inputs, program->count, flags, format, log, out);
  free(inputs);
  free(flags);
  return result;
}

static ze_result_t check_program(const ze_module_program_exp_desc_t *program) {
  CPU_REFUSE_IF(program->count == 0, ERROR_INVALID_SIZE);
  return program->inputSizes == NULL || program->pInputModules == NULL
             ? CPU_REFUSED(ERROR_INVALID_NULL_POINTER, "the modules of the program, or their sizes")
             : ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeModuleCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                      const ze_module_desc_t *desc, ze_module_handle_t *out,
                                      ze_module_build_log_handle_t *log_out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  const ze_module_program_exp_desc_t *program = program_in(desc->pNext);
  CPU_REFUSE_IF(program == NULL && desc->pInputModule == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF((uint32_t)desc->format > ZE_MODULE_FORMAT_NATIVE, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(program == NULL && desc->inputSize == 0, ERROR_INVALID_SIZE);
  if (!cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  ze_result_t result = program == NULL ? ZE_RESULT_SUCCESS : check_program(program);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_build_log *log = cpu_build_log_new();
  CPU_REFUSE_IF(log == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_module *module;
  const input single = {desc->pInputModule, desc->inputSize, desc->pConstants};
  result = program != NULL ? create_program(context, device, program, desc->format, log, &module)
                           : create(context, device, &single, 1, desc->pBuildFlags, desc->format, log, &module);
  if (result == ZE_RESULT_SUCCESS) *out = (ze_module_handle_t)module;
  else cpu_failure_describe(cpu_build_log_error(log));
  cpu_build_log_give(log, log_out);
  return result;
}

/* Launches that are under way keep what they need. */
CPU_EXPORT ze_result_t zeModuleDestroy(ze_module_handle_t handle) {
  CPU_ENTER();
  cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(atomic_load(&module->kernels) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  end(module);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeModuleGetNativeBinary(ze_module_handle_t handle, size_t *size, uint8_t *binary) {
  CPU_ENTER();
  const cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  if (binary != NULL) memcpy(binary, module->native, *size < module->native_size ? *size : module->native_size);
  *size = module->native_size;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeModuleGetGlobalPointer(ze_module_handle_t handle, const char *name, size_t *size,
                                                void **pointer) {
  CPU_ENTER();
  const cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(name == NULL, ERROR_INVALID_NULL_POINTER);
  uint64_t address, bytes;
  for (uint32_t i = 0; i < module->programs->count; i++) {
    if (!spirv_program_global(module->programs->items[i], name, &address, &bytes)) continue;
    if (size != NULL) *size = bytes;
    if (pointer != NULL) *pointer = (void *)(uintptr_t)address;
    return ZE_RESULT_SUCCESS;
  }
  return CPU_REFUSED(ERROR_INVALID_GLOBAL_NAME, "no variable of the module has this name");
}

CPU_EXPORT ze_result_t zeModuleGetKernelNames(ze_module_handle_t handle, uint32_t *count, const char **names) {
  CPU_ENTER();
  const cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  const spirv_kernel *kernel;
  uint32_t n = 0;
  for (; (kernel = spirv_program_kernel_at(cpu_module_program(module), n)) != NULL; n++)
    if (names != NULL && n < *count) names[n] = spirv_kernel_look(kernel)->name;
  if (cpu_has_quirk(CPU_QUIRK_LISTED_SYMBOLS)) {
    if (names != NULL && n < *count) names[n] = "Intel_Symbol_Table_Void_Program";
    n++;
  }
  if (*count == 0 || *count > n) *count = n;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeModuleGetProperties(ze_module_handle_t handle, ze_module_properties_t *properties) {
  CPU_ENTER();
  const cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  properties->flags = cpu_module_is_unlinked(module) ? ZE_MODULE_PROPERTY_FLAG_IMPORTS : 0;
  return ZE_RESULT_SUCCESS;
}

typedef struct {
  uint64_t address, begin, end;
  cpu_programs *found;
} search;

static void look_in(void *object, void *argument) {
  cpu_programs *programs = ((cpu_module *)object)->programs;
  search *s = argument;
  const char *name;
  uint64_t address, size;
  for (uint32_t i = 0; programs != NULL && s->found == NULL && spirv_program_global_at(programs->items[0], i, &name);
       i++) {
    if (!spirv_program_global(programs->items[0], name, &address, &size) || s->address - address >= size) continue;
    s->begin = address;
    s->end = address + size;
    s->found = programs;
  }
}

cpu_programs *cpu_module_find(uint64_t address, uint64_t *begin, uint64_t *end_out) {
  search s = {.address = address};
  pthread_rwlock_rdlock(&lock);
  cpu_each(CPU_MODULE, look_in, &s);
  if (s.found != NULL) atomic_fetch_add(&s.found->holds, 1);
  pthread_rwlock_unlock(&lock);
  *begin = s.begin;
  *end_out = s.end;
  return s.found;
}
