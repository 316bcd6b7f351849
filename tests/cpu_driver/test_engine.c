/* SPDX-License-Identifier: Apache-2.0 */
/* test_engine.c: a program runs a kernel over memory of its own, with l0rt_cpu_engine of the driver's library alone. */
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "spirv/spirv.h"

enum { ITEMS = 96, PLACE = 3 << 12 };

static char module[1 << 16];
static float memory[3 * ITEMS]; /* what the kernel knows as the bytes from PLACE on */

static size_t read_module(void) {
  FILE *file = fopen(KERNELS "/bench.spv", "rb");
  CHECK(file != NULL);
  size_t size = fread(module, 1, sizeof(module), file);
  CHECK(size < sizeof(module));
  fclose(file);
  return size;
}

static bool find(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  (void)write;
  ++*(int *)context;
  *begin = PLACE;
  *end = PLACE + sizeof(memory);
  *shift = (int64_t)((uintptr_t)memory - PLACE);
  return address >= *begin && address < *end;
}

int main(void) {
  const spirv_engine *engine = &l0rt_cpu_engine;
  CHECK(engine->version == SPIRV_ENGINE_VERSION);
  spirv_binary binary = {.bytes = module, .size = read_module()};
  spirv_program *program = engine->program_new(&(spirv_build){.binaries = &binary, .binary_count = 1});
  CHECK(program != NULL);
  int asked = 0;
  uint64_t places[] = {PLACE, PLACE + 4 * ITEMS, PLACE + 8 * ITEMS};
  const void *arguments[] = {&places[0], &places[1], &places[2]};
  spirv_launch launch = {.kernel = engine->program_kernel(program, "add"),
                         .arguments = arguments,
                         .group_size = {ITEMS / 3, 1, 1},
                         .group_count = {3, 1, 1},
                         .memory = {&asked, find}};
  CHECK(launch.kernel != NULL && engine->kernel_look(launch.kernel)->argument_count == 3);
  for (int i = 0; i < ITEMS; i++) memory[i] = (float)i, memory[ITEMS + i] = 0.5f;
  spirv_result result;
  CHECK(engine->run(&launch, &result) && asked > 0);
  for (int i = 0; i < ITEMS; i++) CHECK(memory[2 * ITEMS + i] == (float)i + 0.5f);
  places[2] += 4 * ITEMS; /* behind the memory */
  CHECK(!engine->run(&launch, &result) && result.status == SPIRV_BAD_ACCESS && strstr(result.text, "add") != NULL);
  engine->program_release(program);
  puts("engine: ok");
  return 0;
}
