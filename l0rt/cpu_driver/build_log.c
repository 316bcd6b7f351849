/* SPDX-License-Identifier: Apache-2.0 */
/* build_log.c: build logs. */
#include "build_log.h"

#include <stdlib.h>
#include <string.h>

#include "gate.h"

cpu_build_log *cpu_build_log_new(void) { return cpu_new(CPU_BUILD_LOG); }

void cpu_build_log_add(void *context, const char *line) {
  cpu_build_log *log = context;
  size_t length = strlen(line);
  char *text = realloc(log->text, log->length + length + 2);
  if (text == NULL) return; /* a log may be short of a line */
  memcpy(text + log->length, line, length);
  strcpy(text + log->length + length, "\n");
  log->text = text;
  log->length += length + 1;
}

const char *cpu_build_log_error(const cpu_build_log *log) {
  const char *error = log->text == NULL ? "" : log->text;
  for (const char *line = error; *line != '\0'; line = strchr(line, '\n') + 1)
    if (strncmp(line, "error", 5) == 0) error = line;
  return error;
}

static void end(cpu_build_log *log) {
  free(log->text);
  cpu_delete(log);
}

void cpu_build_log_give(cpu_build_log *log, ze_module_build_log_handle_t *out) {
  if (out != NULL) *out = (ze_module_build_log_handle_t)log;
  else end(log);
}

CPU_EXPORT ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t handle) {
  CPU_ENTER();
  cpu_build_log *log = cpu_cast(handle, CPU_BUILD_LOG);
  CPU_REFUSE_IF(log == NULL, ERROR_INVALID_NULL_HANDLE);
  end(log);
  return ZE_RESULT_SUCCESS;
}

/* The size counts the closing NUL. */
CPU_EXPORT ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t handle, size_t *size, char *text) {
  CPU_ENTER();
  const cpu_build_log *log = cpu_cast(handle, CPU_BUILD_LOG);
  CPU_REFUSE_IF(log == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  size_t length = *size <= log->length ? *size - 1 : log->length;
  if (text != NULL && *size != 0) {
    if (length != 0) memcpy(text, log->text, length);
    text[length] = '\0';
  }
  *size = log->length + 1;
  return ZE_RESULT_SUCCESS;
}
