/* SPDX-License-Identifier: Apache-2.0 */
/* children.h: running a part of a test in a process of its own, where settings and ends don't matter to the rest. */
#ifndef L0RT_CPU_TEST_CHILDREN_H
#define L0RT_CPU_TEST_CHILDREN_H

#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

/* Runs `body` in a child with this variable set; returns how it ended, and in `text` what it said on stderr. */
static inline int in_child(const char *name, const char *value, void (*body)(void), char *text, size_t capacity) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (name != NULL) setenv(name, value, 1);
    if (text != NULL) dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    body();
    exit(0);
  }
  close(ends[1]);
  size_t length = 0;
  ssize_t n;
  char rest[256];
  while ((n = text != NULL && length + 1 < capacity ? read(ends[0], text + length, capacity - 1 - length)
                                                    : read(ends[0], rest, sizeof(rest))) > 0)
    if (text != NULL && length + 1 < capacity) length += (size_t)n;
  if (text != NULL) text[length] = '\0';
  close(ends[0]);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  return status;
}

#endif
