/* SPDX-License-Identifier: Apache-2.0 */
#include "arithmetic.h"

/* clang-format off */
enum {
  NOOP = 0x000, FENCE_READ = 0x001, FENCE_WRITE = 0x002,
  LOAD = 0x080, LOAD_INVERTED = 0x480, LOAD_0 = 0x081, LOAD_1 = 0x481, LOAD_INDIRECT = 0x082,
  ADD = 0x100, SUBTRACT = 0x101, AND = 0x102, OR = 0x103, XOR = 0x104,
  SHIFT_LEFT = 0x105, SHIFT_RIGHT = 0x106, SHIFT_RIGHT_SIGNED = 0x107,
  STORE = 0x180, STORE_INVERTED = 0x580, STORE_INDIRECT = 0x181,
};
enum { SOURCE_A = 0x20, SOURCE_B = 0x21, ACCUMULATOR = 0x31, ZERO = 0x32, CARRY = 0x33 };
/* clang-format on */

typedef struct {
  uint64_t a, b, accumulator;
  bool zero, carry;
} state;

static uint64_t operand(const xe_queue *queue, const state *unit, uint32_t name) {
  if (name < XE_GENERAL_REGISTERS) return queue->registers.general[name];
  switch (name) {
    case SOURCE_A: return unit->a;
    case SOURCE_B: return unit->b;
    case ACCUMULATOR: return unit->accumulator;
    case ZERO: return unit->zero ? UINT64_MAX : 0;
    case CARRY: return unit->carry ? UINT64_MAX : 0;
    default: return 0;
  }
}

static void assign(xe_queue *queue, state *unit, uint32_t name, uint64_t value) {
  if (name < XE_GENERAL_REGISTERS) queue->registers.general[name] = value;
  else if (name == SOURCE_A) unit->a = value;
  else if (name == SOURCE_B) unit->b = value;
}

/* False if there is no such operation. */
static bool compute(state *unit, uint32_t operation) {
  uint64_t a = unit->a, b = unit->b;
  unit->carry = false;
  switch (operation) {
    case ADD: unit->carry = __builtin_add_overflow(a, b, &unit->accumulator); break;
    case SUBTRACT: unit->carry = __builtin_sub_overflow(a, b, &unit->accumulator); break;
    case AND: unit->accumulator = a & b; break;
    case OR: unit->accumulator = a | b; break;
    case XOR: unit->accumulator = a ^ b; break;
    case SHIFT_LEFT: unit->accumulator = b < 64 ? a << b : 0; break;
    case SHIFT_RIGHT: unit->accumulator = b < 64 ? a >> b : 0; break;
    case SHIFT_RIGHT_SIGNED: unit->accumulator = (uint64_t)((int64_t)a >> (b < 63 ? b : 63)); break;
    default: return false;
  }
  unit->zero = !unit->accumulator;
  return true;
}

void xe_arithmetic_run(xe_queue *queue, const uint32_t *instructions, unsigned number) {
  state unit = {0};
  for (unsigned i = 0; i < number && !queue->banned; i++) {
    uint32_t operation = instructions[i] >> 20, first = instructions[i] >> 10 & 0x3ff, second = instructions[i] & 0x3ff;
    uint64_t value = operand(queue, &unit, second);
    switch (operation) {
      case NOOP:
      case FENCE_READ:
      case FENCE_WRITE: break;
      case LOAD:
      case STORE: assign(queue, &unit, first, value); break;
      case LOAD_INVERTED:
      case STORE_INVERTED: assign(queue, &unit, first, ~value); break;
      case LOAD_0: assign(queue, &unit, first, 0); break;
      case LOAD_1: assign(queue, &unit, first, UINT64_MAX); break;
      case LOAD_INDIRECT: {
        uint64_t word = 0;
        xe_queue_read(queue, value, &word, sizeof word);
        assign(queue, &unit, first, word);
        break;
      }
      case STORE_INDIRECT: xe_queue_write(queue, operand(queue, &unit, first), &value, sizeof value); break;
      default:
        if (!compute(&unit, operation)) xe_queue_fault(queue, "unknown operation of MI_MATH", instructions[i]);
    }
  }
}
