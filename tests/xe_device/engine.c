/* SPDX-License-Identifier: Apache-2.0 */
#include "engine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "libc.h"

static const spirv_engine *engine;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void) {
  const char *path = getenv("XE_DEVICE_ENGINE");
  if (!path) return;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  engine = library ? xe_libc.dlsym(library, "l0rt_cpu_engine") : NULL;
  if (engine && engine->version == SPIRV_ENGINE_VERSION) return;
  fprintf(stderr, "XE_DEVICE_ENGINE=%s: %s\n", path, library ? "has no engine of this version" : dlerror());
  abort();
}

const spirv_engine *xe_engine_get(void) {
  pthread_once(&once, load);
  return engine;
}
