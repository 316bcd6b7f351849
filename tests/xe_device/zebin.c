/* SPDX-License-Identifier: Apache-2.0 */
#include "zebin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE 205 /* EM_INTELGT */
#define TEXT ".text."
#define LINE 256

static const Elf64_Ehdr *header(const uint8_t *bytes) { return (const void *)bytes; }
static const Elf64_Shdr *sections(const uint8_t *bytes) { return (const void *)(bytes + header(bytes)->e_shoff); }

static const char *name_of(const uint8_t *bytes, const Elf64_Shdr *section) {
  const Elf64_Shdr *names = sections(bytes) + header(bytes)->e_shstrndx;
  return (const char *)bytes + names->sh_offset + section->sh_name;
}

uint64_t xe_zebin_size(const uint8_t *bytes, uint64_t size) {
  const Elf64_Ehdr *h = header(bytes);
  if (size < sizeof *h || memcmp(h->e_ident, ELFMAG, SELFMAG) || h->e_ident[EI_CLASS] != ELFCLASS64) return 0;
  if (h->e_machine != MACHINE || h->e_shoff > size || h->e_shnum * sizeof(Elf64_Shdr) > size - h->e_shoff) return 0;
  uint64_t end = h->e_shoff + h->e_shnum * sizeof(Elf64_Shdr);
  for (int i = 0; i < h->e_shnum; i++) {
    const Elf64_Shdr *section = sections(bytes) + i;
    if (section->sh_offset > size || section->sh_size > size - section->sh_offset) return 0;
    if (section->sh_offset + section->sh_size > end) end = section->sh_offset + section->sh_size;
  }
  return h->e_shstrndx < h->e_shnum ? end : 0;
}

static void find_patches(const uint8_t *bytes, int of, xe_code *code) {
  code->patches = NULL;
  code->patch_number = 0;
  for (int i = 0; i < header(bytes)->e_shnum; i++) {
    const Elf64_Shdr *section = sections(bytes) + i;
    if (section->sh_type != SHT_REL || section->sh_info != (unsigned)of) continue;
    code->patches = (const void *)(bytes + section->sh_offset);
    code->patch_number = section->sh_size / sizeof *code->patches;
  }
}

bool xe_zebin_code(const uint8_t *bytes, unsigned number, xe_code *code) {
  for (int i = 0; i < header(bytes)->e_shnum; i++) {
    const Elf64_Shdr *section = sections(bytes) + i;
    const char *name = name_of(bytes, section);
    if (section->sh_type != SHT_PROGBITS || strncmp(name, TEXT, strlen(TEXT)) || number--) continue;
    *code = (xe_code){name + strlen(TEXT), bytes + section->sh_offset, section->sh_size, NULL, 0};
    find_patches(bytes, i, code);
    return true;
  }
  return false;
}

const uint8_t *xe_zebin_section(const uint8_t *bytes, const char *name, uint64_t *size) {
  for (int i = 0; i < header(bytes)->e_shnum; i++) {
    const Elf64_Shdr *section = sections(bytes) + i;
    if (strcmp(name_of(bytes, section), name)) continue;
    *size = section->sh_size;
    return bytes + section->sh_offset;
  }
  return NULL;
}

/* A line of the description, which is YAML as the compiler writes it: two spaces a level. */
typedef struct {
  int indent;
  bool item; /* begins one of a list */
  char key[64], value[LINE];
} line;

/* Reads a line and returns where the next begins; NULL at the end. */
static const char *read_line(const char *at, const char *end, line *l) {
  if (at >= end) return NULL;
  const char *stop = memchr(at, '\n', end - at);
  int length = (stop ? stop : end) - at;
  char text[LINE];
  snprintf(text, sizeof text, "%.*s", length, at);
  l->indent = strspn(text, " ");
  l->item = text[l->indent] == '-';
  if (l->item) l->indent += 2;
  l->key[0] = l->value[0] = 0;
  if (l->indent < (int)strlen(text)) sscanf(text + l->indent, "%63[^:]: %255[^\n]", l->key, l->value);
  return stop ? stop + 1 : end;
}

static xe_payload_kind kind_of(const char *type) {
  if (!strcmp(type, "arg_byvalue")) return XE_PAYLOAD_VALUE;
  if (!strcmp(type, "arg_bypointer")) return XE_PAYLOAD_POINTER;
  if (!strcmp(type, "enqueued_local_size") || !strcmp(type, "local_size")) return XE_PAYLOAD_GROUP_SIZE;
  if (!strcmp(type, "global_id_offset")) return XE_PAYLOAD_GLOBAL_OFFSET;
  return XE_PAYLOAD_OTHER;
}

static void set(xe_payload *payload, const char *key, const char *value) {
  if (!strcmp(key, "offset")) payload->offset = atoi(value);
  else if (!strcmp(key, "size")) payload->size = atoi(value);
  else if (!strcmp(key, "arg_index")) payload->argument = atoi(value);
  else if (!strcmp(key, "source_offset")) payload->source = atoi(value);
  else if (!strcmp(key, "addrmode") && !strcmp(value, "slm")) payload->kind = XE_PAYLOAD_LOCAL_POINTER;
  else if (!strcmp(key, "addrmode") && strcmp(value, "stateless")) payload->kind = XE_PAYLOAD_SURFACE;
  else if (!strcmp(key, "addrspace") && (!strcmp(value, "image") || !strcmp(value, "sampler")))
    payload->kind = XE_PAYLOAD_IMAGE;
}

bool xe_zebin_describe(const uint8_t *bytes, const char *kernel, xe_kernel_info *info) {
  enum { KERNEL = 4, PART = 4, FIELD = 8 }; /* how far these are indented */
  uint64_t size = 0;
  const char *at = (const char *)xe_zebin_section(bytes, ".ze_info", &size), *end = at + size;
  bool kernels = false, here = false, seen = false, payload = false;
  line l;
  *info = (xe_kernel_info){0};
  while (at && (at = read_line(at, end, &l))) {
    if (!l.indent) kernels = !strcmp(l.key, "kernels");
    if (l.indent == KERNEL && l.item) here = kernels && !strcmp(l.key, "name") && !strcmp(l.value, kernel);
    if (seen && !here) break;
    if (!here) continue;
    seen = true;
    if (l.indent == PART) payload = !strcmp(l.key, "payload_arguments");
    if (!strcmp(l.key, "offset_to_skip_per_thread_data_load")) info->entry = atoi(l.value);
    if (!payload || l.indent != FIELD) continue;
    if (l.item && info->number == XE_PAYLOADS) return false;
    if (l.item) info->payload[info->number++].kind = kind_of(l.value);
    else if (info->number) set(&info->payload[info->number - 1], l.key, l.value);
  }
  return seen;
}
