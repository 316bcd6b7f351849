/* SPDX-License-Identifier: Apache-2.0 */
/* test_external.c: memory by file descriptor, to software that is not of this driver and back, and host memory between
 * processes. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "children.h"

enum { SIZE = 300000, PAGES = 74 * 4096, OPAQUE = 1, DMA_BUF = 2 };

static ze_command_list_handle_t list;
static unsigned char *copy;
static int sockets[2];

static void send_file(int file) {
  char byte = 0, control[CMSG_SPACE(sizeof(int))] = {0};
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  *header = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
  memcpy(CMSG_DATA(header), &file, sizeof(int));
  CHECK(sendmsg(sockets[0], &message, 0) == 1);
}

static int receive_file(void) {
  char byte, control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {&byte, 1};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
  int file;
  CHECK(recvmsg(sockets[1], &message, 0) == 1);
  memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
  return file;
}

static void fill(unsigned char *at, unsigned char value, size_t size) {
  OK(zeCommandListAppendMemoryFill(list, at, &value, 1, size, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
}

static bool has(const unsigned char *at, unsigned char value, size_t size) {
  OK(zeCommandListAppendMemoryCopy(list, copy, at, size, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  return copy[0] == value && memcmp(copy, copy + 1, size - 1) == 0;
}

static ze_result_t allocate(bool on_host, void *chain, size_t size, unsigned char **out) {
  ze_device_mem_alloc_desc_t local = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .pNext = chain};
  ze_host_mem_alloc_desc_t host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = chain};
  return on_host ? zeMemAllocHost(context, &host, size, 0, (void **)out)
                 : zeMemAllocDevice(context, &local, size, 0, device, (void **)out);
}

static ze_result_t exportable(bool on_host, uint32_t types, size_t size, unsigned char **out) {
  ze_external_memory_export_desc_t chain = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC, .flags = types};
  return allocate(on_host, &chain, size, out);
}

static ze_result_t import(bool on_host, uint32_t type, int file, size_t size, unsigned char **out) {
  ze_external_memory_import_fd_t chain = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD, .flags = type, .fd = file};
  return allocate(on_host, &chain, size, out);
}

static ze_result_t export(const void *memory, uint32_t type, int *file) {
  ze_external_memory_export_fd_t chain = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD, .flags = type, .fd = -7};
  ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES,
                                                  .pNext = &chain};
  ze_result_t result = zeMemGetAllocProperties(context, memory, &properties, NULL);
  CHECK((result == ZE_RESULT_SUCCESS) == (chain.fd >= 0));
  *file = chain.fd;
  return result;
}

static ze_memory_type_t type_of(const void *memory) {
  ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  OK(zeMemGetAllocProperties(context, memory, &properties, NULL));
  return properties.type;
}

static uint64_t usable(void) {
  ze_device_usablemem_size_ext_properties_t chain = {.stype = ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES};
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &chain};
  OK(zeDeviceGetProperties(device, &properties));
  return chain.currUsableMemSize;
}

/* One memory, by its allocation, by mmap, and by an import, of which each may go first. */
static void one_memory_in_three_places(bool on_host, uint32_t type, bool exporter_first) {
  unsigned char *memory, *imported;
  int file, again;
  OK(exportable(on_host, OPAQUE | DMA_BUF, SIZE, &memory));
  fill(memory, 3, SIZE);
  OK(export(memory, type, &file));
  OK(export(memory + 1000, type, &again)); /* interior: the whole allocation is meant */
  CHECK(file != again && fcntl(file, F_GETFD) == FD_CLOEXEC);
  unsigned char *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0);
  CHECK(mapped != MAP_FAILED && mapped[0] == 3 && mapped[SIZE - 1] == 3 && close(again) == 0);
  uint64_t before = usable();
  OK(import(on_host, type, file, SIZE, &imported));
  CHECK(usable() == before && imported != memory); /* it is the exporter's */
  CHECK(fcntl(file, F_GETFD) < 0); /* the driver has taken it over */
  CHECK(type_of(imported) == (on_host ? ZE_MEMORY_TYPE_HOST : ZE_MEMORY_TYPE_DEVICE));
  GIVES(ERROR_INVALID_ARGUMENT, export(imported, type, &again)); /* none has asked for that */
  mapped[SIZE - 1] = 4;
  CHECK(has(imported, 3, SIZE - 1) && has(imported + SIZE - 1, 4, 1));
  fill(imported, 5, SIZE);
  CHECK(has(memory, 5, SIZE) && mapped[0] == 5 && mapped[SIZE - 1] == 5);
  if (on_host) imported[7] = 6; /* by the host itself */
  if (on_host) CHECK(memory[7] == 6 && mapped[7] == 6);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemCloseIpcHandle(context, imported)); /* it is freed, not closed */
  OK(zeMemFree(context, exporter_first ? memory : imported));
  CHECK(has(exporter_first ? imported : memory, 5, 7) && mapped[SIZE - 1] == 5);
  OK(zeMemFree(context, exporter_first ? imported : memory));
  CHECK(mapped[SIZE - 1] == 5 && munmap(mapped, SIZE) == 0);
  OK(exportable(on_host, OPAQUE, SIZE, &memory)); /* the same place: it is another memory */
  fill(memory, 1, SIZE);
  OK(zeMemFree(context, memory));
}

/* Physical memory is exported before or after it is mapped, and imported as such. */
static void physical_memory(bool on_host, bool before) {
  enum { PIECE = 2 << 20 };
  ze_external_memory_export_desc_t exports = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC, .flags = DMA_BUF};
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
                                 .pNext = &exports,
                                 .flags = on_host ? ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST : 0,
                                 .size = PIECE};
  ze_external_memory_export_fd_t file = {.stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD, .flags = DMA_BUF};
  ze_physical_mem_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES, .pNext = &file};
  ze_physical_mem_handle_t physical, imported;
  unsigned char *range;
  OK(zeVirtualMemReserve(context, NULL, 2 * PIECE, (void **)&range));
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  if (before) OK(zePhysicalMemGetProperties(context, physical, &properties));
  OK(zeVirtualMemMap(context, range, PIECE, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  fill(range, 8, 1000);
  if (!before) OK(zePhysicalMemGetProperties(context, physical, &properties));
  CHECK(has(range, 8, 1000) && properties.size == PIECE);
  ze_external_memory_import_fd_t import = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD, .flags = DMA_BUF, .fd = file.fd};
  desc.pNext = &import;
  desc.size = 2 * PIECE;
  GIVES(ERROR_INVALID_ARGUMENT, zePhysicalMemCreate(context, device, &desc, &imported)); /* it has fewer bytes */
  desc.size = PIECE;
  uint64_t free = usable();
  OK(zePhysicalMemCreate(context, device, &desc, &imported));
  CHECK(usable() == free && fcntl(file.fd, F_GETFD) < 0);
  GIVES(ERROR_INVALID_ARGUMENT, zePhysicalMemGetProperties(context, imported, &properties));
  OK(zeVirtualMemMap(context, range + PIECE, PIECE, imported, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(has(range + PIECE, 8, 1000));
  fill(range + PIECE, 9, PIECE);
  CHECK(has(range, 9, 1000));
  if (on_host) CHECK(range[0] == 9);
  OK(zeVirtualMemUnmap(context, range, 2 * PIECE));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeVirtualMemMap(context, range, PIECE, imported, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(has(range, 9, 1000));
  OK(zeVirtualMemUnmap(context, range, PIECE));
  OK(zePhysicalMemDestroy(context, imported));
  OK(zeVirtualMemFree(context, range, 2 * PIECE));
}

/* Another process gets the file and nothing else. */
static void other_process(void) {
  begin();
  list = in_order_list();
  copy = host_memory(PAGES);
  for (int on_host = 0; on_host < 2; on_host++) {
    unsigned char *memory;
    OK(import(on_host, DMA_BUF, receive_file(), SIZE, &memory));
    CHECK(has(memory, (unsigned char)(11 + on_host), SIZE));
    fill(memory, (unsigned char)(21 + on_host), SIZE);
    OK(zeMemFree(context, memory));
  }
  OK(zeMemFree(context, copy));
  OK(zeCommandListDestroy(list));
  finish("the other process");
}

static void between_processes(pid_t child) {
  unsigned char *memory[2];
  for (int on_host = 0; on_host < 2; on_host++) {
    int file;
    OK(exportable(on_host, DMA_BUF, SIZE, &memory[on_host]));
    fill(memory[on_host], (unsigned char)(11 + on_host), SIZE);
    OK(export(memory[on_host], DMA_BUF, &file));
    send_file(file);
    close(file);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  for (int on_host = 0; on_host < 2; on_host++) {
    CHECK(has(memory[on_host], (unsigned char)(21 + on_host), SIZE));
    OK(zeMemFree(context, memory[on_host]));
  }
}

static void what_is_refused(void) {
  unsigned char *memory, *other;
  int file;
  ze_device_external_memory_properties_t types = {.stype = ZE_STRUCTURE_TYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES};
  OK(zeDeviceGetExternalMemoryProperties(device, &types));
  CHECK(types.memoryAllocationExportTypes == (OPAQUE | DMA_BUF));
  CHECK(types.memoryAllocationImportTypes == (OPAQUE | DMA_BUF));
  CHECK(types.imageExportTypes == 0 && types.imageImportTypes == 0);
  for (int on_host = 0; on_host < 2; on_host++) {
    GIVES(ERROR_INVALID_ENUMERATION, exportable(on_host, 0x100, SIZE, &memory));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, exportable(on_host, 4, SIZE, &memory)); /* of Windows */
    OK(exportable(on_host, OPAQUE, SIZE, &memory));
    GIVES(ERROR_INVALID_ARGUMENT, export(memory, DMA_BUF, &file)); /* none has asked for that */
    GIVES(ERROR_INVALID_ARGUMENT, export(memory, 0, &file));
    GIVES(ERROR_INVALID_ENUMERATION, export(memory, 0x100, &file));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, export(memory, 4, &file));
    OK(export(memory, OPAQUE, &file));
    GIVES(ERROR_INVALID_ENUMERATION, import(on_host, 0x100, file, SIZE, &other));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, import(on_host, 4, file, SIZE, &other));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, import(on_host, 0, file, SIZE, &other));
    GIVES(ERROR_INVALID_ARGUMENT, import(on_host, OPAQUE, file, SIZE + 1, &other)); /* it has fewer bytes */
    GIVES(ERROR_UNSUPPORTED_SIZE, import(on_host, OPAQUE, file, 0, &other));
    CHECK(fcntl(file, F_GETFD) >= 0); /* a refused import takes nothing */
    OK(import(on_host, OPAQUE, file, 1000, &other)); /* a part of it, from its beginning on */
    GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, other, "x", 1, 1001, NULL, 0, NULL));
    OK(zeMemFree(context, other));
    OK(zeMemFree(context, memory));
    GIVES(ERROR_INVALID_ARGUMENT, import(on_host, OPAQUE, -1, SIZE, &other));
    char path[] = "/tmp/l0rt-XXXXXX";
    const int wrong[] = {mkstemp(path), open("/dev/null", O_RDWR), memfd_create("other", 0), 1000000};
    CHECK(unlink(path) == 0 && ftruncate(wrong[0], SIZE) == 0 && ftruncate(wrong[2], SIZE) == 0);
    for (int i = 0; i < 4; i++) GIVES(ERROR_INVALID_ARGUMENT, import(on_host, OPAQUE, wrong[i], SIZE, &other));
    for (int i = 0; i < 3; i++) CHECK(close(wrong[i]) == 0);
  }
  GIVES(ERROR_INVALID_ARGUMENT, export(&file, OPAQUE, &file)); /* no memory of the driver */
  memory = device_memory(SIZE);
  GIVES(ERROR_INVALID_ARGUMENT, export(memory, OPAQUE, &file));
  OK(zeMemFree(context, memory));
}

/* The host may write meanwhile, so what says that it will be shared does not move. */
static void host_memory_of_another_process(void) {
  ze_ipc_mem_handle_type_ext_desc_t sort = {.stype = ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC, .typeFlags = 1};
  for (int said_before = 0; said_before < 2; said_before++) {
    unsigned char *memory, *opened;
    ze_ipc_mem_handle_t handle, of_file;
    uint64_t file;
    OK(allocate(true, said_before ? &sort : NULL, PAGES, &memory));
    memset(memory, 7, PAGES);
    OK(zeMemGetIpcHandle(context, memory, &handle));
    CHECK(memory[0] == 7 && memory[PAGES - 1] == 7);
    OK(zeMemGetFileDescriptorFromIpcHandleExp(context, handle, &file));
    OK(zeMemGetIpcHandleFromFileDescriptorExp(context, file, &of_file));
    for (int i = 0; i < 2; i++) {
      OK(zeMemOpenIpcHandle(context, device, i == 0 ? handle : of_file, 0, (void **)&opened));
      CHECK(type_of(opened) == ZE_MEMORY_TYPE_HOST && opened[PAGES - 1] == (i == 0 ? 7 : 8));
      memset(opened, 8, PAGES);
      CHECK(memory[PAGES - 1] == 8 && has(opened, 8, PAGES));
      ze_ipc_mem_handle_t again;
      GIVES(ERROR_INVALID_ARGUMENT, zeMemGetIpcHandle(context, opened, &again)); /* it is another's */
      GIVES(ERROR_INVALID_ARGUMENT, zeMemFree(context, opened));
      OK(zeMemCloseIpcHandle(context, opened));
    }
    CHECK(close((int)file) == 0);
    OK(zeMemFree(context, memory));
    GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, handle, 0, (void **)&opened)); /* stale */
  }
}

/* A file that has the number 0 is none that the driver could confuse with no file. */
static void without_standard_input(void) {
  close(0);
  begin();
  list = in_order_list();
  copy = host_memory(PAGES);
  unsigned char *memory = device_memory(SIZE);
  ze_ipc_mem_handle_t handle;
  OK(zeMemGetIpcHandle(context, memory, &handle));
  CHECK(*(int *)handle.data > 2 && fcntl(0, F_GETFD) < 0);
  OK(zeMemFree(context, memory));
  one_memory_in_three_places(false, OPAQUE, true);
  OK(zeMemFree(context, copy));
  OK(zeCommandListDestroy(list));
  finish("without standard input");
}

static void all(void) {
  pid_t child = fork();
  if (child == 0) {
    other_process();
    exit(0);
  }
  begin();
  list = in_order_list();
  copy = host_memory(PAGES);
  for (int i = 0; i < 8; i++) one_memory_in_three_places(i & 1, i & 2 ? OPAQUE : DMA_BUF, i & 4);
  for (int i = 0; i < 4; i++) physical_memory(i & 1, i & 2);
  between_processes(child);
  what_is_refused();
  host_memory_of_another_process();
  OK(zeMemFree(context, copy));
  OK(zeCommandListDestroy(list));
  finish("external");
}

int main(void) {
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
  CHECK(in_child(NULL, NULL, without_standard_input, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_STRICT", "1", all, NULL, 0) == 0);
  all();
  return 0;
}
