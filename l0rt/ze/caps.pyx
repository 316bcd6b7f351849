# SPDX-License-Identifier: Apache-2.0
"""Capabilities: one record for each device of what its driver really can do. `L0RT_DISABLE` switches each off."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze

from l0rt import config

cdef uint32_t INTEL = 0x8086


cdef int caps_probe(ze_driver_handle_t driver, ze_device_handle_t device, l0rt_caps* caps) except -1:
    cdef ze_driver_properties_t driver_properties
    cdef ze_device_properties_t device_properties
    memset(caps, 0, sizeof(l0rt_caps))
    memset(&driver_properties, 0, sizeof(driver_properties))
    driver_properties.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES
    memset(&device_properties, 0, sizeof(device_properties))
    device_properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
    with nogil:
        CHECK(ze.zeDriverGetApiVersion(driver, &caps.api_version))
        CHECK(ze.zeDriverGetProperties(driver, &driver_properties))
        CHECK(ze.zeDeviceGetProperties(device, &device_properties))
    caps.driver_version = driver_properties.driverVersion
    intel = device_properties.vendorId == INTEL
    caps.build = caps.driver_version & 0xFFFF if intel else 0

    off = config.get("disable")
    # A newer loader exports functions that an older driver behind it lacks, and Intel's driver has this one under
    # versions that lack it: the probe tells.
    caps.list_sync = ze.zeCommandListHostSynchronize != NULL and "list_sync" not in off
    caps.free_ext = ze.zeMemFreeExt != NULL and "free_ext" not in off
    caps.global_ts = ze.zeDeviceGetGlobalTimestamps != NULL and "global_ts" not in off
    caps.device_status = ze.zeDeviceGetStatus != NULL and "device_status" not in off
    caps.device_sync = (ze.zeDeviceSynchronize != NULL and caps.api_version >= 0x1000E and "device_sync" not in off)
    caps.event_ipc = "event_ipc" not in off
    caps.memory_ipc = "memory_ipc" not in off
    caps.init_drivers = ze.zeInitDrivers != NULL and "init_drivers" not in off
    extensions = extension_names(driver)
    caps.relaxed = "relaxed" not in off and (
        "ZE_experimental_relaxed_allocation_limits" in extensions
        or "ZE_extension_relaxed_allocation_limits" in extensions)
    caps.usable_mem = "usable_mem" not in off and "ZE_extension_device_usablemem_size_properties" in extensions
    caps.memmap = "memmap" not in off and "ZE_extension_external_memmap_sysmem" in extensions
    caps.vmm = "vmm" not in off and _virtual_probe(driver, device)
    caps.range_ipc = (caps.vmm and caps.memory_ipc and ze.zeMemGetIpcHandleWithProperties != NULL
                      and "range_ipc" not in off and "ZE_extension_ipc_phys_mem_handle_range" in extensions)
    # The builds of Intel's whose lists keep no order are a quirk's.
    plain = _list_probe(driver, device, 0, &caps.list_sync)
    caps.inorder = plain and (intel or caps.api_version >= 0x10007) and "inorder" not in off and _list_probe(
        driver, device, ZE_COMMAND_QUEUE_FLAG_IN_ORDER, &caps.list_sync)
    # Part of API 1.14. A layer that is older than the flag refuses it.
    caps.copy_offload = (caps.inorder and caps.api_version >= 0x1000E and "copy_offload" not in off
                         and _list_probe(driver, device, ZE_COMMAND_QUEUE_FLAG_IN_ORDER
                                         | ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT, &caps.list_sync))
    caps.cb_pool = (caps.inorder and not off & {"cb_events", "cb_pool"}
                    and "ZE_experimental_event_pool_counter_based" in extensions
                    and _counter_pool_probe(driver, device))
    caps.cb_events = caps.cb_pool
    caps.global_offset = (ze.zeKernelSetGlobalOffsetExp != NULL and "global_offset" not in off
                          and "ZE_experimental_global_offset" in extensions)
    caps.mutable_lists = ("mutable_lists" not in off and "ZE_experimental_mutable_command_list" in extensions
                          and _changes_launches(device))
    caps.graph = (caps.cb_pool and "graph" not in off and "ZE_extension_record_replay_graph" in extensions
                  and _records_graphs(device))
    caps.graph_forks = caps.graph and "graph_forks" not in off
    return 0


cdef set extension_names(ze_driver_handle_t driver):
    cdef uint32_t count = 0
    with nogil:
        CHECK(ze.zeDriverGetExtensionProperties(driver, &count, NULL))
    cdef ze_driver_extension_properties_t* found = <ze_driver_extension_properties_t*>calloc(
        count + 1, sizeof(ze_driver_extension_properties_t))
    if found == NULL:
        raise MemoryError()
    try:
        with nogil:
            CHECK(ze.zeDriverGetExtensionProperties(driver, &count, found))
        return {found[i].name.decode("utf-8", "replace") for i in range(count)}
    finally:
        free(found)


cdef int _ask_device(ze_device_handle_t device, void* found) except -1:
    """Have the driver fill in an extension of a device's properties."""
    cdef ze_device_properties_t properties
    memset(&properties, 0, sizeof(properties))
    properties.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
    properties.pNext = found
    with nogil:
        CHECK(ze.zeDeviceGetProperties(device, &properties))
    return 0


cdef bint _changes_launches(ze_device_handle_t device) except -1:
    """Can all that l0rt changes of a launch be changed?"""
    cdef ze_mutable_command_list_exp_properties_t found
    cdef uint32_t needed = (ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
                            | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE)
    if ze.zeCommandListGetNextCommandIdExp == NULL or ze.zeCommandListUpdateMutableCommandsExp == NULL:
        return False
    memset(&found, 0, sizeof(found))
    found.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES
    _ask_device(device, &found)
    return found.mutableCommandFlags & needed == needed


cdef bint _records_graphs(ze_device_handle_t device) except -1:
    cdef ze_record_replay_graph_ext_properties_t found
    if (ze.zeCommandListBeginGraphCaptureExt == NULL or ze.zeCommandListEndGraphCaptureExt == NULL
            or ze.zeCommandListAppendGraphExt == NULL or ze.zeGraphInstantiateExt == NULL
            or ze.zeGraphDestroyExt == NULL or ze.zeExecutableGraphDestroyExt == NULL):
        return False
    memset(&found, 0, sizeof(found))
    found.stype = ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES
    _ask_device(device, &found)
    return found.graphFlags & ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH != 0


cdef bint _virtual_probe(ze_driver_handle_t driver, ze_device_handle_t device) except -1:
    """Can three pages of memory be mapped at reserved addresses? Older drivers answer the query of the page size and
    refuse the rest, or take powers of two only. What was mapped may be registered even where mapping failed, and need
    not be."""
    cdef ze_context_desc_t context_desc
    cdef ze_context_handle_t context = NULL
    cdef ze_physical_mem_desc_t desc
    cdef ze_physical_mem_handle_t physical = NULL
    cdef size_t size = 6 << 20
    cdef void* base = NULL
    cdef ze_result_t r, undone
    if (ze.zeVirtualMemReserve == NULL or ze.zeVirtualMemFree == NULL or ze.zeVirtualMemMap == NULL
            or ze.zeVirtualMemUnmap == NULL or ze.zePhysicalMemCreate == NULL or ze.zePhysicalMemDestroy == NULL):
        return False
    memset(&context_desc, 0, sizeof(context_desc))
    context_desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC
    desc.size = size
    with nogil:
        CHECK(ze.zeContextCreate(driver, &context_desc, &context))
        r = ze.zeVirtualMemReserve(context, NULL, size, &base)
        if r == ZE_RESULT_SUCCESS:
            r = ze.zePhysicalMemCreate(context, device, &desc, &physical)
            if r == ZE_RESULT_SUCCESS:
                r = ze.zeVirtualMemMap(context, base, size, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE)
                undone = ze.zeVirtualMemUnmap(context, base, size)
                if r == ZE_RESULT_SUCCESS and undone != ZE_RESULT_SUCCESS:
                    DROP(undone, b"zeVirtualMemUnmap")
                    return True     # it stays mapped, with all that holds it
                DROP(ze.zePhysicalMemDestroy(context, physical), b"zePhysicalMemDestroy")
            DROP(ze.zeVirtualMemFree(context, base, size), b"zeVirtualMemFree")
        DROP(ze.zeContextDestroy(context), b"zeContextDestroy")
    return r == ZE_RESULT_SUCCESS


cdef bint _list_probe(ze_driver_handle_t driver, ze_device_handle_t device, uint32_t flags, bint* sync) except -1:
    """Can an immediate list be made, and be asked as a whole?

    A layer older than the flag refuses it before any driver is asked; a loader newer than the driver has a function
    that the driver lacks.
    """
    cdef ze_context_desc_t context_desc
    cdef ze_context_handle_t context = NULL
    cdef ze_command_queue_desc_t desc
    cdef ze_command_list_handle_t made = NULL
    cdef ze_result_t r
    memset(&context_desc, 0, sizeof(context_desc))
    context_desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
    desc.flags = flags
    desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS
    with nogil:
        CHECK(ze.zeContextCreate(driver, &context_desc, &context))
        r = ze.zeCommandListCreateImmediate(context, device, &desc, &made)
        if r == ZE_RESULT_SUCCESS:
            if sync[0]:
                sync[0] = ze.zeCommandListHostSynchronize(made, 0) == ZE_RESULT_SUCCESS
            DROP(ze.zeCommandListDestroy(made), b"zeCommandListDestroy")
        DROP(ze.zeContextDestroy(context), b"zeContextDestroy")
    return r == ZE_RESULT_SUCCESS


cdef bint _counter_pool_probe(ze_driver_handle_t driver, ze_device_handle_t device) except -1:
    """Can a pool of counter-based events be made?"""
    cdef ze_context_desc_t context_desc
    cdef ze_context_handle_t context = NULL
    cdef ze_event_pool_counter_based_exp_desc_t counter_based
    cdef ze_event_pool_desc_t desc
    cdef ze_event_pool_handle_t made = NULL
    cdef ze_result_t r
    memset(&context_desc, 0, sizeof(context_desc))
    context_desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC
    memset(&counter_based, 0, sizeof(counter_based))
    counter_based.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC
    counter_based.flags = ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_IMMEDIATE
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC
    desc.pNext = &counter_based
    desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE
    desc.count = 1
    with nogil:
        CHECK(ze.zeContextCreate(driver, &context_desc, &context))
        r = ze.zeEventPoolCreate(context, &desc, 1, &device, &made)
        if r == ZE_RESULT_SUCCESS:
            DROP(ze.zeEventPoolDestroy(made), b"zeEventPoolDestroy")
        DROP(ze.zeContextDestroy(context), b"zeContextDestroy")
    return r == ZE_RESULT_SUCCESS
