/* SPDX-License-Identifier: Apache-2.0 */
/* test_tables.c: the tables for loaders of every version: each entry is where that version has it, and nothing is
 * written beyond. functions.txt says what the specification has. */
#include <dlfcn.h>

#include "harness.h"

#ifndef FUNCTIONS
#error "FUNCTIONS is to be the path of functions.txt"
#endif

enum { TABLES = 100, ENTRIES = 128, NEWEST = 17, FUTURE = 40 };

static struct {
  char name[64];
  int count;
  struct {
    int since;
    char function[96];
  } entries[ENTRIES];
} tables[TABLES];
static int table_count, exported;

static void read_functions(void) {
  FILE *file = fopen(FUNCTIONS, "r");
  char line[256], table[64], function[96];
  int since;
  CHECK(file != NULL);
  while (fgets(line, sizeof(line), file) != NULL) {
    if (line[0] == '#') continue;
    CHECK(sscanf(line, "%63s %d %95s", table, &since, function) == 3);
    if (table_count == 0 || strcmp(tables[table_count - 1].name, table) != 0) {
      CHECK(table_count < TABLES);
      strcpy(tables[table_count++].name, table);
    }
    int i = tables[table_count - 1].count++;
    CHECK(i < ENTRIES && since <= NEWEST);
    tables[table_count - 1].entries[i].since = since;
    strcpy(tables[table_count - 1].entries[i].function, function);
  }
  fclose(file);
}

/* Functions are looked up as a program does that links with the driver. */
static void ask(int t, int minor) {
  static void *untouched = &untouched;
  char name[96];
  snprintf(name, sizeof(name), "%sProcAddrTable", tables[t].name);
  ze_result_t (*get)(ze_api_version_t, void *);
  *(void **)&get = dlsym(RTLD_DEFAULT, name);
  void *entries[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) entries[i] = untouched;
  if (get == NULL) {
    for (int i = 0; i < tables[t].count; i++) CHECK(dlsym(RTLD_DEFAULT, tables[t].entries[i].function) == NULL);
    return;
  }
  OK(get(1u << 16 | (unsigned)minor, entries));
  for (int i = 0; i < ENTRIES; i++) {
    bool there = i < tables[t].count && tables[t].entries[i].since <= minor;
    void *function = there ? dlsym(RTLD_DEFAULT, tables[t].entries[i].function) : NULL;
    if (entries[i] != (function != NULL ? function : untouched)) {
      fprintf(stderr, "%s, version 1.%d, entry %d: %s\n", name, minor, i, there ? tables[t].entries[i].function : "-");
      exit(1);
    }
    exported += function != NULL && minor == NEWEST;
  }
}

static void what_is_no_table_is_refused(void) {
  ze_result_t zeGetGlobalProcAddrTable(ze_api_version_t, void *);
  void *entries[2] = {NULL, NULL};
  GIVES(ERROR_INVALID_NULL_POINTER, zeGetGlobalProcAddrTable(1u << 16, NULL));
  GIVES(ERROR_UNSUPPORTED_VERSION, zeGetGlobalProcAddrTable(2u << 16, entries));
  GIVES(ERROR_UNSUPPORTED_VERSION, zeGetGlobalProcAddrTable(0, entries));
  CHECK(entries[0] == NULL && entries[1] == NULL);
}

/* What the specification lets a loader find at the beginning of a handle. */
typedef struct {
  uint32_t version;
  uint8_t valid;
  void *const *tables[40];
} dispatch;

/* The tables of one kind, ze or zes, are those of functions.txt in its order; a function that is not here is NULL. */
static void check_dispatch(const dispatch *d, const char *kind) {
  size_t length = strlen(kind);
  CHECK(d != NULL && d->version == (1u << 16 | NEWEST) && d->valid == 1);
  int n = 0;
  for (int t = 0; t < table_count; t++) {
    if (strncmp(tables[t].name, kind, length) != 0) continue;
    void *const *entries = d->tables[n++];
    CHECK(entries != NULL);
    for (int i = 0; i < tables[t].count; i++) CHECK(entries[i] == dlsym(RTLD_DEFAULT, tables[t].entries[i].function));
  }
  CHECK(n > 20);
}

static void check_handle(const void *handle) {
  const dispatch *const *d = handle;
  check_dispatch(d[0], "zeGet");
  check_dispatch(d[2], "zesGet");
  CHECK(d[1]->valid == 1 && d[3]->valid == 1);
  for (int t = 0; t < 19; t++) CHECK(d[1]->tables[t] != NULL && d[1]->tables[t][0] == NULL);
  CHECK(d[3]->tables[0] != NULL && d[3]->tables[0][0] == NULL);
}

static void every_handle_begins_with_its_tables(void) {
  begin();
  ze_api_version_t version;
  OK(zeDriverGetApiVersion(driver, &version));
  CHECK(version == (1u << 16 | NEWEST));
  ze_command_list_handle_t list = in_order_list();
  ze_command_queue_handle_t queue;
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  ze_fence_handle_t fence;
  ze_fence_desc_t fence_desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
  OK(zeFenceCreate(queue, &fence_desc, &fence));
  ze_event_pool_handle_t pool;
  ze_event_pool_desc_t pool_desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = 1};
  OK(zeEventPoolCreate(context, &pool_desc, 0, NULL, &pool));
  ze_event_handle_t event;
  ze_event_desc_t event_desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
  OK(zeEventCreate(pool, &event_desc, &event));
  ze_physical_mem_handle_t physical;
  ze_physical_mem_desc_t physical_desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 1 << 21};
  OK(zePhysicalMemCreate(context, device, &physical_desc, &physical));
  const void *handles[] = {driver, device, context, list, queue, fence, pool, event, physical};
  for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) check_handle(handles[i]);
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  OK(zeFenceDestroy(fence));
  OK(zeCommandQueueDestroy(queue));
  OK(zeCommandListDestroy(list));
  check_handle(list); /* a loader calls through a stale handle, too */
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListClose(list));
  finish("handles");
}

/* An older loader would look for other tables there. */
static void told(bool supported) {
  ze_driver_ddi_handles_ext_properties_t ddi = {.stype = ZE_STRUCTURE_TYPE_DRIVER_DDI_HANDLES_EXT_PROPERTIES,
                                                .flags = 9};
  ze_driver_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, .pNext = &ddi};
  OK(zeDriverGetProperties(driver, &properties));
  CHECK(ddi.flags == (supported ? ZE_DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED : 0));
}

int main(void) {
  read_functions();
  every_handle_begins_with_its_tables();
  told(true);
  CHECK(table_count > 50);
  for (int t = 0; t < table_count; t++) {
    for (int minor = 0; minor <= NEWEST; minor++) ask(t, minor);
    ask(t, FUTURE);
  }
  CHECK(exported > 250);
  what_is_no_table_is_refused();
  told(false);
  printf("tables: ok\n");
  return 0;
}
