/* SPDX-License-Identifier: Apache-2.0 */
/* test_prints.c: printf of kernels goes to stdout, whole lines in the order of work-items, under chaos too, and ends at the
 * bound that the device tells. */
#include "children.h"
#include "modules.h"

enum { SIZE = 50, GROUPS = 40, ITEMS = SIZE * GROUPS };

static char *printed;

/* What a launch of so many groups prints. */
static size_t print(uint32_t groups, int number) {
  static const char *const name = "prints";
  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t prints = kernel_of(module, name);
  ze_command_list_handle_t list = in_order_list();
  int *out = shared_memory(sizeof(int)), before = dup(1);
  *out = number;
  SET(prints, 0, out);
  OK(zeKernelSetGroupSize(prints, SIZE, 1, 1));
  FILE *file = tmpfile();
  fflush(stdout);
  CHECK(file != NULL && before >= 0 && dup2(fileno(file), 1) == 1);
  OK(zeCommandListAppendLaunchKernel(list, prints, &(ze_group_count_t){groups, 1, 1}, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  dup2(before, 1);
  close(before);
  size_t size = (size_t)ftell((fseek(file, 0, SEEK_END), file));
  rewind(file);
  free(printed);
  printed = calloc(1, size + 1);
  CHECK(fread(printed, 1, size, file) == size);
  fclose(file);
  OK(zeMemFree(context, out));
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(prints));
  OK(zeModuleDestroy(module));
  return size;
}

static void body(void) {
  begin();
  print(GROUPS, ITEMS);
  const char *at = printed;
  for (int i = 0; i < ITEMS; i++) {
    char line[40];
    int size = snprintf(line, sizeof(line), "item %d of %d\n", i, ITEMS);
    CHECK(strncmp(at, line, (size_t)size) == 0);
    at += size;
  }
  CHECK(*at == '\0');
  ze_device_module_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES};
  OK(zeDeviceGetModuleProperties(device, &p));
  CHECK(print(3000, 1 << 20) == p.printfBufferSize);
  free(printed);
  finish("prints");
}

int main(void) {
  setenv("L0RT_CPU_THREADS", "3", 1);
  CHECK(in_child(NULL, NULL, body, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_CHAOS", "1", body, NULL, 0) == 0);
  return 0;
}
