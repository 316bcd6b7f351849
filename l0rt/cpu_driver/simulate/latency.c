/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c: the latencies of simulated devices: published, read in sources, or guessed (docs/hardware.md). */
#include "simulate/latency.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/knobs.h"
#include "simulate/profile.h"

enum { SPUN = 50 }; /* microseconds: sleeping takes longer than it is asked to by about as much */

enum { B580, A770_I915, PVC, COLUMNS };

/* clang-format off */
static const struct {
  const char *name;
  double us[COLUMNS];
} table[CPU_COSTS] = {
    [CPU_COST_PHYS_CREATE]      = {"phys_create",      {8,     15,      10}},
    [CPU_COST_PHYS_DESTROY]     = {"phys_destroy",     {10,    10,      10}},
    [CPU_COST_MAP_FRESH]        = {"map_fresh",        {150,   1,       100}},
    [CPU_COST_MAP_MOVED]        = {"map_moved",        {70,    1,       50}},
    [CPU_COST_UNMAP]            = {"unmap",            {70,    1,       60}},
    [CPU_COST_MAP_PER_PIECE]    = {"map_per_piece",    {0.004, 0,       0.004}},
    [CPU_COST_CLEAR]            = {"clear",            {6,     5,       2.5}},
    [CPU_COST_ALLOC_RESIDENT]   = {"alloc_resident",   {170,   120,     120}},
    [CPU_COST_FREE]             = {"free",             {60,    60,      60}},
    [CPU_COST_APPEND_LAUNCH]    = {"append_launch",    {1.5,   12,      1.5}},
    [CPU_COST_APPEND_COPY]      = {"append_copy",      {3,     15,      3}},
    [CPU_COST_COPY_PER_PIECE]   = {"copy_per_piece",   {0.005, 0.005,   0.005}},
    [CPU_COST_SUBMIT]           = {"submit",           {0,     0.1,     0}},
    [CPU_COST_SUBMIT_PER_PIECE] = {"submit_per_piece", {0,     0.00007, 0}},
    [CPU_COST_RECORD_SCOPE0]    = {"record_scope0",    {0.1,   0.1,     0.1}},
    [CPU_COST_RECORD_HOST]      = {"record_host",      {0.1,   12,      0.1}},
    [CPU_COST_RECORD_PLAIN]     = {"record_plain",     {2,     12,      2}},
    [CPU_COST_LIST_SWITCH]      = {"list_switch",      {450,   20,      5}},
    [CPU_COST_WAKE_UP]          = {"wake_up",          {5,     10,      5}},
    [CPU_COST_QUERY_PENDING]    = {"query_pending",    {0.5,   0.5,     0.5}},
    [CPU_COST_MAP_BLOCKS]       = {"map_blocks",       {1,     0,       1}},
    [CPU_COST_H2D_GBPS]         = {"h2d_gbps",         {12,    23.6,    54}},
    [CPU_COST_D2H_GBPS]         = {"d2h_gbps",         {12,    22.5,    55}},
};
/* clang-format on */

bool cpu_latency_on;

static double us[CPU_COSTS];
static bool is_virtual;
static _Atomic uint64_t charged[CPU_COSTS]; /* nanoseconds */

void cpu_latency_of_profile(void) {
  const char *name = cpu_knobs.device->profile;
  int column = strcmp(name, "pvc") == 0 ? PVC : strcmp(cpu_knobs.device->kernel_driver, "i915") == 0 ? A770_I915 : B580;
  for (int i = 0; i < CPU_COSTS; i++) us[i] = table[i].us[column];
  /* Their signals flush caches, whatever the kernel driver is. */
  if (strcmp(name, "arc-a770-xe") == 0 || strcmp(name, "lunar-lake") == 0)
    for (int i = CPU_COST_RECORD_SCOPE0; i <= CPU_COST_RECORD_PLAIN; i++) us[i] = table[i].us[A770_I915];
  cpu_latency_on = true;
}

static bool read_one(const char *text, size_t length) {
  if (length == 7 && memcmp(text, "virtual", 7) == 0) {
    is_virtual = true;
    return true;
  }
  for (int i = 0; i < CPU_COSTS; i++) {
    size_t name = strlen(table[i].name);
    if (length <= name + 1 || memcmp(text, table[i].name, name) != 0 || text[name] != '=') continue;
    if (strspn(text + name + 1, "0123456789.") != length - name - 1) return false;
    char *end;
    us[i] = strtod(text + name + 1, &end);
    return end == text + length && us[i] <= 1e7;
  }
  return false;
}

bool cpu_latency_read(const char *text) {
  for (;; text++) {
    size_t length = strcspn(text, ",");
    if (!read_one(text, length)) return false;
    text += length;
    if (*text == '\0') break;
  }
  cpu_latency_on = true;
  return true;
}

static void pass(uint64_t ns) {
  if (is_virtual) return;
  uint64_t end = cpu_wait_ns() + ns;
  if (ns >= SPUN * 1000) {
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000), .tv_nsec = (long)(end % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) continue; /* a signal */
  }
  while (cpu_wait_ns() < end) cpu_pause();
}

static void spend(cpu_cost cost, double microseconds) {
  if (microseconds <= 0) return;
  uint64_t ns = (uint64_t)(microseconds * 1000);
  atomic_fetch_add(&charged[cost], ns);
  pass(ns);
}

void cpu_latency_spend(cpu_cost cost, double times) {
  if (cost == CPU_COST_CLEAR) times *= 1000.0 / (1 << 30); /* bytes */
  spend(cost, us[cost] * times);
}

static pthread_mutex_t binding = PTHREAD_MUTEX_INITIALIZER;

void cpu_latency_map(cpu_cost cost, size_t pieces) {
  if (CPU_LIKELY(!cpu_latency_on)) return;
  bool blocks = us[CPU_COST_MAP_BLOCKS] != 0 && !is_virtual;
  if (blocks) pthread_mutex_lock(&binding);
  cpu_latency_spend(cost, 1);
  cpu_latency_spend(CPU_COST_MAP_PER_PIECE, (double)pieces);
  if (blocks) pthread_mutex_unlock(&binding);
}

void cpu_latency_append(void) {
  if (CPU_LIKELY(!cpu_latency_on) || us[CPU_COST_MAP_BLOCKS] == 0 || is_virtual) return;
  pthread_mutex_lock(&binding);
  pthread_mutex_unlock(&binding);
}

void cpu_latency_copied(cpu_cost rate, size_t size, uint64_t spent_ns) {
  if (us[rate] <= 0) return;
  uint64_t ns = (uint64_t)((double)size / us[rate]);
  atomic_fetch_add(&charged[rate], ns);
  if (ns > spent_ns) pass(ns - spent_ns);
}

/* For tests and measurements: the nanoseconds that a cost of this name came to so far; of NULL all that the host paid,
 * without the rates. UINT64_MAX: there is no such name. */
CPU_EXPORT uint64_t l0rt_cpu_charged(const char *name) {
  uint64_t sum = 0;
  for (int i = 0; i < CPU_COSTS; i++) {
    if (name != NULL && strcmp(name, table[i].name) == 0) return atomic_load(&charged[i]);
    if (i < CPU_COST_MAP_BLOCKS) sum += atomic_load(&charged[i]);
  }
  return name == NULL ? sum : UINT64_MAX;
}
