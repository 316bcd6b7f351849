/* SPDX-License-Identifier: Apache-2.0 */
/* test_modules.c: making modules, what they say of themselves, linking, and native binaries. */
#include "modules.h"

static void a_module_names_its_kernels(void) {
  ze_module_handle_t module = module_of("launch");
  uint32_t count = 0;
  OK(zeModuleGetKernelNames(module, &count, NULL));
  CHECK(count == 18);
  const char *names[20];
  uint32_t two = 2, many = 20;
  OK(zeModuleGetKernelNames(module, &two, names));
  CHECK(two == 2);
  OK(zeModuleGetKernelNames(module, &many, names));
  CHECK(many == 18);
  bool found = false;
  for (uint32_t i = 0; i < many; i++) found |= strcmp(names[i], "reverse") == 0;
  CHECK(found);
  ze_module_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MODULE_PROPERTIES, .flags = 7};
  OK(zeModuleGetProperties(module, &properties));
  CHECK(properties.flags == 0);
  int *counter = NULL;
  size_t size = 0;
  OK(zeModuleGetGlobalPointer(module, "counter", &size, (void **)&counter));
  CHECK(size == sizeof(int) && *counter == 5);
  GIVES(ERROR_INVALID_GLOBAL_NAME, zeModuleGetGlobalPointer(module, "nothing", &size, NULL));
  void *function = NULL, *other = NULL;
  OK(zeModuleGetFunctionPointer(module, "add", &function));
  OK(zeModuleGetFunctionPointer(module, "wild", &other));
  CHECK(function != NULL && other != NULL && function != other);
  GIVES(ERROR_INVALID_FUNCTION_NAME, zeModuleGetFunctionPointer(module, "nothing", &function));
  ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "nothing"};
  ze_kernel_handle_t kernel;
  GIVES(ERROR_INVALID_KERNEL_NAME, zeKernelCreate(module, &desc, &kernel));
  desc.flags = 4;
  GIVES(ERROR_INVALID_ENUMERATION, zeKernelCreate(module, &desc, &kernel));
  kernel = kernel_of(module, "add");
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeModuleDestroy(module));
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeModuleDestroy(module));
}

/* The kernels of a module that need nothing that is refused run; the others are refused at their launch. */
static void a_kernel_with_a_pipe_is_refused_at_its_launch(void) {
  ze_module_handle_t module = module_of("pipes");
  ze_kernel_handle_t drained = kernel_of(module, "drained"), plain = kernel_of(module, "plain");
  uint64_t *memory = host_memory(8);
  uint64_t pipe = 0;
  SET(drained, 0, pipe);
  SET(drained, 1, memory);
  SET(plain, 0, memory);
  ze_command_list_handle_t list = in_order_list();
  const ze_group_count_t one = {1, 1, 1};
  const char *text;
  CHECK(zeCommandListAppendLaunchKernel(list, drained, &one, NULL, 0, NULL) == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
  OK(zeDriverGetLastErrorDescription(driver, &text));
  const char *start = "the driver does not have this feature: kernel drained: offset ";
  CHECK(strncmp(text, start, strlen(start)) == 0);
  CHECK(strstr(text, ": parameter from of OpTypePipe is not supported") != NULL);
  OK(zeCommandListAppendLaunchKernel(list, plain, &one, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, UINT64_MAX));
  CHECK((int)memory[0] == 7);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
  OK(zeKernelDestroy(drained));
  OK(zeKernelDestroy(plain));
  OK(zeModuleDestroy(module));
}

/* A cut or changed module is refused, and the log says where; the same text is the thread's last error. */
static void damage_is_told(void) {
  binary b = binary_of("launch");
  ze_module_desc_t desc = spirv_desc(b);
  ze_module_handle_t module = NULL;
  ze_module_build_log_handle_t log;
  desc.inputSize = b.size / 2 & ~(size_t)3;
  GIVES(ERROR_MODULE_BUILD_FAILURE, zeModuleCreate(context, device, &desc, &module, &log));
  const char *text = log_text(log), *last;
  CHECK(strncmp(text, "error", 5) == 0 && strstr(text, "offset") != NULL && module == NULL);
  OK(zeDriverGetLastErrorDescription(driver, &last));
  CHECK(strncmp(last, "error", 5) == 0);
  const char *later;
  GIVES(ERROR_INVALID_NULL_POINTER, zeModuleCreate(context, device, NULL, &module, NULL));
  OK(zeDriverGetLastErrorDescription(driver, &later));
  CHECK(*later == 0); /* it was told, and is not that of another failure */
  desc.inputSize = 3;
  GIVES(ERROR_MODULE_BUILD_FAILURE, zeModuleCreate(context, device, &desc, &module, NULL));
  desc.inputSize = 0;
  GIVES(ERROR_INVALID_SIZE, zeModuleCreate(context, device, &desc, &module, NULL));
  desc.inputSize = b.size;
  b.bytes[0] ^= 1;
  GIVES(ERROR_MODULE_BUILD_FAILURE, zeModuleCreate(context, device, &desc, &module, NULL));
  desc.format = 2;
  GIVES(ERROR_INVALID_ENUMERATION, zeModuleCreate(context, device, &desc, &module, NULL));
  desc.pInputModule = NULL;
  GIVES(ERROR_INVALID_NULL_POINTER, zeModuleCreate(context, device, &desc, &module, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeModuleCreate(NULL, device, &desc, &module, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeModuleBuildLogDestroy((ze_module_build_log_handle_t)context));
  free(b.bytes);
  CHECK(live("module") == 0 && live("build_log") == 0);
}

static void unknown_flags_and_constants_are_named(void) {
  binary b = binary_of("launch");
  ze_module_desc_t desc = spirv_desc(b);
  uint32_t ids[] = {7, 99};
  int value = 1;
  const void *values[] = {&value, &value};
  ze_module_constants_t constants = {2, ids, values};
  desc.pConstants = &constants;
  desc.pBuildFlags = "-ze-opt-disable -no-such-flag";
  ze_module_handle_t module;
  ze_module_build_log_handle_t log;
  OK(zeModuleCreate(context, device, &desc, &module, &log));
  const char *text = log_text(log);
  CHECK(strstr(text, "-no-such-flag") != NULL && strstr(text, "99") != NULL);
  CHECK(strstr(text, "-ze-opt-disable") == NULL && strstr(text, "id 7") == NULL);
  OK(zeModuleDestroy(module));
  free(b.bytes);
}

/* The driver takes its own binary back; any changed byte is an error, never more. */
static void native_binaries_come_back(void) {
  ze_module_handle_t module = module_of("launch"), again;
  size_t size = 0, same = 0;
  OK(zeModuleGetNativeBinary(module, &size, NULL));
  uint8_t *bytes = malloc(size), *others = malloc(size);
  OK(zeModuleGetNativeBinary(module, &size, bytes));
  ze_module_desc_t desc = spirv_desc((binary){bytes, size});
  desc.format = ZE_MODULE_FORMAT_NATIVE;
  OK(zeModuleCreate(context, device, &desc, &again, NULL));
  OK(zeModuleGetNativeBinary(again, &same, NULL));
  CHECK(same == size);
  OK(zeModuleGetNativeBinary(again, &same, others));
  CHECK(memcmp(bytes, others, size) == 0);
  OK(zeKernelDestroy(kernel_of(again, "add")));
  OK(zeModuleDestroy(again));
  OK(zeModuleDestroy(module));
  ze_module_build_log_handle_t log;
  for (size_t i = 0; i < size; i += i < 64 ? 1 : 97) {
    bytes[i] ^= 0x40;
    GIVES(ERROR_INVALID_NATIVE_BINARY, zeModuleCreate(context, device, &desc, &again, &log));
    CHECK(strstr(log_text(log), "native binary") != NULL);
    bytes[i] ^= 0x40;
  }
  for (desc.inputSize = 1; desc.inputSize < size; desc.inputSize += 131)
    GIVES(ERROR_INVALID_NATIVE_BINARY, zeModuleCreate(context, device, &desc, &again, NULL));
  free(bytes);
  free(others);
}

/* The function of the other module runs, and its variable is the one that this module's program names. */
static void doubled_runs(ze_module_handle_t module, ze_module_handle_t with_variable) {
  enum { ITEMS = 24 };
  static const ze_group_count_t groups = {3, 1, 1};
  ze_kernel_handle_t doubled = kernel_of(module, "doubled");
  ze_command_list_handle_t list = in_order_list();
  int *out = shared_memory(ITEMS * sizeof(int)), *calls, before, after;
  size_t size;
  SET(doubled, 0, out);
  OK(zeKernelSetGroupSize(doubled, ITEMS / 3, 1, 1));
  OK(zeModuleGetGlobalPointer(with_variable, "calls", &size, (void **)&calls));
  CHECK(size == sizeof(int));
  OK(zeCommandListAppendMemoryCopy(list, &before, calls, sizeof(int), NULL, 0, NULL));
  OK(zeCommandListAppendLaunchKernel(list, doubled, &groups, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, &after, calls, sizeof(int), NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < ITEMS; i++) CHECK(out[i] == 2 * i);
  CHECK(after == before + ITEMS);
  OK(zeMemFree(context, out));
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(doubled));
}

/* Two modules in one program: the one's import is the other's export. */
static void several_modules_are_one_program(void) {
  binary parts[] = {binary_of("imports"), binary_of("exports")};
  size_t sizes[] = {parts[0].size, parts[1].size};
  const uint8_t *inputs[] = {parts[0].bytes, parts[1].bytes};
  const char *flags[] = {NULL, "-g"};
  ze_module_program_exp_desc_t program = {.stype = ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC,
                                          .count = 2,
                                          .inputSizes = sizes,
                                          .pInputModules = inputs,
                                          .pBuildFlags = flags};
  ze_module_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MODULE_DESC, .pNext = &program};
  ze_module_handle_t module, again;
  OK(zeModuleCreate(context, device, &desc, &module, NULL));
  uint32_t count = 0;
  OK(zeModuleGetKernelNames(module, &count, NULL));
  CHECK(count == 2);
  doubled_runs(module, module);
  /* Its native binary has both. */
  size_t size = 0;
  OK(zeModuleGetNativeBinary(module, &size, NULL));
  uint8_t *bytes = malloc(size);
  OK(zeModuleGetNativeBinary(module, &size, bytes));
  ze_module_desc_t native = spirv_desc((binary){bytes, size});
  native.format = ZE_MODULE_FORMAT_NATIVE;
  OK(zeModuleCreate(context, device, &native, &again, NULL));
  doubled_runs(again, again);
  OK(zeModuleDestroy(again));
  OK(zeModuleDestroy(module));
  /* A log says in which of them something is wrong. */
  ze_module_build_log_handle_t log;
  for (int i = 0; i < 2; i++) {
    char which[32];
    snprintf(which, sizeof(which), "module %d of 2: ", i + 1);
    parts[i].bytes[6] ^= 0x80;
    GIVES(ERROR_MODULE_BUILD_FAILURE, zeModuleCreate(context, device, &desc, &module, &log));
    const char *text = log_text(log);
    CHECK(strncmp(text, "error: offset 4: ", 17) == 0 && strstr(text, which) != NULL);
    parts[i].bytes[6] ^= 0x80;
  }
  program.count = 0;
  GIVES(ERROR_INVALID_SIZE, zeModuleCreate(context, device, &desc, &module, NULL));
  program.count = 2, inputs[1] = NULL;
  GIVES(ERROR_INVALID_NULL_POINTER, zeModuleCreate(context, device, &desc, &module, NULL));
  free(bytes);
  for (int i = 0; i < 2; i++) free(parts[i].bytes);
}

static void modules_are_linked_later(void) {
  ze_module_handle_t modules[] = {module_of("imports"), module_of("exports"), module_of("exports")};
  ze_module_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MODULE_PROPERTIES};
  OK(zeModuleGetProperties(modules[0], &properties));
  CHECK(properties.flags == ZE_MODULE_PROPERTY_FLAG_IMPORTS);
  ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = "doubled"};
  ze_kernel_handle_t kernel;
  GIVES(ERROR_INVALID_MODULE_UNLINKED, zeKernelCreate(modules[0], &desc, &kernel));
  ze_linkage_inspection_ext_desc_t inspect = {.stype = ZE_STRUCTURE_TYPE_LINKAGE_INSPECTION_EXT_DESC, .flags = 7};
  ze_module_build_log_handle_t log;
  OK(zeModuleInspectLinkageExt(&inspect, 2, modules, &log));
  const char *text = log_text(log), *imports = strstr(text, "imports:\ntwice\n");
  CHECK(imports != NULL && strstr(text, "exports:\n") != NULL);
  CHECK(strstr(text, "unresolvable imports:\nexports:") != NULL && strstr(strstr(text, "exports:"), "twice") != NULL);
  inspect.flags = 8;
  GIVES(ERROR_INVALID_ENUMERATION, zeModuleInspectLinkageExt(&inspect, 2, modules, &log));
  /* By itself it finds nothing, and among two that export the name it is not clear which is meant. */
  GIVES(ERROR_MODULE_LINK_FAILURE, zeModuleDynamicLink(1, modules, &log));
  CHECK(strstr(log_text(log), "twice") != NULL);
  GIVES(ERROR_MODULE_LINK_FAILURE, zeModuleDynamicLink(3, modules, NULL));
  GIVES(ERROR_INVALID_MODULE_UNLINKED, zeKernelCreate(modules[0], &desc, &kernel));
  OK(zeModuleDynamicLink(2, modules, &log));
  log_text(log);
  OK(zeModuleGetProperties(modules[0], &properties));
  CHECK(properties.flags == 0);
  doubled_runs(modules[0], modules[1]);
  OK(zeModuleDestroy(modules[1])); /* what the other needs of it stays */
  OK(zeKernelCreate(modules[0], &desc, &kernel));
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(modules[0]));
  OK(zeModuleDestroy(modules[2]));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeModuleDynamicLink(2, modules, NULL));
}

int main(void) {
  begin();
  a_module_names_its_kernels();
  damage_is_told();
  a_kernel_with_a_pipe_is_refused_at_its_launch();
  unknown_flags_and_constants_are_named();
  native_binaries_come_back();
  several_modules_are_one_program();
  modules_are_linked_later();
  finish("modules");
  return 0;
}
