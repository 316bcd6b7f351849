/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h: handing commands, and closed lists of them, to a fifo. */
#ifndef L0RT_CPU_SUBMIT_H
#define L0RT_CPU_SUBMIT_H

#include "lists/list.h"

/* Pushes a command whose events are still as the program named them. Counter-based ones are bound here: a wait means
 * the last signal submitted before it, and a signal is a point of its own. Changes the command; rings no wakeups. */
ze_result_t cpu_submit(cpu_fifo *fifo, cpu_command *command);

/* May these lists be executed by a queue or immediate list of this context, device and group, or recorded by one that
 * is captured? */
ze_result_t cpu_lists_check(const cpu_context *context, const cpu_device *device, uint32_t ordinal, uint32_t count,
                            ze_command_list_handle_t *lists, bool recorded);

/* Pushes what a list has recorded to the fifo of a place; the list remembers where it went. */
ze_result_t cpu_submit_list(void *place, cpu_fifo *fifo, cpu_list *list);

#endif
