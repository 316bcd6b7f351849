/* SPDX-License-Identifier: Apache-2.0 */
/* test_clocks.c: timestamps of events, of the device, and of the two together. */
#include <time.h>

#include "harness.h"

static const uint64_t MASK = ((uint64_t)1 << 36) - 1;

static void kernel_timestamps(void) {
  ze_event_pool_handle_t timed = pool_of(2, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP), plain = pool_of(1, 0);
  ze_event_handle_t first = event_of(timed, 0), second = event_of(timed, 1), untimed = event_of(plain, 0);
  ze_command_list_handle_t list = in_order_list();
  size_t size = 64 << 20;
  char *a = device_memory(size);
  ze_kernel_timestamp_result_t t, u;
  GIVES(NOT_READY, zeEventQueryKernelTimestamp(first, &t));
  GIVES(ERROR_INVALID_ARGUMENT, zeEventQueryKernelTimestamp(untimed, &t));
  OK(zeCommandListAppendMemoryFill(list, a, "x", 1, size, first, 0, NULL));
  OK(zeCommandListAppendBarrier(list, second, 0, NULL));
  OK(zeEventHostSynchronize(second, FOREVER));
  OK(zeEventQueryKernelTimestamp(first, &t));
  OK(zeEventQueryKernelTimestamp(second, &u));
  uint64_t took = (t.global.kernelEnd - t.global.kernelStart) & MASK;
  CHECK(took > 1000 && took < 19200000u * 10u); /* 64 MiB take more than 50 us, and no 10 s */
  CHECK(((u.global.kernelStart - t.global.kernelEnd) & MASK) < 19200000u);
  CHECK(t.context.kernelEnd == t.global.kernelEnd && t.global.kernelEnd <= MASK);

  struct {
    ze_kernel_timestamp_result_t one, gap, two;
  } *results = host_memory(sizeof(*results));
  ze_event_handle_t events[] = {first, second};
  size_t offsets[] = {0, 2 * sizeof(t)};
  OK(zeCommandListAppendQueryKernelTimestamps(list, 2, events, results, offsets, untimed, 0, NULL));
  OK(zeEventHostSynchronize(untimed, FOREVER));
  CHECK(memcmp(&results->one, &t, sizeof(t)) == 0 && memcmp(&results->two, &u, sizeof(u)) == 0);
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemFree(context, results));
  OK(zeMemFree(context, a));
  OK(zeEventDestroy(first));
  OK(zeEventDestroy(second));
  OK(zeEventDestroy(untimed));
  OK(zeEventPoolDestroy(timed));
  OK(zeEventPoolDestroy(plain));
  OK(zeCommandListDestroy(list));
}

static void global_timestamps(void) {
  uint64_t host[2], ticks[2], *written = shared_memory(8);
  ze_command_list_handle_t list = in_order_list();
  OK(zeDeviceGetGlobalTimestamps(device, &host[0], &ticks[0]));
  OK(zeCommandListAppendWriteGlobalTimestamp(list, written, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
  OK(zeDeviceGetGlobalTimestamps(device, &host[1], &ticks[1]));
  struct timespec raw;
  clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
  CHECK((uint64_t)raw.tv_sec * 1000000000u + (uint64_t)raw.tv_nsec - host[1] < 1000000000u);
  double device_ns = (double)((ticks[1] - ticks[0]) & MASK) * 1e9 / 19200000.0, host_ns = (double)(host[1] - host[0]);
  CHECK(device_ns - host_ns < 1000 && host_ns - device_ns < 1000);
  CHECK(((*written - ticks[0]) & MASK) <= ((ticks[1] - ticks[0]) & MASK));
  OK(zeMemFree(context, written));
  OK(zeCommandListDestroy(list));
}

int main(void) {
  begin();
  kernel_timestamps();
  global_timestamps();
  finish("clocks");
  return 0;
}
