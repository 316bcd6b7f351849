/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of compute engines: launches of kernels, and what is written to memory when they are done. */
#include <string.h>

#include "command.h"
#include "launch.h"
#include "report.h"

#define PIPE_CONTROL 0x7a00
#define STATE_BASE_ADDRESS 0x6101
#define DURATION 20 /* of a kernel at least, in ticks */
#define DISPATCH_DIMENSIONS 0x500 /* three registers */

static void pipe_control(xe_queue *queue, const uint32_t *words) {
  if (words[0] >> 8 & 1 && xe_registers_skip(&queue->registers)) return;
  uint64_t address = (words[2] & ~3u) | (uint64_t)words[3] << 32;
  xe_command_post_sync(queue, words[1] >> 14 & 3, address, xe_command_word64(words + 4));
}

/* The number of groups in each direction, which another command may have put into registers. */
static void count_groups(xe_queue *queue, const uint32_t *words, uint32_t counts[3]) {
  bool indirect = words[0] >> 10 & 1;
  for (int d = 0; d < 3; d++)
    counts[d] = indirect ? xe_registers_get(&queue->registers, queue->device, DISPATCH_DIMENSIONS + 4 * d)
                         : words[7 + d] - words[10 + d];
}

/* The size of a group. The hardware has all of it only where it makes the numbers of work-items itself. */
static void size_group(const uint32_t *words, const uint32_t *descriptor, uint32_t size[3]) {
  bool has_numbers = words[4] >> 29 & 1;
  unsigned width = 8u << (words[4] >> 30), threads = descriptor[5] & 0x3ff;
  uint32_t last = width < 32 ? words[5] & ((1u << width) - 1) : words[5]; /* work-items of the last thread */
  for (int d = 0; d < 3; d++) size[d] = has_numbers ? 1 + (words[6] >> 10 * d & 0x3ff) : 1;
  if (!has_numbers) size[0] = (threads - 1) * width + __builtin_popcount(last);
}

/* Local memory of a group, which the descriptor has as a number of this table. */
static uint32_t local_bytes(uint32_t number) {
  static const uint8_t kib[] = {0, 1, 2, 4, 8, 16, 32, 64, 24, 48, 96, 128};
  return number < sizeof kib ? kib[number] * 1024u : UINT32_MAX; /* more than the engine has */
}

static void launch(xe_queue *queue, const uint32_t *words, bool xe2) {
  const uint32_t *descriptor = words + (xe2 ? 19 : 18);
  xe_launch l = {.code = queue->code_base + (xe_command_word64(descriptor) & ~63ull),
                 .data = queue->data_base + (words[3] & ~63u),
                 .inline_data = words[4] >> 25 & 1 ? words + (xe2 ? 32 : 31) : NULL,
                 .local_bytes = local_bytes(descriptor[5] >> 16 & 0x1f)};
  size_group(words, descriptor, l.group_size);
  count_groups(queue, words, l.group_count);
  xe_launch_run(queue, &l);
}

static void compute_walker(xe_queue *queue, const uint32_t *words) {
  bool xe2 = xe_product_is_xe2(queue->device->product);
  const uint32_t *post_sync = words + (xe2 ? 27 : 26);
  uint64_t address = xe_command_word64(post_sync + 1), value = xe_command_word64(post_sync + 3);
  xe_report_count(XE_COUNT_gpu_walker);
  if (words[0] >> 8 & 1 && xe_registers_skip(&queue->registers)) return;
  uint64_t begin = xe_device_timestamp(queue->device);
  launch(queue, words, xe2);
  if (queue->stops || queue->banned) return; /* it may have been cancelled */
  switch (post_sync[0] & 3) {
    case 0: break;
    case 1:
      xe_report_count(XE_COUNT_gpu_postsync);
      xe_queue_write(queue, address, &value, sizeof value);
      break;
    case 3: {
      uint64_t end = xe_device_timestamp(queue->device) + DURATION;
      uint64_t large[4] = {begin, begin, end, end};
      uint32_t small[4] = {large[0], large[1], large[2], large[3]};
      xe_report_count(XE_COUNT_gpu_postsync);
      if (xe2) xe_queue_write(queue, address, large, sizeof large);
      else xe_queue_write(queue, address, small, sizeof small);
      break;
    }
    default: xe_queue_fault(queue, "unknown post-sync operation of a walker", address);
  }
}

static void state_base_address(xe_queue *queue, const uint32_t *words) {
  if (words[1] & 1) queue->data_base = xe_command_word64(words + 1) & ~0xfffull;
  if (words[10] & 1) queue->code_base = xe_command_word64(words + 10) & ~0xfffull;
}

/* Sets a state that no command here depends on. */
static bool sets_state(uint32_t name) {
  switch (name) {
    case 0x6102: /* STATE_SIP */
    case 0x6105: /* STATE_COMPUTE_MODE */
    case 0x6109: /* STATE_SYSTEM_MEM_FENCE_ADDRESS */
    case 0x610b: /* STATE_CONTEXT_DATA_BASE_ADDRESS */
    case 0x6904: /* PIPELINE_SELECT */
    case 0x7200: /* CFE_STATE */
    case 0x7919: /* 3DSTATE_BINDING_TABLE_POOL_ALLOC */ return true;
    default: return false;
  }
}

bool xe_compute_run(xe_queue *queue, const uint32_t *words, unsigned length) {
  uint32_t name = words[0] >> 16;
  bool walker = words[0] >> 24 == 0x72 && (words[0] >> 18 & 0x3f) == 2;
  if (name == PIPE_CONTROL) pipe_control(queue, words);
  else if (name == STATE_BASE_ADDRESS && length >= 12) state_base_address(queue, words);
  else if (walker && length >= 39) compute_walker(queue, words);
  else return sets_state(name);
  return true;
}
