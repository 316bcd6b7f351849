/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c: the engine for programs that open this library and use no Level Zero. */
#include "spirv/spirv.h"

/* The library hides its functions, so that they do not take the place of another library's. */
__attribute__((visibility("default"))) const spirv_engine l0rt_cpu_engine = {
    .version = SPIRV_ENGINE_VERSION,
    .program_new = spirv_program_new,
    .program_release = spirv_program_release,
    .program_global = spirv_program_global,
    .program_global_at = spirv_program_global_at,
    .program_kernel = spirv_program_kernel,
    .kernel_look = spirv_kernel_look,
    .run = spirv_run,
};
