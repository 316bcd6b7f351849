/* SPDX-License-Identifier: Apache-2.0 */
/* races.c: finds races of a launch: two work-items access the same byte, at least one writes, not both accesses are
 * atomic, and nothing orders them.
 *
 * For each byte that is accessed, the last write and the last two reads are kept. A barrier orders work-items of one
 * group; a sub-group barrier also orders those of one sub-group. Others are ordered if, after the first access, its
 * side used an atomic, and the other side then used one at the same address. Between groups, a side is the whole group:
 * kernels commonly collect data by a barrier before an atomic publishes it. Each group has its own local memory. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv/run/watch.h"

enum {
  PAGE = 256, /* bytes that are watched together */
  MOST_PAGES = 1 << 16, /* of 12 KiB each; more memory is not watched */
  MOST_REPORTS = 100,
  REMEMBERED = 8, /* atomics of a work-item; addresses of atomics of a group */
};

/* Who accessed, and when. A time is the number of atomics that the launch had run before. */
typedef struct {
  uint64_t group : 32, time : 32;
  uint64_t at : 26, item : 10, epoch : 16, fence : 9, atomic : 1, copied : 1, set : 1;
} access; /* copied: by an asynchronous copy, which is nobody's: only a barrier, and so a wait, orders it in its group */

typedef struct {
  access write, reads[2];
} cell;

typedef struct {
  uint64_t number; /* + 1; 0: free */
  cell *cells;
} page;

typedef struct {
  uint64_t address;
  uint32_t first, last; /* times */
} used;

typedef struct {
  uint64_t number; /* of the group, + 1; 0: free */
  used atomics[REMEMBERED]; /* of all its work-items together */
  uint32_t next;
  used (*items)[REMEMBERED]; /* of each; NULL: none yet */
  uint32_t *nexts;
  uint16_t *fences; /* of each sub-group; NULL: none yet */
} history;

typedef struct spirv_races {
  const spirv_launch *launch;
  pthread_mutex_t lock; /* for cooperative launches, whose groups run at once */
  page *pages;
  history *groups;
  uint32_t page_count, page_capacity, group_count, group_capacity;
  uint32_t time;
  uint32_t report_count;
  uint64_t reports[MOST_REPORTS]; /* reported pairs of instructions */
  bool full;
} races;

static uint64_t hash(uint64_t v) { return (v ^ v >> 29) * 0x9e3779b97f4a7c15u >> 20; }

races *spirv_races_new(const spirv_launch *launch) {
  races *r = calloc(1, sizeof(*r));
  if (r == NULL) return NULL;
  r->launch = launch;
  pthread_mutex_init(&r->lock, NULL);
  return r;
}

static void forget(history *h) {
  free(h->items);
  free(h->nexts);
  free(h->fences);
  h->items = NULL;
  h->nexts = NULL;
  h->fences = NULL;
}

void spirv_races_free(races *r) {
  if (r == NULL) return;
  for (uint32_t i = 0; i < r->page_capacity; i++) free(r->pages[i].cells);
  for (uint32_t i = 0; i < r->group_capacity; i++) forget(&r->groups[i]);
  free(r->pages);
  free(r->groups);
  pthread_mutex_destroy(&r->lock);
  free(r);
}

/* For both tables; the number of an entry is its first member. Returns the place of the entry, or a free one for it. */
static uint32_t place_in(const void *table, size_t size, uint32_t capacity, uint64_t number) {
  uint32_t i = (uint32_t)hash(number) & (capacity - 1);
  for (;; i = (i + 1) & (capacity - 1)) {
    uint64_t there = *(const uint64_t *)((const char *)table + i * size);
    if (there == 0 || there == number + 1) return i;
  }
}

/* Doubles a table of which three quarters are in use. Returns NULL without memory. */
static void *grown(void *table, size_t size, uint32_t count, uint32_t *capacity) {
  if (count * 4 < *capacity * 3) return table;
  uint32_t more = *capacity == 0 ? 1024 : *capacity * 2;
  char *larger = calloc(more, size);
  if (larger == NULL) return NULL;
  for (uint32_t i = 0; i < *capacity; i++) {
    const char *entry = (const char *)table + i * size;
    uint64_t number = *(const uint64_t *)entry;
    if (number != 0) memcpy(larger + place_in(larger, size, more, number - 1) * size, entry, size);
  }
  free(table);
  *capacity = more;
  return larger;
}

static cell *cell_of(races *r, uint64_t address) {
  void *table = grown(r->pages, sizeof(page), r->page_count, &r->page_capacity);
  if (table == NULL) return NULL;
  r->pages = table;
  page *p = &r->pages[place_in(r->pages, sizeof(page), r->page_capacity, address / PAGE)];
  if (p->number == 0) {
    cell *cells = r->page_count < MOST_PAGES ? calloc(PAGE, sizeof(cell)) : NULL;
    if (cells == NULL && !r->full)
      spirv_tell(r->launch, "races: the launch reaches more memory than can be watched; the rest is not");
    r->full |= cells == NULL;
    if (cells == NULL) return NULL;
    p->number = address / PAGE + 1;
    p->cells = cells;
    r->page_count++;
  }
  return &p->cells[address % PAGE];
}

static history *history_of(races *r, uint64_t group) {
  void *table = grown(r->groups, sizeof(history), r->group_count, &r->group_capacity);
  if (table == NULL) return NULL;
  r->groups = table;
  history *h = &r->groups[place_in(r->groups, sizeof(history), r->group_capacity, group)];
  if (h->number == 0) r->group_count++;
  h->number = group + 1;
  return h;
}

/* ---- What orders accesses --------------------------------------------------------------------------------------------- */

static void use(used *list, uint32_t *next, uint64_t address, uint32_t time) {
  for (int i = 0; i < REMEMBERED; i++)
    if (list[i].last != 0 && list[i].address == address) {
      list[i].last = time;
      return;
    }
  list[(*next)++ % REMEMBERED] = (used){.address = address, .first = time, .last = time};
}

static void note_atomic(races *r, const spirv_group *g, uint32_t item, uint64_t address) {
  history *h = history_of(r, g->linear);
  if (h == NULL) return;
  if (h->items == NULL) {
    h->items = calloc(g->size, sizeof(*h->items));
    h->nexts = calloc(g->size, sizeof(*h->nexts));
  }
  r->time++;
  use(h->atomics, &h->next, address, r->time);
  if (h->items != NULL && h->nexts != NULL) use(h->items[item], &h->nexts[item], address, r->time);
}

/* Did one side use an atomic after `since`, and the other side one at the same address later? */
static bool meet(const used *one, const used *other, uint32_t since) {
  for (int i = 0; i < REMEMBERED; i++)
    for (int k = 0; k < REMEMBERED && one[i].last > since; k++) {
      uint32_t published = one[i].first > since ? one[i].first : one[i].last;
      if (one[i].address == other[k].address && other[k].last > published) return true;
    }
  return false;
}

static bool ordered(races *r, const spirv_group *g, const access *before, const access *now) {
  bool one_group = before->group == now->group;
  if (one_group) {
    uint32_t subgroup = g->code->subgroup;
    if (before->epoch != now->epoch) return true;
    if (before->copied || now->copied) return false;
    if (before->item / subgroup == now->item / subgroup && before->fence != now->fence) return true;
  }
  if (history_of(r, before->group) == NULL) return true;
  const history *ours = history_of(r, now->group), *theirs = history_of(r, before->group); /* it may have moved */
  if (theirs == NULL || ours == NULL) return true;
  if (!one_group) return meet(theirs->atomics, ours->atomics, before->time);
  return ours->items != NULL && ours->nexts != NULL &&
         meet(ours->items[before->item], ours->items[now->item], before->time);
}

static void note_fence(races *r, const spirv_wave *w) {
  const spirv_group *g = w->group;
  history *h = history_of(r, g->linear);
  uint32_t subgroup = g->code->subgroup, last = UINT32_MAX;
  if (h == NULL) return;
  if (h->fences == NULL) h->fences = calloc(g->size / subgroup + 1, sizeof(*h->fences));
  for (uint32_t k = 0; k < w->count && h->fences != NULL; k++) {
    uint32_t number = spirv_item(w, k) / subgroup;
    if (!spirv_runs(w, k) || number == last) continue;
    h->fences[number]++;
    last = number;
  }
}

/* ---- Telling ------------------------------------------------------------------------------------------------------------ */

static void name_item(const spirv_launch *l, const access *a, char *text, size_t size) {
  uint64_t group[3] = {a->group % l->group_count[0], a->group / l->group_count[0] % l->group_count[1],
                       a->group / l->group_count[0] / l->group_count[1]};
  uint32_t item[3] = {a->item % l->group_size[0], a->item / l->group_size[0] % l->group_size[1],
                      a->item / l->group_size[0] / l->group_size[1]};
  unsigned long long id[3];
  for (int d = 0; d < 3; d++) id[d] = group[d] * l->group_size[d] + item[d] + l->global_offset[d];
  snprintf(text, size, "(%llu, %llu, %llu)", id[0], id[1], id[2]);
}

static void report(races *r, const spirv_group *g, const access *before, bool wrote, const access *now, bool writes,
                   uint64_t address, bool local) {
  uint64_t pair = before->at < now->at ? (uint64_t)before->at << 32 | now->at : (uint64_t)now->at << 32 | before->at;
  for (uint32_t i = 0; i < r->report_count; i++)
    if (r->reports[i] == pair) return;
  if (r->report_count == MOST_REPORTS) return;
  r->reports[r->report_count++] = pair;
  char text[480], one[80], other[80];
  name_item(r->launch, before, one, sizeof(one));
  name_item(r->launch, now, other, sizeof(other));
  snprintf(text, sizeof(text),
           "race in kernel %.80s, %s memory at 0x%llx: work-item %s %s it (offset %s), work-item %s %s it (offset %s), "
           "and nothing orders them",
           g->kernel->info.name, local ? "local" : "global", (unsigned long long)address, one,
           before->atomic ? "changes"
           : wrote        ? "writes"
                          : "reads",
           spirv_program_tell_place(g->kernel->program, before->at).text, other,
           now->atomic ? "changes"
           : writes    ? "writes"
                       : "reads",
           spirv_program_tell_place(g->kernel->program, now->at).text);
  spirv_tell(r->launch, text);
}

/* ---- Accesses ----------------------------------------------------------------------------------------------------------- */

static bool same_item(const access *a, const access *b) {
  return a->group == b->group && a->item == b->item && a->copied == b->copied && (!a->copied || a->at == b->at);
}

static void check(races *r, const spirv_group *g, const access *before, bool wrote, const access *now, bool writes,
                  uint64_t address, bool local) {
  if (!before->set || same_item(before, now) || (before->atomic && now->atomic)) return;
  if (local && before->group != now->group) return; /* another group used this memory before */
  if (!ordered(r, g, before, now)) report(r, g, before, wrote, now, writes, address, local);
}

static void look_at_byte(races *r, const spirv_group *g, access now, bool writes, uint64_t address, bool local) {
  cell *c = cell_of(r, address);
  if (c == NULL) return;
  check(r, g, &c->write, true, &now, writes, address, local);
  for (int i = 0; i < 2 && writes; i++) check(r, g, &c->reads[i], false, &now, writes, address, local);
  if (writes) {
    c->write = now;
  } else if (!c->reads[0].set || same_item(&c->reads[0], &now)) {
    c->reads[0] = now;
  } else {
    c->reads[1] = c->reads[0];
    c->reads[0] = now;
  }
}

static bool is_own(const spirv_wave *w, uint64_t address) {
  const spirv_group *g = w->group;
  return address - (uint64_t)(uintptr_t)w->private_memory < g->code->private_bytes * g->code->width ||
         address - (uint64_t)(uintptr_t)g->arguments < g->code->argument_bytes;
}

static void look_at_access(races *r, spirv_wave *w, const spirv_step *s, uint32_t lane, spirv_access a, bool copied) {
  const spirv_group *g = w->group;
  if (a.size == 0 || is_own(w, a.address)) return;
  uint32_t item = spirv_item(w, lane);
  const history *h = history_of(r, g->linear);
  access now = {.group = (uint32_t)g->linear,
                .item = item & 1023,
                .time = r->time,
                .at = s->at & 0x3ffffff,
                .epoch = g->epoch & 0xffff,
                .fence = h != NULL && h->fences != NULL ? h->fences[item / g->code->subgroup] & 511 : 0,
                .atomic = a.atomic,
                .copied = copied,
                .set = 1};
  bool local = a.address - (uint64_t)(uintptr_t)g->local < g->local_bytes;
  for (uint64_t i = 0; i < a.size; i++) look_at_byte(r, g, now, a.writes, a.address + i, local);
  if (a.atomic) note_atomic(r, g, item, a.address);
}

static void look_at_lane(races *r, spirv_wave *w, const spirv_step *s, uint32_t lane) {
  for (int part = 0; part < 2; part++) look_at_access(r, w, s, lane, spirv_access_of(w, s, lane, part), false);
}

void spirv_races_copy(spirv_wave *w, const spirv_step *s, uint32_t lane, uint64_t to, uint64_t from, uint64_t size) {
  races *r = w->group->races;
  pthread_mutex_lock(&r->lock);
  look_at_access(r, w, s, lane, (spirv_access){.address = from, .size = size, .reads = true}, true);
  look_at_access(r, w, s, lane, (spirv_access){.address = to, .size = size, .writes = true}, true);
  pthread_mutex_unlock(&r->lock);
}

void spirv_races_step(spirv_wave *w, const spirv_step *s) {
  races *r = w->group->races;
  const spirv_step_info *info = &w->group->code->infos[s - w->group->code->steps];
  bool reaches = info->op == IR_LOAD || info->op == IR_STORE || info->op == IR_LOAD_AT || info->op == IR_STORE_AT ||
                 info->op == IR_ATOMIC || info->op == IR_COPY_MEMORY;
  if (!reaches && info->op != IR_FENCE) return;
  pthread_mutex_lock(&r->lock);
  if (info->op == IR_FENCE) note_fence(r, w);
  uint32_t seen = 0;
  bool one_for_all = reaches && (info->varying & 6) == 0; /* then two work-items represent all */
  for (uint32_t k = 0; k < w->count && reaches && !(one_for_all && seen == 2); k++) {
    if (!spirv_runs(w, k)) continue;
    look_at_lane(r, w, s, k);
    seen++;
  }
  pthread_mutex_unlock(&r->lock);
}

spirv_access spirv_access_of(const spirv_wave *w, const spirv_step *s, uint32_t lane, int part) {
  const spirv_step_info *info = &w->group->code->infos[s - w->group->code->steps];
  const uint32_t places[3] = {s->a, s->b, s->c};
  uint64_t operands[3] = {0, 0, 0};
  for (int o = 0; o < 3; o++) {
    size_t at = info->varying >> (o + 1) & 1 ? lane : 0;
    if ((info->registers >> (o + 1) & 1) == 0) continue;
    if (spirv_lane_size[info->lanes[o + 1]] == 8) operands[o] = REGISTER(uint64_t, places[o])[at];
    else if (info->lanes[o + 1] == LANE_I32) operands[o] = REGISTER(uint32_t, places[o])[at];
  }
  bool loads = info->op == IR_LOAD || info->op == IR_LOAD_AT;
  spirv_access a = {.address = operands[0] + s->imm,
                    .size = part == 0 ? spirv_memory_size[s->lane] : 0,
                    .reads = loads,
                    .writes = !loads};
  switch (info->op) {
    case IR_LOAD:
    case IR_STORE: return a;
    case IR_LOAD_AT:
    case IR_STORE_AT: {
      uint64_t index = s->extra == IR_INDEX_S32 ? (uint64_t)(int64_t)(int32_t)operands[1] : operands[1];
      a.address += index * s->scale;
      return a;
    }
    case IR_ATOMIC:
      a.address = operands[0];
      a.reads = a.writes = a.atomic = true;
      if (s->extra == ATOMIC_LOAD) a.writes = false;
      return a;
    case IR_COPY_MEMORY:
      a.address = operands[part];
      a.size = operands[2];
      a.writes = part == 0;
      a.reads = !a.writes;
      return a;
    default: a.size = 0; return a;
  }
}
