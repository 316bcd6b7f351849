/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c: what the driver's calls cost, in nanoseconds. */
#include <time.h>

#include "modules.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double spent(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double d = *(const double *)a - *(const double *)b;
  return (d > 0) - (d < 0);
}

/* The median of what `code` takes, over `n` rounds, after `before`. */
#define MEDIAN(name, n, before, code)                                                                                  \
  do {                                                                                                                 \
    double *t_ = malloc((n) * sizeof(double));                                                                         \
    for (int i_ = 0; i_ < (n); i_++) {                                                                                 \
      before;                                                                                                          \
      double start_ = now();                                                                                           \
      code;                                                                                                            \
      t_[i_] = now() - start_;                                                                                         \
    }                                                                                                                  \
    qsort(t_, (n), sizeof(double), ascending);                                                                         \
    printf("%-44s median %10.0f ns   p90 %10.0f ns\n", name, t_[(n) / 2], t_[(n) * 9 / 10]);                           \
    free(t_);                                                                                                          \
  } while (0)

/* What one of many of a kind costs, by appending them and to the end of all, the least of some rounds. */
typedef struct {
  double append, end;
} cost;

static ze_group_count_t one = {1, 1, 1};

static void append_one(ze_command_list_handle_t list, ze_kernel_handle_t kernel, void *a, void *b) {
  if (kernel != NULL) OK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
  else OK(zeCommandListAppendMemoryCopy(list, a, b, 64, NULL, 0, NULL));
}

static void batch(ze_command_list_handle_t list, ze_kernel_handle_t kernel, void *a, void *b, int many, cost *least) {
  double start = now();
  for (int i = 0; i < many; i++) append_one(list, kernel, a, b);
  double appended = now();
  OK(zeCommandListHostSynchronize(list, FOREVER));
  double end = (now() - start) / many, append = (appended - start) / many;
  if (append < least->append) least->append = append;
  if (end < least->end) least->end = end;
}

static int compare_costs(const char *name, double copy, double launch, double most) {
  bool good = launch - copy <= most;
  printf("%-44s copy %8.0f ns   launch %8.0f ns   + %6.0f ns  <= %.0f  %s\n", name, copy, launch, launch - copy, most,
         good ? "met" : "NOT MET");
  return !good;
}

/* Copies: what moves data is always the engine's to do. A launch is to cost as little more than one as can be. */
static int compare_launch(ze_command_list_handle_t list, ze_kernel_handle_t empty, void *a, void *b) {
  cost copies = {1e18, 1e18}, launches = copies, copy = copies, launch = copies;
  for (int i = 0; i < 40; i++) {
    batch(list, NULL, a, b, 2000, &copies);
    batch(list, empty, a, b, 2000, &launches);
  }
  for (int i = 0; i < 3000; i++) {
    batch(list, NULL, a, b, 1, &copy);
    batch(list, empty, a, b, 1, &launch);
  }
  printf("%-44s copy %8.0f ns   launch %8.0f ns\n", "append, many", copies.append, launches.append);
  int missed = compare_costs("copy 64 B and empty kernel, many, to the end", copies.end, launches.end, 200);
  missed += compare_costs("one of them and list synchronize", copy.end, launch.end, 2000);
  printf("%d rows of the budget are not met\n", missed);
  return missed;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL); }

// Long: the rows, one after the other.
int main(void) {
  begin();
  ze_command_list_handle_t list = in_order_list();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0);
  char *a = device_memory(1 << 20), *b = device_memory(1 << 20);
  enum { N = 20000 };

  double start = now();
  for (int i = 0; i < N; i++) OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  double appended = now();
  OK(zeCommandListHostSynchronize(list, FOREVER));
  printf("%-44s mean   %10.0f ns\n", "append barrier, many", (appended - start) / N);
  printf("%-44s mean   %10.0f ns\n", "barrier, many, to the end", (now() - start) / N);

  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t empty = kernel_of(module, "empty");
  int missed = compare_launch(list, empty, a, b);
  OK(zeKernelDestroy(empty));
  OK(zeModuleDestroy(module));
  MEDIAN("append copy 4 KiB, engine asleep", 1000, OK(zeCommandListHostSynchronize(list, FOREVER));
         nap(), OK(zeCommandListAppendMemoryCopy(list, a, b, 4096, NULL, 0, NULL)));
  MEDIAN("copy 4 KiB + list synchronize, engine awake", 2000, , {
    OK(zeCommandListAppendMemoryCopy(list, a, b, 4096, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
  });
  MEDIAN("copy 4 KiB + list synchronize, engine asleep", 1000, nap(), {
    OK(zeCommandListAppendMemoryCopy(list, a, b, 4096, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
  });
  MEDIAN("copy 4 KiB + event synchronize, engine asleep", 1000, nap(); OK(zeEventHostReset(event)), {
    OK(zeCommandListAppendMemoryCopy(list, a, b, 4096, event, 0, NULL));
    OK(zeEventHostSynchronize(event, FOREVER));
  });

  MEDIAN("append barrier, engine asleep", 1000, OK(zeCommandListHostSynchronize(list, FOREVER));
         nap(), OK(zeCommandListAppendBarrier(list, NULL, 0, NULL)));
  MEDIAN("append copy 4 KiB, engine awake", 1000, , OK(zeCommandListAppendMemoryCopy(list, a, b, 4096, NULL, 0, NULL)));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  MEDIAN("barrier + list synchronize, engine awake", 2000, , {
    OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
  });
  MEDIAN("barrier + list synchronize, engine asleep", 1000, nap(), {
    OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
  });
  MEDIAN("barrier + event synchronize, engine asleep", 1000, nap(); OK(zeEventHostReset(event)), {
    OK(zeCommandListAppendBarrier(list, event, 0, NULL));
    OK(zeEventHostSynchronize(event, FOREVER));
  });
  OK(zeCommandListHostSynchronize(list, FOREVER));
  MEDIAN("event query", 2000, , OK(zeEventQueryStatus(event)));
  MEDIAN("event create + destroy", 2000, , {
    ze_event_handle_t e = event_of(pool, 0);
    OK(zeEventDestroy(e));
  });
  MEDIAN("list create + destroy", 2000, , {
    ze_command_list_handle_t l = in_order_list();
    OK(zeCommandListDestroy(l));
  });
  size_t sizes[] = {4096, 2 << 20, 64 << 20};
  for (int i = 0; i < 3; i++) {
    char name[64];
    snprintf(name, sizeof(name), "allocate + free %zu KiB of device memory", sizes[i] >> 10);
    MEDIAN(name, 2000, , { OK(zeMemFree(context, device_memory(sizes[i]))); });
  }
  enum { MANY = 100000 };
  void **blocks = malloc(MANY * sizeof(void *));
  start = now();
  for (int i = 0; i < MANY; i++) blocks[i] = device_memory(4096);
  double allocated = now();
  for (int i = 0; i < MANY; i++) OK(zeMemFree(context, blocks[i]));
  printf("%-44s mean   %10.0f ns allocate, %.0f ns free\n", "100000 live blocks of 4 KiB", (allocated - start) / MANY,
         (now() - allocated) / MANY);
  free(blocks);

  /* Where others use the machine too, only the time that these two threads got can be compared. */
  size_t large = (size_t)256 << 20;
  char *from = device_memory(large), *to = device_memory(large);
  memset(from, 1, large), memset(to, 2, large);
  double best[3] = {1e18, 1e18, 1e18};
  for (int i = 0; i < 5; i++) {
    start = spent();
    memcpy(to, from, large);
    if (spent() - start < best[0]) best[0] = spent() - start;
    start = spent();
    OK(zeCommandListAppendMemoryCopy(list, to, from, large, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    if (spent() - start < best[1]) best[1] = spent() - start;
    start = spent();
    uint64_t pattern[2] = {1, 2};
    OK(zeCommandListAppendMemoryFill(list, to, pattern, 16, large, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    if (spent() - start < best[2]) best[2] = spent() - start;
  }
  printf("%-44s memcpy %.1f GB/s, copy %.1f GB/s, fill of 16-byte patterns %.1f GB/s\n", "256 MiB, by processor time",
         (double)large / best[0], (double)large / best[1], (double)large / best[2]);
  OK(zeMemFree(context, from));
  OK(zeMemFree(context, to));
  OK(zeMemFree(context, a));
  OK(zeMemFree(context, b));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
  finish("bench");
  return missed != 0;
}
