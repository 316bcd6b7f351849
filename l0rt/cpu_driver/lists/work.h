/* SPDX-License-Identifier: Apache-2.0 */
/* work.h: what memory, events and contexts ask of the engines (engine.c), which come after them in the order of
 * includes. */
#ifndef L0RT_CPU_WORK_H
#define L0RT_CPU_WORK_H

#include "base/context.h"

/* Wakes all engines, because an event was set. */
void cpu_engines_ring(void);

/* Stops the engines between commands, none of them running one that touches these bytes; lets them go on. */
void cpu_engines_hold(uintptr_t low, uintptr_t high);
void cpu_engines_go(void);

/* Does any command not yet complete touch these bytes? */
bool cpu_engines_touch(uintptr_t low, uintptr_t high);

/* Has the engine of any queue work for this context? */
bool cpu_engines_work_for(const cpu_context *context);

#endif
