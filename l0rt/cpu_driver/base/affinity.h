/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.h: which devices ZE_AFFINITY_MASK shows to the program. */
#ifndef L0RT_CPU_AFFINITY_H
#define L0RT_CPU_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the variable's value, or NULL. */
void cpu_affinity_read(const char *mask);

/* Is the device of this number, counted without the mask, shown? */
bool cpu_affinity_shows(uint32_t index);

#endif
