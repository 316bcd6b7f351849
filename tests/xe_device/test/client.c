/* SPDX-License-Identifier: Apache-2.0 */
/* What test_device.py asks of a simulated device, without a driver between: one program for each word. */
#include <dlfcn.h>
#include <drm/drm.h>
#include <drm/xe_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define ADDRESS 0x100000000ull /* where buffers are bound */
#define FENCE 0x200000000ull
#define HOST 1 /* placements */
#define VRAM 2
#define END 0x05000000 /* MI_BATCH_BUFFER_END */
#define MIB (1ull << 20)

static int node = -1;
static uint32_t vm, queue;
static uint64_t *fence;

/* 0, or the name of the error. */
static const char *ask(unsigned long request, void *argument) {
  return ioctl(node, request, argument) ? strerrorname_np(errno) : "0";
}

static void need(unsigned long request, void *argument, const char *what) {
  if (!ioctl(node, request, argument)) return;
  perror(what);
  exit(1);
}

static const char *create_with(uint64_t size, int placement, uint32_t flags, uint32_t *handle) {
  struct drm_xe_gem_create create = {
      .flags = flags,
      .size = size,
      .placement = placement,
      .cpu_caching = placement == HOST ? DRM_XE_GEM_CPU_CACHING_WB : DRM_XE_GEM_CPU_CACHING_WC,
  };
  const char *error = ask(DRM_IOCTL_XE_GEM_CREATE, &create);
  *handle = create.handle;
  return error;
}

static const char *create(uint64_t size, int placement, uint32_t *handle) {
  return create_with(size, placement, 0, handle);
}

static void *map(uint32_t handle, uint64_t size) {
  struct drm_xe_gem_mmap_offset offset = {.handle = handle};
  need(DRM_IOCTL_XE_GEM_MMAP_OFFSET, &offset, "mmap_offset");
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, node, offset.offset);
  if (memory != MAP_FAILED) return memory;
  perror("mmap");
  exit(1);
}

static const char *bind(uint32_t handle, uint64_t offset, uint64_t address, uint64_t size) {
  struct drm_xe_vm_bind bind = {
      .vm_id = vm,
      .num_binds = 1,
      .bind = {.obj = handle, .obj_offset = offset, .range = size, .addr = address, .op = DRM_XE_VM_BIND_OP_MAP},
  };
  return ask(DRM_IOCTL_XE_VM_BIND, &bind);
}

static void *memory(uint64_t size, uint64_t address) {
  uint32_t handle;
  if (strcmp(create(size, HOST, &handle), "0") || strcmp(bind(handle, 0, address, size), "0")) exit(1);
  return map(handle, size);
}

/* A VM with a mebibyte of memory at ADDRESS, a fence, and a queue on the first engine. */
static uint32_t *begin(void) {
  node = open("/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
  struct drm_xe_vm_create space = {.flags = DRM_XE_VM_CREATE_FLAG_LR_MODE};
  need(DRM_IOCTL_XE_VM_CREATE, &space, "vm_create");
  vm = space.vm_id;
  struct drm_xe_engine_class_instance engine = {.engine_class = DRM_XE_ENGINE_CLASS_COPY};
  struct drm_xe_exec_queue_create create = {
      .width = 1, .num_placements = 1, .vm_id = vm, .instances = (uintptr_t)&engine};
  need(DRM_IOCTL_XE_EXEC_QUEUE_CREATE, &create, "exec_queue_create");
  queue = create.exec_queue_id;
  fence = memory(4096, FENCE);
  return memory(MIB, ADDRESS);
}

static const char *submit(uint64_t value) {
  struct drm_xe_sync sync = {
      .type = DRM_XE_SYNC_TYPE_USER_FENCE, .flags = DRM_XE_SYNC_FLAG_SIGNAL, .addr = FENCE, .timeline_value = value};
  struct drm_xe_exec exec = {
      .exec_queue_id = queue, .num_syncs = 1, .syncs = (uintptr_t)&sync, .address = ADDRESS, .num_batch_buffer = 1};
  return ask(DRM_IOCTL_XE_EXEC, &exec);
}

static const char *wait_for(uint64_t value) {
  struct drm_xe_wait_user_fence wait = {
      .addr = (uintptr_t)fence,
      .op = DRM_XE_UFENCE_WAIT_OP_GTE,
      .value = value,
      .mask = UINT64_MAX,
      .timeout = 20000000000,
      .exec_queue_id = queue,
  };
  return ask(DRM_IOCTL_XE_WAIT_USER_FENCE, &wait);
}

static uint64_t banned(void) {
  struct drm_xe_exec_queue_get_property get = {.exec_queue_id = queue, .property = DRM_XE_EXEC_QUEUE_GET_PROPERTY_BAN};
  need(DRM_IOCTL_XE_EXEC_QUEUE_GET_PROPERTY, &get, "get_property");
  return get.value;
}

static void run(const uint32_t *words, size_t size) {
  uint32_t *batch = begin();
  memcpy(batch, words, size);
  const char *submitted = submit(1), *waited = wait_for(1);
  printf("%s %s %llu", submitted, waited, (unsigned long long)banned());
  printf(" %s\n", submit(2));
}

static void unbound(void) { run((uint32_t[]){0x10000002, 0x1000, 7, 1, END}, 20); }
static void unknown(void) { run((uint32_t[]){0x1f800000, END}, 8); }
static void stored(void) { run((uint32_t[]){0x10000002, (uint32_t)ADDRESS + 4096, ADDRESS >> 32, 42, END}, 20); }

/* MI_MATH: the word at ADDRESS + 0x100, plus 2, to ADDRESS + 0x108, by addresses in registers. */
static void math(void) {
  uint32_t *batch = begin();
  const uint32_t words[] = {0x1100000b,
                            0x600,
                            (uint32_t)ADDRESS + 0x100,
                            0x604,
                            ADDRESS >> 32,
                            0x608,
                            (uint32_t)ADDRESS + 0x108,
                            0x60c,
                            ADDRESS >> 32,
                            0x610,
                            2,
                            0x614,
                            0, /* three registers of 64 bits */
                            0x0d000006,
                            0x08200c00 /* LOADIND r3, r0 */,
                            0x00100000,
                            0x08008003,
                            0x08008402,
                            0x10000000,
                            0x18001031,
                            0x18100404, /* STOREIND r1, r4 */
                            END};
  memcpy(batch, words, sizeof words);
  batch[0x40] = 40;
  printf("%s", submit(1));
  printf(" %s", wait_for(1));
  printf(" %u\n", batch[0x42]);
}

/* A copy engine fills rows, and copies them. */
static void copied(void) {
  uint32_t *batch = begin();
  const uint32_t words[] = {0x56c00005,
                            1023,
                            0,
                            0,
                            (uint32_t)ADDRESS + 0x1000,
                            ADDRESS >> 32,
                            0xab000000, /* MEM_SET */
                            0x56800008,
                            1023,
                            0,
                            0,
                            0,
                            (uint32_t)ADDRESS + 0x1000,
                            ADDRESS >> 32,
                            (uint32_t)ADDRESS + 0x2001,
                            ADDRESS >> 32,
                            0, /* MEM_COPY */
                            END};
  memcpy(batch, words, sizeof words);
  printf("%s", submit(1));
  printf(" %s", wait_for(1));
  const uint8_t *bytes = (const uint8_t *)batch;
  printf(" %02x %02x %02x %02x\n", bytes[0x2000], bytes[0x2001], bytes[0x2400], bytes[0x2401]);
}

/* Offsets, addresses and sizes, each off by half a page of 4 KiB or of 64 KiB. */
static void alignment(void) {
  begin();
  uint32_t host, vram;
  printf("%s", create(MIB, HOST, &host));
  printf(" %s", bind(host, 0, ADDRESS + 0x800, 4096));
  printf(" %s", bind(host, 0x800, ADDRESS, 4096));
  printf(" %s", bind(host, 0, ADDRESS, 0x800));
  printf(" %s", create(MIB, VRAM, &vram));
  printf(" %s", bind(vram, 0, ADDRESS + 0x8000, 0x10000));
  printf(" %s", bind(vram, 0x8000, ADDRESS, 0x10000));
  printf(" %s", bind(vram, 0, ADDRESS, 0x8000));
  printf(" %s\n", create(MIB + 0x8000, VRAM, &vram));
}

/* Blocks of 1 GiB until there is no more; one is freed and another one made. */
static void full(void) {
  begin();
  uint32_t handle, number = 0, first = 0;
  const char *error;
  while (!strcmp(error = create(1024 * MIB, VRAM, &handle), "0")) {
    if (!number++) first = handle;
  }
  printf("%u %s", number, error);
  struct drm_gem_close close = {.handle = first};
  printf(" %s", ask(DRM_IOCTL_GEM_CLOSE, &close));
  printf(" %s", create(1024 * MIB, VRAM, &handle));
  printf(" %s\n", create(1024 * MIB, VRAM, &handle));
}

/* The same with buffers that take their memory when they are bound. */
static void deferred(void) {
  begin();
  uint32_t handle, number = 0;
  const char *error = "0";
  for (; !strcmp(error, "0"); number++) {
    if (strcmp(create_with(1024 * MIB, VRAM, DRM_XE_GEM_CREATE_FLAG_DEFER_BACKING, &handle), "0")) exit(1);
    error = bind(handle, 0, 4 * FENCE + number * 1024 * MIB, 1024 * MIB);
  }
  printf("%u %s\n", number - 1, error);
}

/* The order that the kernel asks for, and the other one. */
static void ended(void) {
  begin();
  struct drm_xe_vm_destroy space = {.vm_id = vm};
  struct drm_xe_exec_queue_destroy destroy = {.exec_queue_id = queue};
  printf("%s", ask(DRM_IOCTL_XE_VM_DESTROY, &space));
  printf(" %s", ask(DRM_IOCTL_XE_EXEC_QUEUE_DESTROY, &destroy));
  printf(" %s", ask(DRM_IOCTL_XE_VM_DESTROY, &space));
  printf(" %s\n", ask(DRM_IOCTL_XE_VM_DESTROY, &space));
}

/* An answer of any kind, in memory that stays. */
static const void *query(uint32_t kind, uint32_t *size) {
  struct drm_xe_device_query query = {.query = kind};
  need(DRM_IOCTL_XE_DEVICE_QUERY, &query, "size of a query");
  void *answer = calloc(1, query.size);
  query.data = (uintptr_t)answer;
  need(DRM_IOCTL_XE_DEVICE_QUERY, &query, "query");
  *size = query.size;
  return answer;
}

/* How many GTs, engines and masks of what they have there are. */
static void described(void) {
  begin();
  uint32_t size, masks = 0;
  const struct drm_xe_query_gt_list *list = query(DRM_XE_DEVICE_QUERY_GT_LIST, &size);
  printf("%u", list->num_gt);
  const struct drm_xe_query_engines *engines = query(DRM_XE_DEVICE_QUERY_ENGINES, &size);
  printf(" %u", engines->num_engines);
  const uint8_t *masks_of = query(DRM_XE_DEVICE_QUERY_GT_TOPOLOGY, &size);
  for (uint32_t used = 0; used < size; masks++)
    used += sizeof(struct drm_xe_query_topology_mask) +
            ((const struct drm_xe_query_topology_mask *)(masks_of + used))->num_bytes;
  printf(" %u\n", masks);
}

static void shared(void) {
  begin();
  uint32_t handle;
  create(MIB, HOST, &handle);
  struct drm_prime_handle out = {.handle = handle}, again = {0}, other = {0};
  need(DRM_IOCTL_PRIME_HANDLE_TO_FD, &out, "export");
  again.fd = other.fd = out.fd;
  need(DRM_IOCTL_PRIME_FD_TO_HANDLE, &again, "import");
  *(int *)map(handle, MIB) = 7;
  node = open("/dev/dri/renderD129", O_RDWR | O_CLOEXEC);
  need(DRM_IOCTL_PRIME_FD_TO_HANDLE, &other, "import elsewhere");
  printf("%d %d\n", again.handle == handle, *(int *)map(other.handle, MIB));
}

static void reset(void) {
  uint32_t *batch = begin();
  const uint32_t forever[] = {0x0e004002, 1, (uint32_t)ADDRESS + 4096, ADDRESS >> 32, END}; /* until a word is 1 */
  memcpy(batch, forever, sizeof forever);
  printf("%s", submit(1));
  printf(" %llu", (unsigned long long)banned());
  void (*ask_reset)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "xe_device_reset");
  ask_reset(0);
  printf(" %llu", (unsigned long long)banned());
  printf(" %s", wait_for(1));
  printf(" %s\n", submit(2));
}

static void counted(void) {
  const char *(*name)(int) = (const char *(*)(int))dlsym(RTLD_DEFAULT, "xe_device_counter_name");
  unsigned long long (*value)(int) = (unsigned long long (*)(int))dlsym(RTLD_DEFAULT, "xe_device_counter");
  stored();
  for (int i = 0; name(i); i++)
    if (value(i)) printf("%s=%llu ", name(i), value(i));
  printf("\n");
}

/* The microseconds that a batch of four stores takes, and those of a bind. */
static void slow(void) {
  uint32_t *batch = begin();
  for (int i = 0; i < 20; i += 5)
    memcpy(batch + i, (uint32_t[]){0x10000002, (uint32_t)ADDRESS + 4096, ADDRESS >> 32, 42, END}, 20);
  batch[4] = batch[9] = batch[14] = 0; /* MI_NOOP */
  struct timespec times[3];
  clock_gettime(CLOCK_MONOTONIC, &times[0]);
  submit(1);
  wait_for(1);
  clock_gettime(CLOCK_MONOTONIC, &times[1]);
  memory(4096, 2 * FENCE);
  clock_gettime(CLOCK_MONOTONIC, &times[2]);
  for (int i = 0; i < 2; i++)
    printf("%lld ",
           (times[i + 1].tv_sec - times[i].tv_sec) * 1000000ll + (times[i + 1].tv_nsec - times[i].tv_nsec) / 1000);
  printf("\n");
}

static void stranger(void) {
  begin();
  printf("%s\n", ask(DRM_IOWR(DRM_COMMAND_BASE + 0x3f, int), &(int){0}));
}

int main(int count, char **words) {
  static const struct {
    const char *name;
    void (*run)(void);
  } programs[] = {{"unbound", unbound},     {"unknown", unknown}, {"stored", stored},     {"math", math},
                  {"copied", copied},       {"full", full},       {"shared", shared},     {"reset", reset},
                  {"alignment", alignment}, {"counted", counted}, {"stranger", stranger}, {"slow", slow},
                  {"described", described}, {"ended", ended},     {"deferred", deferred}};
  for (unsigned i = 0; count == 2 && i < sizeof programs / sizeof *programs; i++)
    if (!strcmp(words[1], programs[i].name)) {
      programs[i].run();
      return 0;
    }
  return 2;
}
