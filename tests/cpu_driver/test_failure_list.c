/* SPDX-License-Identifier: Apache-2.0 */
/* test_failure_list.c: random failures, waits, resets and ends, beside a model that keeps every launch for itself. */
#include "sync/failure.c"

#include "check.h"

struct cpu_knobs cpu_knobs;

enum { FIFOS = 5, EVENTS = 4, MOST = 4000, STEPS = 200000 };

static struct {
  uint64_t serial; /* 0: its fifo is gone */
  const struct cpu_event *event;
  bool own, told;
} launches[MOST];
static uint32_t launch_count;

static uint64_t random_state = 1;
static uint32_t chance(uint32_t below) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(random_state >> 33) % below;
}

/* How many of them a wait tells of. */
static uint32_t told(uint64_t serial, const struct cpu_event *event) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < launch_count; i++) {
    if (launches[i].told || (event == NULL ? launches[i].serial != serial : launches[i].event != event)) continue;
    launches[i].told = true;
    count++;
  }
  return count;
}

static void check(ze_result_t result, uint32_t expected) {
  CHECK(result == (expected == 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_UNKNOWN));
  const char *text = cpu_failure_description(), *more = strstr(text, "the first of ");
  if (expected == 0) return;
  CHECK(strncmp(text, "launch", 6) == 0);
  CHECK(expected == 1 ? more == NULL : more != NULL && strtoul(more + 13, NULL, 10) == expected);
}

int main(void) {
  static char places[EVENTS];
  uint64_t serials[FIFOS], next = 1;
  for (int i = 0; i < FIFOS; i++) serials[i] = next++;
  for (uint32_t step = 0; step < STEPS; step++) {
    uint32_t fifo = chance(FIFOS);
    const struct cpu_event *event = (const struct cpu_event *)&places[chance(EVENTS)];
    switch (chance(8)) {
      case 0:
      case 1:
      case 2: {
        if (launch_count == MOST) launch_count = 0, cpu_failures = 0;
        if (chance(2) == 0) event = NULL;
        char text[20];
        snprintf(text, sizeof(text), "launch %u", step);
        cpu_failure_add(serials[fifo], event, text);
        launches[launch_count].serial = serials[fifo];
        launches[launch_count].event = event;
        launches[launch_count].own = event != NULL;
        launches[launch_count++].told = false;
        break;
      }
      case 3:
        cpu_failure_follow(serials[fifo], event);
        for (uint32_t i = 0; i < launch_count; i++)
          if (launches[i].serial == serials[fifo] && !launches[i].own) launches[i].event = event;
        break;
      case 4: check(cpu_failure_of_fifo(serials[fifo]), told(serials[fifo], NULL)); break;
      case 5: check(cpu_failure_of_event(event), told(0, event)); break;
      case 6:
        cpu_failure_forget(event);
        for (uint32_t i = 0; i < launch_count; i++)
          if (launches[i].event == event) launches[i].event = NULL;
        break;
      default:
        if (chance(4) != 0) break;
        cpu_failure_end(serials[fifo]);
        for (uint32_t i = 0; i < launch_count; i++)
          if (launches[i].serial == serials[fifo]) launches[i].serial = 0;
        serials[fifo] = next++;
    }
    CHECK(cpu_failures <= FIFOS * (2 + EVENTS) + 2 * EVENTS); /* however many launches have failed */
  }
  for (int i = 0; i < FIFOS; i++) cpu_failure_end(serials[i]);
  for (int i = 0; i < EVENTS; i++) cpu_failure_forget((const struct cpu_event *)&places[i]);
  CHECK(cpu_failures == 0); /* so that waits need no look at the list */
  free(failures);
  printf("failure_list: ok\n");
  return 0;
}
