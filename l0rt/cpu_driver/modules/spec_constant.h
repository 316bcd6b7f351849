/* SPDX-License-Identifier: Apache-2.0 */
/* spec_constant.h: how large the specialisation constants of a SPIR-V module are. Level Zero passes their values without
 * a size. */
#ifndef L0RT_CPU_SPEC_CONSTANT_H
#define L0RT_CPU_SPEC_CONSTANT_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of the constants with this SpecId, 1 for a bool; 0 if the module has none. Any bytes may be passed. */
size_t cpu_spec_constant_size(const void *module, size_t size, uint32_t spec_id);

#endif
