/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_library.c: fuzz.h driven by libFuzzer, which looks for bytes that reach new code. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (driver == NULL) fuzz_begin();
  fuzz(data, size);
  return 0;
}
