/* SPDX-License-Identifier: Apache-2.0 */
/* build_log.h: what building, linking or inspecting modules had to say. */
#ifndef L0RT_CPU_BUILD_LOG_H
#define L0RT_CPU_BUILD_LOG_H

#include "base/object.h"

typedef struct {
  cpu_object base;
  char *text; /* lines; NULL while there is none */
  size_t length;
} cpu_build_log;

_Static_assert(sizeof(cpu_build_log) <= CPU_SLOT, "an object must fit its slot");

cpu_build_log *cpu_build_log_new(void);

/* Adds a line; the log is given as a void pointer so that this can be a callback. */
void cpu_build_log_add(void *log, const char *line);

/* The last line that begins with "error", or the whole text. */
const char *cpu_build_log_error(const cpu_build_log *log);

/* Gives the log to the program, or destroys it if the program did not ask for it. */
void cpu_build_log_give(cpu_build_log *log, ze_module_build_log_handle_t *out);

#endif
