/* SPDX-License-Identifier: Apache-2.0 */
/* special.c: handlers that no instruction set would make faster: ids, atomics, copies of memory, collectives. */
#include <math.h>
#include <string.h>

#include "spirv/run/half.h"
#include "spirv/run/kernel_memory.h"
#include "spirv/run/run.h"

/* So many elements, or bytes of one copy, are copied between two looks at whether the launch goes on. */
enum { LONG = 4096, PIECE = 1 << 20 };

#define EACH_RUNNING(k)                                                                                                \
  for (uint32_t k = 0; k < w->count && !w->failed; k++)                                                                \
    if (spirv_runs(w, k))

/* ---- Ids and sizes of a work-item ------------------------------------------------------------------------------- */

static uint64_t dimensions(const spirv_launch *l) {
  for (uint64_t d = 3; d > 1; d--)
    if ((uint64_t)l->group_count[d - 1] * l->group_size[d - 1] > 1) return d;
  return 1;
}

static uint64_t builtin(const spirv_wave *w, uint32_t which, uint64_t d, uint32_t lane) {
  const spirv_group *g = w->group;
  const spirv_launch *l = g->launch;
  uint64_t item = w->first + lane, subgroup = g->code->subgroup, subgroups = (g->size + subgroup - 1) / subgroup;
  switch (which) {
    case BuiltInNumWorkgroups: return l->group_count[d];
    case BuiltInWorkgroupSize:
    case BuiltInEnqueuedWorkgroupSize: return l->group_size[d];
    case BuiltInWorkgroupId: return g->id[d];
    case BuiltInLocalInvocationId: return w->local_id[d][lane];
    case BuiltInGlobalInvocationId: return w->local_id[d][lane] + g->id[d] * l->group_size[d] + l->global_offset[d];
    case BuiltInLocalInvocationIndex: return item;
    case BuiltInWorkDim: return dimensions(l);
    case BuiltInGlobalSize: return (uint64_t)l->group_count[d] * l->group_size[d];
    case BuiltInGlobalOffset: return l->global_offset[d];
    case BuiltInGlobalLinearId: {
      uint64_t at[3];
      for (int i = 0; i < 3; i++) at[i] = w->local_id[i][lane] + g->id[i] * l->group_size[i];
      uint64_t width = (uint64_t)l->group_count[0] * l->group_size[0],
               height = (uint64_t)l->group_count[1] * l->group_size[1];
      return at[0] + width * (at[1] + height * at[2]);
    }
    case BuiltInSubgroupSize: return item / subgroup + 1 < subgroups ? subgroup : g->size - (subgroups - 1) * subgroup;
    case BuiltInSubgroupMaxSize: return subgroup;
    case BuiltInNumSubgroups:
    case BuiltInNumEnqueuedSubgroups: return subgroups;
    case BuiltInSubgroupId: return item / subgroup;
    default: return item % subgroup; /* BuiltInSubgroupLocalInvocationId */
  }
}

static void run_builtin(spirv_wave *w, const spirv_step *s, size_t lanes) {
  uint64_t *d = REGISTER(uint64_t, s->d);
  if (s->scale == 0) {
    *d = builtin(w, s->extra, s->imm, 0);
  } else if (s->extra == BuiltInLocalInvocationId) {
    memcpy(d, w->local_id[s->imm], lanes * sizeof(*d));
  } else if (s->extra == BuiltInLocalInvocationIndex) {
    for (size_t k = 0; k < lanes; k++) d[k] = w->first + k;
  } else if (s->extra == BuiltInGlobalInvocationId) {
    const spirv_group *g = w->group;
    const uint64_t *local = w->local_id[s->imm];
    uint64_t first = g->id[s->imm] * g->launch->group_size[s->imm] + g->launch->global_offset[s->imm];
    for (size_t k = 0; k < lanes; k++) d[k] = local[k] + first;
  } else {
    for (uint32_t k = 0; k < w->count; k++) d[k] = builtin(w, s->extra, s->imm, k);
  }
}

static void everywhere(spirv_wave *w, const spirv_step *s, size_t lanes, uint64_t value) {
  uint64_t *d = REGISTER(uint64_t, s->d);
  for (size_t k = 0; k < (s->scale != 0 ? lanes : 1); k++) d[k] = value;
}

static void run_argument(spirv_wave *w, const spirv_step *s, size_t lanes) {
  everywhere(w, s, lanes, (uint64_t)(uintptr_t)w->group->arguments + s->imm);
}

static void run_local(spirv_wave *w, const spirv_step *s, size_t lanes) {
  everywhere(w, s, lanes, (uint64_t)(uintptr_t)w->group->local + s->imm);
}

static void run_local_argument(spirv_wave *w, const spirv_step *s, size_t lanes) {
  everywhere(w, s, lanes, (uint64_t)(uintptr_t)w->group->local + w->group->local_offsets[s->imm]);
}

static void run_private(spirv_wave *w, const spirv_step *s, size_t lanes) {
  uint64_t *d = REGISTER(uint64_t, s->d), base = (uint64_t)(uintptr_t)w->private_memory + s->imm;
  for (size_t k = 0; k < lanes; k++) d[k] = base + k * w->group->code->private_bytes;
}

static void run_cast(spirv_wave *w, const spirv_step *s, size_t lanes) {
  uint64_t *d = REGISTER(uint64_t, s->d);
  const uint64_t *a = REGISTER(uint64_t, s->a);
  uint64_t local = (uint64_t)(uintptr_t)w->group->local, own = (uint64_t)(uintptr_t)w->private_memory;
  for (size_t k = 0; k < (s->scale != 0 ? lanes : 1); k++) {
    bool is_local = a[k] - local < w->group->local_bytes,
         is_own = a[k] - own < w->group->code->private_bytes * w->group->code->width;
    bool good = s->extra == StorageWorkgroup ? is_local : s->extra == StorageFunction ? is_own : !is_local && !is_own;
    d[k] = good ? a[k] : 0;
  }
}

/* ---- Atomics ------------------------------------------------------------------------------------------------------------ */

#define ATOMICS(bits, F)                                                                                               \
  static uint##bits##_t changed_##bits(uint32_t what, uint##bits##_t old, uint##bits##_t v) {                          \
    union {                                                                                                            \
      F f;                                                                                                             \
      uint##bits##_t u;                                                                                                \
    } x = {.u = old}, y = {.u = v};                                                                                    \
    int##bits##_t s = (int##bits##_t)old, t = (int##bits##_t)v;                                                        \
    switch (what) {                                                                                                    \
      case ATOMIC_SMIN: return s < t ? old : v;                                                                        \
      case ATOMIC_SMAX: return s > t ? old : v;                                                                        \
      case ATOMIC_UMIN: return old < v ? old : v;                                                                      \
      case ATOMIC_UMAX: return old > v ? old : v;                                                                      \
      case ATOMIC_FADD: x.f += y.f; return x.u;                                                                        \
      case ATOMIC_FMIN: return y.f < x.f || x.f != x.f ? v : old;                                                      \
      default: return y.f > x.f || x.f != x.f ? v : old; /* ATOMIC_FMAX */                                             \
    }                                                                                                                  \
  }                                                                                                                    \
  static uint##bits##_t atomic_##bits(uint32_t what, uint##bits##_t *p, uint##bits##_t v, uint##bits##_t comparand) {  \
    uint##bits##_t old;                                                                                                \
    switch (what) {                                                                                                    \
      case ATOMIC_LOAD: return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
      case ATOMIC_STORE: __atomic_store_n(p, v, __ATOMIC_SEQ_CST); return 0;                                           \
      case ATOMIC_EXCHANGE: return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                        \
      case ATOMIC_COMPARE:                                                                                             \
        __atomic_compare_exchange_n(p, &comparand, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
        return comparand;                                                                                              \
      case ATOMIC_ADD: return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                              \
      case ATOMIC_SUB: return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                              \
      case ATOMIC_AND: return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                              \
      case ATOMIC_OR: return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                                \
      case ATOMIC_XOR: return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                              \
      default:                                                                                                         \
        old = __atomic_load_n(p, __ATOMIC_RELAXED);                                                                    \
        while (!__atomic_compare_exchange_n(p, &old, changed_##bits(what, old, v), true, __ATOMIC_SEQ_CST,             \
                                            __ATOMIC_RELAXED))                                                         \
          continue;                                                                                                    \
        return old;                                                                                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static void run_atomic_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                    \
    (void)lanes;                                                                                                       \
    uint##bits##_t *d = REGISTER(uint##bits##_t, s->d);                                                                \
    const uint64_t *a = REGISTER(uint64_t, s->a);                                                                      \
    const uint##bits##_t *b = REGISTER(uint##bits##_t, s->b), *c = REGISTER(uint##bits##_t, s->c);                     \
    const uint32_t from = w->group->random != 0 ? (uint32_t)(spirv_random(w->group) % w->count) : 0;                   \
    for (uint32_t i = 0; i < w->count; i++) {                                                                          \
      const uint32_t k = from + i < w->count ? from + i : from + i - w->count;                                         \
      if (!spirv_runs(w, k)) continue;                                                                                 \
      bool writes = s->extra != ATOMIC_LOAD;                                                                           \
      if (!spirv_reach(w, s, a[k], sizeof(*d), writes, true, k)) return;                                               \
      if (a[k] % sizeof(*d) != 0) {                                                                                    \
        w->group->failed_address = a[k];                                                                               \
        w->group->failed_write = writes;                                                                               \
        spirv_fail(w, SPIRV_BAD_ACCESS, s->at, k);                                                                     \
        return;                                                                                                        \
      }                                                                                                                \
      d[k] = atomic_##bits(s->extra, (uint##bits##_t *)(uintptr_t)(a[k] + w->ranges[s->range].shift),                  \
                           s->b != 0 ? b[k] : 0, s->c != 0 ? c[k] : 0);                                                \
    }                                                                                                                  \
  }
ATOMICS(32, float)
ATOMICS(64, double)

/* ---- Copies of memory --------------------------------------------------------------------------------------------------- */

static bool copy_checked(spirv_wave *w, const spirv_step *s, uint64_t to, uint64_t from, uint64_t size, uint32_t lane) {
  if (!spirv_reach(w, s, from, size, false, true, lane)) return false;
  uint64_t shift = w->ranges[s->range].shift;
  if (!spirv_reach(w, s, to, size, true, true, lane)) return false;
  kernel_move(to + w->ranges[s->range].shift, from + shift, size);
  return true;
}

/* A step as long as many: it takes fuel as a block does, and ends when the launch does. */
static bool goes_on(spirv_wave *w, const spirv_step *s, uint32_t lane) {
  spirv_group *g = w->group;
  if (g->fuel-- == 0) spirv_fail(w, SPIRV_OUT_OF_FUEL, s->at, lane);
  else if (spirv_is_cancelled(g)) spirv_fail(w, SPIRV_CANCELLED, s->at, lane);
  return !w->failed;
}

static void run_copy(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  const uint64_t *to = REGISTER(uint64_t, s->a), *from = REGISTER(uint64_t, s->b), *size = REGISTER(uint64_t, s->c);
  EACH_RUNNING(k) {
    for (uint64_t done = 0; done < size[k]; done += PIECE) {
      if (done != 0 && !goes_on(w, s, k)) return;
      uint64_t piece = size[k] - done < PIECE ? size[k] - done : PIECE;
      if (!copy_checked(w, s, to[k] + done, from[k] + done, piece, k)) return;
    }
  }
}

/* Each work-item copies a share of the elements. */
static void run_async_copy(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  const uint64_t *to = REGISTER(uint64_t, s->a), *from = REGISTER(uint64_t, s->b), *count = REGISTER(uint64_t, s->c);
  const uint64_t *stride = REGISTER(uint64_t, s->extra), size = s->imm >> 1;
  bool gathers = (s->imm & 1) != 0;
  uint32_t copied = 0;
  EACH_RUNNING(k) {
    for (uint64_t i = w->first + k; i < count[k]; i += w->group->size) {
      if (++copied % LONG == 0 && !goes_on(w, s, k)) return;
      uint64_t source = from[k] + i * size * (gathers ? stride[k] : 1),
               target = to[k] + i * size * (gathers ? 1 : stride[k]);
      if (!copy_checked(w, s, target, source, size, k)) return;
      if (w->group->races != NULL) spirv_races_copy(w, s, k, target, source, size);
    }
  }
}

/* ---- Collectives -------------------------------------------------------------------------------------------------------- */

/* Lanes as 64 bits: integers are sign-extended, floats become doubles. Each sum of halves or floats is rounded. */
typedef union {
  uint64_t u;
  int64_t i;
  double f;
} wide;

static wide get(const spirv_wave *w, uint32_t place, uint32_t lane_kind, size_t k) {
  wide v = {.u = 0};
  switch (lane_kind) {
    case LANE_BOOL: v.i = REGISTER(uint32_t, place)[k] != 0; break;
    case LANE_I8: v.i = REGISTER(int8_t, place)[k]; break;
    case LANE_I16: v.i = REGISTER(int16_t, place)[k]; break;
    case LANE_I32: v.i = REGISTER(int32_t, place)[k]; break;
    case LANE_I64: v.i = REGISTER(int64_t, place)[k]; break;
    case LANE_F64: v.f = REGISTER(double, place)[k]; break;
    default: v.u = REGISTER(uint32_t, place)[k]; /* its bits: what is only moved may be a half of something else */
  }
  return v;
}

static void put(spirv_wave *w, uint32_t place, uint32_t lane_kind, size_t k, wide v) {
  switch (lane_kind) {
    case LANE_BOOL: REGISTER(uint32_t, place)[k] = v.u != 0 ? UINT32_MAX : 0; break;
    case LANE_I8: REGISTER(uint8_t, place)[k] = (uint8_t)v.u; break;
    case LANE_I16: REGISTER(uint16_t, place)[k] = (uint16_t)v.u; break;
    case LANE_I32: REGISTER(uint32_t, place)[k] = (uint32_t)v.u; break;
    case LANE_I64: REGISTER(uint64_t, place)[k] = v.u; break;
    case LANE_F64: REGISTER(double, place)[k] = v.f; break;
    default: REGISTER(uint32_t, place)[k] = (uint32_t)v.u;
  }
}

/* A float's number, and the float nearest to a number. */
static double number_of(wide v, uint32_t lane_kind) {
  float small;
  if (lane_kind == LANE_F64) return v.f;
  memcpy(&small, &v.u, sizeof(small));
  return (double)small;
}

static wide float_of(double number, uint32_t lane_kind) {
  if (lane_kind == LANE_F64) return (wide){.f = number};
  float small = lane_kind == LANE_F16 ? half_rounded((float)number) : (float)number;
  wide v = {.u = 0};
  memcpy(&v.u, &small, sizeof(small));
  return v;
}

static uint64_t unsigned_of(uint64_t v, uint32_t lane_kind) {
  unsigned bits = spirv_lane_size[lane_kind] * 8u;
  return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

static wide combine(uint32_t what, uint32_t lane_kind, wide a, wide b) {
  wide r = a;
  uint64_t x = unsigned_of(a.u, lane_kind), y = unsigned_of(b.u, lane_kind);
  switch (what) {
    case COLLECT_ADD: r.u = a.u + b.u; break;
    case COLLECT_MUL: r.u = a.u * b.u; break;
    case COLLECT_FADD: return float_of(number_of(a, lane_kind) + number_of(b, lane_kind), lane_kind);
    case COLLECT_FMUL: return float_of(number_of(a, lane_kind) * number_of(b, lane_kind), lane_kind);
    case COLLECT_SMIN: r.i = a.i < b.i ? a.i : b.i; break;
    case COLLECT_SMAX: r.i = a.i > b.i ? a.i : b.i; break;
    case COLLECT_UMIN: r = x < y ? a : b; break;
    case COLLECT_UMAX: r = x > y ? a : b; break;
    case COLLECT_FMIN: return float_of(fmin(number_of(a, lane_kind), number_of(b, lane_kind)), lane_kind);
    case COLLECT_FMAX: return float_of(fmax(number_of(a, lane_kind), number_of(b, lane_kind)), lane_kind);
    case COLLECT_AND:
    case COLLECT_ALL: r.u = a.u & b.u; break;
    case COLLECT_OR:
    case COLLECT_ANY: r.u = a.u | b.u; break;
    case COLLECT_XOR: r.u = a.u ^ b.u; break;
    default: break;
  }
  return r;
}

static wide identity(uint32_t what, uint32_t lane_kind) {
  wide r = {.u = 0};
  unsigned bits = spirv_lane_size[lane_kind] * 8u;
  switch (what) {
    case COLLECT_MUL: r.u = 1; break;
    case COLLECT_FMUL: return float_of(1, lane_kind);
    case COLLECT_SMIN: r.i = (int64_t)(UINT64_MAX >> 1 >> (64 - bits)); break;
    case COLLECT_SMAX: r.i = -(int64_t)(UINT64_MAX >> 1 >> (64 - bits)) - 1; break;
    case COLLECT_UMIN:
    case COLLECT_AND: r.u = lane_kind == LANE_BOOL ? 1 : UINT64_MAX; break;
    case COLLECT_FMIN: return float_of(INFINITY, lane_kind);
    case COLLECT_FMAX: return float_of(-INFINITY, lane_kind);
    default: break;
  }
  return r;
}

static void run_group_put(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  uint64_t *scratch = w->group->scratch[w->group->epoch & 1];
  EACH_RUNNING(k) scratch[w->first + k] = get(w, s->a, s->lane, k).u;
}

static void run_group_get(spirv_wave *w, const spirv_step *s, size_t lanes) {
  const uint64_t *scratch = w->group->scratch[(w->group->epoch - 1) & 1];
  uint32_t size = w->group->size;
  wide all = identity(s->extra, s->lane);
  if (s->extra == COLLECT_BROADCAST) {
    const uint64_t *index = REGISTER(uint64_t, s->a);
    for (uint32_t k = 0; k < (s->scale != 0 ? w->count : 1); k++)
      put(w, s->d, s->lane, k, (wide){.u = index[k] < size ? scratch[index[k]] : 0});
    return;
  }
  if (s->extra == COLLECT_ALL) all.u = 1;
  for (uint32_t i = 0; i < size; i++) {
    wide before = all;
    all = i == 0 ? (wide){.u = scratch[0]} : combine(s->extra, s->lane, all, (wide){.u = scratch[i]});
    if (i < w->first || i >= w->first + w->count || s->imm == GroupReduce) continue;
    put(w, s->d, s->lane, i - w->first, s->imm == GroupInclusiveScan ? all : before);
  }
  if (s->imm == GroupReduce)
    for (size_t k = 0; k < (s->scale != 0 ? lanes : 1); k++) put(w, s->d, s->lane, k, all);
}

/* The running lanes of one sub-group, or of a cluster of it, from `first` to before `end`. */
static void collect(spirv_wave *w, const spirv_step *s, uint32_t first, uint32_t end) {
  wide values[MAX_LANES], all = identity(s->extra, s->lane);
  bool some = false;
  uint32_t leader = end, ballot = 0, scan = s->imm & ((1u << CLUSTER_SHIFT) - 1);
  bool equal = true;
  for (uint32_t k = first; k < end; k++) values[k] = get(w, s->a, s->lane, k);
  for (uint32_t k = first; k < end; k++) {
    if (!spirv_runs(w, k)) continue;
    if (!some) leader = k;
    equal &= s->lane == LANE_F64 || s->lane == LANE_F32 || s->lane == LANE_F16
                 ? number_of(values[k], s->lane) == number_of(values[leader], s->lane)
                 : values[k].u == values[leader].u;
    if (values[k].u != 0) ballot |= 1u << (k - first);
    wide before = all;
    all = some ? combine(s->extra, s->lane, all, values[k]) : values[k];
    some = true;
    if (s->extra >= COLLECT_ALL) continue;
    if (scan == GroupInclusiveScan) put(w, s->d, s->lane, k, all);
    if (scan == GroupExclusiveScan) put(w, s->d, s->lane, k, before);
  }
  for (uint32_t k = first; k < end; k++) {
    if (!spirv_runs(w, k)) continue;
    switch (s->extra) {
      case COLLECT_ELECT: put(w, s->d, LANE_BOOL, k, (wide){.u = k == leader}); break;
      case COLLECT_ALL_EQUAL: put(w, s->d, LANE_BOOL, k, (wide){.u = equal}); break;
      case COLLECT_BALLOT: put(w, s->d, LANE_I32, k, (wide){.u = ballot}); break;
      case COLLECT_FIRST: put(w, s->d, s->lane, k, values[leader]); break;
      case COLLECT_SHUFFLE: {
        uint32_t index = REGISTER(uint32_t, s->b)[k];
        put(w, s->d, s->lane, k, index < end - first ? values[first + index] : (wide){.u = 0});
        break;
      }
      default:
        if (scan == GroupReduce) put(w, s->d, s->lane, k, all);
    }
  }
}

static void run_subgroup(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  uint32_t size = w->group->code->subgroup, cluster = (uint32_t)(s->imm >> CLUSTER_SHIFT);
  if (cluster != 0 && cluster < size) size = cluster;
  for (uint32_t first = 0; first < w->count; first += size)
    collect(w, s, first, first + size < w->count ? first + size : w->count);
}

static void run_fence(spirv_wave *w, const spirv_step *s, size_t lanes) { (void)w, (void)s, (void)lanes; }

spirv_handler *spirv_special(ir_op op, spirv_lane lane) {
  switch (op) {
    case IR_BUILTIN: return run_builtin;
    case IR_ARGUMENT_ADDRESS: return run_argument;
    case IR_LOCAL_ADDRESS: return run_local;
    case IR_LOCAL_ARGUMENT: return run_local_argument;
    case IR_PRIVATE_ADDRESS: return run_private;
    case IR_GENERIC_CAST: return run_cast;
    case IR_ATOMIC: return spirv_lane_size[lane] == 4 ? run_atomic_32 : run_atomic_64;
    case IR_COPY_MEMORY: return run_copy;
    case IR_ASYNC_COPY: return run_async_copy;
    case IR_GROUP_PUT: return run_group_put;
    case IR_GROUP_GET: return run_group_get;
    case IR_SUBGROUP: return run_subgroup;
    case IR_FENCE: return run_fence;
    case IR_PRINTF: return spirv_print;
    case IR_IMAGE: return spirv_run_image;
    case IR_IMAGE_QUERY: return spirv_run_image_query;
    default: return NULL;
  }
}
