/* SPDX-License-Identifier: Apache-2.0 */
/* spirv.h: what the engine that runs SPIR-V kernels offers the driver. It knows nothing of Level Zero.
 *
 * A program is decoded once, from one or more modules. After that only the bytes of its module-scope variables change.
 * A launch runs one kernel of a program over a grid of work-groups. It returns when all of them have ended.
 *
 * Threads: several threads may decode, and may read a program, at once. Several launches of one kernel may run at once.
 * A program must outlive the launches of its kernels; its reference count is there for that. */
#ifndef L0RT_CPU_SPIRV_H
#define L0RT_CPU_SPIRV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spirv_program spirv_program;
typedef struct spirv_kernel spirv_kernel; /* its program owns it, and it lives as long */
typedef struct spirv_workers spirv_workers;

enum {
  SPIRV_MAX_GROUP_SIZE = 1024,
  SPIRV_MAX_COOPERATIVE_GROUPS = 64,
  SPIRV_SUBGROUP_SIZE = 32,      /* if the kernel requires none; it may require 8, 16 or 32 */
  SPIRV_PRINT_BYTES = 1 << 20, /* so much text of printf is kept of a launch; the rest is dropped */
  SPIRV_MAX_LOCAL_BYTES = 65536, /* local memory of a group: the declared and the arguments'; a power of two */
  SPIRV_BUILD_MEMORY = 256
      << 20, /* so much one module or kernel may take to build, if spirv_limit_memory sets nothing */
};

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

typedef struct {
  uint32_t id; /* the SpecId; every constant with it is set */
  size_t size; /* of the value: the size of the constant (of a bool 1 byte), or 0, which stands for that size */
  const void *value;
} spirv_constant;

typedef struct {
  const void *bytes; /* the words of a module, in either byte order, at any alignment; they are copied */
  size_t size;
  const spirv_constant *constants; /* of this module only; they replace those of the build */
  uint32_t constant_count;
} spirv_binary;

/* One line of the build log, without a line feed: "error: offset 148: OpLoad: …". The offset is in bytes from
 * the beginning of the module. Of several modules it says which: "error: offset 148: module 2 of 3: …". */
typedef void (*spirv_log)(void *context, const char *line);

typedef struct {
  const spirv_binary *binaries;
  uint32_t binary_count; /* several are linked: exports of one resolve imports of the others */
  const spirv_constant *constants;
  uint32_t constant_count;
  const char *flags; /* build flags, or NULL; the log names unknown flags, which are ignored */
  spirv_log log; /* or NULL */
  void *log_context;
  bool describe; /* the module is only described (describe.h): no memory for its variables, no order of its blocks */
  bool trusted; /* instructions and capabilities that the public grammar of SPIR-V does not have are passed over */
} spirv_build;

/* Returns NULL after an error, which the log names. An import that nothing resolves becomes an error when a kernel that
 * needs it is prepared; spirv_program_import lists such imports. The caller owns one reference. */
spirv_program *spirv_program_new(const spirv_build *build);
void spirv_program_retain(spirv_program *program);
void spirv_program_release(spirv_program *program);

/* Looks up unresolved imports in the other programs too, as if all had been built together. The functions and variables
 * stay those of the other programs. Call it before any kernel of the program is prepared. The caller keeps the others
 * alive as long as the program. After an error, which the log names, it returns false and has changed nothing. Such an
 * error is an import that two of the programs export. */
bool spirv_program_link(spirv_program *program, spirv_program *const *others, uint32_t count, spirv_log log,
                        void *log_context);

/* The name of an unresolved import; NULL past the last. */
const char *spirv_program_import(const spirv_program *program, uint32_t index);
/* The name of an exported function; NULL past the last. Kernels are not among them. */
const char *spirv_program_export(const spirv_program *program, uint32_t index);
/* Finds a module-scope variable in memory of the program by its name; false if there is none. */
bool spirv_program_global(const spirv_program *program, const char *name, uint64_t *address, uint64_t *size);
/* The name of the variable with this index; false past the last. Only exported variables have names. */
bool spirv_program_global_at(const spirv_program *program, uint32_t index, const char **name);

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

typedef enum {
  SPIRV_VALUE, /* `size` bytes by value */
  SPIRV_GLOBAL_POINTER, /* 8 bytes: an address */
  SPIRV_CONSTANT_POINTER, /* 8 bytes: an address */
  SPIRV_LOCAL_POINTER, /* no bytes: local memory, whose size is in the launch's `local_sizes` */
  SPIRV_IMAGE, /* 8 bytes: a handle that `image` of the launch's memory knows */
  SPIRV_SAMPLER, /* 8 bytes: a handle that `sampler` of the launch's memory knows */
  SPIRV_HANDLE, /* 8 bytes: a pipe or a queue, which no kernel that runs has */
} spirv_argument_kind;

typedef struct {
  spirv_argument_kind kind;
  uint32_t size; /* in memory, in bytes */
  const char *name; /* "" if the module has none */
} spirv_argument;

typedef struct {
  const char *name;
  uint32_t argument_count;
  const spirv_argument *arguments;
  uint32_t required_group_size[3]; /* zeros: any */
  uint32_t required_subgroup_size; /* 0: any */
  uint32_t hinted_group_size[3], hinted_vector; /* of the source, or zeros: the vector as SPIR-V's VecTypeHint */
  uint32_t subgroup_size; /* the size that launches use */
  uint32_t max_group_size;
  uint64_t local_bytes; /* declared in the kernel */
  uint64_t private_bytes; /* of one work-item */
  bool has_barriers;
  bool uses_float64, uses_float16;
} spirv_kernel_info;

const spirv_kernel *spirv_program_kernel(const spirv_program *program, const char *name); /* NULL: none */
const spirv_kernel *spirv_program_kernel_at(const spirv_program *program, uint32_t index);
const spirv_kernel_info *spirv_kernel_look(const spirv_kernel *kernel);

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef enum {
  SPIRV_TEXEL_UINT,
  SPIRV_TEXEL_SINT,
  SPIRV_TEXEL_UNORM,
  SPIRV_TEXEL_SNORM,
  SPIRV_TEXEL_FLOAT
} spirv_texel;
/* What a channel of a texel shows: a component, or a number. */
enum { SPIRV_CHANNEL_R, SPIRV_CHANNEL_G, SPIRV_CHANNEL_B, SPIRV_CHANNEL_A, SPIRV_CHANNEL_0, SPIRV_CHANNEL_1 };

typedef struct {
  uint64_t address, size; /* of all texels, in bytes */
  uint64_t row_pitch, slice_pitch; /* in bytes: between rows, and between slices or elements of an array */
  uint32_t extent[3]; /* width, height, depth: 1 where there is none */
  uint32_t elements; /* of an array; otherwise 1 */
  uint8_t dimension; /* as SPIR-V's Dim: 0 to 2 are 1-D to 3-D, 5 is a buffer */
  bool array, writable;
  uint8_t texel_size; /* in bytes, at most 16 */
  uint8_t type; /* spirv_texel */
  uint8_t component_count;
  uint8_t first_bit[4], bits[4]; /* of each component in the texel */
  uint8_t channels[4];
  uint32_t sampler; /* with which it is sampled where its handle is that of a sampled image */
  uint32_t order, data_type; /* as SPIR-V's Image Channel Order and Image Channel Data Type */
} spirv_image;

/* A sampler: SPIR-V's addressing mode, and these bits. In registers one that a module declares has the last bit, too:
 * the others are there by their handles, none of which is so small. */
enum {
  SPIRV_SAMPLER_NONE,
  SPIRV_SAMPLER_CLAMP_TO_EDGE,
  SPIRV_SAMPLER_CLAMP, /* to the border */
  SPIRV_SAMPLER_REPEAT,
  SPIRV_SAMPLER_REPEAT_MIRRORED,
  SPIRV_SAMPLER_LAST = SPIRV_SAMPLER_REPEAT_MIRRORED,
  SPIRV_SAMPLER_ADDRESSING = 7, /* a mask */
  SPIRV_SAMPLER_NORMALIZED = 8,
  SPIRV_SAMPLER_LINEAR = 16,
  SPIRV_SAMPLER_CONSTANT = 32,
};

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

typedef struct {
  void *context;
  /* Finds the accessible range [*begin, *end) around `address`. Returns false if there is none, or if `write` is set
   * and the range must not be written. The engine accesses bytes at their address plus *shift, which is 0 unless device
   * memory is hidden from the host. Any thread of the launch calls the function. The engine remembers the answer until
   * the launch ends. NULL: any address is accessible. Of variables of the program itself it is not asked. */
  bool (*find)(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift);
  /* Describes the image, or the sampler, that a handle names. Returns false if there is none. NULL: there is none. */
  bool (*image)(void *context, uint64_t handle, spirv_image *image);
  bool (*sampler)(void *context, uint64_t handle, uint32_t *sampler);
} spirv_memory;

typedef struct {
  const spirv_kernel *kernel;
  const void *const *arguments; /* the bytes of each argument; NULL: zeros; ignored for local pointers */
  const uint64_t *local_sizes; /* bytes for each argument that is a local pointer; NULL if there is none */
  uint32_t group_size[3];
  uint32_t group_count[3];
  uint64_t global_offset[3];
  spirv_memory memory;
  bool cooperative; /* all groups run at once, each in a thread of its own, so that they can wait for one another */
  uint64_t fuel; /* the number of basic blocks that a wave may run in one group; 0: no limit */
  atomic_bool *cancel; /* any thread sets it: then the launch ends within milliseconds; or NULL */
  void *print_context; /* of `print` */
  /* Takes the text of printf, in the order of work-items, at the end of the launch; NULL: stdout. */
  void (*print)(void *context, const char *text, size_t size);
  spirv_workers *workers; /* more threads; NULL: the caller's alone */
  uint64_t chaos; /* a seed for another order of groups, waves and atomics that the memory model allows; 0: off */
  bool exact; /* local memory ends where what the kernel asked for ends; otherwise it is rounded up, as devices do */
  bool races; /* reports accesses that conflict and that nothing orders; one thread runs all groups */
  bool trace; /* reports what one work-item does, step by step */
  uint64_t trace_item[3]; /* the global id of that work-item */
  void *tell_context; /* of `tell` */
  /* Takes a line of a trace or of a report of a race, without a line feed; NULL: stderr. */
  void (*tell)(void *context, const char *line);
} spirv_launch;

typedef enum {
  SPIRV_OK,
  SPIRV_BAD_ACCESS, /* a load, store or atomic outside what `find` allows */
  SPIRV_BAD_BARRIER, /* not all work-items of a group reached the same barrier */
  SPIRV_OUT_OF_FUEL,
  SPIRV_CANCELLED,
  SPIRV_TRAP, /* a work-item reached OpUnreachable */
  SPIRV_BAD_LAUNCH, /* the kernel does not allow these sizes; nothing has run */
  SPIRV_BAD_KERNEL, /* the kernel is not valid, and the text says why; nothing has run */
  SPIRV_UNSUPPORTED, /* the kernel is valid, but the engine cannot run it, and the text says why; nothing has run */
  SPIRV_OUT_OF_MEMORY /* the host has no memory; nothing has run */
} spirv_status;

typedef struct {
  spirv_status status;
  uint32_t offset; /* of the instruction, in bytes from the beginning of its module; 0: none */
  uint32_t module; /* the number of that module, from 1: those of the program, then those of linked programs */
  uint64_t global_id[3]; /* of the first work-item that failed */
  uint64_t address; /* of a bad access */
  char text[448]; /* one sentence that names kernel, instruction and work-item; "" if SPIRV_OK */
} spirv_result;

/* Makes the kernel ready to run; the first launch does it too. If it returns false, the text says why. */
bool spirv_kernel_prepare(const spirv_kernel *kernel, spirv_result *result);

/* Runs all groups. Returns true if no error occurred. What other groups wrote before an error stays written. */
bool spirv_run(const spirv_launch *launch, spirv_result *result);

/* Threads that launches share; each launch also has its caller's thread. One launch at a time uses the shared threads.
 * Another launch that begins meanwhile runs in its caller's thread alone. Idle threads sleep. */
spirv_workers *spirv_workers_new(uint32_t count);
void spirv_workers_free(spirv_workers *workers);
/* How many launches have woken them. A launch that takes no longer than that runs in its caller's thread alone. */
uint64_t spirv_workers_used(const spirv_workers *workers);

/* Chooses the instruction set, before the first launch: "sse2", "avx2" or "avx512". The default is the best one of the
 * machine; NULL restores it. Returns false if the machine lacks the named one. For tests and measurements. */
bool spirv_use_instruction_set(const char *name);
/* Sets how many bytes it may take to decode the modules of a program, or to prepare one kernel: modules may be hostile. */
void spirv_limit_memory(uint64_t bytes);
/* Sets how many lanes run at once: a power of two from 16 to 256. 0: the engine chooses. For measurements. */
void spirv_use_width(uint32_t lanes);

/* ---- The engine without Level Zero ------------------------------------------------------------------------------- */

/* Other programs run kernels over their own memory with it: `l0rt_cpu_engine` is a symbol of the driver's library. They
 * compile this header, and refuse a library whose version is not the header's. */
enum { SPIRV_ENGINE_VERSION = 2 };
typedef struct {
  uint32_t version;
  spirv_program *(*program_new)(const spirv_build *build);
  void (*program_release)(spirv_program *program);
  bool (*program_global)(const spirv_program *program, const char *name, uint64_t *address, uint64_t *size);
  bool (*program_global_at)(const spirv_program *program, uint32_t index, const char **name);
  const spirv_kernel *(*program_kernel)(const spirv_program *program, const char *name);
  const spirv_kernel_info *(*kernel_look)(const spirv_kernel *kernel);
  bool (*run)(const spirv_launch *launch, spirv_result *result);
} spirv_engine;
extern const spirv_engine l0rt_cpu_engine;

#endif
