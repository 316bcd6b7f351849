/* SPDX-License-Identifier: Apache-2.0 */
/* test_affinity.c: ZE_AFFINITY_MASK hides devices from the program, and from nobody else. */
#include "children.h"

static const char *expected; /* the devices that are there, by number */

static void the_mask_shows_these(void) {
  ze_device_handle_t found[64];
  uint32_t count = 0, all = 0;
  OK(zeInit(0));
  uint32_t one = 1;
  OK(zeDriverGet(&one, &driver));
  OK(zeDeviceGet(driver, &count, NULL));
  CHECK(count == strlen(expected));
  uint32_t capacity = 64;
  OK(zeDeviceGet(driver, &capacity, found));
  CHECK(capacity == count);
  for (uint32_t i = 0; i < count; i++) {
    ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    OK(zeDeviceGetProperties(found[i], &p));
    CHECK(p.uuid.id[15] == expected[i] - '0'); /* it is still the same device */
    uint32_t parts = 7;
    ze_device_handle_t root = driver == NULL ? NULL : (ze_device_handle_t)driver;
    OK(zeDeviceGetSubDevices(found[i], &parts, NULL));
    OK(zeDeviceGetRootDevice(found[i], &root));
    CHECK(parts == 0 && root == NULL);
  }
  OK(zesDeviceGet((zes_driver_handle_t)driver, &all, NULL));
  CHECK(all == 4);
}

static void shows(const char *mask, const char *devices) {
  static const char *const hierarchies[] = {"COMPOSITE", "FLAT", "COMBINED"};
  expected = devices;
  CHECK(in_child("ZE_AFFINITY_MASK", mask, the_mask_shows_these, NULL, 0) == 0);
  for (int i = 0; i < 3; i++) {
    setenv("ZE_FLAT_DEVICE_HIERARCHY", hierarchies[i], 1);
    CHECK(in_child("ZE_AFFINITY_MASK", mask, the_mask_shows_these, NULL, 0) == 0);
  }
  unsetenv("ZE_FLAT_DEVICE_HIERARCHY");
}

int main(void) {
  setenv("L0RT_CPU_DEVICES", "4", 1);
  shows("", "0123");
  shows("0", "0");
  shows("3, 1", "13"); /* the order stays the driver's */
  shows("2.0,0", "02");
  shows("1.1,2", "2"); /* no device has a second part */
  shows("7,0", "0");
  shows("7", "");
  shows("x,1,1x,-2,99999999999999999999", "1");
  printf("affinity: ok\n");
  return 0;
}
