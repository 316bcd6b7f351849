/* SPDX-License-Identifier: Apache-2.0 */
/* sensors.h: the files below a device's folder in /sys that telemetry reads. */
#ifndef XE_DEVICE_SENSORS_H
#define XE_DEVICE_SENSORS_H

#include "device.h"

#define XE_SENSORS_POWER 45 /* watts, always */

typedef struct {
  char name[64]; /* below the device's folder */
  char text[32];
} xe_sensor;

int xe_sensors_number(const xe_device *device);
xe_sensor xe_sensors_get(const xe_device *device, int number);

/* Is this a path of a counter of energy? Its file is written anew when it is opened. */
bool xe_sensors_counts_energy(const char *path);

/* What has been used since the machine's start, as in such a file: microjoules. */
uint64_t xe_sensors_energy(void);

#endif
