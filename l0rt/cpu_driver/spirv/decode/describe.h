/* SPDX-License-Identifier: Apache-2.0 */
/* describe.h: what a module says of its kernels, whether or not the engine can run them. */
#ifndef L0RT_CPU_SPIRV_DESCRIBE_H
#define L0RT_CPU_SPIRV_DESCRIBE_H

#include "spirv/decode/module.h"

enum { SPIRV_MAX_PARAMETERS = 4096 }; /* of a kernel */

typedef enum {
  SPIRV_PARAMETER_VALUE,
  SPIRV_PARAMETER_POINTER,
  SPIRV_PARAMETER_LOCAL, /* a pointer to local memory of the group, of which a launch gives the size */
  SPIRV_PARAMETER_IMAGE,
  SPIRV_PARAMETER_SAMPLER,
  SPIRV_PARAMETER_PIPE,
  SPIRV_PARAMETER_QUEUE,
  SPIRV_PARAMETER_OTHER, /* a handle of another kind: its type's name tells */
} spirv_parameter_kind;

typedef struct {
  const char *name; /* "" if the module has none */
  const spirv_type *type; /* of a value; of a pointer: what it points to, or NULL if the pointer is untyped */
  const char *source; /* of a handle: see spirv_source; NULL of others */
  const char *type_name; /* of the instruction that declares the parameter's type, such as "TypeImage" */
  spirv_parameter_kind kind;
  uint32_t size; /* in bytes, as a launch gives it; 0 of local memory */
  uint32_t storage; /* storage class of a pointer */
  uint32_t at; /* word of the OpFunctionParameter */
  bool reads, writes; /* of what a pointer points to */
} spirv_parameter;

/* Describes the parameters of a kernel, in memory of the module's arena. After an error it jumps to arena->out. */
spirv_parameter *spirv_parameters(spirv_module *m, const spirv_entry *entry);
uint32_t spirv_parameter_count(const spirv_module *m, const spirv_entry *entry);

/* Where the source of an instruction stands, from OpLine: " (file.cl:12)", or "" if the module does not tell. */
typedef struct {
  char text[100];
} spirv_source;
spirv_source spirv_source_text(const spirv_module *m, uint32_t at);

/* The function that an instruction is in: its name, or "" if the module has none for it. */
const char *spirv_function_name(const spirv_module *m, uint32_t at);

/* One module that was read only to be described. */
typedef struct spirv_description spirv_description;
struct spirv_description {
  spirv_arena arena; /* after a refusal: its text, the offset, and whether it is only not supported */
  spirv_module *module;
  spirv_parameter **parameters; /* one array for each entry of the module */
  spirv_source source; /* of what was refused */
};

/* Reads a module. Sets *good, and returns NULL only without memory. The caller frees the description in any case. */
spirv_description *spirv_describe(const void *bytes, size_t size, bool trusted, bool *good);
void spirv_description_free(spirv_description *description);

#endif
