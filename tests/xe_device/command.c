/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the streamer itself, which Intel's manuals call MI: jumps, waits, registers and words of memory. */
#include "command.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "arithmetic.h"
#include "report.h"

#define WORDS 256 /* no command is longer */
#define NESTING 16

/* clang-format off */
enum {
  NOOP = 0x00, SET_PREDICATE = 0x01, USER_INTERRUPT = 0x02, ARB_CHECK = 0x05, ARB_ON_OFF = 0x08, MEM_FENCE = 0x09,
  BATCH_BUFFER_END = 0x0a, MATH = 0x1a, SEMAPHORE_WAIT = 0x1c, STORE_DATA_IMM = 0x20, LOAD_REGISTER_IMM = 0x22,
  STORE_REGISTER_MEM = 0x24, FLUSH_DW = 0x26, LOAD_REGISTER_MEM = 0x29, LOAD_REGISTER_REG = 0x2a,
  COPY_MEM_MEM = 0x2e, ATOMIC = 0x2f, BATCH_BUFFER_START = 0x31, CONDITIONAL_BATCH_BUFFER_END = 0x36,
};
/* clang-format on */
enum { TYPE_MI = 0, TYPE_BLITTER = 2, TYPE_COMPUTE = 3, TYPE_BARRIER = 5 };

typedef struct {
  xe_queue *queue;
  const uint32_t *words;
  unsigned length;
  uint64_t next; /* where the command behind this one is */
  uint64_t returns[NESTING];
  unsigned nesting;
  bool ended;
} stream;

static uint64_t aligned(const uint32_t *words) { return xe_command_word64(words) & ~3ull; }
static bool bit(const stream *s, int number) { return s->words[0] >> number & 1; }
static uint32_t offset(uint32_t word) { return word & 0x7ffffc; }
static bool skipped(const stream *s, int obeys) { return bit(s, obeys) && xe_registers_skip(&s->queue->registers); }

static bool compare(unsigned operation, uint64_t memory, uint64_t value) {
  switch (operation) {
    case 0: return memory > value;
    case 1: return memory >= value;
    case 2: return memory < value;
    case 3: return memory <= value;
    case 4: return memory == value;
    default: return memory != value;
  }
}

static void leave(stream *s) {
  if (s->nesting) s->next = s->returns[--s->nesting];
  else s->ended = true;
}

static void batch_buffer_start(stream *s) {
  if (skipped(s, 15)) return;
  if (bit(s, 22)) {
    if (s->nesting == NESTING) return xe_queue_fault(s->queue, "batches nest too deeply", s->next);
    s->returns[s->nesting++] = s->next;
  }
  uint64_t target = bit(s, 18) ? s->queue->registers.general[0] & ~3ull : aligned(s->words + 1);
  target = xe_queue_address(s->queue, target);
  if (target < s->next) sched_yield(); /* perhaps a loop that waits for the host */
  s->next = target;
}

static void conditional_batch_buffer_end(stream *s) {
  uint64_t memory = 0;
  if (skipped(s, 15) || !xe_queue_read(s->queue, xe_command_word64(s->words + 2) & ~7ull, &memory, 8)) return;
  bool mask = bit(s, 19); /* the word behind it has the bits to look at */
  bool ends = mask ? !(memory & memory >> 32 & UINT32_MAX)
                   : compare(s->words[0] >> 12 & 7, (uint32_t)memory, s->words[1]);
  if (ends) leave(s);
}

static void semaphore_wait(stream *s) {
  xe_queue *queue = s->queue;
  unsigned operation = s->words[0] >> 12 & 7;
  uint64_t address = aligned(s->words + 2);
  bool of_register = bit(s, 16), indirect = bit(s, 17); /* the value to wait for is in a register */
  xe_report_count(XE_COUNT_gpu_semaphore);
  for (unsigned round = 0; !queue->stops && !queue->banned; round++) {
    uint64_t memory = 0, value = indirect ? queue->registers.general[0] : s->words[1];
    if (of_register) memory = xe_registers_get(&queue->registers, queue->device, (uint32_t)address);
    else if (!xe_queue_read(queue, address, &memory, indirect ? 8 : 4)) return;
    if (compare(operation, memory, value)) return;
    if (round < 200) {
      sched_yield();
    } else {
      xe_report_count(XE_COUNT_gpu_semaphore_sleep);
      nanosleep(&(struct timespec){0, round < 2000 ? 50000 : 500000}, NULL);
    }
  }
}

/* The operation's result for both sizes; false if there is no such operation. */
static bool operate(unsigned operation, uint64_t old, uint64_t first, uint64_t second, uint64_t *result) {
  switch (operation & 0x1f) {
    case 0x01: *result = old & first; break;
    case 0x02: *result = old | first; break;
    case 0x03: *result = old ^ first; break;
    case 0x04: *result = first; break;
    case 0x05: *result = old + 1; break;
    case 0x06: *result = old - 1; break;
    case 0x07: *result = old + first; break;
    case 0x08: *result = old - first; break;
    case 0x0e: *result = old == first ? second : old; break;
    default: return false;
  }
  return true;
}

static void atomic(stream *s) {
  xe_queue *queue = s->queue;
  unsigned operation = s->words[0] >> 8 & 0xff;
  uint64_t address = xe_queue_address(queue, aligned(s->words + 1)), old = 0, result, available = 0;
  uint64_t first = s->length > 3 ? s->words[3] : 0, second = s->length > 4 ? s->words[4] : 0;
  if (s->length > 6) {
    first |= (uint64_t)s->words[5] << 32;
    second |= (uint64_t)s->words[6] << 32;
  }
  bool large = operation & 0x20;
  if (operation >= 0x40 || !operate(operation, 0, 0, 0, &result))
    return xe_queue_fault(queue, "unknown operation of MI_ATOMIC", s->words[0]);
  pthread_rwlock_rdlock(&queue->space->lock);
  uint8_t *memory = xe_space_find(queue->space, address, &available);
  if (memory && large) {
    old = __atomic_load_n((uint64_t *)memory, __ATOMIC_ACQUIRE);
    do operate(operation, old, first, second, &result);
    while (!__atomic_compare_exchange_n((uint64_t *)memory, &old, result, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  } else if (memory) {
    uint32_t word = __atomic_load_n((uint32_t *)memory, __ATOMIC_ACQUIRE);
    do operate(operation, word, (uint32_t)first, (uint32_t)second, &result);
    while (!__atomic_compare_exchange_n((uint32_t *)memory, &word, (uint32_t)result, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE));
    old = word;
  }
  pthread_rwlock_unlock(&queue->space->lock);
  if (!memory) return xe_queue_fault(queue, "atomic access to memory that is not bound", address);
  if (bit(s, 16)) queue->registers.general[0] = old;
}

void xe_command_post_sync(xe_queue *queue, unsigned operation, uint64_t address, uint64_t value) {
  if (!operation) return;
  xe_report_count(XE_COUNT_gpu_postsync);
  if (operation != 1) value = xe_device_timestamp(queue->device);
  xe_queue_write(queue, address, &value, sizeof value);
}

/* False if it is not known. */
static bool mi(stream *s) {
  xe_queue *queue = s->queue;
  const uint32_t *words = s->words;
  uint32_t word = 0;
  switch (words[0] >> 23 & 0x3f) {
    case NOOP:
    case USER_INTERRUPT:
    case ARB_CHECK:
    case ARB_ON_OFF:
    case MEM_FENCE: break;
    case SET_PREDICATE: queue->registers.predicate = words[0] & 0xf; break;
    case BATCH_BUFFER_END: leave(s); break;
    case BATCH_BUFFER_START: batch_buffer_start(s); break;
    case CONDITIONAL_BATCH_BUFFER_END: conditional_batch_buffer_end(s); break;
    case STORE_DATA_IMM: xe_queue_write(queue, aligned(words + 1), words + 3, bit(s, 21) ? 8 : 4); break;
    case LOAD_REGISTER_IMM:
      for (unsigned i = 1; i + 1 < s->length; i += 2)
        xe_registers_set(&queue->registers, offset(words[i]), words[i + 1]);
      break;
    case STORE_REGISTER_MEM:
      word = xe_registers_get(&queue->registers, queue->device, offset(words[1]));
      if (!skipped(s, 21)) xe_queue_write(queue, aligned(words + 2), &word, sizeof word);
      break;
    case LOAD_REGISTER_MEM:
      xe_queue_read(queue, aligned(words + 2), &word, sizeof word);
      xe_registers_set(&queue->registers, offset(words[1]), word);
      break;
    case LOAD_REGISTER_REG:
      word = xe_registers_get(&queue->registers, queue->device, offset(words[1]));
      xe_registers_set(&queue->registers, offset(words[2]), word);
      break;
    case COPY_MEM_MEM:
      if (xe_queue_read(queue, aligned(words + 3), &word, sizeof word))
        xe_queue_write(queue, aligned(words + 1), &word, sizeof word);
      break;
    case MATH: xe_arithmetic_run(queue, words + 1, s->length - 1); break;
    case FLUSH_DW:
      xe_command_post_sync(queue, words[0] >> 14 & 3, xe_command_word64(words + 1) & 0xfffffffffff8ull,
                           s->length >= 5 ? xe_command_word64(words + 3) : words[3]);
      break;
    case SEMAPHORE_WAIT: semaphore_wait(s); break;
    case ATOMIC: atomic(s); break;
    default: return false;
  }
  return true;
}

static unsigned length_of(uint32_t header) {
  unsigned operation = header >> 23 & 0x3f;
  switch (header >> 29) {
    case TYPE_MI:
      if (operation < 0x10) return 1;
      if (operation == STORE_DATA_IMM) return (header & 0x3ff) + 2;
      return (header & (operation == FLUSH_DW ? 0x3f : 0xff)) + 2;
    case TYPE_COMPUTE: return header >> 16 == 0x6904 ? 1 : (header & 0xff) + 2; /* PIPELINE_SELECT has no length */
    default: return (header & 0xff) + 2;
  }
}

static bool run_one(stream *s) {
  switch (s->words[0] >> 29) {
    case TYPE_MI: return mi(s);
    case TYPE_COMPUTE: return xe_compute_run(s->queue, s->words, s->length);
    case TYPE_BLITTER: return xe_blitter_run(s->queue, s->words);
    case TYPE_BARRIER: return true; /* of threads, which have all ended */
    default: return false;
  }
}

void xe_command_run(xe_queue *queue, uint64_t address) {
  uint32_t words[WORDS];
  stream s = {.queue = queue, .words = words, .next = address};
  queue->registers.predicate = 0;
  while (!s.ended && !queue->stops && !queue->banned) {
    address = s.next;
    if (!xe_queue_read(queue, address, words, 4)) return;
    s.length = length_of(words[0]);
    if (s.length > WORDS) return xe_queue_fault(queue, "a command without an end", address);
    if (s.length > 1 && !xe_queue_read(queue, address + 4, words + 1, 4 * (s.length - 1))) return;
    s.next = address + 4 * s.length;
    xe_report_count(XE_COUNT_gpu_command);
    if (xe_report_traces)
      xe_report_log("queue %u %llx: %08x, %u words: %08x %08x %08x %08x", queue->number, (unsigned long long)address,
                    words[0], s.length, words[1], words[2], words[3], words[4]);
    if (!run_one(&s)) {
      char what[48];
      snprintf(what, sizeof what, "unknown command %08x", words[0]);
      return xe_queue_fault(queue, what, address);
    }
  }
}
