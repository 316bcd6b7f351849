/* SPDX-License-Identifier: Apache-2.0 */
#include "ioctl.h"

#include <errno.h>
#include <string.h>

#include "fence.h"
#include "memory.h"
#include "query.h"
#include "queue.h"
#include "report.h"
#include "space.h"

static int version(struct drm_version *version) {
  static const char name[] = "xe";
  version->version_major = 1;
  version->version_minor = 1;
  version->version_patchlevel = 0;
  if (version->name && version->name_len >= 2) memcpy(version->name, name, version->name_len > 2 ? 3 : 2);
  version->name_len = 2;
  version->date_len = version->desc_len = 0;
  return 0;
}

static int create_space(struct drm_xe_vm_create *create) {
  if (create->flags & DRM_XE_VM_CREATE_FLAG_FAULT_MODE) return EINVAL; /* no page faults, as in-tree by default */
  create->vm_id = xe_space_create();
  return create->vm_id ? 0 : ENOSPC;
}

static int destroy_space(const struct drm_xe_vm_destroy *destroy) {
  xe_space *space = xe_space_get(destroy->vm_id);
  if (!space) {
    xe_report_failure("vm_destroy: no VM %u", destroy->vm_id);
    return ENOENT;
  }
  if (xe_space_destroy(space)) return 0;
  xe_report_failure("vm_destroy: VM %u has queues", destroy->vm_id);
  return EBUSY;
}

static int create_queue(const xe_device *device, struct drm_xe_exec_queue_create *create) {
  xe_space *space = xe_space_get(create->vm_id);
  if (!space || !create->num_placements || create->width != 1) {
    xe_report_failure("exec_queue_create: VM %u, %u placements, width %u", create->vm_id, create->num_placements,
                      create->width);
    return space ? EINVAL : ENOENT;
  }
  create->exec_queue_id = xe_queue_create(device, space);
  const struct drm_xe_engine_class_instance *engine = (const void *)(uintptr_t)create->instances;
  xe_report_log("exec_queue_create: VM %u, class %u, instance %u: queue %u", create->vm_id, engine->engine_class,
                engine->engine_instance, create->exec_queue_id);
  return create->exec_queue_id ? 0 : ENOSPC;
}

static int destroy_queue(const struct drm_xe_exec_queue_destroy *destroy) {
  return xe_queue_destroy(destroy->exec_queue_id);
}

static int queue_property(struct drm_xe_exec_queue_get_property *get) {
  uint64_t value = 0;
  int error = xe_queue_property(get->exec_queue_id, get->property, &value);
  get->value = value;
  return error;
}

static int exec(const struct drm_xe_exec *exec) {
  xe_report_log("exec: queue %u, batch 0x%llx, %u syncs", exec->exec_queue_id, (unsigned long long)exec->address,
                exec->num_syncs);
  return xe_queue_submit(exec->exec_queue_id, exec->num_batch_buffer ? exec->address : 0, exec->num_syncs,
                         (const void *)(uintptr_t)exec->syncs);
}

/* 0 or a number of errno. */
static int answer(xe_device *device, unsigned long request, void *argument) {
  switch (request) {
#define CASE(request, counter, call)                                                                                   \
  case request: xe_report_count(XE_COUNT_##counter); return call
    CASE(DRM_IOCTL_VERSION, version, version(argument));
    CASE(DRM_IOCTL_XE_DEVICE_QUERY, query, xe_query(device, argument));
    CASE(DRM_IOCTL_XE_GEM_CREATE, gem_create, xe_memory_create(device, argument));
    CASE(DRM_IOCTL_GEM_CLOSE, gem_close, xe_memory_close(device, argument));
    CASE(DRM_IOCTL_XE_GEM_MMAP_OFFSET, mmap_offset, xe_memory_offset(device, argument));
    CASE(DRM_IOCTL_PRIME_HANDLE_TO_FD, prime_handle_to_fd, xe_memory_export(device, argument));
    CASE(DRM_IOCTL_PRIME_FD_TO_HANDLE, prime_fd_to_handle, xe_memory_import(device, argument));
    CASE(DRM_IOCTL_XE_VM_CREATE, vm_create, create_space(argument));
    CASE(DRM_IOCTL_XE_VM_DESTROY, vm_destroy, destroy_space(argument));
    CASE(DRM_IOCTL_XE_EXEC_QUEUE_CREATE, exec_queue_create, create_queue(device, argument));
    CASE(DRM_IOCTL_XE_EXEC_QUEUE_DESTROY, exec_queue_destroy, destroy_queue(argument));
    CASE(DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY, exec_queue_get_property, queue_property(argument));
    CASE(DRM_IOCTL_XE_EXEC_QUEUE_SET_PROPERTY, exec_queue_set_property, 0);
    CASE(DRM_IOCTL_XE_EXEC, exec, exec(argument));
    CASE(DRM_IOCTL_XE_WAIT_USER_FENCE, wait_user_fence, xe_fence_wait(argument));
    CASE(DRM_IOCTL_XE_MADVISE, madvise, 0);
#undef CASE
    case DRM_IOCTL_XE_VM_BIND: return xe_memory_bind(device, argument); /* counts each operation */
  }
  xe_report_count(XE_COUNT_other_ioctl);
  xe_report_failure("unknown ioctl 0x%lx", request);
  return EINVAL;
}

int xe_ioctl(xe_device *device, unsigned long request, void *argument) {
  int error = answer(device, request, argument);
  xe_report_log("ioctl 0x%lx: %s", request, strerror(error));
  if (error) errno = error;
  return error ? -1 : 0;
}
