/* ddi.h: the names of the entry points. */
#ifndef L0RT_CPU_DDI_H
#define L0RT_CPU_DDI_H

/* The minor version of the specification that has a function first; -1 for a name that is none of ours. */
int cpu_ddi_since(const char *name);

#endif
