/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: the command streamer. */
#ifndef XE_DEVICE_COMMAND_H
#define XE_DEVICE_COMMAND_H

#include "queue.h"

/* Runs the batch at an address to its end. */
void xe_command_run(xe_queue *queue, uint64_t address);

static inline uint64_t xe_command_word64(const uint32_t *words) { return words[0] | (uint64_t)words[1] << 32; }

/* What PIPE_CONTROL and MI_FLUSH_DW write when they are done: 1 is a value, others the time. */
void xe_command_post_sync(xe_queue *queue, unsigned operation, uint64_t address, uint64_t value);

/* Commands of type 3 (compute.c) and of type 2 (blitter.c), of `length` words; false if it is not known. */
bool xe_compute_run(xe_queue *queue, const uint32_t *words, unsigned length);
bool xe_blitter_run(xe_queue *queue, const uint32_t *words);

#endif
