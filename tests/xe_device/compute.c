/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of compute engines: what is written to memory when they are done. Kernels do not compute. */
#include <string.h>

#include "command.h"
#include "report.h"

#define PIPE_CONTROL 0x7a00
#define DURATION 20 /* of a kernel, in ticks */

static void pipe_control(xe_queue *queue, const uint32_t *words) {
  if (words[0] >> 8 & 1 && xe_registers_skip(&queue->registers)) return;
  uint64_t address = (words[2] & ~3u) | (uint64_t)words[3] << 32;
  xe_command_post_sync(queue, words[1] >> 14 & 3, address, xe_command_word64(words + 4));
}

static void compute_walker(xe_queue *queue, const uint32_t *words) {
  bool xe2 = xe_product_is_xe2(queue->device->product);
  const uint32_t *post_sync = words + (xe2 ? 27 : 26);
  uint64_t address = xe_command_word64(post_sync + 1), value = xe_command_word64(post_sync + 3);
  xe_report_count(XE_COUNT_gpu_walker);
  if (words[0] >> 8 & 1 && xe_registers_skip(&queue->registers)) return;
  switch (post_sync[0] & 3) {
    case 0: break;
    case 1:
      xe_report_count(XE_COUNT_gpu_postsync);
      xe_queue_write(queue, address, &value, sizeof value);
      break;
    case 3: {
      uint64_t now = xe_device_timestamp(queue->device);
      uint64_t large[4] = {now, now, now + DURATION, now + DURATION};
      uint32_t small[4] = {large[0], large[1], large[2], large[3]};
      xe_report_count(XE_COUNT_gpu_postsync);
      if (xe2) xe_queue_write(queue, address, large, sizeof large);
      else xe_queue_write(queue, address, small, sizeof small);
      break;
    }
    default: xe_queue_fault(queue, "unknown post-sync operation of a walker", address);
  }
}

/* Sets a state that no command here depends on. */
static bool sets_state(uint32_t name) {
  switch (name) {
    case 0x6101: /* STATE_BASE_ADDRESS */
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
  else if (walker && length >= 39) compute_walker(queue, words);
  else return sets_state(name);
  return true;
}
