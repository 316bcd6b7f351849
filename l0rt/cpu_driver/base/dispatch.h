/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.h: what every handle begins with, and the version of the specification that says how it looks. */
#ifndef L0RT_CPU_DISPATCH_H
#define L0RT_CPU_DISPATCH_H

extern const void *const cpu_dispatch[4];
enum { CPU_DISPATCH_VERSION = 1 << 16 | 17 };

#endif
