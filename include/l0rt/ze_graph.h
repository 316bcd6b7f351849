/* SPDX-License-Identifier: Apache-2.0 */
/* ze_graph.h: command lists whose commands can be changed once they are closed (1.9 and 1.10), and graphs recorded from
 * immediate lists (1.17). */
#ifndef L0RT_ZE_GRAPH_H
#define L0RT_ZE_GRAPH_H

#include "l0rt/ze_module.h"

typedef enum {
  ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS = 1u << 0, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT = 1u << 1, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE = 1u << 2, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET = 1u << 3, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT = 1u << 4, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS = 1u << 5, /* 1.9 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION = 1u << 6, /* 1.10 */
  ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS = 1u << 7, /* 1.10 */
} ze_mutable_command_exp_flag_t;
typedef uint32_t ze_mutable_command_exp_flags_t;

typedef enum {
  ZE_MUTABLE_COMMAND_LIST_EXP_FLAG_RESERVED = 1u << 0, /* 1.9 */
} ze_mutable_command_list_exp_flag_t;
typedef uint32_t ze_mutable_command_list_exp_flags_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  void *pNext;
  ze_mutable_command_list_exp_flags_t mutableCommandListFlags;
  ze_mutable_command_exp_flags_t mutableCommandFlags;
} ze_mutable_command_list_exp_properties_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_mutable_command_list_exp_flags_t flags;
} ze_mutable_command_list_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_mutable_command_exp_flags_t flags;
} ze_mutable_command_id_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t flags;
} ze_mutable_commands_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t commandId;
  uint32_t argIndex;
  size_t argSize;
  const void *pArgValue;
} ze_mutable_kernel_argument_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t commandId;
  const ze_group_count_t *pGroupCount;
} ze_mutable_group_count_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t commandId;
  uint32_t groupSizeX;
  uint32_t groupSizeY;
  uint32_t groupSizeZ;
} ze_mutable_group_size_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t commandId;
  uint32_t offsetX;
  uint32_t offsetY;
  uint32_t offsetZ;
} ze_mutable_global_offset_exp_desc_t;

typedef enum {
  ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH = 1u << 0, /* 1.17 */
  ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_MUTABLE_GRAPH = 1u << 1, /* 1.17 */
  ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_SUBGRAPHS = 1u << 2, /* 1.17 */
  ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_APPEND_COMMANDLIST = 1u << 3, /* 1.17 */
  ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_CB_EXTERNAL_IPC = 1u << 4, /* 1.17 */
} ze_record_replay_graph_ext_flag_t;
typedef uint32_t ze_record_replay_graph_ext_flags_t;

typedef struct { /* 1.17 */
  ze_structure_type_t stype;
  void *pNext;
  ze_record_replay_graph_ext_flags_t graphFlags;
} ze_record_replay_graph_ext_properties_t;

typedef enum {
  ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_DETAILED = 0, /* 1.17 */
  ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_SIMPLE = 1, /* 1.17 */
} ze_record_replay_graph_ext_dump_mode_t;

typedef struct { /* 1.17 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_record_replay_graph_ext_dump_mode_t mode;
} ze_record_replay_graph_ext_dump_desc_t;

typedef void (*zex_mem_graph_free_callback_fn_t)(void *pUserData); /* 1.17 */

#endif
