/* SPDX-License-Identifier: Apache-2.0 */
/* product.h: the GPUs that can be simulated, as their kernel driver describes them. */
#ifndef XE_DEVICE_PRODUCT_H
#define XE_DEVICE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name;
  uint16_t id, revision;
  uint16_t ip[3]; /* version of the graphics core; 0 where the hardware has no register for it (before Meteor Lake) */
  int tiles, slices, subslices, eus, threads, slm_kib; /* subslices of a slice, EUs of a subslice, threads of an EU */
  int compute, copy, render; /* engines of a tile */
  int address_bits, l3_banks, l3_bank_kib;
  uint64_t vram; /* bytes of a tile; 0 where memory is the host's */
  uint32_t clock; /* Hz of timestamps */
  uint32_t memory; /* the kind of memory, in the hardware's own table: 1 LPDDR, 3 HBM, 4 GDDR6 */
} xe_product;

/* The product of a name of `length` bytes, or NULL. */
const xe_product *xe_product_find(const char *name, unsigned long length);

/* Xe2 and later: larger walkers, timestamps of 64 bits, another table of the hardware. */
static inline bool xe_product_is_xe2(const xe_product *product) { return product->ip[0] >= 20; }

/* How wide its clock is, which begins again at its end. */
static inline int xe_product_timestamp_bits(const xe_product *product) { return xe_product_is_xe2(product) ? 64 : 36; }

/* The number of its GTs: from Xe2 on media engines have one of their own, the last. */
static inline int xe_product_gts(const xe_product *product) { return product->tiles + xe_product_is_xe2(product); }

/* Pages of VRAM, as the kernel's XE_VRAM_FLAGS_NEED64K decides: Xe-HPG and Xe-HPC need 64 KiB. */
static inline uint32_t xe_product_page(const xe_product *product) {
  return product->vram && !product->ip[0] ? 65536 : 4096;
}

#endif
