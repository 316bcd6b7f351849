/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: what runs: the code of a kernel, and waves of lanes that it runs on.
 *
 * A wave is up to 256 work-items of a group in lockstep. A register is an array of one element for each lane, or a
 * single one for a value that is the same in all. A step is one operation on registers, done by a handler made for
 * its operation, type, and which operands are uniform. */
#ifndef L0RT_CPU_SPIRV_RUN_H
#define L0RT_CPU_SPIRV_RUN_H

#include "ir.h"
#include "program.h"

enum {
  MAX_LANES = 256,
  PADDING = 16, /* lanes are padded to a multiple of it: the padding computes, but never loads or stores */
  AT_BARRIER = 0x80000000u, /* with the number of the block behind it */
  ENDED = 0xffffffffu,
};

typedef struct spirv_wave spirv_wave;
typedef struct spirv_step spirv_step;
typedef void spirv_handler(spirv_wave *w, const spirv_step *s, size_t lanes);

struct spirv_step {
  spirv_handler *run;
  uint32_t d, a, b, c; /* registers: bytes from the wave's first */
  uint64_t imm;
  uint32_t extra, at;
  uint16_t range; /* where the last range that it reached is remembered; 0: nowhere */
  uint8_t scale, lane;
};

/* What a step is, for those who watch it: trace.c and races.c. */
typedef struct {
  uint16_t op;
  uint8_t lanes[4];  /* of the result and the operands */
  uint8_t registers; /* a bit each: there is one */
  uint8_t varying;   /* a bit each: there is an element for each lane */
} spirv_step_info;

typedef struct {
  uint64_t begin, size;
  uint64_t shift; /* what is at an address lies so much higher for the host */
} spirv_range;

typedef struct {
  uint32_t first, count; /* steps */
  ir_end end;
  bool varying; /* the condition */
  uint32_t condition, successor[2], at;
  uint32_t loop_end;   /* of the header of a loop whose lanes may be compacted: its last block; 0: none */
  uint32_t loop_steps; /* in that loop */
} spirv_code_block;

typedef struct {
  uint64_t bits;
  uint32_t place; /* of one element */
  uint32_t wide; /* of one for each lane; 0: not needed */
  uint8_t lane;
} spirv_code_constant;

typedef struct {
  uint32_t *places; /* of the components; in every lane */
  uint8_t *lanes, *arguments;
  uint32_t argument_count, component_count;
} spirv_code_printf;

typedef struct {
  uint32_t place, size; /* of one lane's element */
} spirv_lasting;

typedef struct {
  uint64_t offset; /* in the argument block */
  uint32_t size;
  bool local;
} spirv_code_argument;

typedef struct spirv_handlers spirv_handlers;

typedef struct spirv_code {
  spirv_step *steps;
  spirv_step_info *infos; /* of the steps */
  spirv_code_block *blocks;
  uint32_t block_count, range_count, constant_count, printf_count, argument_count;
  spirv_code_constant *constants;
  spirv_code_printf *printfs;
  spirv_code_argument *arguments;
  spirv_lasting *lasting; /* registers with an element for each lane that live longer than a block */
  uint32_t lasting_count, lasting_bytes; /* bytes of one lane */
  bool compacts; /* there are loops whose lanes may be compacted */
  const spirv_handlers *handlers; /* whose steps these are */
  uint64_t argument_bytes, local_bytes, private_bytes, register_bytes;
  uint32_t width, subgroup;
  bool barriers;
} spirv_code;

typedef struct spirv_group spirv_group;

struct spirv_wave {
  char *registers;
  uint32_t count; /* of work-items */
  uint32_t lanes; /* that, padded */
  uint32_t block; /* that runs, or ran last */
  bool full; /* all work-items are in this block */
  bool failed;
  uint32_t running; /* how many are */
  uint32_t waiting; /* the lowest block that one of the others waits for; kept only while not full */
  bool together;    /* all others wait for that one */
  uint32_t first; /* work-item of the group */
  spirv_group *group;
  char *private_memory;
  spirv_range *ranges;
  uint64_t *local_id[3];
  _Alignas(64) uint32_t mask[MAX_LANES]; /* ~0: the lane runs; kept only while not full */
  _Alignas(64) uint32_t next[MAX_LANES]; /* the block that each lane waits for that does not run; kept while not full */
};

/* What a wave had before its running lanes were moved together; see compact.c. */
typedef struct {
  bool active;
  uint32_t end; /* the loop's last block */
  uint32_t header; /* of the loop that is watched */
  uint64_t waste; /* lanes' steps that were run for nothing, since the wave came to the loop or was compacted */
  uint32_t count, lanes; /* of the wave */
  char *registers; /* those of code->lasting, one after the other */
  uint8_t from[MAX_LANES]; /* where each lane was */
  uint32_t next[MAX_LANES];
} spirv_compaction;

typedef struct spirv_text {
  uint64_t item, sequence;
  char *text;
  size_t size;
} spirv_text;

/* One thread's place to run groups. */
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
  uint64_t *scratch[2]; /* a collective's operands, for each work-item: two, by turns */
  uint32_t epoch; /* barriers passed */
  uint64_t fuel;
  atomic_bool *stop; /* another group has failed */
  spirv_status status;
  uint32_t failed_at, failed_item;
  uint64_t failed_address;
  bool failed_write;
  spirv_compaction compaction; /* of the wave that runs */
  uint64_t random; /* of chaos; 0: none */
  bool watched; /* traced, or looked at for races */
  struct spirv_races *races; /* the launch's; or NULL */
  spirv_text *texts;
  size_t text_count, text_capacity;
};

#define REGISTER(type, place) ((type *)(w->registers + (place)))

/* Whether [address, address + size) may be accessed; if so, the step's range tells the shift. */
bool spirv_reach_slowly(spirv_wave *w, const spirv_step *s, uint64_t address, uint64_t size, bool write, bool report,
                        uint32_t lane);

static inline bool spirv_reach(spirv_wave *w, const spirv_step *s, uint64_t address, uint64_t size, bool write,
                               bool report, uint32_t lane) {
  const spirv_range *range = &w->ranges[s->range];
  uint64_t offset = address - range->begin;
  if (__builtin_expect(offset < range->size && size <= range->size - offset, 1)) return true;
  return spirv_reach_slowly(w, s, address, size, write, report, lane);
}

/* Which operands of an operation are uniform. */
enum { FORM_VV, FORM_VS, FORM_SV, FORM_SS, FORMS };

struct spirv_handlers {
  spirv_handler *(*find)(ir_op op, spirv_lane lane, spirv_lane result, int form, uint32_t extra);
  /* The lowest of the lanes' next blocks; the lanes that wait for it run. */
  uint32_t (*pick)(spirv_wave *w);
  /* A branch of the running lanes. True: those at the lower target run on, or all of them; the others wait. False: it is
   * to be picked who runs. */
  bool (*branch)(spirv_wave *w, const uint32_t *condition, uint32_t yes, uint32_t no);
  const char *name;
};

extern const spirv_handlers spirv_handlers_sse2, spirv_handlers_avx2, spirv_handlers_avx512;
const spirv_handlers *spirv_instruction_set(void);
void spirv_use_handlers(
    const spirv_handlers *set); /* of kernels prepared from now on; NULL: the best. For measurements */

spirv_handler *spirv_special(ir_op op, spirv_lane lane); /* special.c: what no instruction set makes faster */
spirv_handler *spirv_math(ir_op op, spirv_lane lane, uint32_t function, bool uniform); /* mathematics.c */
void spirv_print(spirv_wave *w, const spirv_step *s, size_t lanes);

const spirv_code *spirv_code_new(spirv_arena *arena, ir_kernel *k, const spirv_handlers *handlers, uint32_t width,
                                 uint32_t subgroup);
/* trace.c and races.c: a step that is watched. */
void spirv_trace_step(spirv_wave *w, const spirv_step *s);
void spirv_trace_end(spirv_wave *w, const spirv_code_block *block);
struct spirv_races *spirv_races_new(const spirv_launch *launch);
void spirv_races_free(struct spirv_races *races);
void spirv_races_step(spirv_wave *w, const spirv_step *s);
void spirv_tell(const spirv_launch *launch, const char *line);
uint64_t spirv_random(spirv_group *group); /* of chaos */
static inline uint32_t spirv_item(const spirv_wave *w, uint32_t lane) { /* work-item of the group */
  return w->first + (w->group->compaction.active ? w->group->compaction.from[lane] : lane);
}
static inline bool spirv_runs(const spirv_wave *w, size_t lane) { return w->full || w->mask[lane] != 0; }

void spirv_compact(spirv_wave *w, uint32_t end); /* compact.c */
void spirv_expand(spirv_wave *w);
bool spirv_group_run(spirv_group *group); /* group.c; false: failed, see its status */
void spirv_group_free(spirv_group *group);
void spirv_fail(spirv_wave *w, spirv_status status, uint32_t at, uint32_t lane);

#endif
