/* SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <errno.h>
#include <fcntl.h>

#include "buffer.h"
#include "fence.h"
#include "libc.h"
#include "report.h"
#include "space.h"

typedef unsigned long long ull;

/* The first tile whose VRAM may and can hold it, else the first that may; -1 for the host's memory. */
static int place(const xe_device *device, uint32_t placement, uint64_t size) {
  int first = -1;
  for (int tile = 0; tile < device->product->tiles; tile++) {
    if (!(placement & 2u << tile)) continue;
    if (device->vram_used[tile] + size <= device->product->vram) return tile;
    if (first < 0) first = tile;
  }
  return placement & 1 ? -1 : first;
}

int xe_memory_create(xe_device *device, struct drm_xe_gem_create *create) {
  uint32_t vram = create->placement & ~1u;
  uint32_t page = vram ? xe_product_page(device->product) : 4096;
  bool cached = create->cpu_caching == DRM_XE_GEM_CPU_CACHING_WB;
  bool combined = create->cpu_caching == DRM_XE_GEM_CPU_CACHING_WC; /* which VRAM always is */
  uint32_t regions = device->product->vram ? (2u << device->product->tiles) - 1 : 1;
  if (!create->placement || create->placement & ~regions || !create->size || create->size % page ||
      !(combined || (cached && !vram))) {
    xe_report_failure("gem_create: %llu bytes, placement 0x%x, caching %u", (ull)create->size, create->placement,
                      create->cpu_caching);
    return EINVAL;
  }
  pthread_mutex_lock(&xe_lock);
  xe_buffer *buffer = xe_buffer_create(device, create->size, place(device, create->placement, create->size));
  if (buffer && !(create->flags & DRM_XE_GEM_CREATE_FLAG_DEFER_BACKING) && !xe_buffer_back(buffer)) {
    xe_buffer_drop(buffer);
    buffer = NULL;
  }
  create->handle = buffer ? xe_buffer_give_handle(device, buffer) : 0;
  pthread_mutex_unlock(&xe_lock);
  xe_report_log("gem_create: 0x%llx bytes, placement 0x%x: handle %u", (ull)create->size, create->placement,
                create->handle);
  return create->handle ? 0 : ENOMEM;
}

int xe_memory_close(xe_device *device, const struct drm_gem_close *close) {
  pthread_mutex_lock(&xe_lock);
  xe_buffer *buffer = xe_buffer_get(device, close->handle);
  if (buffer) {
    device->buffers[close->handle] = NULL;
    xe_buffer_drop(buffer);
  }
  pthread_mutex_unlock(&xe_lock);
  xe_report_log("gem_close: device %d, handle %u", device->index, close->handle);
  if (!buffer) xe_report_failure("gem_close: device %d has no handle %u", device->index, close->handle);
  return buffer ? 0 : EINVAL;
}

int xe_memory_offset(xe_device *device, struct drm_xe_gem_mmap_offset *offset) {
  if (offset->flags & DRM_XE_MMAP_OFFSET_FLAG_PCI_BARRIER) {
    offset->offset = XE_BARRIER_OFFSET;
    return 0;
  }
  pthread_mutex_lock(&xe_lock);
  const xe_buffer *buffer = xe_buffer_get(device, offset->handle);
  pthread_mutex_unlock(&xe_lock);
  if (!buffer) {
    xe_report_failure("gem_mmap_offset: no handle %u", offset->handle);
    return ENOENT;
  }
  offset->offset = xe_buffer_offset(offset->handle);
  return 0;
}

/* What there is to bind; `binding` takes over a reference. 0 or a number of errno. */
static int source(const xe_device *device, const struct drm_xe_vm_bind_op *op, xe_binding *binding) {
  if (op->op == DRM_XE_VM_BIND_OP_MAP_USERPTR) {
    binding->memory = (uint8_t *)(uintptr_t)op->userptr;
    return op->userptr % 4096 ? EINVAL : 0;
  }
  binding->null = op->flags & DRM_XE_VM_BIND_FLAG_NULL;
  binding->mirror = op->flags & DRM_XE_VM_BIND_FLAG_CPU_ADDR_MIRROR;
  if (binding->null || binding->mirror) return 0;
  xe_buffer *buffer = xe_buffer_get(device, op->obj);
  if (!buffer) return ENOENT;
  uint32_t page = buffer->vram_of ? xe_product_page(device->product) : 4096;
  if (op->obj_offset + op->range > buffer->size || (op->addr | op->range | op->obj_offset) % page) return EINVAL;
  if (!xe_buffer_back(buffer)) return ENOMEM;
  binding->buffer = buffer;
  binding->offset = op->obj_offset;
  buffer->references++;
  return 0;
}

/* Callers hold `xe_lock` and have locked the space. */
static int bind_one(const xe_device *device, xe_space *space, const struct drm_xe_vm_bind_op *op) {
  bool of_buffer = op->op == DRM_XE_VM_BIND_OP_UNMAP_ALL;
  if (!of_buffer && ((op->addr | op->range) % 4096 || !op->range)) return EINVAL;
  if (op->addr + op->range > 1ull << device->product->address_bits) return EINVAL;
  xe_binding binding = {.address = op->addr, .size = op->range};
  int error = 0;
  switch (op->op) {
    case DRM_XE_VM_BIND_OP_MAP:
    case DRM_XE_VM_BIND_OP_MAP_USERPTR:
      error = source(device, op, &binding);
      if (!error) xe_space_bind(space, binding);
      return error;
    case DRM_XE_VM_BIND_OP_UNMAP: xe_space_unbind(space, op->addr, op->range); return 0;
    case DRM_XE_VM_BIND_OP_UNMAP_ALL:
      if (!xe_buffer_get(device, op->obj)) return ENOENT;
      xe_space_unbind_buffer(space, xe_buffer_get(device, op->obj));
      return 0;
    case DRM_XE_VM_BIND_OP_PREFETCH: return 0;
    default: return EINVAL;
  }
}

int xe_memory_bind(xe_device *device, const struct drm_xe_vm_bind *bind) {
  xe_space *space = xe_space_get(bind->vm_id);
  const struct drm_xe_vm_bind_op *ops = bind->num_binds == 1 ? &bind->bind
                                                             : (const void *)(uintptr_t)bind->vector_of_binds;
  const struct drm_xe_sync *syncs = (const void *)(uintptr_t)bind->syncs;
  int error = 0;
  if (!space) {
    xe_report_failure("vm_bind: no VM %u", bind->vm_id);
    return ENOENT;
  }
  for (uint32_t i = 0; i < bind->num_binds; i++) {
    bool unbinds = ops[i].op == DRM_XE_VM_BIND_OP_UNMAP || ops[i].op == DRM_XE_VM_BIND_OP_UNMAP_ALL;
    xe_report_count(unbinds ? XE_COUNT_vm_unbind : XE_COUNT_vm_bind);
  }
  pthread_mutex_lock(&xe_lock);
  pthread_rwlock_wrlock(&space->lock);
  for (uint32_t i = 0; i < bind->num_binds && !error; i++) {
    const struct drm_xe_vm_bind_op *op = &ops[i];
    error = bind_one(device, space, op);
    const char *format = "vm_bind: VM %u, operation %u, handle %u, offset 0x%llx, address 0x%llx, 0x%llx bytes: %d";
#define ABOUT bind->vm_id, op->op, op->obj, (ull)op->obj_offset, (ull)op->addr, (ull)op->range, error
    xe_report_log(format, ABOUT);
    if (error && error != ENOMEM) xe_report_failure(format, ABOUT); /* a driver may try */
#undef ABOUT
  }
  pthread_rwlock_unlock(&space->lock);
  pthread_mutex_unlock(&xe_lock);
  if (error) return error;
  for (uint32_t i = 0; i < bind->num_syncs; i++)
    if (xe_fence_signals(&syncs[i])) /* a bind's fence is an address of the program */
      __atomic_store_n((uint64_t *)(uintptr_t)syncs[i].addr, syncs[i].timeline_value, __ATOMIC_RELEASE);
  return 0;
}

int xe_memory_export(xe_device *device, struct drm_prime_handle *handle) {
  pthread_mutex_lock(&xe_lock);
  const xe_buffer *buffer = xe_buffer_get(device, handle->handle);
  int error = buffer ? 0 : ENOENT;
  if (buffer) handle->fd = xe_libc.fcntl(buffer->fd, F_DUPFD_CLOEXEC, 0);
  if (buffer && handle->fd < 0) error = errno;
  pthread_mutex_unlock(&xe_lock);
  xe_report_log("prime_handle_to_fd: device %d, handle %u: fd %d", device->index, handle->handle, handle->fd);
  return error;
}

int xe_memory_import(xe_device *device, struct drm_prime_handle *handle) {
  pthread_mutex_lock(&xe_lock);
  handle->handle = xe_buffer_import(device, handle->fd);
  int error = handle->handle ? 0 : errno;
  pthread_mutex_unlock(&xe_lock);
  xe_report_log("prime_fd_to_handle: device %d, fd %d: handle %u", device->index, handle->fd, handle->handle);
  return error;
}
