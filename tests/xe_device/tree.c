/* SPDX-License-Identifier: Apache-2.0 */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libc.h"
#include "report.h"
#include "sensors.h"
#include "usage.h"

static char root[200];

static const char *const redirected[] = {
    "/dev/dri",
    "/sys/class/drm",
    "/sys/dev/char/226:",
    "/sys/bus/pci/devices",
    "/sys/bus/pci/drivers/xe",
    "/sys/devices/pci0000:00",
    "/sys/devices/xe_",
};

void xe_tree_begin(const char *names) {
  const char *folder = getenv("TMPDIR");
  snprintf(root, sizeof root, "%s/xe_device.%d.%s", folder ? folder : "/tmp", (int)getuid(), names);
}

static void make_parents(char *path) {
  for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
    *slash = 0;
    mkdir(path, 0755);
    *slash = '/';
  }
}

/* Another thread or process may read the file or write it at the same time: it is complete as soon as it has its name. */
static void write_file(const char *path, const char *text) {
  char draft[PATH_MAX + 32];
  snprintf(draft, sizeof draft, "%s.%ld", path, (long)gettid());
  int fd = xe_libc.open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) < 0 || rename(draft, path)) {
    perror(draft);
    abort();
  }
  xe_libc.close(fd);
}

static void put(const char *name, const char *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", root, name);
  make_parents(path);
  if (xe_libc.access(path, F_OK)) write_file(path, text);
}

static void link_to(const char *name, const char *target) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", root, name);
  make_parents(path);
  if (symlink(target, path) && errno != EEXIST) {
    perror(path);
    abort();
  }
}

static const char *join(char *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *join(char *buffer, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, 600, format, arguments);
  va_end(arguments);
  return buffer;
}

static void add_node(const xe_device *device, const char *base, const char *name, int minor, const char *by_path) {
  char path[600], target[600];
  put(join(path, "%s/drm/%s/dev", base, name), join(target, "226:%d\n", minor));
  /* By name, as Linux does: the driver takes the address from it. */
  link_to(join(path, "%s/drm/%s/device", base, name), join(target, "../../../%s", device->address));
  link_to(join(path, "/sys/dev/char/226:%d", minor), join(target, "../..%s/drm/%s", base + 4, name));
  link_to(join(path, "/sys/class/drm/%s", name), join(target, "../..%s/drm/%s", base + 4, name));
  put(join(path, "/dev/dri/%s", name), "");
  link_to(join(path, "/dev/dri/by-path/pci-%s-%s", device->address, by_path), join(target, "../%s", name));
}

static void add_pci(const xe_device *device, const char *base) {
  const xe_product *product = device->product;
  char path[600], text[600];
#define ADD(name, ...) put(join(path, "%s/" name, base), join(text, __VA_ARGS__))
  ADD("vendor", "0x8086\n");
  ADD("device", "0x%04x\n", product->id);
  ADD("class", "0x030000\n");
  ADD("revision", "0x%02x\n", product->revision);
  ADD("subsystem_vendor", "0x8086\n");
  ADD("subsystem_device", "0x1100\n");
  ADD("numa_node", "-1\n");
  ADD("uevent", "DRIVER=xe\nPCI_CLASS=30000\nPCI_ID=8086:%04X\nPCI_SLOT_NAME=%s\n", product->id, device->address);
  ADD("max_link_width", "16\n");
  ADD("max_link_speed", "16.0 GT/s PCIe\n");
  ADD("current_link_width", "16\n");
  ADD("current_link_speed", "16.0 GT/s PCIe\n");
  ADD("resource", "0x0000000000000000 0x0000000000000000 0x0\n");
#undef ADD
}

/* Performance counters of engines: where their numbers are in an event's configuration. */
static void add_counters(const xe_device *device) {
  static const struct {
    const char *name, *text;
  } files[] = {
      {"events/engine-active-ticks", "event=0x02\n"},
      {"events/engine-total-ticks", "event=0x03\n"},
      {"format/event", "config:0-11\n"},
      {"format/engine_instance", "config:12-19\n"},
      {"format/engine_class", "config:20-27\n"},
      {"format/function", "config:44-59\n"},
      {"format/gt", "config:60-63\n"},
  };
  char base[64], path[600], text[600];
  snprintf(base, sizeof base, "/sys/devices/xe_%s", device->address);
  for (char *c = base; (c = strchr(c, ':'));) *c = '_';
  put(join(path, "%s/type", base), join(text, "%d\n", XE_USAGE_TYPE));
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++)
    put(join(path, "%s/%s", base, files[i].name), files[i].text);
}

void xe_tree_add(xe_device *device) {
  char base[200], path[600], text[600], name[32];
  int bus = 3 + device->index * 16;
  if (device->product->vram) { /* a card: behind its own bridges */
    snprintf(device->address, sizeof device->address, "0000:%02x:00.0", bus);
    snprintf(base, sizeof base, "/sys/devices/pci0000:00/0000:00:01.%d/0000:%02x:00.0/0000:%02x:01.0/%s", device->index,
             bus - 2, bus - 1, device->address);
  } else {
    snprintf(device->address, sizeof device->address, "0000:00:%02x.0", 2 + device->index);
    snprintf(base, sizeof base, "/sys/devices/pci0000:00/%s", device->address);
  }
  add_pci(device, base);
  snprintf(name, sizeof name, "renderD%d", device->render);
  add_node(device, base, name, device->render, "render");
  snprintf(name, sizeof name, "card%d", device->index);
  add_node(device, base, name, device->index, "card");
  for (int i = 0; i < xe_sensors_number(device); i++) {
    xe_sensor sensor = xe_sensors_get(device, i);
    put(join(path, "%s/%s", base, sensor.name), sensor.text);
  }
  add_counters(device);
  link_to(join(path, "/sys/bus/pci/devices/%s", device->address), join(text, "../../..%s", base + 4));
  put("/sys/bus/pci/drivers/xe/module/version", "1.1.0\n");
  const char *up = device->product->vram ? "../../../../../.." : "../../..";
  link_to(join(path, "%s/driver", base), join(text, "%s/bus/pci/drivers/xe", up));
}

const char *xe_tree_redirect(const char *path, char *buffer) {
  xe_device_start();
  if (!path || path[0] != '/' || !xe_device_number) return path;
  if (xe_report_traces && !strncmp(path, "/sys/", 5)) xe_report_log("%s", path);
  for (unsigned i = 0; i < sizeof redirected / sizeof *redirected; i++)
    if (!strncmp(path, redirected[i], strlen(redirected[i]))) {
      snprintf(buffer, PATH_MAX, "%s%s", root, path);
      if (xe_sensors_counts_energy(path)) {
        char text[32];
        snprintf(text, sizeof text, "%llu\n", (unsigned long long)xe_sensors_energy());
        write_file(buffer, text);
      }
      return buffer;
    }
  return path;
}

char *xe_tree_restore(char *path) {
  size_t length = strlen(root);
  if (path && length && !strncmp(path, root, length)) memmove(path, path + length, strlen(path + length) + 1);
  return path;
}
