/* SPDX-License-Identifier: Apache-2.0 */
#include "registers.h"

#define PAGE 0xfff
#define GENERAL 0x600 /* of 64 bits each */
#define GENERAL_END 0x680
#define TIMESTAMP 0x358
#define QUEUE_TIMESTAMP 0x3a8
#define PREDICATE_RESULT_1 0x41c
#define PREDICATE_RESULT_2 0x3bc

uint32_t xe_registers_get(const xe_registers *registers, const xe_device *device, uint32_t offset) {
  offset &= PAGE;
  if (offset >= GENERAL && offset < GENERAL_END)
    return (uint32_t)(registers->general[(offset - GENERAL) / 8] >> (offset & 4 ? 32 : 0));
  if ((offset & ~4u) == TIMESTAMP || (offset & ~4u) == QUEUE_TIMESTAMP)
    return (uint32_t)(xe_device_timestamp(device) >> (offset & 4 ? 32 : 0));
  return registers->others[offset / 4];
}

void xe_registers_set(xe_registers *registers, uint32_t offset, uint32_t value) {
  offset &= PAGE;
  if (offset >= GENERAL && offset < GENERAL_END) {
    uint64_t *general = &registers->general[(offset - GENERAL) / 8];
    int shift = offset & 4 ? 32 : 0;
    *general = (*general & ~(0xffffffffull << shift)) | (uint64_t)value << shift;
  } else {
    registers->others[offset / 4] = value;
  }
}

bool xe_registers_skip(const xe_registers *registers) {
  bool first = registers->others[PREDICATE_RESULT_1 / 4] & 1, second = registers->others[PREDICATE_RESULT_2 / 4] & 1;
  switch (registers->predicate) {
    case 1: return !second;
    case 2: return second;
    case 3: return !first;
    case 4: return first;
    case 15: return true;
    default: return false;
  }
}
