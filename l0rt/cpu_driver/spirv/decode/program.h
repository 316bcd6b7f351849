/* SPDX-License-Identifier: Apache-2.0 */
/* program.h: the parts of a program, for the files of the engine. */
#ifndef L0RT_CPU_SPIRV_PROGRAM_H
#define L0RT_CPU_SPIRV_PROGRAM_H

#include <pthread.h>

#include "spirv/decode/module.h"

enum { SPIRV_MAX_MODULES = 64 };

struct spirv_code;

struct spirv_kernel {
  struct spirv_program *program;
  const spirv_module *module;
  const spirv_entry *entry;
  spirv_kernel_info info;
  pthread_mutex_t lock; /* held while the code is made */
  struct spirv_code *_Atomic code;
  spirv_arena arena; /* of the code */
  spirv_arena drafts; /* of the intermediate form, while the code is made */
  spirv_result failure; /* why there is no code */
  bool failed;
  struct spirv_group *_Atomic idle; /* memory of one thread, kept for the next launch */
};

typedef struct {
  uint64_t address, size;
  bool constant;
  const char *name; /* NULL: not exported */
} spirv_memory_range;

struct spirv_program {
  _Atomic uint32_t references;
  spirv_arena arena;
  spirv_module *modules[SPIRV_MAX_MODULES];
  uint32_t module_count; /* its own; the modules of linked programs follow them */
  uint32_t linked_count;
  uint32_t decoding; /* which module, while they are decoded */
  struct spirv_program **others; /* linked programs */
  uint32_t other_count;
  spirv_kernel *kernels;
  uint32_t kernel_count;
  spirv_memory_range *ranges; /* module-scope variables */
  uint32_t range_count;
  const char **imports, **exports;
  uint32_t import_count, export_count;
};

/* Ends what a kernel keeps in `idle`; the engine defines it (run/group.c). */
void spirv_group_free(struct spirv_group *group);

/* Finds the function or variable that an import names, in any of the modules; NULL: no module exports it. */
const spirv_id *spirv_program_find(const struct spirv_program *program, const char *name, uint32_t op,
                                   const spirv_module **module);
/* The atomics of OpenCL 1.x, dot products and LLVM's own functions, which the engine knows by name (lower_group.c,
 * lower_dot.c, lower_llvm.c), so no module needs to export them: what follows _Z and the length in the name of one, or the
 * name itself of LLVM's; else NULL. */
bool spirv_is_llvm_function(const char *name);
const char *spirv_known_name(const char *mangled);

/* Where an instruction stands. The code of a kernel has its word as if the modules, in their order, were one. */
typedef struct {
  const spirv_module *module;
  uint32_t number, of; /* which of how many modules, from 1 */
  uint32_t at;         /* word of the module */
} spirv_place;
uint32_t spirv_program_base(const struct spirv_program *program, const spirv_module *module); /* words before it */
spirv_place spirv_program_place(const struct spirv_program *program, uint32_t word);
/* In bytes, as messages have it: "580", or of several modules "580 of module 2 of 3". */
typedef struct {
  char text[48];
} spirv_place_text;
spirv_place_text spirv_program_tell_place(const struct spirv_program *program, uint32_t word);

#endif
