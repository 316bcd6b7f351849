/* SPDX-License-Identifier: Apache-2.0 */
/* workers.h: threads that run a function together with their caller. */
#ifndef L0RT_CPU_SPIRV_WORKERS_H
#define L0RT_CPU_SPIRV_WORKERS_H

#include "spirv/spirv.h"

/* Lets up to `most` threads call the function. Returns false if they are busy with another launch. */
bool spirv_workers_begin(spirv_workers *workers, void (*work)(void *), void *context, uint64_t most);
/* Waits until all calls that began have returned. */
void spirv_workers_end(spirv_workers *workers);

#endif
