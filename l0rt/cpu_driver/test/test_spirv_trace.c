/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_trace.c: a trace names the module's instructions, and has the values of one work-item only. */
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
  free_blocks();
  printf("spirv_trace: ok\n");
  return 0;
}
