/* SPDX-License-Identifier: Apache-2.0 */
/* spirv_corpus.c: every SPIR-V module that stands in the files named is decoded, and its kernels are prepared.
 * Arguments: one module of how many is taken (1: all), then files of any kind. What is refused is printed. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels.h"

enum { FUNCTION = 54, FUNCTION_END = 56, HEADER = 5, HIGHEST = 6500 /* no instruction has such a number */ };

static unsigned found, modules, kernels, refused_modules, refused_kernels;

/* The words of the module that begins there: up to the last function's end, or of one without functions up to what is no
 * instruction. 0: none does. Behind the last module of a shared object may stand its .eh_frame_hdr, which begins with
 * the bytes 01 1b: as an instruction that would be number 6913. */
static size_t words_of_module(const uint32_t *words, size_t count) {
  if (count < HEADER || words[0] != 0x07230203 || (words[1] & 0xff0000ffu) != 0 || words[1] >> 16 != 1) return 0;
  size_t at = HEADER, end = 0;
  while (at < count) {
    uint32_t length = words[at] >> 16, code = words[at] & 0xffff;
    if (length == 0 || length > count - at || code > HIGHEST || (end == at && code != FUNCTION)) break;
    at += length;
    if (code == FUNCTION_END) end = at;
  }
  return end != 0 ? end : at;
}

static void take(const char *file, const uint32_t *words, size_t count) {
  spirv_program *program = decode(words, count * 4);
  modules++;
  if (program == NULL) {
    refused_modules++;
    printf("%s: a module of %zu bytes: %s\n", file, count * 4, last_log);
    return;
  }
  const spirv_kernel *kernel;
  for (uint32_t i = 0; (kernel = spirv_program_kernel_at(program, i)) != NULL; i++) {
    spirv_result result;
    kernels++;
    if (spirv_kernel_prepare(kernel, &result)) continue;
    refused_kernels++;
    printf("%s: %.100s: %s\n", file, spirv_kernel_look(kernel)->name, result.text);
  }
  spirv_program_release(program);
}

int main(int argc, char **argv) {
  unsigned each = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
  CHECK(each > 0);
  for (int i = 2; i < argc; i++) {
    int file = open(argv[i], O_RDONLY);
    struct stat about;
    CHECK(file >= 0 && fstat(file, &about) == 0);
    size_t count = (size_t)about.st_size / 4;
    const uint32_t *words = mmap(NULL, count * 4 + 4, PROT_READ, MAP_PRIVATE, file, 0);
    CHECK(words != MAP_FAILED);
    const char *name = strrchr(argv[i], '/') == NULL ? argv[i] : strrchr(argv[i], '/') + 1;
    for (size_t at = 0; at < count;) {
      size_t length = words_of_module(words + at, count - at);
      if (length != 0 && found++ % each == 0) take(name, words + at, length);
      at += length != 0 ? length : 1;
    }
    munmap((void *)(uintptr_t)words, count * 4 + 4);
    close(file);
  }
  printf("%u modules found, %u decoded, %u refused; %u kernels, %u refused\n", found, modules, refused_modules, kernels,
         refused_kernels);
  return refused_modules + refused_kernels != 0;
}
