/* SPDX-License-Identifier: Apache-2.0 */
#include "sensors.h"

#include <stdio.h>
#include <string.h>

#define ENERGY "hwmon/hwmon0/energy1_input"

typedef struct {
  const char *name, *text;
} file;

/* Of each tile, below its folder: MHz. */
static const file frequencies[] = {
    {"max_freq", "2400\n"}, {"min_freq", "300\n"},  {"rp0_freq", "2400\n"}, {"rpn_freq", "300\n"},
    {"rpe_freq", "600\n"},  {"cur_freq", "1200\n"}, {"act_freq", "1200\n"}, {"throttle/status", "0\n"},
};

/* Of each card: microwatts and thousandths of a degree. */
static const file card[] = {
    {"hwmon/hwmon0/name", "xe\n"},
    {"hwmon/hwmon0/power1_max", "190000000\n"},
    {"hwmon/hwmon0/power1_max_interval", "28000\n"},
    {"hwmon/hwmon0/power1_rated_max", "190000000\n"},
    {"hwmon/hwmon0/power1_crit", "380000000\n"},
    {"hwmon/hwmon0/temp2_label", "pkg\n"},
    {"hwmon/hwmon0/temp2_input", "47000\n"},
    {"hwmon/hwmon0/temp3_label", "vram\n"},
    {"hwmon/hwmon0/temp3_input", "52000\n"},
    {"hwmon/hwmon0/fan1_input", "900\n"},
    {ENERGY, ""},
};

#define FREQUENCIES (int)(sizeof frequencies / sizeof *frequencies)
#define CARD (int)(sizeof card / sizeof *card)

int xe_sensors_number(const xe_device *device) {
  return FREQUENCIES * device->product->tiles + (device->product->vram ? CARD : 0);
}

xe_sensor xe_sensors_get(const xe_device *device, int number) {
  xe_sensor sensor;
  int tile = number / FREQUENCIES;
  const file *source = tile < device->product->tiles ? &frequencies[number % FREQUENCIES]
                                                     : &card[number - FREQUENCIES * device->product->tiles];
  if (tile < device->product->tiles)
    snprintf(sensor.name, sizeof sensor.name, "tile%d/gt%d/freq0/%s", tile, tile, source->name);
  else snprintf(sensor.name, sizeof sensor.name, "%s", source->name);
  snprintf(sensor.text, sizeof sensor.text, "%s", source->text);
  return sensor;
}

bool xe_sensors_counts_energy(const char *path) {
  size_t length = strlen(path), end = strlen(ENERGY);
  return length > end && !strcmp(path + length - end, ENERGY);
}

uint64_t xe_sensors_energy(void) { return xe_device_now(CLOCK_MONOTONIC) / 1000 * XE_SENSORS_POWER; }
