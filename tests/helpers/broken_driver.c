/* SPDX-License-Identifier: Apache-2.0 */
/* broken_driver.c: functions of a driver that do what a trap's test must find out. helpers/broken.py puts those of one
 * trap into the place of the driver's; `original_X` is the driver's own. */

#include <sys/mman.h>

#include "l0rt/ze.h"

#define BREAK(trap, name, parameters, ...)                                                                             \
  typedef ze_result_t name##_t parameters;                                                                             \
  name##_t *original_##name;                                                                                           \
  ze_result_t trap##_##name parameters { __VA_ARGS__ }

/* A driver takes the in-order flag and ignores it. */
BREAK(in_order, zeCommandListCreateImmediate,
      (ze_context_handle_t context, ze_device_handle_t device, const ze_command_queue_desc_t *desc,
       ze_command_list_handle_t *list),
      {
        ze_command_queue_desc_t other = *desc;
        other.flags &= ~(ze_command_queue_flags_t)ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
        return original_zeCommandListCreateImmediate(context, device, &other, list);
      })

/* Waits on the device are forgotten. */
BREAK(waits, zeCommandListAppendWaitOnEvents,
      (ze_command_list_handle_t list, uint32_t count, ze_event_handle_t *events), { return ZE_RESULT_SUCCESS; })

/* What has not happened is told to have. */
BREAK(queries, zeEventQueryStatus, (ze_event_handle_t event), { return ZE_RESULT_SUCCESS; })
BREAK(queries, zeEventHostSynchronize, (ze_event_handle_t event, uint64_t timeout), { return ZE_RESULT_SUCCESS; })
BREAK(queries, zeCommandListHostSynchronize, (ze_command_list_handle_t list, uint64_t timeout),
      { return ZE_RESULT_SUCCESS; })

/* The clock is twice as fast as the driver says: timerResolution is in cycles a second. */
BREAK(clock, zeDeviceGetProperties, (ze_device_handle_t device, ze_device_properties_t *properties), {
  ze_result_t result = original_zeDeviceGetProperties(device, properties);
  properties->timerResolution /= 2;
  return result;
})

/* A lost device answers as if it were there. */
static ze_result_t found(ze_result_t result) {
  return result == ZE_RESULT_ERROR_DEVICE_LOST ? ZE_RESULT_SUCCESS : result;
}
BREAK(lost, zeEventQueryStatus, (ze_event_handle_t event), { return found(original_zeEventQueryStatus(event)); })
BREAK(lost, zeEventHostSynchronize, (ze_event_handle_t event, uint64_t timeout),
      { return found(original_zeEventHostSynchronize(event, timeout)); })
BREAK(lost, zeCommandListHostSynchronize, (ze_command_list_handle_t list, uint64_t timeout),
      { return found(original_zeCommandListHostSynchronize(list, timeout)); })

/* Waits of the host end when the work does, whatever time they were given. */
BREAK(deaf, zeEventHostSynchronize, (ze_event_handle_t event, uint64_t timeout),
      { return original_zeEventHostSynchronize(event, UINT64_MAX); })
BREAK(deaf, zeCommandListHostSynchronize, (ze_command_list_handle_t list, uint64_t timeout),
      { return original_zeCommandListHostSynchronize(list, UINT64_MAX); })

/* A pool of no events is asked for. */
BREAK(no_events, zeEventPoolCreate,
      (ze_context_handle_t context, const ze_event_pool_desc_t *desc, uint32_t count, ze_device_handle_t *devices,
       ze_event_pool_handle_t *pool),
      {
        ze_event_pool_desc_t other = *desc;
        other.count = 0;
        return original_zeEventPoolCreate(context, &other, count, devices, pool);
      })

/* Every list has a hundred mappings of its own. */
BREAK(mappings, zeCommandListCreateImmediate,
      (ze_context_handle_t context, ze_device_handle_t device, const ze_command_queue_desc_t *desc,
       ze_command_list_handle_t *list),
      {
        for (int i = 0; i < 100; i++)
          mmap(NULL, 4096, i & 1 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return original_zeCommandListCreateImmediate(context, device, desc, list);
      })

/* Large allocations are refused, whatever is asked for with them. */
BREAK(large, zeMemAllocDevice,
      (ze_context_handle_t context, const ze_device_mem_alloc_desc_t *desc, size_t size, size_t alignment,
       ze_device_handle_t device, void **memory),
      {
        if (desc->pNext != NULL) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
        return original_zeMemAllocDevice(context, desc, size, alignment, device, memory);
      })

/* A function that is there and refuses in another way than one that cannot. */
BREAK(refuses, zeDeviceSynchronize, (ze_device_handle_t device), { return ZE_RESULT_ERROR_UNKNOWN; })

/* Memory is mapped only in pieces of four mebibytes. */
BREAK(pages, zePhysicalMemCreate,
      (ze_context_handle_t context, ze_device_handle_t device, ze_physical_mem_desc_t *desc,
       ze_physical_mem_handle_t *memory),
      {
        if (desc->size % (4 << 20) != 0) return ZE_RESULT_ERROR_UNSUPPORTED_SIZE;
        return original_zePhysicalMemCreate(context, device, desc, memory);
      })

/* What a driver may do otherwise than the CPU driver: tests/process/test_covering.py. */

/* No other process gets an event. */
BREAK(unshared, zeEventPoolCreate,
      (ze_context_handle_t context, const ze_event_pool_desc_t *desc, uint32_t count, ze_device_handle_t *devices,
       ze_event_pool_handle_t *pool),
      {
        if (desc->flags & ZE_EVENT_POOL_FLAG_IPC) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
        return original_zeEventPoolCreate(context, desc, count, devices, pool);
      })

/* No list is more urgent than another. */
BREAK(equal, zeCommandListCreateImmediate,
      (ze_context_handle_t context, ze_device_handle_t device, const ze_command_queue_desc_t *desc,
       ze_command_list_handle_t *list),
      {
        if (desc->priority == ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH) return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION;
        return original_zeCommandListCreateImmediate(context, device, desc, list);
      })

/* Memory is not known as the driver's. */
BREAK(stranger, zeMemGetAllocProperties,
      (ze_context_handle_t context, const void *memory, ze_memory_allocation_properties_t *properties,
       ze_device_handle_t *device),
      {
        ze_result_t result = original_zeMemGetAllocProperties(context, memory, properties, device);
        properties->type = ZE_MEMORY_TYPE_UNKNOWN;
        return result;
      })

/* Advice is refused. */
BREAK(unadvised, zeCommandListAppendMemAdvise,
      (ze_command_list_handle_t list, ze_device_handle_t device, const void *memory, size_t size,
       ze_memory_advice_t advice),
      { return ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION; })

/* A wait that is over too early is an error. */
BREAK(impatient, zeEventHostSynchronize, (ze_event_handle_t event, uint64_t timeout), {
  ze_result_t result = original_zeEventHostSynchronize(event, timeout);
  return result == ZE_RESULT_NOT_READY ? ZE_RESULT_ERROR_UNKNOWN : result;
})

/* Kernels have no local memory that is given by size alone. */
BREAK(local, zeKernelSetArgumentValue, (ze_kernel_handle_t kernel, uint32_t index, size_t size, const void *value), {
  if (value == NULL) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  return original_zeKernelSetArgumentValue(kernel, index, size, value);
})

/* Modules have no specialisation constants. */
BREAK(constant, zeModuleCreate,
      (ze_context_handle_t context, ze_device_handle_t device, const ze_module_desc_t *desc, ze_module_handle_t *module,
       ze_module_build_log_handle_t *log),
      {
        if (desc->pConstants != NULL) return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
        return original_zeModuleCreate(context, device, desc, module, log);
      })

/* A fill does nothing. */
BREAK(unfilled, zeCommandListAppendMemoryFill,
      (ze_command_list_handle_t list, void *memory, const void *pattern, size_t pattern_size, size_t size,
       ze_event_handle_t signal, uint32_t count, ze_event_handle_t *waits),
      { return original_zeCommandListAppendMemoryFill(list, memory, pattern, pattern_size, 0, signal, count, waits); })
