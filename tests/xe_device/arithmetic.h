/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.h: MI_MATH. */
#ifndef XE_DEVICE_ARITHMETIC_H
#define XE_DEVICE_ARITHMETIC_H

#include "queue.h"

/* Runs instructions of one word each over the queue's registers. */
void xe_arithmetic_run(xe_queue *queue, const uint32_t *instructions, unsigned number);

#endif
