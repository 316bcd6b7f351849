/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h: the cache of a device whose counter-based events do not flush it (CPU_QUIRK_UNFLUSHED_COUNTERS).
 *
 * What copies and fills write to host and shared memory is held back from the host: until an event that is not
 * counter-based is signalled, a fence, a wait for a list, queue or device ends, or the device moves more data; or, as
 * caches lose their lines in the end, half a second has passed. The device itself sees it at once. */
#ifndef L0RT_CPU_CACHE_H
#define L0RT_CPU_CACHE_H

#include <stddef.h>
#include <stdint.h>

/* Around a command that writes so many bytes: what it writes is held back if the line that opens is closed. NULL: it is
 * no memory that the driver allocated for the host, or none is left for the line. */
typedef struct cpu_cache_line cpu_cache_line;
cpu_cache_line *cpu_cache_open(void *target, size_t size);
void cpu_cache_close(cpu_cache_line *line);

/* Lets the host see everything. */
void cpu_cache_flush(void);

/* When what is held back is due, in nanoseconds of the wait clock; CPU_NEVER while nothing is. */
uint64_t cpu_cache_due(void);

#endif
