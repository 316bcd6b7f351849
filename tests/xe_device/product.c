/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include <string.h>

#define GIB (1ull << 30)
#define TIMESTAMPS 19200000

/* clang-format off */
static const xe_product products[] = {
  /* name, id, revision, IP, tiles, slices, subslices, EUs, threads, SLM, compute, copy, render, bits, L3 banks, KiB, VRAM */
  {"bmg",  0xe20b, 0x00, {20, 1, 4}, 1, 5, 4,  8,  8, 128, 1, 1, 1, 48, 36,  512, 12 * GIB, TIMESTAMPS, 4},
  {"lnl",  0x64a0, 0x04, {20, 4, 4}, 1, 2, 4,  8,  8, 128, 1, 1, 1, 48, 16,  512, 0,        TIMESTAMPS, 1},
  {"ptl",  0xb080, 0x00, {30, 0, 4}, 1, 3, 4,  8, 10, 128, 1, 1, 1, 48, 32,  512, 0,        TIMESTAMPS, 1},
  {"pvc",  0x0bda, 0x2f, {0, 0, 0},  1, 7, 8,  8,  8, 128, 1, 9, 0, 57, 64, 2048, 48 * GIB, TIMESTAMPS, 3},
  {"pvc2", 0x0bd5, 0x2f, {0, 0, 0},  2, 8, 8,  8,  8, 128, 1, 9, 0, 57, 64, 2048, 64 * GIB, TIMESTAMPS, 3},
  {"dg2",  0x56a0, 0x08, {0, 0, 0},  1, 8, 4, 16,  8, 128, 1, 1, 1, 48, 32,  512, 16 * GIB, TIMESTAMPS, 4},
};
/* clang-format on */

const xe_product *xe_product_find(const char *name, unsigned long length) {
  for (unsigned i = 0; i < sizeof products / sizeof *products; i++)
    if (strlen(products[i].name) == length && !strncmp(products[i].name, name, length)) return &products[i];
  return NULL;
}
