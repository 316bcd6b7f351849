/* SPDX-License-Identifier: Apache-2.0 */
/* list.h: command lists: immediate ones, which are a fifo, and regular ones, which are a recording. list_create.c makes
 * and ends them, append.c appends to them, submit.c executes them. */
#ifndef L0RT_CPU_LIST_H
#define L0RT_CPU_LIST_H

#include "lists/engine.h"

typedef struct {
  cpu_object base;
  cpu_context *context; /* held */
  cpu_device *device;
  uint32_t ordinal;
  uint32_t index;
  bool immediate;
  bool synchronous;
  bool in_order;
  bool closed;
  uint8_t mode, priority; /* as asked for, like the flags */
  uint32_t flags;
  /* an immediate list */
  cpu_fifo fifo;
  /* a regular one */
  cpu_command *recorded;
  uint32_t count, capacity;
  void *place; /* the queue or immediate list where it was executed last, */
  union {
    struct {
      uint64_t serial; /* that place's fifo, */
      uint64_t last; /* and the number of its last command there */
    };
    struct { /* an immediate list with uncounted signals */
      uint64_t counted; /* the last command that waits include, where not the fifo's last, */
      uint64_t skipped; /* and the last that they leave out */
    };
  };
  struct cpu_graph *graph; /* into which it is captured, or NULL, */
  uint32_t branch; /* and as which branch; see capture.c */
  uint32_t left_session; /* the capture that it is not part of any more, with that defect */
  struct cpu_mutations *mutations; /* which commands can be changed; NULL: none */
} cpu_list;

_Static_assert(sizeof(cpu_list) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_list *cpu_list_cast(ze_command_list_handle_t handle) { return cpu_cast(handle, CPU_LIST); }

/* May this event be used with the list? */
ze_result_t cpu_list_check_context(const cpu_list *list, const cpu_event *event);

/* May a command with these events be appended? All of them are checked before anything is. */
ze_result_t cpu_list_check(const cpu_list *list, ze_event_handle_t signal, uint32_t wait_count,
                           ze_event_handle_t *waits);

/* An asynchronous immediate list for graphs, or NULL; and the end of a list that has no work. */
cpu_list *cpu_list_immediate(cpu_context *context, cpu_device *device, uint32_t ordinal, uint32_t index,
                             ze_command_queue_priority_t priority, bool in_order);
void cpu_list_end(cpu_list *list);

/* May it be executed: closed, also after the last change of a mutable one? */
bool cpu_list_is_closed(const cpu_list *list);

/* Is the device still at it? Where a regular list was executed last: NULL if that was destroyed, since then it is idle,
 * even if something else has its address now. */
bool cpu_list_is_busy(cpu_list *list);
cpu_fifo *cpu_list_place(const cpu_list *list);

/* May a command of this list use these bytes? */
ze_result_t cpu_list_reach(const cpu_list *list, const void *pointer, size_t size, bool written);

/* Is the last command of an immediate list one that waits for the list leave out, as with uncounted signals? */
static inline bool cpu_list_skips(cpu_list *list) {
  return list->skipped != 0 && list->skipped == cpu_fifo_last(&list->fifo);
}

/* Keeps a command in a regular list. */
ze_result_t cpu_list_record(cpu_list *list, const cpu_command *command);

/* Appends a command: checks the events, then records or submits it, as the list is. */
ze_result_t cpu_list_append(cpu_list *list, cpu_command *command, ze_event_handle_t signal, uint32_t wait_count,
                            ze_event_handle_t *waits);

#endif
