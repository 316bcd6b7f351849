/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h: the files of /dev and /sys that show the devices, in a folder below TMPDIR. */
#ifndef XE_DEVICE_TREE_H
#define XE_DEVICE_TREE_H

#include <stddef.h>

#include "device.h"

/* Chooses the folder for devices of these names; processes with the same names share it. */
void xe_tree_begin(const char *names);
void xe_tree_add(xe_device *device);

/* The path to open instead of this one, in `buffer` of PATH_MAX bytes or the path itself. */
const char *xe_tree_redirect(const char *path, char *buffer);

/* Takes the folder's own path away from the beginning of a path that was redirected. */
char *xe_tree_restore(char *path);

#endif
