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

int main(void) {
  read_functions();
  CHECK(table_count > 50);
  for (int t = 0; t < table_count; t++) {
    for (int minor = 0; minor <= NEWEST; minor++) ask(t, minor);
    ask(t, FUTURE);
  }
  CHECK(exported > 250);
  what_is_no_table_is_refused();
  printf("tables: ok\n");
  return 0;
}
