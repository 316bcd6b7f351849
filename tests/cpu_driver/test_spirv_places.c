/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_places.c: what fails or is refused names the function, the line of its source and the kind of memory. */
#include "assembler.h"

typedef enum { LOCAL_STORE, LOCAL_LOAD, LOCAL_ATOMIC, PRIVATE_LOAD, GLOBAL_STORE, RECURSION } sort;

static void put_text(assembly *a, uint32_t code, uint32_t id, const char *text) {
  uint32_t words[20] = {id};
  CHECK(strlen(text) < 70);
  memcpy(words + 1, text, strlen(text));
  put_words(a, code, 2 + (uint32_t)strlen(text) / 4, words);
}

/* void deeper(ulong index, global uint *out), of which line 12 of places.cl is wrong, and
 * kernel void f(global uint *out, ulong index), which calls it. `named`: the module has the names of functions. */
// Long: the module's sections, in the order that the specification demands.
static spirv_program *module_of_sort(sort which, bool named, uint32_t length) {
  enum { FILE_NAME = 1, VOID, UINT, ULONG, LENGTH, ONE, SCOPE, ARRAY, LOCAL, LOCAL_UINT, PRIVATE, PRIVATE_UINT };
  enum { GLOBAL = PRIVATE_UINT + 1, TYPE, SIGNATURE, SHARED, DEEPER, INDEX, OUT, LABEL, OWN, PLACE, VALUE, MAIN };
  enum { TO = MAIN + 1, AT, BEGIN, NOTHING, BOUND };
  assembly one = {.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5}, *a = &one;
  for (uint32_t capability = 4; capability <= 11; capability++)
    if (capability == 4 || capability == 6 || capability == 11) PUT(17, capability);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  put_text(a, 7, FILE_NAME, "folder/places.cl");
  if (named) put_text(a, 5, DEEPER, "deeper");
  PUT(19, VOID);
  PUT(21, UINT, 32, 0);
  PUT(21, ULONG, 64, 0);
  PUT(43, UINT, LENGTH, length);
  PUT(43, UINT, ONE, 1);
  PUT(43, UINT, SCOPE, 2);
  PUT(28, ARRAY, UINT, LENGTH);
  PUT(32, LOCAL, 4, ARRAY);
  PUT(32, LOCAL_UINT, 4, UINT);
  PUT(32, PRIVATE, 7, ARRAY);
  PUT(32, PRIVATE_UINT, 7, UINT);
  PUT(32, GLOBAL, 5, UINT);
  PUT(33, TYPE, VOID, ULONG, GLOBAL);
  PUT(33, SIGNATURE, VOID, GLOBAL, ULONG);
  PUT(59, LOCAL, SHARED, 4);
  PUT(54, VOID, DEEPER, 0, TYPE);
  PUT(55, ULONG, INDEX);
  PUT(55, GLOBAL, OUT);
  PUT(248, LABEL);
  PUT(59, PRIVATE, OWN, 7);
  PUT(8, FILE_NAME, 12, 3);
  if (which == RECURSION) PUT(57, VOID, NOTHING, DEEPER, INDEX, OUT);
  else if (which == GLOBAL_STORE) PUT(70, GLOBAL, PLACE, OUT, INDEX);
  else if (which == PRIVATE_LOAD) PUT(66, PRIVATE_UINT, PLACE, OWN, INDEX);
  else PUT(66, LOCAL_UINT, PLACE, SHARED, INDEX);
  if (which == LOCAL_STORE || which == GLOBAL_STORE) PUT(62, PLACE, ONE);
  if (which == LOCAL_LOAD || which == PRIVATE_LOAD) PUT(61, UINT, VALUE, PLACE);
  if (which == LOCAL_LOAD || which == PRIVATE_LOAD) PUT(62, OUT, VALUE);
  if (which == LOCAL_ATOMIC) PUT(234, UINT, VALUE, PLACE, SCOPE, SCOPE, ONE);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, GLOBAL, TO);
  PUT(55, ULONG, AT);
  PUT(248, BEGIN);
  PUT(57, VOID, which == RECURSION ? VALUE : NOTHING, DEEPER, AT, TO);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  return decode(one.words, 4 * (size_t)one.count);
}

static void has(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fprintf(stderr, "%s, expected %s\n", text, part);
  CHECK(strstr(text, part) != NULL);
}

static void a_wrong_access(sort which, bool named, const char *what) {
  enum { LENGTH = 256, FAR = 5000000 }; /* 1 KiB, which no rounding makes more */
  uint32_t *out = block(64);
  uint64_t index = FAR;
  const void *arguments[] = {&out, &index};
  spirv_program *program = module_of_sort(which, named, LENGTH);
  if (program == NULL) fprintf(stderr, "%s\n", last_log);
  CHECK(program != NULL);
  spirv_launch launch = launch_of(program, "f", arguments);
  spirv_result result;
  CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_BAD_ACCESS);
  has(result.text, named ? "kernel f, function deeper, instruction at byte " : "kernel f, instruction at byte ");
  has(result.text, " (places.cl:12), work-item (0, 0, 0): ");
  has(result.text, what);
  CHECK((strstr(result.text, "local memory") != NULL) == (which <= LOCAL_ATOMIC));
  if (which <= LOCAL_ATOMIC) has(result.text, "of local memory, at byte 20000000 of the 1024 that the group has");
  spirv_program_release(program);
}

static void recursion_is_refused(void) {
  spirv_program *program = module_of_sort(RECURSION, true, 1);
  if (program == NULL) fprintf(stderr, "%s\n", last_log);
  CHECK(program != NULL);
  spirv_result result;
  CHECK(!spirv_kernel_prepare(spirv_program_kernel(program, "f"), &result));
  has(result.text, "kernel f, function deeper: offset ");
  has(result.text, "calls are nested too deeply, or recursive (places.cl:12)");
  spirv_program_release(program);
}

int main(void) {
  for (int named = 0; named < 2; named++) {
    a_wrong_access(LOCAL_STORE, named, "a store to address 0x");
    a_wrong_access(LOCAL_LOAD, named, "a load from address 0x");
    a_wrong_access(LOCAL_ATOMIC, named, " address 0x");
    a_wrong_access(PRIVATE_LOAD, named, " of private memory");
    a_wrong_access(GLOBAL_STORE, named, "a store to address 0x");
  }
  recursion_is_refused();
  free_blocks();
  printf("spirv_places: ok\n");
  return 0;
}
