/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of copy engines, between linear memory: they move the data. */
#include <string.h>

#include "command.h"
#include "report.h"

enum { XY_BLOCK_COPY = 0x41, XY_FAST_COLOR = 0x44, MEM_COPY = 0x5a, MEM_SET = 0x5b };

#define PART (1 << 20) /* for that long a copy keeps others from binding memory */
#define LINE 4096

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void copy(xe_queue *queue, uint64_t to, uint64_t from, uint64_t size) {
  to = xe_queue_address(queue, to);
  from = xe_queue_address(queue, from);
  while (size) {
    uint64_t writable = 0, readable = 0;
    pthread_rwlock_rdlock(&queue->space->lock);
    uint8_t *target = xe_space_find(queue->space, to, &writable);
    const uint8_t *source = xe_space_find(queue->space, from, &readable);
    uint64_t part = lesser(lesser(size, PART), lesser(writable, readable));
    if (part && target && source) memmove(target, source, part);
    if (part && target && !source) memset(target, 0, part);
    pthread_rwlock_unlock(&queue->space->lock);
    if (!writable) return xe_queue_fault(queue, "copy to memory that is not bound", to);
    if (!readable) return xe_queue_fault(queue, "copy from memory that is not bound", from);
    to += part;
    from += part;
    size -= part;
  }
}

static void fill(xe_queue *queue, uint64_t to, uint64_t size, const void *pattern, unsigned length) {
  uint8_t line[LINE];
  unsigned whole = LINE / length * length;
  for (unsigned i = 0; i < whole; i += length) memcpy(line + i, pattern, length);
  for (uint64_t done = 0; done < size && !queue->banned; done += whole)
    xe_queue_write(queue, to + done, line, lesser(size - done, whole));
}

/* The bytes of a pixel. */
static unsigned depth(uint32_t header) {
  static const uint8_t bytes[] = {1, 2, 4, 8, 12, 16, 1, 1};
  return bytes[header >> 19 & 7];
}

static uint64_t pitch(uint32_t word) { return (word & 0x3ffff) + 1; }
static uint32_t low(uint32_t word) { return word & 0xffff; }
static uint32_t high(uint32_t word) { return word >> 16; }

static void block_copy(xe_queue *queue, const uint32_t *words) {
  uint64_t pixel = depth(words[0]), width = (uint64_t)(low(words[3]) - low(words[2])) * pixel;
  uint64_t to = xe_command_word64(words + 4) + (words[6] & 0x3fff) * pixel + low(words[2]) * pixel;
  uint64_t from = xe_command_word64(words + 9) + (words[11] & 0x3fff) * pixel + low(words[7]) * pixel;
  for (uint32_t y = high(words[2]); y < high(words[3]); y++) {
    uint64_t row = high(words[7]) + y - high(words[2]);
    copy(queue, to + y * pitch(words[1]), from + row * pitch(words[8]), width);
  }
}

static void fast_color(xe_queue *queue, const uint32_t *words) {
  unsigned pixel = depth(words[0]);
  uint64_t to = xe_command_word64(words + 4) + (uint64_t)low(words[2]) * pixel;
  uint64_t width = (uint64_t)(low(words[3]) - low(words[2])) * pixel;
  for (uint32_t y = high(words[2]); y < high(words[3]); y++)
    fill(queue, to + y * pitch(words[1]), width, words + 7, pixel);
}

static void mem_copy(xe_queue *queue, const uint32_t *words) {
  bool matrix = words[0] >> 17 & 3, pages = words[0] >> 19 & 1; /* of 256 bytes */
  uint64_t width = ((words[1] & 0xffffff) + 1) * (pages ? 256ull : 1), rows = matrix ? pitch(words[2]) : 1;
  uint64_t to = xe_command_word64(words + 7), from = xe_command_word64(words + 5);
  for (uint64_t y = 0; y < rows; y++) copy(queue, to + y * pitch(words[4]), from + y * pitch(words[3]), width);
}

static void mem_set(xe_queue *queue, const uint32_t *words) {
  bool matrix = words[0] >> 17 & 1;
  uint64_t width = (words[1] & 0xffffff) + 1, rows = matrix ? pitch(words[2]) : 1;
  uint8_t value = words[6] >> 24;
  for (uint64_t y = 0; y < rows; y++) fill(queue, xe_command_word64(words + 4) + y * pitch(words[3]), width, &value, 1);
}

bool xe_blitter_run(xe_queue *queue, const uint32_t *words) {
  xe_report_count(XE_COUNT_gpu_blit);
  switch (words[0] >> 22 & 0x7f) {
    case XY_BLOCK_COPY: block_copy(queue, words); break;
    case XY_FAST_COLOR: fast_color(queue, words); break;
    case MEM_COPY: mem_copy(queue, words); break;
    case MEM_SET: mem_set(queue, words); break;
    default: return false;
  }
  return true;
}
