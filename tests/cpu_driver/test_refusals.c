/* SPDX-License-Identifier: Apache-2.0 */
/* test_refusals.c: whatever call is refused, zeDriverGetLastErrorDescription says why: every function without arguments, and
 * calls with one wrong argument each. GIVES (harness.h) asks after each error of all other tests. */
#include <dlfcn.h>

#include "base/functions.h"
#include "modules.h"

static const char *const names[] = {
#define NAME(since, name) #name,
#define TABLE(name) CPU_##name(NAME)
    CPU_TABLES(TABLE)};

typedef ze_result_t any_call(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                             void *, void *, void *, void *, void *);

static const char *description(void) {
  const char *text = NULL;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  return text;
}

static void no_argument_is_refused_without_a_word(void) {
  uint32_t refused = 0;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    any_call *call;
    void *address = dlsym(RTLD_DEFAULT, names[i]);
    CHECK(address != NULL);
    memcpy(&call, &address, sizeof(call));
    CHECK(description()[0] == '\0');
    ze_result_t result = call(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    if (result == ZE_RESULT_SUCCESS || result == ZE_RESULT_NOT_READY) continue;
    CHECK(result != ZE_RESULT_QUERY_TRUE && result != ZE_RESULT_QUERY_FALSE); /* which are answers */
    const char *text = description();
    if (strlen(text) < 20) fprintf(stderr, "%s: 0x%x: %s\n", names[i], (unsigned)result, text);
    CHECK(strlen(text) >= 20);
    refused++;
  }
  CHECK(refused > 250);
}

static void says(const char *why) {
  const char *text = description();
  if (strstr(text, why) == NULL) fprintf(stderr, "%s, expected %s\n", text, why);
  CHECK(strstr(text, why) != NULL);
}

/* The result in words, then the reason; the latest refusal counts, and is told once. */
static void the_reason_is_named(void) {
  void *pointer;
  size_t page;
  CHECK(zeVirtualMemQueryPageSize(context, device, 0, &page) == ZE_RESULT_ERROR_UNSUPPORTED_SIZE);
  CHECK(zeMemFree(context, &pointer) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  says("an argument is not valid here: no allocation of this context begins there");
  CHECK(description()[0] == '\0');
  CHECK(zeMemFree(NULL, &pointer) == ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
  says("a handle is null, is destroyed, or is one of another kind: context == NULL");
  CHECK(zeDriverGetExtensionFunctionAddress(driver, "zeNothing", &pointer) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  says("there is no extension function of this name");
  OK(zeVirtualMemReserve(context, NULL, 1 << 20, &pointer));
  CHECK(zeVirtualMemUnmap(context, pointer, 1 << 16) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  says("an argument is not valid here: ");
  CHECK(zeVirtualMemFree(context, pointer, 1 << 16) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  says("no part of a reservation of this context, or not all of one");
  OK(zeVirtualMemFree(context, pointer, 1 << 20));
}

/* A failed build says what is wrong with the module; a refusal behind it does not hide in it. */
static void a_build_has_its_own_words(void) {
  uint32_t words[5] = {0x07230203, 0x00010000, 0, 0, 0};
  binary b = {.bytes = (uint8_t *)words, .size = sizeof(words)};
  ze_module_desc_t desc = spirv_desc(b);
  ze_module_handle_t module;
  CHECK(zeModuleCreate(context, device, &desc, &module, NULL) == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
  says("the bound of the ids must be 1 to 1044, got 0");
  CHECK(zeModuleCreate(context, device, &desc, &module, NULL) == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE);
  CHECK(zeModuleCreate(context, NULL, &desc, &module, NULL) == ZE_RESULT_ERROR_INVALID_NULL_HANDLE);
  says("a handle is null");
}

int main(void) {
  begin();
  no_argument_is_refused_without_a_word();
  the_reason_is_named();
  a_build_has_its_own_words();
  finish("refusals");
  return 0;
}
