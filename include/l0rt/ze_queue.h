/* SPDX-License-Identifier: Apache-2.0 */
/* ze_queue.h: contexts, queues, command lists, fences, event pools and events.
 * Names, values and layouts are those of the Level Zero specification (core, 1.0 to 1.17). */
#ifndef L0RT_ZE_QUEUE_H
#define L0RT_ZE_QUEUE_H

#include "l0rt/ze_memory.h"

typedef enum {
  ZE_CONTEXT_FLAG_TBD = 1u << 0,
} ze_context_flag_t;
typedef uint32_t ze_context_flags_t;

typedef enum {
  ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY = 1u << 0,
  ZE_COMMAND_QUEUE_FLAG_IN_ORDER = 1u << 1, /* 1.7 */
  ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT = 1u << 2, /* 1.14 */
} ze_command_queue_flag_t;
typedef uint32_t ze_command_queue_flags_t;

typedef enum {
  ZE_COMMAND_QUEUE_MODE_DEFAULT = 0,
  ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1,
  ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2,
} ze_command_queue_mode_t;

typedef enum {
  ZE_COMMAND_QUEUE_PRIORITY_NORMAL = 0,
  ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW = 1,
  ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH = 2,
} ze_command_queue_priority_t;

typedef enum {
  ZE_COMMAND_LIST_FLAG_RELAXED_ORDERING = 1u << 0,
  ZE_COMMAND_LIST_FLAG_MAXIMIZE_THROUGHPUT = 1u << 1,
  ZE_COMMAND_LIST_FLAG_EXPLICIT_ONLY = 1u << 2,
  ZE_COMMAND_LIST_FLAG_IN_ORDER = 1u << 3, /* 1.7 */
  ZE_COMMAND_LIST_FLAG_EXP_CLONEABLE = 1u << 4, /* 1.9 */
  ZE_COMMAND_LIST_FLAG_COPY_OFFLOAD_HINT = 1u << 5, /* 1.14 */
} ze_command_list_flag_t;
typedef uint32_t ze_command_list_flags_t;

typedef enum {
  ZE_EVENT_POOL_FLAG_HOST_VISIBLE = 1u << 0,
  ZE_EVENT_POOL_FLAG_IPC = 1u << 1,
  ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP = 1u << 2,
  ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP = 1u << 3, /* 1.6 */
} ze_event_pool_flag_t;
typedef uint32_t ze_event_pool_flags_t;

typedef enum {
  ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_IMMEDIATE = 1u << 0, /* 1.8 */
  ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_NON_IMMEDIATE = 1u << 1, /* 1.8 */
} ze_event_pool_counter_based_exp_flag_t;
typedef uint32_t ze_event_pool_counter_based_exp_flags_t;

typedef enum {
  ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE = 1u << 0, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE = 1u << 1, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE = 1u << 2, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_IPC = 1u << 3, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP = 1u << 4, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP = 1u << 5, /* 1.15 */
  ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL = 1u << 6, /* 1.17 */
} ze_event_counter_based_flag_t;
typedef uint32_t ze_event_counter_based_flags_t;

typedef enum {
  ZE_EVENT_SCOPE_FLAG_SUBDEVICE = 1u << 0,
  ZE_EVENT_SCOPE_FLAG_DEVICE = 1u << 1,
  ZE_EVENT_SCOPE_FLAG_HOST = 1u << 2,
} ze_event_scope_flag_t;
typedef uint32_t ze_event_scope_flags_t;

typedef enum {
  ZE_FENCE_FLAG_SIGNALED = 1u << 0,
} ze_fence_flag_t;
typedef uint32_t ze_fence_flags_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_context_flags_t flags;
} ze_context_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t ordinal;
  uint32_t index;
  ze_command_queue_flags_t flags;
  ze_command_queue_mode_t mode;
  ze_command_queue_priority_t priority;
} ze_command_queue_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t commandQueueGroupOrdinal;
  ze_command_list_flags_t flags;
} ze_command_list_desc_t;

typedef struct {
  uint32_t originX;
  uint32_t originY;
  uint32_t originZ;
  uint32_t width;
  uint32_t height;
  uint32_t depth;
} ze_copy_region_t;

typedef struct {
  char data[ZE_MAX_IPC_HANDLE_SIZE];
} ze_ipc_event_pool_handle_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_event_pool_flags_t flags;
  uint32_t count;
} ze_event_pool_desc_t;

typedef struct { /* 1.8 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_event_pool_counter_based_exp_flags_t flags;
} ze_event_pool_counter_based_exp_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t index;
  ze_event_scope_flags_t signal;
  ze_event_scope_flags_t wait;
} ze_event_desc_t;

typedef struct { /* 1.15 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_event_counter_based_flags_t flags;
  ze_event_scope_flags_t signal;
  ze_event_scope_flags_t wait;
} ze_event_counter_based_desc_t;

typedef void (*ze_host_function_callback_t)(void *pUserData); /* 1.17 */

typedef struct {
  uint64_t kernelStart;
  uint64_t kernelEnd;
} ze_kernel_timestamp_data_t;

typedef struct {
  ze_kernel_timestamp_data_t global;
  ze_kernel_timestamp_data_t context;
} ze_kernel_timestamp_result_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_fence_flags_t flags;
} ze_fence_desc_t;

#endif
