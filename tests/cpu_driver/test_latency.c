/* SPDX-License-Identifier: Apache-2.0 */
/* test_latency.c: what a simulated device costs is counted by name, and waited for unless that is virtual. */
#include <time.h>

#include "children.h"

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool costs(const char *name, double us) {
  double paid = (double)l0rt_cpu_charged(name) / 1000;
  if (paid > us * 0.999 - 0.001 && paid < us * 1.001 + 0.001) return true;
  fprintf(stderr, "%s: %g us, not %g\n", name, paid, us);
  return false;
}

/* A mapping, moved once; a copy and a fill; events; two lists: what b580's column says. */
static void a_b580(void) {
  begin();
  enum { PIECE = 2 << 20 };
  char *base, *plain = device_memory(PIECE), *mine = host_memory(4096);
  CHECK(costs("alloc_resident", 170) && costs("clear", 6000.0 * PIECE / (1 << 30)));
  OK(zeVirtualMemReserve(context, NULL, 8 * PIECE, (void **)&base));
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = PIECE};
  ze_physical_mem_handle_t piece;
  OK(zePhysicalMemCreate(context, device, &desc, &piece));
  OK(zeVirtualMemMap(context, base, PIECE, piece, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(costs("phys_create", 8) && costs("map_fresh", 150) && costs("clear", 2 * 6000.0 * PIECE / (1 << 30)));
  OK(zeVirtualMemUnmap(context, base, PIECE));
  OK(zeVirtualMemMap(context, base + PIECE, PIECE, piece, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(costs("unmap", 70) && costs("map_moved", 70) && costs("map_fresh", 150) && costs("map_per_piece", 2 * 0.004));
  ze_command_list_handle_t list = in_order_list(), other = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, base + PIECE, plain, 4096, NULL, 0, NULL));
  CHECK(costs("append_copy", 3) && costs("copy_per_piece", 0.005) && costs("list_switch", 0));
  OK(zeCommandListAppendMemoryFill(list, base + PIECE, "x", 1, 4096, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(other, mine, base + PIECE, 4096, NULL, 0, NULL));
  CHECK(costs("append_copy", 9) && costs("list_switch", 450));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListHostSynchronize(other, FOREVER));
  CHECK(costs("d2h_gbps", 4.096 / 12) && costs("h2d_gbps", 0));
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0);
  GIVES(NOT_READY, zeEventQueryStatus(event));
  CHECK(costs("query_pending", 0.5) && costs("record_plain", 0));
  OK(zeCommandListAppendSignalEvent(other, event));
  CHECK(costs("record_plain", 2) && costs("submit_per_piece", 0));
  OK(zeCommandListHostSynchronize(other, FOREVER));
  OK(zeEventHostReset(event));
  OK(zeCommandListAppendMemoryCopy(other, mine, plain, 4096, event, 0, NULL)); /* signals with its own submission */
  CHECK(costs("append_copy", 12) && costs("record_plain", 2));
  OK(zeCommandListHostSynchronize(other, FOREVER));
  OK(zeVirtualMemUnmap(context, base + PIECE, PIECE));
  OK(zePhysicalMemDestroy(context, piece));
  CHECK(costs("phys_destroy", 10) && costs("free", 0));
  OK(zeMemFree(context, plain));
  OK(zeMemFree(context, mine));
  CHECK(costs("free", 60));
  CHECK(l0rt_cpu_charged(NULL) > 800000 && l0rt_cpu_charged("no such") == UINT64_MAX);
  OK(zeVirtualMemFree(context, base, 8 * PIECE));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(other));
  finish("what a B580 costs");
}

/* Without VM_BIND each append pays for everything that is listed. */
static void an_a770_on_i915(void) {
  begin();
  void *held[10];
  for (int i = 0; i < 10; i++) held[i] = device_memory(4096);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  CHECK(costs("submit", 0.1) && costs("submit_per_piece", 0.007));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < 10; i++) OK(zeMemFree(context, held[i]));
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  CHECK(costs("submit", 0.2) && costs("submit_per_piece", 0.007));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  finish("what an A770 on i915 costs");
}

static void is_waited_for(void) {
  begin();
  uint64_t start = now();
  void *held = device_memory(4096);
  CHECK(now() - start >= 30000000 && costs("alloc_resident", 30000));
  start = now();
  OK(zeMemFree(context, held));
  CHECK(now() - start >= 20000 && costs("free", 20));
  finish("latencies are waited for");
}

static void is_only_counted(void) {
  begin();
  uint64_t start = now();
  OK(zeMemFree(context, device_memory(4096)));
  CHECK(now() - start < 5000000000 && costs("alloc_resident", 1e7));
  finish("latencies are only counted");
}

static void is_free(void) {
  begin();
  OK(zeMemFree(context, device_memory(4096)));
  CHECK(l0rt_cpu_charged(NULL) == 0);
  finish("nothing costs");
}

int main(void) {
  setenv("L0RT_CPU_LATENCY", "virtual", 1);
  CHECK(in_child("L0RT_CPU_PROFILE", "arc-b580,timing", a_b580, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_PROFILE", "timing,arc-a770-i915", an_a770_on_i915, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_LATENCY", "virtual,alloc_resident=10000000", is_only_counted, NULL, 0) == 0);
  unsetenv("L0RT_CPU_LATENCY");
  CHECK(in_child("L0RT_CPU_LATENCY", "alloc_resident=30000,free=20", is_waited_for, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_PROFILE", "arc-b580", is_free, NULL, 0) == 0);
  CHECK(in_child(NULL, NULL, is_free, NULL, 0) == 0);
  printf("latency: ok\n");
  return 0;
}
