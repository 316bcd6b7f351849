/* SPDX-License-Identifier: Apache-2.0 */
/* test_shared.c: memory and events between two processes. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "children.h"
#include "memory/share.h"

enum { SIZE = 300000 };

static struct {
  ze_ipc_mem_handle_t memory;
  ze_ipc_event_pool_handle_t events;
} handles;
static int to_child[2], sockets[2];

/* As clients of drivers before 25.18 do: the descriptor in a handle's first four bytes goes over a socket, arrives as
 * another number, and that is put into the handle. */
static void send_descriptor(const void *handle) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(header), handle, sizeof(int));
  CHECK(sendmsg(sockets[0], &message, 0) == 1);
}

static int receive_descriptor(void *handle) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  CHECK(recvmsg(sockets[1], &message, 0) == 1);
  memcpy(handle, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  ((cpu_share_record *)handle)->process = -1; /* nobody is to be asked for it */
  return ((cpu_share_record *)handle)->file;
}

static void open_what_was_sent(void) {
  ze_ipc_mem_handle_t memory = handles.memory;
  ze_ipc_event_pool_handle_t events = handles.events;
  ze_event_pool_handle_t pool;
  void *opened;
  int first = receive_descriptor(&memory), second = receive_descriptor(&events);
  OK(zeMemOpenIpcHandle(context, device, memory, 0, &opened));
  OK(zeMemCloseIpcHandle(context, opened));
  OK(zeEventPoolOpenIpcHandle(context, events, &pool));
  OK(zeEventPoolCloseIpcHandle(pool));
  *(int *)memory.data = second; /* the wrong one of two that are there */
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, memory, 0, &opened));
  *(int *)memory.data = -1;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, memory, 0, &opened));
  *(int *)memory.data = first;
  CHECK(close(first) == 0 && close(second) == 0);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, memory, 0, &opened));
}

/* Waits for event 0, checks and changes the memory, signals event 1: all on its device. */
static void other_process(void) {
  CHECK(read(to_child[0], &handles, sizeof(handles)) == sizeof(handles));
  begin();
  open_what_was_sent();
  unsigned char *memory, *copy = host_memory(SIZE), value = 9;
  ze_event_pool_handle_t pool;
  ze_ipc_mem_handle_t wrong; /* a pool's handle */
  memcpy(&wrong, &handles.events, sizeof(wrong));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, wrong, 0, (void **)&memory));
  OK(zeMemOpenIpcHandle(context, device, handles.memory, 0, (void **)&memory));
  OK(zeEventPoolOpenIpcHandle(context, handles.events, &pool));
  ze_event_handle_t start = event_of(pool, 0), done = event_of(pool, 1);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, copy, memory, SIZE, NULL, 1, &start));
  OK(zeCommandListAppendMemoryFill(list, memory, &value, 1, SIZE, done, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < SIZE; i++) CHECK(copy[i] == 5);
  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  OK(zeMemGetAllocProperties(context, memory, &what, NULL));
  CHECK(what.type == ZE_MEMORY_TYPE_DEVICE);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemFree(context, memory));
  OK(zeMemCloseIpcHandle(context, memory));
  OK(zeMemFree(context, copy));
  OK(zeEventDestroy(start));
  OK(zeEventDestroy(done));
  GIVES(ERROR_INVALID_ARGUMENT, zeEventPoolDestroy(pool));
  OK(zeEventPoolCloseIpcHandle(pool));
  OK(zeCommandListDestroy(list));
  finish("the other process");
}

/* A handle that names this file of this process. */
static ze_ipc_event_pool_handle_t handle_for(int file) {
  ze_ipc_event_pool_handle_t made = handles.events;
  cpu_share_record *record = (cpu_share_record *)made.data;
  struct stat status;
  CHECK(fstat(file, &status) == 0);
  record->process = getpid();
  record->file = file;
  record->inode = (uint64_t)status.st_ino;
  return made;
}

/* A file that is right in all but its owner. Only root can give one away. */
static void refuse_files_of_others(void) {
  const cpu_share_record *record = (cpu_share_record *)handles.events.data;
  if (geteuid() != 0) return;
  int file = memfd_create("given", MFD_ALLOW_SEALING);
  CHECK(file >= 0 && ftruncate(file, (off_t)record->size) == 0);
  CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
  ze_event_pool_handle_t pool;
  ze_ipc_mem_handle_t memory;
  for (uid_t owner = 0; owner < 3; owner++) {
    CHECK(fchown(file, owner, (gid_t)-1) == 0);
    ze_result_t result = zeEventPoolOpenIpcHandle(context, handle_for(file), &pool);
    CHECK(result == (owner == 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT));
    if (result == ZE_RESULT_SUCCESS) OK(zeEventPoolCloseIpcHandle(pool));
    result = zeMemGetIpcHandleFromFileDescriptorExp(context, file, &memory);
    CHECK(result == (owner == 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_ARGUMENT));
  }
  close(file);
}

/* Only a file whose length nobody can change is mapped: the shortened one would end who looks at it. */
static void refuse_other_files(void) {
  cpu_share_record *record = (cpu_share_record *)handles.events.data;
  CHECK(ftruncate(record->file, 0) != 0 && ftruncate(record->file, 1 << 20) != 0);
  CHECK(fcntl(record->file, F_ADD_SEALS, F_SEAL_WRITE) != 0);
  ze_event_pool_handle_t pool;
  for (int kind = 0; kind < 5; kind++) {
    char path[] = "/tmp/l0rt-XXXXXX";
    int file = kind == 0 ? mkstemp(path) : memfd_create("other", kind == 1 ? 0 : MFD_ALLOW_SEALING);
    CHECK(file >= 0 && ftruncate(file, (off_t)record->size + (kind == 4)) == 0);
    if (kind == 0) CHECK(unlink(path) == 0);
    if (kind == 3) CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0);
    if (kind == 4) CHECK(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    GIVES(ERROR_INVALID_ARGUMENT, zeEventPoolOpenIpcHandle(context, handle_for(file), &pool));
    ze_ipc_mem_handle_t memory;
    if (kind < 4) GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandleFromFileDescriptorExp(context, file, &memory));
    close(file);
  }
  ze_ipc_event_pool_handle_t odd = handles.events;
  ((cpu_share_record *)odd.data)->flags = UINT32_MAX;
  GIVES(ERROR_INVALID_ARGUMENT, zeEventPoolOpenIpcHandle(context, odd, &pool));
  OK(zeEventPoolOpenIpcHandle(context, handles.events, &pool));
  OK(zeEventPoolCloseIpcHandle(pool));
}

/* Physical memory is shared as a whole, by its own handle or by any address where it is mapped; it stays what it was. */
// Long: two processes, step by step.
static void share_physical_memory(void) {
  enum { HALF = 2 << 20 };
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 2 * HALF};
  ze_physical_mem_handle_t physical, other, host;
  ze_ipc_mem_handle_t by_handle, by_address, unmapped;
  unsigned char *range, *copy = host_memory(HALF), *opened, *again;
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  OK(zePhysicalMemCreate(context, device, &desc, &other));
  OK(zeVirtualMemReserve(context, NULL, 6 * HALF, (void **)&range));
  OK(zeVirtualMemMap(context, range, HALF, physical, HALF, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeVirtualMemMap(context, range + HALF, HALF, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  ze_command_list_handle_t list = in_order_list();
  unsigned char first = 3, second = 4, third = 5;
  OK(zeCommandListAppendMemoryFill(list, range, &second, 1, HALF, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryFill(list, range + HALF, &first, 1, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemGetIpcHandle(context, range + HALF + 77, &by_address));
  OK(zeMemGetIpcHandleWithProperties(context, physical, NULL, &by_handle));
  CHECK(memcmp(&by_address, &by_handle, sizeof(by_handle)) == 0);
  OK(zeMemOpenIpcHandle(context, device, by_handle, 0, (void **)&opened));
  OK(zeCommandListAppendMemoryCopy(list, copy, opened, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 3 && copy[HALF - 1] == 3);
  OK(zeCommandListAppendMemoryFill(list, opened + HALF, &third, 1, HALF, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, copy, range, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 5 && copy[HALF - 1] == 5); /* the same memory, in both directions */
  /* Mapped elsewhere, and unmapped: other memory is in its old place, and its contents go along. */
  OK(zeVirtualMemUnmap(context, range, HALF));
  OK(zeVirtualMemMap(context, range + 2 * HALF, 2 * HALF, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeVirtualMemMap(context, range, HALF, other, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeCommandListAppendMemoryCopy(list, copy, range + 3 * HALF, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 5);
  OK(zeCommandListAppendMemoryCopy(list, copy, range, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 0);
  /* What was opened stays when its memory goes, and no handle of it is good any more. */
  OK(zeVirtualMemUnmap(context, range + HALF, HALF));
  OK(zeVirtualMemUnmap(context, range + 2 * HALF, 2 * HALF));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeCommandListAppendMemoryCopy(list, copy, opened, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 3);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, by_handle, 0, (void **)&again));
  OK(zeMemCloseIpcHandle(context, opened));
  /* Before it is mapped at all; addresses without memory; memory of the host. */
  OK(zeVirtualMemUnmap(context, range, HALF));
  OK(zePhysicalMemDestroy(context, other));
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  OK(zeMemGetIpcHandle(context, physical, &unmapped));
  OK(zeVirtualMemMap(context, range, 2 * HALF, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeCommandListAppendMemoryFill(list, range, &second, 1, HALF, NULL, 0, NULL));
  OK(zeMemOpenIpcHandle(context, device, unmapped, 0, (void **)&opened));
  OK(zeCommandListAppendMemoryCopy(list, copy, opened, HALF, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy[0] == 4);
  OK(zeMemCloseIpcHandle(context, opened));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandle(context, range + 4 * HALF, &unmapped));
  desc.flags = ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
  OK(zePhysicalMemCreate(context, device, &desc, &host));
  OK(zeMemGetIpcHandle(context, host, &unmapped));
  OK(zeMemOpenIpcHandle(context, device, unmapped, 0, (void **)&opened));
  OK(zeVirtualMemMap(context, range + 2 * HALF, 2 * HALF, host, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  range[2 * HALF] = 6;
  CHECK(opened[0] == 6);
  OK(zeMemCloseIpcHandle(context, opened));
  OK(zeVirtualMemUnmap(context, range + 2 * HALF, 2 * HALF));
  OK(zePhysicalMemDestroy(context, host));
  OK(zeVirtualMemUnmap(context, range, 2 * HALF));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeVirtualMemFree(context, range, 6 * HALF));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, copy));
}

// Long: two processes, step by step.
int main(void) {
  CHECK(pipe(to_child) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    other_process();
    exit(0);
  }
  begin();
  unsigned char *memory = device_memory(SIZE), *copy = host_memory(SIZE), value = 1;
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_IPC | ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t start = event_of(pool, 0), done = event_of(pool, 1);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryFill(list, memory, &value, 1, SIZE, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemGetIpcHandle(context, memory, &handles.memory));
  CHECK(memory[SIZE - 1] == 1); /* it has kept what was in it */
  ze_ipc_mem_handle_t again;
  OK(zeMemGetIpcHandle(context, memory + 1000, &again)); /* interior: the whole allocation is meant */
  CHECK(memcmp(&again, &handles.memory, sizeof(again)) == 0);
  OK(zeEventPoolGetIpcHandle(pool, &handles.events));
  CHECK(write(to_child[1], &handles, sizeof(handles)) == sizeof(handles));
  CHECK(fcntl(*(int *)handles.memory.data, F_GETFD) >= 0 && fcntl(*(int *)handles.events.data, F_GETFD) >= 0);
  send_descriptor(&handles.memory);
  send_descriptor(&handles.events);
  usleep(20000); /* the child waits meanwhile */
  value = 5;
  OK(zeCommandListAppendMemoryFill(list, memory, &value, 1, SIZE, start, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, copy, memory, SIZE, NULL, 1, &done));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeEventHostSynchronize(done, FOREVER));
  for (int i = 0; i < SIZE; i++) CHECK(copy[i] == 9);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  refuse_other_files();
  refuse_files_of_others();
  share_physical_memory();
  ze_ipc_event_pool_handle_t none;
  ze_event_pool_handle_t plain = pool_of(1, 0);
  GIVES(ERROR_INVALID_ARGUMENT, zeEventPoolGetIpcHandle(plain, &none));
  void *migrating = shared_memory(SIZE);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandle(context, migrating, &again));
  OK(zeMemFree(context, migrating));
  /* A handle becomes a descriptor, and a descriptor a handle: for processes that pass descriptors on. */
  uint64_t descriptor;
  void *opened;
  OK(zeMemGetFileDescriptorFromIpcHandleExp(context, handles.memory, &descriptor));
  OK(zeMemGetIpcHandleFromFileDescriptorExp(context, descriptor, &again));
  OK(zeMemOpenIpcHandle(context, device, again, 0, &opened));
  CHECK(memcmp(opened, memory, SIZE) == 0);
  OK(zeMemCloseIpcHandle(context, opened));
  close((int)descriptor);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, again, 0, &opened)); /* closed meanwhile */
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandleFromFileDescriptorExp(context, 0, &again));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandleFromFileDescriptorExp(context, UINT64_MAX, &again));
  ze_ipc_mem_handle_type_ext_desc_t sort = {.stype = ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC,
                                            .typeFlags = ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT};
  OK(zeMemGetIpcHandleWithProperties(context, memory, &sort, &again));
  CHECK(memcmp(&again, &handles.memory, sizeof(again)) == 0);
  sort.typeFlags = ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE;
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeMemGetIpcHandleWithProperties(context, memory, &sort, &again));
  OK(zeMemPutIpcHandle(context, handles.memory));
  OK(zeEventPoolPutIpcHandle(context, handles.events));
  OK(zeMemFree(context, memory));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, handles.memory, 0, (void **)&memory)); /* stale */
  memory = device_memory(SIZE); /* the same place, and its pages are its own again */
  memory[0] = 1;
  OK(zeMemFree(context, memory));
  OK(zeMemFree(context, copy));
  OK(zeEventDestroy(start));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(plain));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
  finish("shared");
  return 0;
}
