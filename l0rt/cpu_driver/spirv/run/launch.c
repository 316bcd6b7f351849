/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c: prepares kernels, and distributes the work-groups of a launch over threads. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv/decode/describe.h"
#include "spirv/run/run.h"
#include "spirv/run/workers.h"

static const spirv_handlers *_Atomic chosen_set;
static _Atomic uint32_t chosen_width;

static bool has(const char *name) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (strcmp(name, "avx512") == 0)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("bmi2");
  if (strcmp(name, "avx2") == 0)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#endif
  return strcmp(name, "sse2") == 0;
}

static const spirv_handlers *named(const char *name) {
#if defined(__x86_64__)
  static const spirv_handlers *const sets[] = {&spirv_handlers_avx512, &spirv_handlers_avx2, &spirv_handlers_sse2};
#else
  static const spirv_handlers *const sets[] = {&spirv_handlers_sse2};
#endif
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
    if ((name == NULL || strcmp(name, sets[i]->name) == 0) && has(sets[i]->name)) return sets[i];
  return NULL;
}

const spirv_handlers *spirv_instruction_set(void) {
  const spirv_handlers *set = atomic_load_explicit(&chosen_set, memory_order_relaxed);
  if (set == NULL) atomic_store(&chosen_set, set = named(NULL));
  return set;
}

bool spirv_use_instruction_set(const char *name) {
  const spirv_handlers *set = named(name);
  if (set != NULL) atomic_store(&chosen_set, set);
  return set != NULL;
}

void spirv_use_handlers(const spirv_handlers *set) { atomic_store(&chosen_set, set); }

void spirv_use_width(uint32_t lanes) { atomic_store(&chosen_width, lanes); }

/* ---- Preparing ------------------------------------------------------------------------------------------------------- */

static void place_arguments(spirv_kernel *kernel, spirv_code *code) {
  const spirv_kernel_info *info = &kernel->info;
  uint64_t offset = 0;
  code->argument_count = info->argument_count;
  code->arguments = SPIRV_ARRAY(&kernel->arena, spirv_code_argument, info->argument_count);
  for (uint32_t i = 0; i < info->argument_count; i++) { /* with the offsets of lower.c */
    offset = (offset + 15) & ~(uint64_t)15;
    bool local = info->arguments[i].kind == SPIRV_LOCAL_POINTER;
    uint32_t size = info->arguments[i].size;
    code->arguments[i] = (spirv_code_argument){.offset = offset, .size = size, .local = local};
    offset += local ? 8 : size;
  }
  code->argument_bytes = offset;
}

enum { LEAST_LOCAL = 1024 }; /* bytes */
enum { WAVE_COST = 128 }; /* of beginning a group or a wave, in operations on lanes */

/* How many operations a lane does, if that is known: there is no loop, and no step that takes longer the more it has
 * to do. UINT64_MAX: it is not known. */
static uint64_t work_of(const spirv_code *code) {
  uint64_t work = 0;
  for (uint32_t b = 0; b < code->block_count; b++) {
    const spirv_code_block *block = &code->blocks[b];
    uint32_t ways = block->end == END_BRANCH ? 2 : block->end == END_JUMP || block->end == END_BARRIER ? 1 : 0;
    for (uint32_t i = 0; i < ways; i++)
      if (block->successor[i] <= b) return UINT64_MAX;
    for (uint32_t i = 0; i < block->steps.count; i++) {
      uint32_t op = code->infos[block->steps.first + i].op;
      bool long_one = op == IR_COPY_MEMORY || op == IR_ASYNC_COPY || op == IR_PRINTF || op == IR_GROUP_GET;
      if (long_one) return UINT64_MAX;
      bool mathematics = op == IR_MATH1 || op == IR_MATH2 || op == IR_MATH2_INT || op == IR_MATH1_INT;
      work += mathematics || op == IR_ATOMIC || op == IR_SUBGROUP || op == IR_IMAGE ? 64 : 1;
    }
  }
  return work;
}

static void set_place(spirv_result *result, const spirv_kernel *kernel, uint32_t word) {
  spirv_place place = spirv_program_place(kernel->program, word);
  result->offset = place.at * 4;
  result->module = place.number;
}

/* "kernel f", or "kernel f, function g" if the instruction is in another function that has a name. Compilers wrap kernels in
 * functions such as __spirv_entry_f, which are the kernel. */
typedef struct {
  char text[112];
} owner;
static owner owner_of(const spirv_kernel *kernel, const spirv_place *place) {
  owner o;
  const char *name = spirv_function_name(place->module, place->at);
  int size = snprintf(o.text, sizeof(o.text), "kernel %.50s", kernel->info.name);
  const bool wraps = strncmp(name, "__", 2) == 0 && strstr(name, kernel->info.name) != NULL;
  if (*name != '\0' && !wraps && strcmp(name, kernel->info.name) != 0)
    snprintf(o.text + size, sizeof(o.text) - (size_t)size, ", function %.40s", name);
  return o;
}

static bool refused(spirv_kernel *kernel, const spirv_arena *arena) {
  spirv_result *r = &kernel->failure;
  uint32_t word = arena->offset / 4; /* 0: it is the kernel as a whole that is refused */
  if (word == 0) word = spirv_program_base(kernel->program, kernel->module) + kernel->entry->at;
  r->status = arena->exhausted ? SPIRV_OUT_OF_MEMORY : arena->unsupported ? SPIRV_UNSUPPORTED : SPIRV_BAD_KERNEL;
  set_place(r, kernel, word);
  spirv_place place = spirv_program_place(kernel->program, word);
  snprintf(r->text, sizeof(r->text), "%s: offset %s: %.150s%s", owner_of(kernel, &place).text,
           spirv_program_tell_place(kernel->program, word).text, arena->text,
           spirv_source_text(place.module, place.at).text);
  return true;
}

static bool make_code(spirv_kernel *kernel) {
  kernel->drafts.beside = &kernel->arena;
  kernel->arena.beside = &kernel->drafts;
  if (setjmp(kernel->drafts.out) != 0) return !refused(kernel, &kernel->drafts);
  if (setjmp(kernel->arena.out) != 0) return !refused(kernel, &kernel->arena);
  ir_kernel *k = spirv_lower(&kernel->drafts, kernel->program, kernel->module, kernel->entry);
  spirv_code *code = (spirv_code *)spirv_code_new(&kernel->arena, k, spirv_instruction_set(),
                                                  atomic_load(&chosen_width), kernel->info.subgroup_size);
  place_arguments(kernel, code);
  code->work = work_of(code);
  kernel->info.local_bytes = code->local_bytes;
  kernel->info.private_bytes = code->private_bytes;
  kernel->info.has_barriers = code->barriers;
  atomic_store(&kernel->code, code);
  return true;
}

bool spirv_kernel_prepare(const spirv_kernel *constant, spirv_result *result) {
  spirv_kernel *kernel = (spirv_kernel *)constant; /* only the lock, and what it protects, changes */
  if (atomic_load(&kernel->code) != NULL) return true;
  pthread_mutex_lock(&kernel->lock);
  if (!kernel->failed && atomic_load(&kernel->code) == NULL) {
    kernel->failed = !make_code(kernel);
    spirv_arena_free(&kernel->drafts);
  }
  bool good = !kernel->failed;
  if (!good && result != NULL) *result = kernel->failure;
  pthread_mutex_unlock(&kernel->lock);
  return good;
}

/* ---- A thread's place ------------------------------------------------------------------------------------------------- */

void spirv_group_free(spirv_group *group) {
  if (group == NULL) return;
  for (size_t i = 0; i < group->text_count; i++) free(group->texts[i].text);
  free(group->texts);
  free(group);
}

static void fill_constants(const spirv_code *code, spirv_wave *w) {
  for (uint32_t i = 0; i < code->constant_count; i++) {
    const spirv_code_constant *c = &code->constants[i];
    memcpy(w->registers + c->place, &c->bits, 8);
    uint32_t size = spirv_lane_size[c->lane];
    for (uint32_t k = 0; c->wide != 0 && k < code->width; k++)
      memcpy(w->registers + c->wide + (size_t)k * size, &c->bits, size);
  }
}

static uint64_t up(uint64_t size) { return (size + 127) & ~(uint64_t)127; }

/* Allocates all memory of a group in one piece. */
static spirv_group *group_new(const spirv_launch *launch, const spirv_code *code, uint64_t local_bytes) {
  const uint32_t *sizes = launch->group_size;
  uint32_t size = sizes[0] * sizes[1] * sizes[2], waves = (size + code->width - 1) / code->width;
  uint64_t registers = up(code->register_bytes), own = up(code->private_bytes * code->width);
  uint64_t ranges = up(code->range_count * sizeof(spirv_range)), ids = up((uint64_t)code->width * 8);
  uint64_t aside = code->compacts ? up((uint64_t)code->lasting_bytes * code->width) : 0;
  uint64_t head = up(sizeof(spirv_group)) + up(waves * sizeof(spirv_wave)), scratch = up((uint64_t)size * 8);
  uint64_t total = head + up(code->argument_bytes) + up(local_bytes) + 2 * scratch + up(code->argument_count * 8) +
                   aside + waves * (registers + own + ranges + 3 * ids) + 128;
  if (total > UINT64_C(1) << 33) return NULL;
  spirv_group *g = aligned_alloc(128, up(total));
  if (g == NULL) return NULL;
  memset(g, 0, head);
  char *next = (char *)g + up(sizeof(spirv_group));
#define TAKE(type, bytes) ((type *)(next += (bytes), next - (bytes)))
  g->waves = TAKE(spirv_wave, up(waves * sizeof(spirv_wave)));
  g->arguments = TAKE(char, up(code->argument_bytes));
  g->local = TAKE(char, up(local_bytes));
  g->local_bytes = local_bytes;
  g->scratch[0] = TAKE(uint64_t, scratch);
  g->scratch[1] = TAKE(uint64_t, scratch);
  g->local_offsets = TAKE(uint64_t, up(code->argument_count * 8));
  g->compaction.registers = TAKE(char, aside);
  g->code = code;
  g->wave_count = waves;
  g->size = size;
  memcpy(g->group_size, sizes, sizeof(g->group_size));
  memset(g->local, 0, local_bytes);
  for (uint32_t i = 0; i < waves; i++) {
    spirv_wave *w = &g->waves[i];
    w->group = g;
    w->first = i * code->width;
    w->registers = TAKE(char, registers);
    w->private_memory = TAKE(char, own);
    w->ranges = TAKE(spirv_range, ranges);
    memset(w->registers, 0, registers); /* values that lanes have not computed are 0 */
    memset(w->private_memory, 0, own);
    fill_constants(code, w);
    for (int d = 0; d < 3; d++) w->local_id[d] = TAKE(uint64_t, ids);
    for (uint32_t k = 0; k < code->width; k++) {
      uint32_t item = w->first + k < size ? w->first + k : w->first;
      w->local_id[0][k] = item % sizes[0];
      w->local_id[1][k] = item / sizes[0] % sizes[1];
      w->local_id[2][k] = item / sizes[0] / sizes[1];
    }
  }
#undef TAKE
  return g;
}

/* Sets what differs between launches. */
static void group_begin(spirv_group *g, const spirv_launch *launch) {
  const spirv_code *code = g->code;
  g->launch = launch;
  g->kernel = launch->kernel;
  g->status = SPIRV_OK;
  g->epoch = 1;
  uint64_t local = code->local_bytes;
  for (uint32_t i = 0; i < code->argument_count; i++) {
    const spirv_code_argument *a = &code->arguments[i];
    if (a->local) {
      local = up(local);
      g->local_offsets[i] = local;
      local += launch->local_sizes == NULL ? 0 : launch->local_sizes[i];
    } else if (launch->arguments == NULL || launch->arguments[i] == NULL) {
      memset(g->arguments + a->offset, 0, a->size);
    } else {
      memcpy(g->arguments + a->offset, launch->arguments[i], a->size);
    }
  }
  for (uint32_t i = 0; i < g->wave_count; i++) memset(g->waves[i].ranges, 0, code->range_count * sizeof(spirv_range));
}

/* A kernel may reach as much as devices allocate: a power of two. Where its bounds are looked at, only what it asked for. */
static uint64_t local_bytes_of(const spirv_launch *launch, const spirv_code *code) {
  uint64_t local = code->local_bytes, rounded = LEAST_LOCAL;
  for (uint32_t i = 0; i < code->argument_count; i++)
    if (code->arguments[i].local) {
      uint64_t size = launch->local_sizes == NULL ? 0 : launch->local_sizes[i];
      if (size > SPIRV_MAX_LOCAL_BYTES) return UINT64_MAX;
      local = up(local) + size;
    }
  if (local == 0 || local > SPIRV_MAX_LOCAL_BYTES || launch->exact || launch->races) return local;
  while (rounded < local) rounded *= 2;
  return rounded;
}

/* Takes the group that an earlier launch of the kernel has left, if it fits; otherwise makes one. */
static spirv_group *group_take(const spirv_launch *launch, const spirv_code *code, uint64_t local_bytes) {
  spirv_kernel *kernel = (spirv_kernel *)launch->kernel;
  spirv_group *g = atomic_exchange(&kernel->idle, NULL);
  if (g != NULL && (g->code != code || g->local_bytes != local_bytes ||
                    memcmp(g->group_size, launch->group_size, sizeof(g->group_size)) != 0)) {
    spirv_group_free(g);
    g = NULL;
  }
  if (g == NULL) g = group_new(launch, code, local_bytes);
  if (g != NULL) group_begin(g, launch);
  return g;
}

static void group_give(spirv_group *g) {
  spirv_kernel *kernel = (spirv_kernel *)g->kernel;
  spirv_group_free(atomic_exchange(&kernel->idle, g));
}

/* ---- Running ------------------------------------------------------------------------------------------------------------ */

typedef struct {
  const spirv_launch *launch;
  const spirv_code *code;
  uint64_t local_bytes, groups;
  _Atomic uint64_t next; /* the next group to run */
  atomic_bool stop;
  _Atomic uint64_t printed;
  pthread_mutex_t lock;
  pthread_cond_t started;
  int start; /* of a cooperative launch: 1: start, -1: end without work */
  spirv_result *result;
  spirv_text *texts;
  size_t text_count;
  struct spirv_races *races;
  uint64_t stride, shift; /* for chaos: the order of groups; the stride is coprime to their number */
} running;

static const char *reason(const spirv_group *g) {
  switch (g->status) {
    case SPIRV_BAD_ACCESS: return g->failed_write ? "a store to address" : "a load from address";
    case SPIRV_BAD_BARRIER: return "it did not come to this barrier, as others of its group did";
    case SPIRV_OUT_OF_FUEL: return "it ran longer than its fuel lasts";
    case SPIRV_CANCELLED: return "it was cancelled";
    default: return "it came to OpUnreachable";
  }
}

/* The storage class of what an instruction accesses, by the type of its pointer; -1: it has none that tells. */
static int storage_of(const spirv_place *place) {
  const spirv_module *m = place->module;
  const uint32_t *w = m->words + place->at;
  const uint32_t op = spirv_op(m, place->at);
  const bool first = op == OpStore || op == OpAtomicStore || op == OpAtomicFlagClear;
  const bool third = op == OpLoad || (op >= OpAtomicLoad && op <= OpAtomicXor) || op == OpAtomicFlagTestAndSet ||
                     op == OpAtomicFMinEXT || op == OpAtomicFMaxEXT || op == OpAtomicFAddEXT;
  if (!first && !third) return -1;
  const spirv_id *type = &m->ids[m->ids[w[first ? 1 : 3]].type];
  return spirv_is_type(type->op) && type->made_type->kind == TYPE_POINTER ? (int)type->made_type->storage : -1;
}

/* The reason; of a wrong access also the address, and what kind of memory it would be: that of local memory says nothing by
 * itself, since what it is near is the engine's. */
static void tell_reason(const spirv_group *g, int storage, char *text, size_t capacity) {
  int size = snprintf(text, capacity, "%s", reason(g));
  if (g->status != SPIRV_BAD_ACCESS) return;
  size += snprintf(text + size, capacity - (size_t)size, " 0x%llx", (unsigned long long)g->failed_address);
  if (storage == StorageFunction) snprintf(text + size, capacity - (size_t)size, " of private memory");
  if (storage != StorageWorkgroup) return;
  const int64_t offset = (int64_t)(g->failed_address - (uint64_t)(uintptr_t)g->local);
  const long long bytes = (long long)g->local_bytes;
  snprintf(text + size, capacity - (size_t)size, " of local memory, at byte %lld of the %lld that the group has",
           (long long)offset, bytes);
}

static void report(running *r, const spirv_group *g) {
  const uint32_t *sizes = r->launch->group_size;
  spirv_result *result = r->result;
  uint32_t local[3] = {g->failed_item % sizes[0], g->failed_item / sizes[0] % sizes[1],
                       g->failed_item / sizes[0] / sizes[1]};
  result->status = g->status;
  set_place(result, g->kernel, g->failed_at);
  result->address = g->status == SPIRV_BAD_ACCESS ? g->failed_address : 0;
  for (int d = 0; d < 3; d++) result->global_id[d] = g->id[d] * sizes[d] + local[d] + r->launch->global_offset[d];
  char why[130];
  spirv_place place = spirv_program_place(g->kernel->program, g->failed_at);
  tell_reason(g, storage_of(&place), why, sizeof(why));
  snprintf(result->text, sizeof(result->text), "%s, instruction at byte %s%.50s, work-item (%llu, %llu, %llu): %s",
           owner_of(g->kernel, &place).text, spirv_program_tell_place(g->kernel->program, g->failed_at).text,
           spirv_source_text(place.module, place.at).text, (unsigned long long)result->global_id[0],
           (unsigned long long)result->global_id[1], (unsigned long long)result->global_id[2], why);
}

static void keep_texts(running *r, spirv_group *g) {
  if (g->text_count == 0) return;
  pthread_mutex_lock(&r->lock);
  spirv_text *all = realloc(r->texts, (r->text_count + g->text_count) * sizeof(*all));
  if (all != NULL) {
    memcpy(all + r->text_count, g->texts, g->text_count * sizeof(*all));
    r->texts = all;
    r->text_count += g->text_count;
    g->text_count = 0;
  }
  pthread_mutex_unlock(&r->lock);
}

static void run_one(running *r, spirv_group *g, uint64_t number) {
  const uint32_t *counts = r->launch->group_count;
  if (r->launch->chaos != 0) number = (number * r->stride + r->shift) % r->groups;
  g->stop = &r->stop;
  g->printed = &r->printed;
  g->linear = number;
  g->random = r->launch->chaos == 0 ? 0 : (r->launch->chaos ^ number * 0x9e3779b97f4a7c15u) | 1;
  g->races = r->races;
  g->watched = r->races != NULL || r->launch->trace;
  g->id[0] = number % counts[0];
  g->id[1] = number / counts[0] % counts[1];
  g->id[2] = number / counts[0] / counts[1];
  if (spirv_group_run(g)) return;
  pthread_mutex_lock(&r->lock);
  if (!atomic_exchange(&r->stop, true)) report(r, g);
  pthread_mutex_unlock(&r->lock);
}

static void run_groups(running *r, spirv_group *g) {
  while (!atomic_load_explicit(&r->stop, memory_order_relaxed)) {
    uint64_t number = atomic_fetch_add_explicit(&r->next, 1, memory_order_relaxed);
    if (number >= r->groups) break;
    run_one(r, g, number);
    if (number + 1 == r->groups) break; /* without asking once more */
  }
  keep_texts(r, g);
  group_give(g);
}

static void help(void *context) {
  running *r = context;
  spirv_group *g = group_take(r->launch, r->code, r->local_bytes);
  if (g != NULL) run_groups(r, g); /* without memory the other threads run the groups */
}

static bool refuse(spirv_result *result, const spirv_launch *launch, spirv_status status, const char *text) {
  result->status = status;
  snprintf(result->text, sizeof(result->text), "kernel %.80s: %s", launch->kernel->info.name, text);
  return false;
}

/* A cooperative launch: each group has a thread. None starts before all threads exist: groups may wait for others. */
typedef struct {
  running *r;
  spirv_group *group;
  uint64_t number;
  pthread_t thread;
} member;

static void run_member(member *m) {
  running *r = m->r;
  run_one(r, m->group, m->number);
  keep_texts(r, m->group);
}

static void *member_thread(void *context) {
  member *m = context;
  pthread_mutex_lock(&m->r->lock);
  while (m->r->start == 0) pthread_cond_wait(&m->r->started, &m->r->lock);
  bool runs = m->r->start > 0;
  pthread_mutex_unlock(&m->r->lock);
  if (runs) run_member(m);
  return NULL;
}

static void run_together(running *r, spirv_group *first) {
  uint32_t count = (uint32_t)r->groups, threads = 1, made = 1;
  member members[SPIRV_MAX_COOPERATIVE_GROUPS];
  members[0] = (member){.r = r, .group = first};
  pthread_cond_init(&r->started, NULL);
  for (; made < count; made++) {
    spirv_group *g = group_new(r->launch, r->code, r->local_bytes);
    if (g == NULL) break;
    group_begin(g, r->launch);
    members[made] = (member){.r = r, .group = g, .number = made};
  }
  while (made == count && threads < count &&
         pthread_create(&members[threads].thread, NULL, member_thread, &members[threads]) == 0)
    threads++;
  pthread_mutex_lock(&r->lock);
  r->start = threads == count ? 1 : -1;
  pthread_cond_broadcast(&r->started);
  pthread_mutex_unlock(&r->lock);
  if (threads == count) run_member(&members[0]);
  else refuse(r->result, r->launch, SPIRV_OUT_OF_MEMORY, "there is no thread for each group");
  for (uint32_t i = 1; i < threads; i++) pthread_join(members[i].thread, NULL);
  for (uint32_t i = 1; i < made; i++) spirv_group_free(members[i].group);
  pthread_cond_destroy(&r->started);
  group_give(first);
}

static int by_item(const void *a, const void *b) {
  const spirv_text *x = a, *y = b;
  if (x->item != y->item) return x->item < y->item ? -1 : 1;
  return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void print_all(running *r) {
  if (r->text_count == 0) return;
  qsort(r->texts, r->text_count, sizeof(*r->texts), by_item);
  for (size_t i = 0; i < r->text_count; i++) {
    if (r->launch->print != NULL) r->launch->print(r->launch->print_context, r->texts[i].text, r->texts[i].size);
    else fwrite(r->texts[i].text, 1, r->texts[i].size, stdout);
    free(r->texts[i].text);
  }
  if (r->launch->print == NULL) fflush(stdout);
  free(r->texts);
}

static uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Sets what a launch needs that is watched or runs in another order. */
static void prepare_watching(running *r) {
  const spirv_launch *launch = r->launch;
  if (launch->races) r->races = spirv_races_new(launch);
  r->stride = 1;
  if (launch->chaos != 0 && r->groups < UINT32_MAX) {
    r->stride = (launch->chaos >> 7) % r->groups;
    r->shift = (launch->chaos >> 37) % r->groups;
    while (common_divisor(r->stride, r->groups) != 1) r->stride++;
  }
  if (!launch->trace) return;
  char text[200];
  snprintf(text, sizeof(text), "kernel %.80s, work-item (%llu, %llu, %llu)", launch->kernel->info.name,
           (unsigned long long)launch->trace_item[0], (unsigned long long)launch->trace_item[1],
           (unsigned long long)launch->trace_item[2]);
  spirv_tell(launch, text);
}

/* Waking a thread takes as long as some thousand operations on lanes. */
static bool is_worth_helpers(const spirv_code *code, const running *r, uint64_t size) {
  enum { WORTH = 16384 };
  uint64_t waves = (size + code->width - 1) / code->width;
  if (code->work == UINT64_MAX || r->groups > WORTH) return true;
  return r->groups * (WAVE_COST + waves * WAVE_COST + size * code->work) > WORTH;
}

bool spirv_run(const spirv_launch *launch, spirv_result *result) {
  spirv_result unused;
  if (result == NULL) result = &unused;
  memset(result, 0, offsetof(spirv_result, text) + 1); /* of the text only the first byte: launches are many */
  if (!spirv_kernel_prepare(launch->kernel, result)) return false;
  const spirv_code *code = atomic_load(&launch->kernel->code);
  const spirv_kernel_info *info = &launch->kernel->info;
  running r = {.launch = launch, .code = code, .result = result, .groups = 1, .lock = PTHREAD_MUTEX_INITIALIZER};
  uint64_t size = 1;
  for (int d = 0; d < 3; d++) {
    if (launch->group_size[d] == 0 || launch->group_size[d] > SPIRV_MAX_GROUP_SIZE)
      return refuse(result, launch, SPIRV_BAD_LAUNCH, "a dimension of the group size is 0 or too large");
    if (info->required_group_size[d] != 0 && info->required_group_size[d] != launch->group_size[d])
      return refuse(result, launch, SPIRV_BAD_LAUNCH, "the kernel requires another group size");
    size *= launch->group_size[d];
    if (launch->group_count[d] != 0 && r.groups > UINT64_MAX / 2 / launch->group_count[d])
      return refuse(result, launch, SPIRV_BAD_LAUNCH, "there are too many groups");
    r.groups *= launch->group_count[d];
  }
  if (size > info->max_group_size) return refuse(result, launch, SPIRV_BAD_LAUNCH, "the group is too large");
  r.local_bytes = local_bytes_of(launch, code);
  if (r.local_bytes > SPIRV_MAX_LOCAL_BYTES)
    return refuse(result, launch, SPIRV_BAD_LAUNCH, "the group needs too much local memory");
  if (launch->cooperative && r.groups > SPIRV_MAX_COOPERATIVE_GROUPS)
    return refuse(result, launch, SPIRV_BAD_LAUNCH, "a cooperative launch has too many groups");
  if (r.groups == 0) return true;
  spirv_group *g = group_take(launch, code, r.local_bytes);
  if (g == NULL) return refuse(result, launch, SPIRV_OUT_OF_MEMORY, "there is no memory to run it in");
  if (launch->races || launch->trace || launch->chaos != 0) prepare_watching(&r);
  bool helped = launch->workers != NULL && !launch->cooperative && r.groups > 1 && r.races == NULL &&
                is_worth_helpers(code, &r, size) && spirv_workers_begin(launch->workers, help, &r, r.groups - 1);
  if (launch->cooperative) run_together(&r, g);
  else run_groups(&r, g);
  if (helped) spirv_workers_end(launch->workers);
  pthread_mutex_destroy(&r.lock);
  spirv_races_free(r.races);
  print_all(&r);
  return result->status == SPIRV_OK;
}
