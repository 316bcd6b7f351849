/* SPDX-License-Identifier: Apache-2.0 */
/* native.c: packing and unpacking native binaries. */
#include "modules/native.h"

#include <stdlib.h>
#include <string.h>

enum { VERSION = 1, MODULES_MAX = 1024, CONSTANTS_MAX = 65536 };

typedef struct {
  char magic[8];
  uint32_t version;
  uint32_t modules;
  uint64_t flags_size; /* with the closing NUL */
  uint64_t size;       /* of everything */
  uint64_t checksum;   /* of what follows */
} header;

typedef struct {
  uint64_t size;
  uint64_t constants;
} module_header;

typedef struct {
  uint32_t id;
  uint32_t size;
  uint8_t value[8];
} constant;

static const char magic[8] = "L0RTSPV";
const uint8_t cpu_native_uuid[ZE_MAX_NATIVE_KERNEL_UUID_SIZE] = "l0rt native 1";

/* FNV-1a, eight bytes at a time. */
uint64_t cpu_native_hash(const void *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i += 8) {
    uint64_t piece = 0;
    memcpy(&piece, (const char *)bytes + i, size - i < 8 ? size - i : 8);
    hash = (hash ^ piece) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

static size_t padded(size_t size) { return (size + 7) & ~(size_t)7; }

void *cpu_native_pack(const cpu_source *source, size_t *size) {
  size_t flags_size = strlen(source->flags) + 1, total = sizeof(header) + padded(flags_size);
  for (uint32_t i = 0; i < source->count; i++)
    total += sizeof(module_header) + source->binaries[i].constant_count * sizeof(constant) +
             padded(source->binaries[i].size);
  char *block = calloc(1, total);
  if (block == NULL) return NULL;
  char *at = block + sizeof(header);
  memcpy(at, source->flags, flags_size);
  at += padded(flags_size);
  for (uint32_t i = 0; i < source->count; i++) {
    const spirv_binary *b = &source->binaries[i];
    module_header *m = (module_header *)(void *)at;
    *m = (module_header){b->size, b->constant_count};
    at += sizeof(*m);
    for (uint32_t k = 0; k < b->constant_count; k++, at += sizeof(constant)) {
      constant c = {.id = b->constants[k].id, .size = (uint32_t)b->constants[k].size};
      memcpy(c.value, b->constants[k].value, b->constants[k].size);
      memcpy(at, &c, sizeof(c));
    }
    memcpy(at, b->bytes, b->size);
    at += padded(b->size);
  }
  header *h = (header *)(void *)block;
  *h = (header){.version = VERSION, .modules = source->count, .flags_size = flags_size, .size = total};
  memcpy(h->magic, magic, sizeof(magic));
  h->checksum = cpu_native_hash(block + sizeof(header), total - sizeof(header));
  *size = total;
  return block;
}

/* Takes `size` bytes, padded, from what is left; NULL if there are not so many. */
static const char *part(const char **at, size_t *left, uint64_t size) {
  if (size > *left || padded(size) > *left) return NULL;
  const char *start = *at;
  *at += padded(size);
  *left -= padded(size);
  return start;
}

static const char *unpack_module(const char **at, size_t *left, spirv_binary *b) {
  module_header m;
  const char *start = part(at, left, sizeof(m));
  if (start == NULL) return "a module is cut off";
  memcpy(&m, start, sizeof(m));
  if (m.constants > CONSTANTS_MAX) return "a module has too many constants";
  const char *values = part(at, left, m.constants * sizeof(constant));
  const char *bytes = values == NULL ? NULL : part(at, left, m.size);
  if (bytes == NULL) return "a module is cut off";
  spirv_constant *constants = calloc(m.constants + 1, sizeof(*constants));
  if (constants == NULL) return "there is no memory for it";
  *b = (spirv_binary){.bytes = bytes, .size = m.size, .constants = constants, .constant_count = (uint32_t)m.constants};
  for (uint32_t k = 0; k < m.constants; k++) {
    constant c;
    const char *place = values + k * sizeof(c);
    memcpy(&c, place, sizeof(c));
    if (c.size > sizeof(c.value)) return "a constant is too large";
    constants[k] = (spirv_constant){.id = c.id, .size = c.size, .value = place + offsetof(constant, value)};
  }
  return NULL;
}

const char *cpu_native_unpack(const void *bytes, size_t size, cpu_source *source) {
  header h;
  *source = (cpu_source){.flags = ""};
  if (size < sizeof(h)) return "it is shorter than a header";
  memcpy(&h, bytes, sizeof(h));
  if (memcmp(h.magic, magic, sizeof(magic)) != 0) return "it is none of this driver's";
  if (h.version != VERSION) return "it is of another version";
  if (h.size != size) return "it has another size than it says";
  const char *at = (const char *)bytes + sizeof(h);
  size_t left = size - sizeof(h);
  if (cpu_native_hash(at, left) != h.checksum) return "its checksum is wrong";
  if (h.modules == 0 || h.modules > MODULES_MAX) return "its number of modules is wrong";
  const char *flags = part(&at, &left, h.flags_size);
  if (flags == NULL || h.flags_size == 0 || flags[h.flags_size - 1] != '\0') return "its flags are cut off";
  source->binaries = calloc(h.modules, sizeof(*source->binaries));
  if (source->binaries == NULL) return "there is no memory for it";
  source->flags = flags;
  for (uint32_t i = 0; i < h.modules; i++) {
    source->count = i + 1;
    const char *wrong = unpack_module(&at, &left, &source->binaries[i]);
    if (wrong != NULL) return wrong;
  }
  return NULL;
}

void cpu_source_free(cpu_source *source) {
  for (uint32_t i = 0; i < source->count; i++) free((void *)source->binaries[i].constants);
  free(source->binaries);
  free(source->block);
}
