/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "libc.h"

#define HINTS 1024 /* what was where, by address: it may have changed since */
#define ENTRY_STEP 64
#define ADDRESS 1 /* the only patch of 8 bytes */
#define ENTRIES 16 /* a kernel's code may begin so many steps later */

typedef struct xe_module {
  const uint8_t *bytes;
  uint64_t size;
  spirv_program *program; /* made when one of its kernels first runs, or at once */
  bool decoded, has_atomics;
  char refusal[256]; /* why there is no program */
} xe_module;

typedef struct {
  xe_kernel **items;
  unsigned number, capacity;
} list;

/* Guards all that follows. Modules and kernels stay for ever: code may run after its module was destroyed. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static list kernels[2]; /* of the program's modules, and the driver's own */
static xe_kernel *hints[HINTS];
static char driver[4096];
static bool driver_read;

static void *or_abort(void *memory) {
  if (!memory) abort();
  return memory;
}

static xe_module *add(list *to, const void *bytes, uint64_t size) {
  xe_module *module = or_abort(calloc(1, sizeof *module));
  *module = (xe_module){.bytes = bytes, .size = size};
  xe_code code;
  for (unsigned i = 0; xe_zebin_code(bytes, i, &code); i++) {
    if (to->number == to->capacity) {
      to->capacity = to->capacity ? 2 * to->capacity : 64;
      to->items = or_abort(realloc(to->items, to->capacity * sizeof *to->items));
    }
    xe_kernel *kernel = or_abort(calloc(1, sizeof *kernel));
    kernel->code = code;
    kernel->module = module;
    to->items[to->number++] = kernel;
  }
  return module;
}

/* A program that makes the same module again and again keeps one. A binary that is known has no other constants: they are
 * in its code. */
static bool has(const list *of, const void *bytes, uint64_t size) {
  for (unsigned i = 0; i < of->number; i++) {
    const xe_module *module = of->items[i]->module;
    if (module->size == size && !memcmp(module->bytes, bytes, size)) return true;
  }
  return false;
}

/* Has the SPIR-V an atomic operation? */
static bool has_atomics(const uint8_t *spirv, uint64_t size) {
  enum { HEADER = 20, FIRST = 227, LAST = 242 }; /* OpAtomicLoad to OpAtomicXor; the others are in extensions */
  uint32_t word = 0;
  for (uint64_t at = HEADER; at + sizeof word <= size; at += 4 * (word >> 16)) {
    memcpy(&word, spirv + at, sizeof word);
    uint32_t operation = word & 0xffff;
    if ((operation >= FIRST && operation <= LAST) || word >> 16 == 0) return true;
  }
  return false;
}

static void keep_line(void *context, const char *text) {
  xe_module *module = context;
  snprintf(module->refusal, sizeof module->refusal, "%s", text);
}

static void decode(xe_module *module, const spirv_constant *constants, uint32_t constant_number) {
  uint64_t size = 0;
  const uint8_t *spirv = xe_zebin_section(module->bytes, ".spv", &size);
  module->decoded = true;
  if (!spirv) return keep_line(module, "its binary has no SPIR-V");
  module->has_atomics = has_atomics(spirv, size);
  spirv_binary binary = {spirv, size, constants, constant_number};
  spirv_build build = {
      .binaries = &binary, .binary_count = 1, .log = keep_line, .log_context = module, .trusted = true};
  module->program = xe_engine_get()->program_new(&build);
}

void xe_kernels_add(const void *bytes, uint64_t size, const spirv_constant *constants, uint32_t constant_number) {
  if (!xe_zebin_size(bytes, size)) return;
  pthread_mutex_lock(&lock);
  if (constant_number || !has(&kernels[0], bytes, size)) {
    xe_module *module = add(&kernels[0], memcpy(or_abort(malloc(size)), bytes, size), size);
    if (constant_number) decode(module, constants, constant_number); /* their values are there now */
  }
  pthread_mutex_unlock(&lock);
}

void xe_kernels_of_driver(const char *path) {
  pthread_mutex_lock(&lock);
  snprintf(driver, sizeof driver, "%s", path);
  pthread_mutex_unlock(&lock);
}

/* The driver has its kernels for every GPU, one binary behind the other among its data. */
static void read_driver(void) {
  driver_read = true;
  struct stat status;
  int fd = xe_libc.open(driver, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || xe_libc.fstat(fd, &status)) return;
  uint8_t *bytes = xe_libc_mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  xe_libc.close(fd);
  if (bytes == MAP_FAILED) return;
  const uint8_t *at = bytes + 1, *end = bytes + status.st_size;
  while ((at = memmem(at, end - at, ELFMAG, SELFMAG))) {
    uint64_t size = xe_zebin_size(at, end - at);
    if (size) add(&kernels[1], at, size);
    at += size ? size : SELFMAG;
  }
}

/* With the lock held. */
static void make_ready(xe_kernel *kernel) {
  xe_module *module = kernel->module;
  if (kernel->ready) return;
  kernel->ready = true;
  if (!module->decoded) decode(module, NULL, 0);
  kernel->has_atomics = module->has_atomics;
  if (!xe_zebin_describe(module->bytes, kernel->code.name, &kernel->info))
    snprintf(kernel->refusal, sizeof kernel->refusal, "its binary does not describe it");
  else if (!module->program) snprintf(kernel->refusal, sizeof kernel->refusal, "%s", module->refusal);
  else kernel->runs = xe_engine_get()->program_kernel(module->program, kernel->code.name);
  if (!kernel->runs && !*kernel->refusal) snprintf(kernel->refusal, sizeof kernel->refusal, "no kernel of its SPIR-V");
}

/* Is the memory at an address the kernel's code from a byte of it on? */
static bool is_code(xe_queue *queue, uint64_t address, const xe_code *code, uint64_t from) {
  uint8_t *memory = or_abort(malloc(code->size));
  bool same = xe_space_read(queue->space, &address, memory + from, code->size - from);
  for (unsigned i = 0; same && i < code->patch_number; i++) { /* what the driver has written there is taken as it is */
    uint64_t offset = code->patches[i].r_offset, size = ELF64_R_TYPE(code->patches[i].r_info) == ADDRESS ? 8 : 4;
    if (offset >= from && offset + size <= code->size) memcpy(memory + offset, code->bytes + offset, size);
  }
  same = same && !memcmp(memory + from, code->bytes + from, code->size - from);
  free(memory);
  return same;
}

/* Is the code of a kernel there? `first` is what is there: a patch is at an instruction's end. */
static bool is_there(xe_queue *queue, uint64_t address, const uint64_t *first, xe_kernel *kernel) {
  for (uint64_t from = 0; from < ENTRIES * ENTRY_STEP && from + sizeof *first <= kernel->code.size;
       from += ENTRY_STEP) {
    if (memcmp(kernel->code.bytes + from, first, sizeof *first)) continue;
    if (!is_code(queue, address, &kernel->code, from)) continue;
    make_ready(kernel);
    if (!from || from == kernel->info.entry) return true;
  }
  return false;
}

static xe_kernel *find_in(const list *of, xe_queue *queue, uint64_t address, const uint64_t *first) {
  for (unsigned i = of->number; i-- > 0;) /* what was made last is most likely meant */
    if (is_there(queue, address, first, of->items[i])) return of->items[i];
  return NULL;
}

xe_kernel *xe_kernels_find(xe_queue *queue, uint64_t address) {
  uint64_t first;
  if (!xe_queue_read(queue, address, &first, sizeof first)) return NULL;
  pthread_mutex_lock(&lock);
  xe_kernel **hint = &hints[address / ENTRY_STEP % HINTS], *kernel = *hint;
  if (!kernel || !is_there(queue, address, &first, kernel)) kernel = find_in(&kernels[0], queue, address, &first);
  if (!kernel && !driver_read) read_driver();
  if (!kernel) kernel = find_in(&kernels[1], queue, address, &first);
  if (kernel) *hint = kernel;
  pthread_mutex_unlock(&lock);
  return kernel;
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void start(void) { pthread_atfork(before_fork, after_fork, after_fork); }
