/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h: what every entry point passes first. */
#ifndef L0RT_CPU_GATE_H
#define L0RT_CPU_GATE_H

#include "failure.h"
#include "object.h"

/* 0 while there is nothing to ask: one load and a predicted branch for every call. */
extern _Atomic uint32_t cpu_gate;

enum {
  CPU_GATE_CLOSED = 1,  /* before zeInit, and after the library's end */
  CPU_GATE_FORKED = 2,  /* a child of an initialised parent: its engines stayed there */
  CPU_GATE_WATCHED = 4, /* faults or a profile: look at each function's name */
};

ze_result_t cpu_gate_ask(const char *function);

#define CPU_ENTER()                                                                                                    \
  do {                                                                                                                 \
    if (!CPU_LIKELY(atomic_load_explicit(&cpu_gate, memory_order_relaxed) == 0)) {                                     \
      ze_result_t refused_ = cpu_gate_ask(__func__);                                                                   \
      if (refused_ != ZE_RESULT_SUCCESS) return refused_;                                                              \
    }                                                                                                                  \
  } while (0)

#endif
