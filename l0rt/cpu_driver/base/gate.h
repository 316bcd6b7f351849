/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h: what every entry point passes first. */
#ifndef L0RT_CPU_GATE_H
#define L0RT_CPU_GATE_H

#include "base/object.h"
#include "sync/failure.h"

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

/* A call that returns one value of an object, and one that refuses objects of another kind. */
#define CPU_GETTER(function, handle_type, object_type, object, cast, value_type, name, value)                          \
  CPU_GETTER_IF(function, handle_type, object_type, object, cast, value_type, name, value, true, NULL)
#define CPU_GETTER_IF(function, handle_type, object_type, object, cast, value_type, name, value, condition, why)       \
  CPU_EXPORT ze_result_t function(handle_type handle, value_type *name) {                                              \
    CPU_ENTER();                                                                                                       \
    const object_type *object = cast(handle);                                                                          \
    CPU_REFUSE_IF(object == NULL, ERROR_INVALID_NULL_HANDLE);                                                          \
    CPU_REFUSE_IF(name == NULL, ERROR_INVALID_NULL_POINTER);                                                           \
    if (!(condition)) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, why);                                                 \
    *name = (value_type)(value);                                                                                       \
    return ZE_RESULT_SUCCESS;                                                                                          \
  }

#endif
