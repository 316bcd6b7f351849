/* SPDX-License-Identifier: Apache-2.0 */
#include "sensors.h"

#include <stdio.h>

/* Of each tile, in MHz. */
static const struct {
  const char *name;
  int value;
} frequencies[] = {{"max_freq", 2400}, {"min_freq", 300}, {"rp0_freq", 2400}, {"rpn_freq", 300},
                   {"rpe_freq", 600},  {"cur_freq", 1200}, {"act_freq", 1200}};

#define FREQUENCIES (int)(sizeof frequencies / sizeof *frequencies)

int xe_sensors_number(const xe_device *device) { return FREQUENCIES * device->product->tiles; }

xe_sensor xe_sensors_get(const xe_device *device, int number) {
  (void)device;
  xe_sensor sensor;
  int tile = number / FREQUENCIES, which = number % FREQUENCIES;
  snprintf(sensor.name, sizeof sensor.name, "tile%d/gt%d/freq0/%s", tile, tile, frequencies[which].name);
  snprintf(sensor.text, sizeof sensor.text, "%d\n", frequencies[which].value);
  return sensor;
}
