/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: the code of a kernel, and the waves of lanes that run it.
 *
 * A wave is up to 256 work-items of a group in lockstep. A register is an array with one element for each lane, or a
 * single element for a value that is the same in all lanes. A step is one operation on registers. Its handler is made
 * for the operation, the type, and the set of uniform operands. */
#ifndef L0RT_CPU_SPIRV_RUN_H
#define L0RT_CPU_SPIRV_RUN_H

#include "spirv/decode/program.h"
#include "spirv/ir/ir.h"

enum {
  MAX_LANES = 256,
  PADDING = 16, /* the number of lanes is a multiple of it; lanes that fill up compute, but never load or store */
  AT_BARRIER = 0x80000000u, /* plus the number of the block behind the barrier */
  ENDED = 0xffffffffu,
};

typedef struct spirv_wave spirv_wave;
typedef struct spirv_step spirv_step;
typedef void spirv_handler(spirv_wave *w, const spirv_step *s, size_t lanes);

struct spirv_step {
  spirv_handler *run;
  uint32_t d, a, b, c; /* registers, in bytes from the first of the wave */
  uint64_t imm;
  uint32_t extra, at;
  uint16_t range; /* which place remembers the range that it accessed last; 0: none */
  uint8_t scale, lane;
};

/* Describes a step for trace.c and races.c, which watch it. */
typedef struct {
  uint16_t op;
  uint8_t lanes[4];  /* kinds of the result and the operands */
  uint8_t registers; /* one bit for each: it exists */
  uint8_t varying;   /* one bit for each: it has an element for each lane */
} spirv_step_info;

typedef struct {
  uint64_t begin, size;
  uint64_t shift; /* what the host adds to an address */
} spirv_range;

typedef struct {
  uint32_t first, count;
} spirv_steps;

typedef struct {
  spirv_steps steps, whole; /* `whole`: of a wave whose lanes all run */
  ir_end end;
  bool varying; /* the condition */
  uint32_t condition, successor[2], at;
  uint32_t loop_end;   /* of the header of a loop whose lanes may be compacted: the last block of the loop; 0: none */
  uint32_t loop_steps; /* the number of steps in that loop */
} spirv_code_block;

typedef struct {
  uint64_t bits;
  uint32_t place; /* of one element */
  uint32_t wide; /* of the register with one for each lane; 0: not needed */
  uint8_t lane;
} spirv_code_constant;

typedef struct {
  uint32_t *places; /* of the components, with an element for each lane */
  uint8_t *lanes, *arguments;
  uint32_t argument_count, component_count;
} spirv_code_printf;

typedef struct {
  uint32_t place, size; /* of the element of one lane */
} spirv_lasting;

typedef struct {
  uint64_t offset; /* in the block of arguments */
  uint32_t size;
  bool local;
} spirv_code_argument;

typedef struct spirv_handlers spirv_handlers;

typedef struct spirv_code {
  spirv_step *steps;
  spirv_step_info *infos; /* one for each step */
  spirv_code_block *blocks;
  uint32_t block_count, range_count, constant_count, printf_count, argument_count;
  spirv_code_constant *constants;
  spirv_code_printf *printfs;
  spirv_code_argument *arguments;
  spirv_lasting *lasting; /* registers with an element for each lane that live longer than a block */
  uint32_t lasting_count, lasting_bytes; /* `lasting_bytes`: of one lane */
  bool compacts; /* it has loops whose lanes may be compacted */
  const spirv_handlers *handlers; /* the set that made the steps */
  uint64_t argument_bytes, local_bytes, private_bytes, register_bytes;
  uint32_t width, subgroup;
  uint64_t work; /* operations of a lane; UINT64_MAX: not known */
  bool barriers;
} spirv_code;

typedef struct spirv_group spirv_group;

struct spirv_wave {
  char *registers;
  uint32_t count; /* of work-items */
  uint32_t lanes; /* that number, filled up to PADDING */
  uint32_t block; /* that runs or ran last */
  bool full; /* all work-items are in this block */
  bool failed;
  uint32_t running; /* how many work-items are in this block */
  uint32_t waiting; /* the lowest block that another lane waits for; valid only while not full */
  bool together;    /* all others wait for that block */
  uint32_t first; /* work-item of the group */
  spirv_group *group;
  char *private_memory;
  spirv_range *ranges;
  uint64_t *local_id[3];
  _Alignas(64) uint32_t mask[MAX_LANES]; /* ~0: the lane runs; valid only while not full */
  _Alignas(64) uint32_t next[MAX_LANES]; /* the block that each waiting lane waits for; valid only while not full */
};

/* What compact.c saves of a wave when it moves the running lanes next to each other. */
typedef struct {
  bool active;
  uint32_t end; /* the loop's last block */
  uint32_t header; /* of the loop whose waste is counted */
  uint64_t waste; /* steps that ran for lanes that had left, since the wave entered the loop or was compacted */
  uint32_t count, lanes; /* of the wave */
  char *registers; /* the registers of code->lasting, one after the other */
  uint8_t from[MAX_LANES]; /* the earlier place of each lane */
  uint32_t next[MAX_LANES];
} spirv_compaction;

typedef struct spirv_text {
  uint64_t item, sequence;
  char *text;
  size_t size;
} spirv_text;

/* The memory with which one thread runs groups. */
struct spirv_group {
  const spirv_code *code;
  const spirv_kernel *kernel;
  const spirv_launch *launch;
  spirv_wave *waves;
  uint32_t wave_count, size, group_size[3];
  uint64_t id[3], linear;
  char *arguments, *local;
  uint64_t local_bytes;
  uint64_t *local_offsets; /* of local pointers */
  uint64_t *scratch[2]; /* operands of a collective for each work-item; two arrays that take turns */
  uint32_t epoch; /* the number of barriers so far */
  uint64_t fuel;
  atomic_bool *stop; /* another group has failed */
  _Atomic uint64_t *printed; /* bytes of text of the launch */
  spirv_status status;
  uint32_t failed_at, failed_item;
  uint64_t failed_address;
  bool failed_write;
  spirv_compaction compaction; /* of the wave that runs */
  uint64_t random; /* state of chaos; 0: no chaos */
  bool watched; /* by trace.c or races.c */
  struct spirv_races *races; /* of the launch; or NULL */
  spirv_text *texts;
  size_t text_count, text_capacity;
};

#define REGISTER(type, place) ((type *)(w->registers + (place)))

/* May the step access [address, address + size)? If so, its range has the shift. */
bool spirv_reach_slowly(spirv_wave *w, const spirv_step *s, uint64_t address, uint64_t size, bool write, bool report,
                        uint32_t lane);

static inline bool spirv_reach(spirv_wave *w, const spirv_step *s, uint64_t address, uint64_t size, bool write,
                               bool report, uint32_t lane) {
  const spirv_range *range = &w->ranges[s->range];
  uint64_t offset = address - range->begin;
  if (__builtin_expect(offset < range->size && size <= range->size - offset, 1)) return true;
  return spirv_reach_slowly(w, s, address, size, write, report, lane);
}

/* The form of an operation: which of its operands are uniform. */
enum { FORM_VV, FORM_VS, FORM_SV, FORM_SS, FORMS };

struct spirv_handlers {
  spirv_handler *(*find)(ir_op op, spirv_lane lane, spirv_lane result, int form, uint32_t extra);
  /* Returns the lowest block that a lane waits for; the lanes that wait for it run. */
  uint32_t (*pick)(spirv_wave *w);
  /* A branch of the running lanes. True: all of them run on, or those with the lower target, while the others wait.
   * False: the next block must be chosen. */
  bool (*branch)(spirv_wave *w, const uint32_t *condition, uint32_t yes, uint32_t no);
  const char *name;
};

extern const spirv_handlers spirv_handlers_sse2, spirv_handlers_avx2, spirv_handlers_avx512;
const spirv_handlers *spirv_instruction_set(void);
void spirv_use_handlers(
    const spirv_handlers *set); /* for kernels that are prepared from now on; NULL: the best one. For measurements */

spirv_handler *spirv_special(ir_op op, spirv_lane lane); /* special.c */
spirv_handler *spirv_math(ir_op op, spirv_lane lane, uint32_t function, bool uniform); /* mathematics.c */
void spirv_print(spirv_wave *w, const spirv_step *s, size_t lanes);
void spirv_run_image(spirv_wave *w, const spirv_step *s, size_t lanes); /* image.c */
void spirv_run_image_query(spirv_wave *w, const spirv_step *s, size_t lanes);

const spirv_code *spirv_code_new(spirv_arena *arena, ir_kernel *k, const spirv_handlers *handlers, uint32_t width,
                                 uint32_t subgroup);
/* trace.c and races.c: called for each step that is watched. */
void spirv_trace_step(spirv_wave *w, const spirv_step *s);
void spirv_trace_end(spirv_wave *w, const spirv_code_block *block);
struct spirv_races *spirv_races_new(const spirv_launch *launch);
void spirv_races_free(struct spirv_races *races);
void spirv_races_step(spirv_wave *w, const spirv_step *s);
/* One element of an asynchronous copy, which this lane makes for its group. */
void spirv_races_copy(spirv_wave *w, const spirv_step *s, uint32_t lane, uint64_t to, uint64_t from, uint64_t size);
void spirv_tell(const spirv_launch *launch, const char *line);
uint64_t spirv_random(spirv_group *group); /* for chaos */
static inline uint32_t spirv_item(const spirv_wave *w, uint32_t lane) { /* work-item of the group */
  return w->first + (w->group->compaction.active ? w->group->compaction.from[lane] : lane);
}
static inline bool spirv_runs(const spirv_wave *w, size_t lane) { return w->full || w->mask[lane] != 0; }

static inline bool spirv_is_cancelled(const spirv_group *group) {
  atomic_bool *cancel = group->launch->cancel;
  return (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed)) ||
         atomic_load_explicit(group->stop, memory_order_relaxed);
}

void spirv_compact(spirv_wave *w, uint32_t end); /* compact.c */
void spirv_expand(spirv_wave *w);
bool spirv_group_run(spirv_group *group); /* group.c; false: it failed, and the group has the status */
void spirv_fail(spirv_wave *w, spirv_status status, uint32_t at, uint32_t lane);

#endif
