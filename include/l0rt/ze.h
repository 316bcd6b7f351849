/* SPDX-License-Identifier: Apache-2.0 */
/* ze.h: the Level Zero ABI that l0rt uses, declared here so that nothing needs Level Zero's own headers.
 * A file a chapter; each includes the one before it. tests/ze compares every size, offset and value with the
 * official headers where those are installed. */
#ifndef L0RT_ZE_H
#define L0RT_ZE_H

#include "l0rt/ze_image.h"

#endif
