/* SPDX-License-Identifier: Apache-2.0 */
/* zebin.h: the binaries of Intel's compiler: ELF files with the machine code of kernels, a description of what each of
 * them takes (.ze_info), and the SPIR-V that they were made of (.spv). */
#ifndef XE_DEVICE_ZEBIN_H
#define XE_DEVICE_ZEBIN_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
  const char *name; /* in the binary */
  const uint8_t *bytes;
  uint64_t size;
  const Elf64_Rel *patches; /* what the driver writes into it when it loads it */
  unsigned patch_number;
} xe_code;

typedef enum {
  XE_PAYLOAD_VALUE, /* a part of an argument */
  XE_PAYLOAD_POINTER,
  XE_PAYLOAD_SURFACE, /* the surface of a pointer, in a table */
  XE_PAYLOAD_LOCAL_POINTER,
  XE_PAYLOAD_IMAGE, /* or a sampler */
  XE_PAYLOAD_GROUP_SIZE,
  XE_PAYLOAD_GLOBAL_OFFSET,
  XE_PAYLOAD_OTHER,
} xe_payload_kind;

/* A piece of the data that a launch gives a kernel. */
typedef struct {
  xe_payload_kind kind;
  uint32_t offset, size;
  uint32_t argument; /* its number */
  uint32_t source; /* where the part is in the argument */
} xe_payload;

#define XE_PAYLOADS 256

typedef struct {
  uint32_t entry; /* offset of the code that begins when threads need not load what is theirs */
  unsigned number;
  xe_payload payload[XE_PAYLOADS];
} xe_kernel_info;

/* Is a binary there, and how many bytes has it? `size` is of what may be read. 0: none. */
uint64_t xe_zebin_size(const uint8_t *bytes, uint64_t size);

/* The code with this number, from 0; false if there are no more. */
bool xe_zebin_code(const uint8_t *bytes, unsigned number, xe_code *code);

/* A section, or NULL. */
const uint8_t *xe_zebin_section(const uint8_t *bytes, const char *name, uint64_t *size);

/* What a kernel takes; false if the binary does not describe it. */
bool xe_zebin_describe(const uint8_t *bytes, const char *kernel, xe_kernel_info *info);

#endif
