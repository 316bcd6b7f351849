/* SPDX-License-Identifier: Apache-2.0 */
/* spirv.h: what the engine that runs SPIR-V kernels offers the driver. It knows nothing of Level Zero.
 *
 * A program is decoded once from one or more modules and then changes no more, but for the bytes of its module-scope
 * variables. A launch runs one kernel of it over a grid of work-groups and returns when all of them have ended.
 *
 * Threads: decoding, and everything that reads a program, may be called by several threads at once; several launches of
 * one kernel may run at once. A program must outlive its kernels' launches: it is reference counted for that. */
#ifndef L0RT_CPU_SPIRV_H
#define L0RT_CPU_SPIRV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spirv_program spirv_program;
typedef struct spirv_kernel spirv_kernel; /* belongs to its program, lives as long */
typedef struct spirv_workers spirv_workers;

enum {
  SPIRV_MAX_GROUP_SIZE = 1024,
  SPIRV_MAX_COOPERATIVE_GROUPS = 64,
  SPIRV_SUBGROUP_SIZE = 32,      /* where the kernel asks for none; 16 and 32 can be asked for */
  SPIRV_MAX_LOCAL_BYTES = 65536, /* local memory of a group: declared and arguments together */
};

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

typedef struct {
  uint32_t id; /* SpecId: every constant that carries it is set */
  size_t size; /* of the value; must be the constant's (a bool: 1 byte), or 0: as many bytes as the constant has */
  const void *value;
} spirv_constant;

typedef struct {
  const void *bytes; /* the words of a module, of either byte order, at any alignment; copied */
  size_t size;
  const spirv_constant *constants; /* of this module only; they win over the build's */
  uint32_t constant_count;
} spirv_binary;

/* One line of the build log, without a line feed: "error: offset 148: OpLoad: …" (bytes from the module's begin). */
typedef void (*spirv_log)(void *context, const char *line);

typedef struct {
  const spirv_binary *binaries;
  uint32_t binary_count; /* several are linked: imports are resolved by the others' exports */
  const spirv_constant *constants;
  uint32_t constant_count;
  const char *flags; /* build flags, or NULL; unknown ones are named in the log and ignored */
  spirv_log log; /* or NULL */
  void *log_context;
} spirv_build;

/* NULL after an error, which the log names. An import that nothing resolves is no error until a kernel that needs it is
 * prepared; see spirv_program_imports. The caller owns one reference. */
spirv_program *spirv_program_new(const spirv_build *build);
void spirv_program_retain(spirv_program *program);
void spirv_program_release(spirv_program *program);

/* Imports that nothing resolves yet are looked up in these programs too, as if all had been built together: functions
 * and variables are theirs, and stay where they are. Called before any kernel of the program is prepared. The caller
 * keeps the others alive as long as the program. False after an error, which the log names (an import that two of them
 * export); nothing has changed then. */
bool spirv_program_link(spirv_program *program, spirv_program *const *others, uint32_t count, spirv_log log,
                        void *log_context);

/* Unresolved imports by name, NULL past the last. */
const char *spirv_program_import(const spirv_program *program, uint32_t index);
/* Exported functions (kernels are none), by name, NULL past the last. */
const char *spirv_program_export(const spirv_program *program, uint32_t index);
/* Module-scope variables in memory of the program: false if there is none of that name. */
bool spirv_program_global(const spirv_program *program, const char *name, uint64_t *address, uint64_t *size);
/* Which one: false past the last. Only named (exported) variables are listed. */
bool spirv_program_global_at(const spirv_program *program, uint32_t index, const char **name);

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

typedef enum {
  SPIRV_VALUE, /* bytes by value: `size` of them */
  SPIRV_GLOBAL_POINTER, /* 8 bytes: an address */
  SPIRV_CONSTANT_POINTER, /* 8 bytes: an address */
  SPIRV_LOCAL_POINTER, /* no bytes: local memory of the launch's `local_sizes` */
} spirv_argument_kind;

typedef struct {
  spirv_argument_kind kind;
  uint32_t size; /* of the value in memory */
  const char *name; /* "" where the module has none */
} spirv_argument;

typedef struct {
  const char *name;
  uint32_t argument_count;
  const spirv_argument *arguments;
  uint32_t required_group_size[3]; /* zeros: any */
  uint32_t required_subgroup_size; /* 0: any */
  uint32_t subgroup_size; /* the one that launches have */
  uint32_t max_group_size;
  uint64_t local_bytes; /* declared in the kernel */
  uint64_t private_bytes; /* of one work-item */
  bool has_barriers;
  bool uses_float64, uses_float16;
} spirv_kernel_info;

const spirv_kernel *spirv_program_kernel(const spirv_program *program, const char *name); /* NULL: none */
const spirv_kernel *spirv_program_kernel_at(const spirv_program *program, uint32_t index);
const spirv_kernel_info *spirv_kernel_look(const spirv_kernel *kernel);
spirv_program *spirv_kernel_program(const spirv_kernel *kernel);

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

typedef struct {
  void *context;
  /* The accessible range [*begin, *end) around `address`; false if there is none, or none that may be written. Its bytes
   * are read and written at their address plus *shift: 0, but where device memory is hidden from the host. Any of the
   * launch's threads calls it; the answer is remembered until the launch ends. NULL: any address is good. The program's
   * own variables are good without being asked for. */
  bool (*find)(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift);
} spirv_memory;

typedef struct {
  const spirv_kernel *kernel;
  const void *const *arguments; /* one for each argument: its bytes; NULL means zeros (local pointers: ignored) */
  const uint64_t *local_sizes; /* one for each argument: bytes where it is a local pointer; NULL if there are none */
  uint32_t group_size[3];
  uint32_t group_count[3];
  uint64_t global_offset[3];
  spirv_memory memory;
  bool cooperative; /* every group has a thread of its own, all at once, so that groups can wait for one another */
  uint64_t fuel; /* basic blocks that a wave of lanes may run in one group; 0: no limit */
  atomic_int *cancel; /* set to non-zero by any thread: the launch ends within milliseconds; or NULL */
  void *print_context; /* printf's text, in the order of work-items, at the end of the launch; NULL: stdout */
  void (*print)(void *context, const char *text, size_t size);
  spirv_workers *workers; /* more threads; NULL: only the caller's */
  uint64_t chaos; /* a seed: groups, waves and atomics take another order, as the memory model allows; 0: off */
  bool races; /* accesses that conflict and that nothing orders are told of; one thread runs all groups */
  bool trace; /* what one work-item does is told of, step by step */
  uint64_t trace_item[3]; /* its global id */
  void *tell_context; /* a line of a trace, or of a race, without a line feed; NULL: stderr */
  void (*tell)(void *context, const char *line);
} spirv_launch;

typedef enum {
  SPIRV_OK,
  SPIRV_BAD_ACCESS, /* a load, store or atomic outside what `find` allows */
  SPIRV_BAD_BARRIER, /* not all work-items of a group came to the same one */
  SPIRV_OUT_OF_FUEL,
  SPIRV_CANCELLED,
  SPIRV_TRAP, /* OpUnreachable was reached */
  SPIRV_BAD_LAUNCH, /* sizes that the kernel does not allow: nothing has run */
  SPIRV_BAD_KERNEL, /* the kernel cannot be run, and the text says why: nothing has run */
  SPIRV_OUT_OF_MEMORY /* of the host: nothing has run */
} spirv_status;

typedef struct {
  spirv_status status;
  uint32_t offset; /* bytes from the module's begin to the instruction; 0: none */
  uint64_t global_id[3]; /* of the first work-item that failed */
  uint64_t address; /* of a bad access */
  char text[256]; /* one sentence with kernel, instruction and work-item; "" when OK */
} spirv_result;

/* Makes the kernel ready to run (a launch does it too, the first time). False: the text says why it cannot be. */
bool spirv_kernel_prepare(const spirv_kernel *kernel, spirv_result *result);

/* Runs all groups and returns; true if all went well. What other groups wrote before an error stays written. */
bool spirv_run(const spirv_launch *launch, spirv_result *result);

/* Threads that launches share, besides their callers' own. One launch at a time uses them; another that comes meanwhile
 * runs in its caller's thread. Idle ones sleep. */
spirv_workers *spirv_workers_new(uint32_t count);
void spirv_workers_free(spirv_workers *workers);

/* Instruction sets: "sse2", "avx2", "avx512". The best that the machine has is taken, unless another is named here
 * before the first launch; false: the machine lacks it. NULL names the best again. For tests and measurements. */
bool spirv_use_instruction_set(const char *name);
/* Lanes that run at once, 16 … 256 in powers of two; 0: chosen by the engine. For tests and measurements. */
void spirv_use_width(uint32_t lanes);

#endif
