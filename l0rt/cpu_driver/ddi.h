/* ddi.h: the names of the entry points. */
#ifndef L0RT_CPU_DDI_H
#define L0RT_CPU_DDI_H

#include <stdbool.h>

bool cpu_ddi_knows(const char *name);

#endif
