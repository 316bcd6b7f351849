/* SPDX-License-Identifier: Apache-2.0 */
#include "space.h"

#include <stdlib.h>
#include <string.h>

#define SPACES 4096

static xe_space spaces[SPACES]; /* 0 is none */
static uint32_t last;

uint32_t xe_space_create(void) {
  uint32_t number = 0;
  pthread_mutex_lock(&xe_lock);
  for (uint32_t i = 0; i < SPACES - 1 && !number; i++) {
    uint32_t next = 1 + (last + i) % (SPACES - 1);
    if (!spaces[next].live) number = last = next;
  }
  if (number) {
    pthread_rwlock_init(&spaces[number].lock, NULL);
    spaces[number].live = true;
  }
  pthread_mutex_unlock(&xe_lock);
  return number;
}

xe_space *xe_space_get(uint32_t number) { return number < SPACES && spaces[number].live ? &spaces[number] : NULL; }

void xe_space_after_fork(void) {
  for (int i = 0; i < SPACES; i++)
    if (spaces[i].live) pthread_rwlock_init(&spaces[i].lock, NULL);
}

bool xe_space_destroy(xe_space *space) {
  pthread_mutex_lock(&xe_lock);
  if (space->queues) {
    pthread_mutex_unlock(&xe_lock);
    return false;
  }
  pthread_rwlock_wrlock(&space->lock);
  for (int i = 0; i < space->number; i++)
    if (space->bindings[i].buffer) xe_buffer_drop(space->bindings[i].buffer);
  free(space->bindings);
  space->bindings = NULL;
  space->number = space->capacity = 0;
  space->live = false;
  pthread_rwlock_unlock(&space->lock);
  pthread_mutex_unlock(&xe_lock);
  return true;
}

/* The first binding that ends behind an address. */
static int first_after(const xe_space *space, uint64_t address) {
  int low = 0, high = space->number;
  while (low < high) {
    int middle = (low + high) / 2;
    const xe_binding *binding = &space->bindings[middle];
    if (binding->address + binding->size > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static void insert(xe_space *space, int at, xe_binding binding) {
  if (space->number == space->capacity) {
    space->capacity = space->capacity ? 2 * space->capacity : 64;
    space->bindings = realloc(space->bindings, space->capacity * sizeof *space->bindings);
    if (!space->bindings) abort();
  }
  memmove(space->bindings + at + 1, space->bindings + at, (space->number - at) * sizeof *space->bindings);
  space->bindings[at] = binding;
  space->number++;
}

static xe_binding without_beginning(xe_binding binding, uint64_t address) {
  uint64_t cut = address - binding.address;
  binding.address = address;
  binding.size -= cut;
  binding.offset += cut;
  if (binding.memory) binding.memory += cut;
  return binding;
}

void xe_space_unbind(xe_space *space, uint64_t address, uint64_t size) {
  uint64_t end = address + size;
  int i = first_after(space, address);
  while (i < space->number && space->bindings[i].address < end) {
    xe_binding *binding = &space->bindings[i];
    uint64_t binding_end = binding->address + binding->size;
    if (binding->address < address && binding_end > end) {
      xe_binding behind = without_beginning(*binding, end);
      if (behind.buffer) behind.buffer->references++;
      binding->size = address - binding->address;
      insert(space, i + 1, behind);
      return;
    }
    if (binding->address < address) {
      binding->size = address - binding->address;
      i++;
    } else if (binding_end > end) {
      *binding = without_beginning(*binding, end);
      i++;
    } else {
      if (binding->buffer) xe_buffer_drop(binding->buffer);
      memmove(binding, binding + 1, (space->number - i - 1) * sizeof *binding);
      space->number--;
    }
  }
}

void xe_space_unbind_buffer(xe_space *space, const xe_buffer *buffer) {
  for (int i = 0; i < space->number;)
    if (space->bindings[i].buffer == buffer)
      xe_space_unbind(space, space->bindings[i].address, space->bindings[i].size);
    else i++;
}

void xe_space_bind(xe_space *space, xe_binding binding) {
  xe_space_unbind(space, binding.address, binding.size);
  insert(space, first_after(space, binding.address), binding);
}

const xe_binding *xe_space_at(const xe_space *space, uint64_t address) {
  int i = first_after(space, address);
  return i < space->number && space->bindings[i].address <= address ? &space->bindings[i] : NULL;
}

uint8_t *xe_space_find(const xe_space *space, uint64_t address, uint64_t *available) {
  const xe_binding *binding = xe_space_at(space, address);
  if (!binding) return NULL;
  uint64_t inside = address - binding->address;
  if (available) *available = binding->size - inside;
  if (binding->null) return NULL;
  if (binding->mirror) return (uint8_t *)address;
  return binding->buffer ? binding->buffer->bytes + binding->offset + inside : binding->memory + inside;
}

/* Both ways. The host polls words that the GPU writes, and the other way round. */
static void move(void *to, const void *from, uint64_t size) {
  if (size == 4 && !((uintptr_t)to & 3) && !((uintptr_t)from & 3))
    __atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
  else if (size == 8 && !((uintptr_t)to & 7) && !((uintptr_t)from & 7))
    __atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
  else memcpy(to, from, size);
}

bool xe_space_read(xe_space *space, uint64_t *address, void *bytes, uint64_t size) {
  uint8_t *to = bytes;
  pthread_rwlock_rdlock(&space->lock);
  while (size) {
    uint64_t available = 0;
    const uint8_t *from = xe_space_find(space, *address, &available);
    if (!available) break;
    uint64_t part = size < available ? size : available;
    if (from) move(to, from, part);
    else memset(to, 0, part);
    to += part;
    *address += part;
    size -= part;
  }
  pthread_rwlock_unlock(&space->lock);
  if (size) memset(to, 0, size);
  return !size;
}

bool xe_space_write(xe_space *space, uint64_t *address, const void *bytes, uint64_t size) {
  const uint8_t *from = bytes;
  pthread_rwlock_rdlock(&space->lock);
  while (size) {
    uint64_t available = 0;
    uint8_t *to = xe_space_find(space, *address, &available);
    if (!available) break;
    uint64_t part = size < available ? size : available;
    if (to) move(to, from, part);
    from += part;
    *address += part;
    size -= part;
  }
  pthread_rwlock_unlock(&space->lock);
  return !size;
}
