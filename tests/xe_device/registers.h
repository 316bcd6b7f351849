/* SPDX-License-Identifier: Apache-2.0 */
/* registers.h: a command streamer's registers and the arithmetic unit over them. */
#ifndef XE_DEVICE_REGISTERS_H
#define XE_DEVICE_REGISTERS_H

#include <stdbool.h>

#include "device.h"

#define XE_GENERAL_REGISTERS 16

typedef struct {
  uint64_t general[XE_GENERAL_REGISTERS];
  uint32_t others[1024]; /* by offset in the engine's page, in words */
  int predicate; /* what MI_SET_PREDICATE has set */
} xe_registers;

/* By offset of any engine: all have the same page. */
uint32_t xe_registers_get(const xe_registers *registers, const xe_device *device, uint32_t offset);
void xe_registers_set(xe_registers *registers, uint32_t offset, uint32_t value);

/* Does the predicate say that a command which obeys it is to be left out? */
bool xe_registers_skip(const xe_registers *registers);

#endif
