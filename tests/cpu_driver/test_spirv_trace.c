/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_trace.c: a trace names the module's instructions, and has the values of one work-item only. Of several
 * modules, traces and errors say which one has the instruction. */
#include "kernels.h"

static char all[1 << 16];

static void note(void *context, const char *line) {
  (void)context;
  CHECK(strlen(all) + strlen(line) + 2 < sizeof(all));
  strcat(strcat(all, line), "\n");
}

static void run(const spirv_program *program, const char *name, const void *const *arguments, uint64_t item) {
  spirv_launch l = launch_of(program, name, arguments);
  l.group_size[0] = 40;
  l.group_count[0] = 3;
  l.trace = true;
  l.trace_item[0] = item;
  l.tell = note;
  all[0] = '\0';
  run_well(&l);
}

static void has(const char *text) {
  if (strstr(all, text) == NULL) fprintf(stderr, "%s is not in:\n%s", text, all);
  CHECK(strstr(all, text) != NULL);
}

/* The name before the number, as in "offset 580 of module 2 of 3": the word of that module there. */
static uint32_t word_there(const char *text, const char *before, uint32_t number, uint32_t of, void *const *modules,
                           const size_t *sizes) {
  char after[40];
  snprintf(after, sizeof(after), " of module %u of %u", number, of);
  const char *there = strstr(text, before), *place = there == NULL ? NULL : there + strlen(before);
  while (there != NULL && strncmp(place + strspn(place, "0123456789"), after, strlen(after)) != 0) {
    there = strstr(place, before);
    place = there == NULL ? NULL : there + strlen(before);
  }
  if (there == NULL) fprintf(stderr, "no %s…%s in:\n%s", before, after, text);
  CHECK(there != NULL);
  unsigned long offset = strtoul(place, NULL, 10);
  CHECK(offset % 4 == 0 && offset < sizes[number - 1]);
  return ((const uint32_t *)modules[number - 1])[offset / 4] & 0xffff;
}

enum { STORE = 62, CALL = 57 };

/* `doubled` of imports.cl calls a function of exports.cl. Built together, in both orders, and linked later. */
static void several_modules(void) {
  for (int way = 0; way < 3; way++) {
    bool kernel_first = way != 1;
    size_t sizes[2];
    void *modules[2];
    modules[0] = read_file(kernel_first ? "imports.spv" : "exports.spv", &sizes[0]);
    modules[1] = read_file(kernel_first ? "exports.spv" : "imports.spv", &sizes[1]);
    spirv_binary binaries[] = {{.bytes = modules[0], .size = sizes[0]}, {.bytes = modules[1], .size = sizes[1]}};
    spirv_build build = {.binaries = binaries, .binary_count = way == 2 ? 1 : 2, .log = note_log};
    spirv_program *program = spirv_program_new(&build), *other = NULL;
    CHECK(program != NULL);
    if (way == 2) {
      other = decode(modules[1], sizes[1]);
      CHECK(spirv_program_link(program, &other, 1, note_log, NULL));
    }
    uint32_t kernels = kernel_first ? 1 : 2;
    int *out = block(480), *nowhere = NULL;
    const void *arguments[] = {&out};
    run(program, "doubled", arguments, 7);
    has(kernel_first ? " of module 2 of 2 OpAtomicI" : " of module 1 of 2 OpAtomicI");
    has(kernel_first ? " of module 1 of 2 OpStore" : " of module 2 of 2 OpStore");
    has("i32 14 at 0x");
    CHECK(out[7] == 14 && word_there(all, "offset ", kernels, 2, modules, sizes) != STORE);
    /* The same of an access that fails. */
    const void *bad[] = {&nowhere};
    spirv_launch l = launch_of(program, "doubled", bad);
    spirv_result result;
    CHECK(!spirv_run(&l, &result) && result.status == SPIRV_BAD_ACCESS && result.module == kernels);
    CHECK(word_there(result.text, "instruction at byte ", kernels, 2, modules, sizes) == STORE);
    CHECK(((uint32_t *)modules[kernels - 1])[result.offset / 4] == (5u << 16 | STORE));
    spirv_program_release(program);
    if (other != NULL) spirv_program_release(other);
    free(modules[0]);
    free(modules[1]);
  }
}

/* A kernel of the second module is refused; another one races. */
static void errors_of_the_second_module(void) {
  static const char *const names[] = {"trace.spv", "imports.spv", "races.spv"};
  size_t sizes[3];
  void *modules[3];
  spirv_binary binaries[3];
  for (int i = 0; i < 3; i++) {
    modules[i] = read_file(names[i], &sizes[i]);
    binaries[i] = (spirv_binary){.bytes = modules[i], .size = sizes[i]};
  }
  spirv_program *program = spirv_program_new(&(spirv_build){.binaries = binaries, .binary_count = 3, .log = note_log});
  CHECK(program != NULL);
  spirv_result result;
  CHECK(!spirv_kernel_prepare(spirv_program_kernel(program, "doubled"), &result));
  CHECK(result.status == SPIRV_BAD_KERNEL && result.module == 2 && strstr(result.text, "twice") != NULL);
  CHECK(word_there(result.text, "kernel doubled: offset ", 2, 3, modules, sizes) == CALL);
  int *out = block(480), *in = block(480);
  const void *arguments[] = {&out, &in};
  spirv_launch l = launch_of(program, "flag_racy", arguments);
  l.group_size[0] = 64;
  l.races = true;
  l.tell = note;
  all[0] = '\0';
  run_well(&l);
  CHECK(word_there(all, "(offset ", 3, 3, modules, sizes) == STORE);
  spirv_program_release(program);
  for (int i = 0; i < 3; i++) free(modules[i]);
}

int main(void) {
  spirv_program *program = program_of("trace.spv");
  float *out = block(480), *in = block(480), factor = 0.5f;
  for (int i = 0; i < 120; i++) in[i] = (float)i / 8;
  const void *arguments[] = {&out, &in, &factor};
  run(program, "scale", arguments, 5);
  has("kernel scale, work-item (5, 0, 0)\n");
  has("OpFMul");
  has("f32 0.625, f32 0.5 -> f32 0.3125\n");
  has("f32 2, f32 0.3125 -> false\n");
  has("ends\n");
  char where[64];
  snprintf(where, sizeof(where), "at 0x%llx", (unsigned long long)(uintptr_t)(out + 5));
  has(where);
  CHECK(strstr(all, "f32 0.75") == NULL); /* another's */
  run(program, "scale", arguments, 119);
  has("f32 14.875, f32 0.5 -> f32 7.4375\n");
  has("-> true\n");
  const void *one[] = {&out};
  run(program, "meeting", one, 80);
  has("OpControlBarrier");
  has("  waits for its group\n");
  has("  goes to the first\n");
  has("i32 200");
  run(program, "meeting", one, 1000);
  CHECK(strcmp(all, "kernel meeting, work-item (1000, 0, 0)\n") == 0);
  spirv_program_release(program);
  several_modules();
  errors_of_the_second_module();
  free_blocks();
  printf("spirv_trace: ok\n");
  return 0;
}
