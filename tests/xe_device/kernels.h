/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.h: kernels whose binary is known, by their machine code: those of modules that the program has made, and the
 * driver's own, which are in its library. */
#ifndef XE_DEVICE_KERNELS_H
#define XE_DEVICE_KERNELS_H

#include "engine.h"
#include "queue.h"
#include "zebin.h"

struct xe_module;

typedef struct {
  xe_code code;
  xe_kernel_info info;
  struct xe_module *module;
  bool has_atomics; /* or another kernel of its module has: groups may wait for each other */
  const spirv_kernel *runs; /* NULL: it cannot be run, and `refusal` says why */
  char refusal[256];
  bool ready; /* all but `code` and `module` has been read */
} xe_kernel;

/* Adds a binary. It and the values of its specialisation constants are the caller's. */
void xe_kernels_add(const void *bytes, uint64_t size, const spirv_constant *constants, uint32_t constant_number);

/* Sets the file of the driver, whose own kernels are read when one is first looked for. */
void xe_kernels_of_driver(const char *path);

/* The kernel whose code is at an address of a queue's space; NULL if it is not known. It stays for ever. */
xe_kernel *xe_kernels_find(xe_queue *queue, uint64_t address);

#endif
