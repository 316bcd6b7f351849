/* SPDX-License-Identifier: Apache-2.0 */
/* modules.h: the tests' modules, and kernels ready to be launched. Sources and binaries are in kernels/. */
#ifndef L0RT_CPU_TEST_MODULES_H
#define L0RT_CPU_TEST_MODULES_H

#include "harness.h"

typedef struct {
  uint8_t *bytes;
  size_t size;
} binary;

static inline binary binary_of(const char *name) {
  char path[512];
  snprintf(path, sizeof(path), "%s/%s.spv", KERNELS, name);
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  CHECK(fseek(file, 0, SEEK_END) == 0);
  binary b = {.size = (size_t)ftell(file)};
  b.bytes = malloc(b.size);
  rewind(file);
  CHECK(b.bytes != NULL && fread(b.bytes, 1, b.size, file) == b.size);
  fclose(file);
  return b;
}

static inline ze_module_desc_t spirv_desc(binary b) {
  return (ze_module_desc_t){.stype = ZE_STRUCTURE_TYPE_MODULE_DESC,
                            .format = ZE_MODULE_FORMAT_IL_SPIRV,
                            .inputSize = b.size,
                            .pInputModule = b.bytes};
}

static inline ze_module_handle_t module_of(const char *name) {
  binary b = binary_of(name);
  ze_module_desc_t desc = spirv_desc(b);
  ze_module_handle_t module;
  OK(zeModuleCreate(context, device, &desc, &module, NULL));
  free(b.bytes); /* a module needs its input no more */
  return module;
}

static inline ze_kernel_handle_t kernel_of(ze_module_handle_t module, const char *name) {
  ze_kernel_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = name};
  ze_kernel_handle_t kernel;
  OK(zeKernelCreate(module, &desc, &kernel));
  return kernel;
}

/* What a log says, in a buffer that the next call overwrites; the log is gone then. */
static inline const char *log_text(ze_module_build_log_handle_t log) {
  static char text[4096];
  size_t size = 0;
  OK(zeModuleBuildLogGetString(log, &size, NULL));
  CHECK(size >= 1 && size <= sizeof(text));
  OK(zeModuleBuildLogGetString(log, &size, text));
  CHECK(strlen(text) + 1 == size);
  OK(zeModuleBuildLogDestroy(log));
  return text;
}

#define SET(kernel, index, value) OK(zeKernelSetArgumentValue(kernel, index, sizeof(value), &(value)))

#endif
