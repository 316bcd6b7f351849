/* SPDX-License-Identifier: Apache-2.0 */
/* ddi.h: the names of the entry points. */
#ifndef L0RT_CPU_DDI_H
#define L0RT_CPU_DDI_H

#include <stdbool.h>

/* The first minor version of the specification that has a function; -1 for an unknown name. */
int cpu_ddi_since(const char *name);

/* Has a loader asked for tables that would read those of handles otherwise: an older one? */
bool cpu_ddi_loader_is_older(void);

#endif
