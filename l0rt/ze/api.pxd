# SPDX-License-Identifier: Apache-2.0
"""Level Zero's types, constants and the function table, as include/l0rt declares them."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "l0rt/ze.h" nogil:
    ctypedef struct _ze_driver_handle_t
    ctypedef _ze_driver_handle_t* ze_driver_handle_t
    ctypedef struct _ze_device_handle_t
    ctypedef _ze_device_handle_t* ze_device_handle_t
    ctypedef struct _ze_context_handle_t
    ctypedef _ze_context_handle_t* ze_context_handle_t
    ctypedef struct _ze_command_queue_handle_t
    ctypedef _ze_command_queue_handle_t* ze_command_queue_handle_t
    ctypedef struct _ze_fence_handle_t
    ctypedef _ze_fence_handle_t* ze_fence_handle_t
    ctypedef struct _ze_command_list_handle_t
    ctypedef _ze_command_list_handle_t* ze_command_list_handle_t
    ctypedef struct _ze_event_pool_handle_t
    ctypedef _ze_event_pool_handle_t* ze_event_pool_handle_t
    ctypedef struct _ze_event_handle_t
    ctypedef _ze_event_handle_t* ze_event_handle_t
    ctypedef struct _ze_physical_mem_handle_t
    ctypedef _ze_physical_mem_handle_t* ze_physical_mem_handle_t
    ctypedef struct _ze_module_handle_t
    ctypedef _ze_module_handle_t* ze_module_handle_t
    ctypedef struct _ze_module_build_log_handle_t
    ctypedef _ze_module_build_log_handle_t* ze_module_build_log_handle_t
    ctypedef struct _ze_kernel_handle_t
    ctypedef _ze_kernel_handle_t* ze_kernel_handle_t

    ctypedef struct _ze_image_handle_t
    ctypedef _ze_image_handle_t* ze_image_handle_t
    ctypedef struct _ze_sampler_handle_t
    ctypedef _ze_sampler_handle_t* ze_sampler_handle_t

    ctypedef struct _ze_graph_handle_t
    ctypedef _ze_graph_handle_t* ze_graph_handle_t
    ctypedef struct _ze_executable_graph_handle_t
    ctypedef _ze_executable_graph_handle_t* ze_executable_graph_handle_t

    ctypedef enum ze_result_t:
        ZE_RESULT_SUCCESS, ZE_RESULT_NOT_READY, ZE_RESULT_ERROR_DEVICE_LOST, ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
        ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, ZE_RESULT_ERROR_MODULE_LINK_FAILURE
        ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET, ZE_RESULT_ERROR_DEVICE_IN_LOW_POWER_STATE
        ZE_RESULT_EXP_ERROR_DEVICE_IS_NOT_VERTEX, ZE_RESULT_EXP_ERROR_VERTEX_IS_NOT_DEVICE
        ZE_RESULT_EXP_ERROR_REMOTE_DEVICE, ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS, ZE_RESULT_ERROR_NOT_AVAILABLE
        ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE, ZE_RESULT_WARNING_DROPPED_DATA, ZE_RESULT_ERROR_UNINITIALIZED
        ZE_RESULT_ERROR_UNSUPPORTED_VERSION, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, ZE_RESULT_ERROR_INVALID_ARGUMENT
        ZE_RESULT_ERROR_INVALID_NULL_HANDLE, ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, ZE_RESULT_ERROR_INVALID_NULL_POINTER
        ZE_RESULT_ERROR_INVALID_SIZE, ZE_RESULT_ERROR_UNSUPPORTED_SIZE, ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT
        ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, ZE_RESULT_ERROR_INVALID_ENUMERATION
        ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT
        ZE_RESULT_ERROR_INVALID_NATIVE_BINARY, ZE_RESULT_ERROR_INVALID_GLOBAL_NAME, ZE_RESULT_ERROR_INVALID_KERNEL_NAME
        ZE_RESULT_ERROR_INVALID_FUNCTION_NAME, ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION
        ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION, ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX
        ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE, ZE_RESULT_ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE
        ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED, ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE
        ZE_RESULT_ERROR_OVERLAPPING_REGIONS, ZE_RESULT_WARNING_ACTION_REQUIRED, ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE
        ZE_RESULT_ERROR_ADDRESS_NOT_FOUND, ZE_RESULT_QUERY_TRUE, ZE_RESULT_QUERY_FALSE, ZE_RESULT_ERROR_INVALID_GRAPH
        ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED, ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED
        ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT, ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING
        ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS, ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT, ZE_RESULT_ERROR_UNKNOWN

    ctypedef enum ze_structure_type_t:
        ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
        ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES
        ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES
        ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES, ZE_STRUCTURE_TYPE_CONTEXT_DESC
        ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, ZE_STRUCTURE_TYPE_EVENT_DESC
        ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, ZE_STRUCTURE_TYPE_FENCE_DESC
        ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
        ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
        ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES, ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC
        ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC, ZE_STRUCTURE_TYPE_IPC_PHYS_MEM_HANDLE_RANGE_EXT_DESC
        ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC
        ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2
        ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC, ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES
        ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES, ZE_STRUCTURE_TYPE_IMAGE_DESC, ZE_STRUCTURE_TYPE_SAMPLER_DESC
        ZE_STRUCTURE_TYPE_MODULE_DESC, ZE_STRUCTURE_TYPE_KERNEL_DESC, ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES
        ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES
        ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES, ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC
        ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC, ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC
        ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC, ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC
        ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC, ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES

    ctypedef enum ze_memory_access_attribute_t:
        ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE

    ctypedef enum ze_device_type_t:
        ZE_DEVICE_TYPE_GPU

    ctypedef enum ze_device_module_flag_t:
        ZE_DEVICE_MODULE_FLAG_FP16, ZE_DEVICE_MODULE_FLAG_FP64, ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS

    ctypedef enum ze_command_queue_group_property_flag_t:
        ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE, ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY

    ctypedef enum ze_memory_type_t:
        ZE_MEMORY_TYPE_UNKNOWN, ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_SHARED
        ZE_MEMORY_TYPE_HOST_IMPORTED

    ctypedef enum ze_memory_advice_t:
        pass

    ctypedef enum ze_command_queue_mode_t:
        ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS

    ctypedef enum ze_command_queue_priority_t:
        ZE_COMMAND_QUEUE_PRIORITY_NORMAL, ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW
        ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH

    ctypedef enum ze_event_pool_counter_based_exp_flag_t:
        ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_IMMEDIATE

    enum:
        ZE_DEVICE_PROPERTY_FLAG_INTEGRATED, ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE
        ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE, ZE_COMMAND_QUEUE_FLAG_IN_ORDER
        ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT, ZE_COMMAND_LIST_FLAG_IN_ORDER
        ZE_EVENT_POOL_FLAG_HOST_VISIBLE, ZE_EVENT_POOL_FLAG_IPC
        ZE_EVENT_SCOPE_FLAG_DEVICE, ZE_EVENT_SCOPE_FLAG_HOST
        ZE_INIT_FLAG_GPU_ONLY, ZE_INIT_DRIVER_TYPE_FLAG_GPU
        ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS
        ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
        ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE
        ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH

    ctypedef struct ze_init_driver_type_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_driver_uuid_t:
        uint8_t id[16]

    ctypedef struct ze_driver_properties_t:
        ze_structure_type_t stype
        void *pNext
        ze_driver_uuid_t uuid
        uint32_t driverVersion

    ctypedef struct ze_driver_extension_properties_t:
        char name[256]
        uint32_t version

    ctypedef struct ze_device_uuid_t:
        uint8_t id[16]

    ctypedef struct ze_device_properties_t:
        ze_structure_type_t stype
        void *pNext
        ze_device_type_t type
        uint32_t vendorId, deviceId, flags, subdeviceId
        uint32_t coreClockRate
        uint64_t maxMemAllocSize
        uint32_t maxHardwareContexts
        uint32_t maxCommandQueuePriority
        uint32_t numThreadsPerEU
        uint32_t physicalEUSimdWidth
        uint32_t numEUsPerSubslice
        uint32_t numSubslicesPerSlice
        uint32_t numSlices
        uint64_t timerResolution
        uint32_t timestampValidBits
        uint32_t kernelTimestampValidBits
        ze_device_uuid_t uuid
        char name[256]

    ctypedef struct ze_device_compute_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t maxTotalGroupSize
        uint32_t maxGroupSizeX, maxGroupSizeY, maxGroupSizeZ
        uint32_t maxGroupCountX, maxGroupCountY, maxGroupCountZ
        uint32_t maxSharedLocalMemory
        uint32_t numSubGroupSizes
        uint32_t subGroupSizes[8]

    ctypedef struct ze_device_module_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t spirvVersionSupported
        uint32_t flags
        uint32_t fp16flags, fp32flags, fp64flags
        uint32_t maxArgumentsSize
        uint32_t printfBufferSize
        uint8_t nativeKernelSupported[16]

    ctypedef struct ze_command_queue_group_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t flags
        size_t maxMemoryFillPatternSize
        uint32_t numQueues

    ctypedef struct ze_device_memory_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t flags
        uint32_t maxClockRate
        uint32_t maxBusWidth
        uint64_t totalSize
        char name[256]

    ctypedef struct ze_device_cache_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t flags
        size_t cacheSize

    ctypedef struct ze_pci_address_ext_t:
        uint32_t domain, bus, device, function

    ctypedef struct ze_pci_speed_ext_t:
        int32_t genVersion
        int32_t width
        int64_t maxBandwidth

    ctypedef struct ze_pci_ext_properties_t:
        ze_structure_type_t stype
        void *pNext
        ze_pci_address_ext_t address
        ze_pci_speed_ext_t maxSpeed

    ctypedef struct ze_device_usablemem_size_ext_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint64_t currUsableMemSize

    ctypedef struct ze_device_mem_alloc_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags, ordinal

    ctypedef struct ze_host_mem_alloc_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_memory_allocation_properties_t:
        ze_structure_type_t stype
        void *pNext
        ze_memory_type_t type
        uint64_t id, pageSize

    ctypedef struct ze_relaxed_allocation_limits_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_external_memmap_sysmem_ext_desc_t:
        ze_structure_type_t stype
        const void *pNext
        void *pSystemMemory
        uint64_t size

    ctypedef struct ze_physical_mem_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags
        size_t size

    ctypedef struct ze_memory_free_ext_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t freePolicy

    ctypedef struct ze_context_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_command_queue_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t ordinal, index, flags
        ze_command_queue_mode_t mode
        ze_command_queue_priority_t priority

    ctypedef struct ze_command_list_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t commandQueueGroupOrdinal, flags

    ctypedef struct ze_fence_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_event_pool_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags, count

    ctypedef struct ze_event_pool_counter_based_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_ipc_event_pool_handle_t:
        char data[64]

    ctypedef struct ze_ipc_mem_handle_t:
        char data[64]

    ctypedef struct ze_ipc_phys_mem_handle_range_ext_desc_t:
        ze_structure_type_t stype
        const void *pNext
        size_t size

    ctypedef struct ze_copy_region_t:
        uint32_t originX, originY, originZ
        uint32_t width, height, depth

    ctypedef enum ze_module_format_t:
        ZE_MODULE_FORMAT_IL_SPIRV, ZE_MODULE_FORMAT_NATIVE

    ctypedef struct ze_module_constants_t:
        uint32_t numConstants
        const uint32_t *pConstantIds
        const void **pConstantValues

    ctypedef struct ze_device_image_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t maxImageDims1D
        uint32_t maxImageDims2D
        uint32_t maxImageDims3D
        uint64_t maxImageBufferSize
        uint32_t maxImageArraySlices
        uint32_t maxSamplers
        uint32_t maxReadImageArgs
        uint32_t maxWriteImageArgs

    ctypedef enum ze_image_type_t:
        ZE_IMAGE_TYPE_1D
        ZE_IMAGE_TYPE_1DARRAY
        ZE_IMAGE_TYPE_2D
        ZE_IMAGE_TYPE_2DARRAY
        ZE_IMAGE_TYPE_3D
        ZE_IMAGE_TYPE_BUFFER

    ctypedef enum ze_image_format_layout_t:
        pass

    ctypedef enum ze_image_format_type_t:
        pass

    ctypedef enum ze_image_format_swizzle_t:
        pass

    ctypedef struct ze_image_format_t:
        ze_image_format_layout_t layout
        ze_image_format_type_t type
        ze_image_format_swizzle_t x
        ze_image_format_swizzle_t y
        ze_image_format_swizzle_t z
        ze_image_format_swizzle_t w

    ctypedef enum ze_image_flag_t:
        ZE_IMAGE_FLAG_KERNEL_WRITE

    ctypedef struct ze_image_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags
        ze_image_type_t type
        ze_image_format_t format
        uint64_t width
        uint32_t height
        uint32_t depth
        uint32_t arraylevels
        uint32_t miplevels

    ctypedef struct ze_image_region_t:
        uint32_t originX
        uint32_t originY
        uint32_t originZ
        uint32_t width
        uint32_t height
        uint32_t depth

    ctypedef enum ze_sampler_address_mode_t:
        pass

    ctypedef enum ze_sampler_filter_mode_t:
        pass

    ctypedef struct ze_sampler_desc_t:
        ze_structure_type_t stype
        const void *pNext
        ze_sampler_address_mode_t addressMode
        ze_sampler_filter_mode_t filterMode
        uint8_t isNormalized

    ctypedef struct ze_module_desc_t:
        ze_structure_type_t stype
        const void *pNext
        ze_module_format_t format
        size_t inputSize
        const uint8_t *pInputModule
        const char *pBuildFlags
        const ze_module_constants_t *pConstants

    ctypedef struct ze_kernel_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags
        const char *pKernelName

    ctypedef enum ze_kernel_indirect_access_flag_t:
        ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST, ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
        ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED

    ctypedef struct ze_kernel_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t numKernelArgs
        uint32_t requiredGroupSizeX, requiredGroupSizeY, requiredGroupSizeZ
        uint32_t requiredNumSubGroups
        uint32_t requiredSubgroupSize
        uint32_t maxSubgroupSize
        uint32_t maxNumSubgroups
        uint32_t localMemSize
        uint32_t privateMemSize
        uint32_t spillMemSize

    ctypedef struct ze_kernel_preferred_group_size_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t preferredMultiple

    ctypedef struct ze_group_count_t:
        uint32_t groupCountX, groupCountY, groupCountZ

    ctypedef struct ze_mutable_command_list_exp_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t mutableCommandListFlags
        uint32_t mutableCommandFlags

    ctypedef struct ze_record_replay_graph_ext_properties_t:
        ze_structure_type_t stype
        void *pNext
        uint32_t graphFlags

    ctypedef struct ze_mutable_command_list_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_mutable_command_id_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_mutable_commands_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t flags

    ctypedef struct ze_mutable_kernel_argument_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint64_t commandId
        uint32_t argIndex
        size_t argSize
        const void *pArgValue

    ctypedef struct ze_mutable_group_count_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint64_t commandId
        const ze_group_count_t *pGroupCount

    ctypedef struct ze_mutable_group_size_exp_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint64_t commandId
        uint32_t groupSizeX, groupSizeY, groupSizeZ

    ctypedef struct ze_event_desc_t:
        ze_structure_type_t stype
        const void *pNext
        uint32_t index, signal, wait


cdef extern from "l0rt/ze_functions.h" nogil:
    ctypedef struct l0rt_ze_table:
        ze_result_t (*zeInit)(uint32_t flags) noexcept nogil
        ze_result_t (*zeDriverGet)(uint32_t *pCount, ze_driver_handle_t *phDrivers) noexcept nogil
        ze_result_t (*zeDriverGetApiVersion)(ze_driver_handle_t hDriver, uint32_t *version) noexcept nogil
        ze_result_t (*zeDriverGetProperties)(ze_driver_handle_t hDriver,
            ze_driver_properties_t *pDriverProperties) noexcept nogil
        ze_result_t (*zeDriverGetExtensionProperties)(ze_driver_handle_t hDriver, uint32_t *pCount,
            ze_driver_extension_properties_t *pExtensionProperties) noexcept nogil
        ze_result_t (*zeDeviceGet)(ze_driver_handle_t hDriver, uint32_t *pCount,
            ze_device_handle_t *phDevices) noexcept nogil
        ze_result_t (*zeDeviceGetProperties)(ze_device_handle_t hDevice,
            ze_device_properties_t *pDeviceProperties) noexcept nogil
        ze_result_t (*zeDeviceGetComputeProperties)(ze_device_handle_t hDevice,
            ze_device_compute_properties_t *pComputeProperties) noexcept nogil
        ze_result_t (*zeDeviceGetModuleProperties)(ze_device_handle_t hDevice,
            ze_device_module_properties_t *pModuleProperties) noexcept nogil
        ze_result_t (*zeDeviceGetMemoryProperties)(ze_device_handle_t hDevice, uint32_t *pCount,
            ze_device_memory_properties_t *pMemProperties) noexcept nogil
        ze_result_t (*zeDeviceGetCacheProperties)(ze_device_handle_t hDevice, uint32_t *pCount,
            ze_device_cache_properties_t *pCacheProperties) noexcept nogil
        ze_result_t (*zeDeviceGetCommandQueueGroupProperties)(ze_device_handle_t hDevice, uint32_t *pCount,
            ze_command_queue_group_properties_t *pCommandQueueGroupProperties) noexcept nogil
        ze_result_t (*zeDeviceCanAccessPeer)(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
            uint8_t *value) noexcept nogil
        ze_result_t (*zeContextCreate)(ze_driver_handle_t hDriver, const ze_context_desc_t *desc,
            ze_context_handle_t *phContext) noexcept nogil
        ze_result_t (*zeContextDestroy)(ze_context_handle_t hContext) noexcept nogil
        ze_result_t (*zeContextGetStatus)(ze_context_handle_t hContext) noexcept nogil
        ze_result_t (*zeContextMakeMemoryResident)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            void *ptr, size_t size) noexcept nogil
        ze_result_t (*zeCommandListCreateImmediate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_command_queue_desc_t *altdesc, ze_command_list_handle_t *phCommandList) noexcept nogil
        ze_result_t (*zeCommandListDestroy)(ze_command_list_handle_t hCommandList) noexcept nogil
        ze_result_t (*zeCommandListAppendBarrier)(ze_command_list_handle_t hCommandList,
            ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendMemoryCopy)(ze_command_list_handle_t hCommandList, void *dstptr,
            const void *srcptr, size_t size, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
            ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendMemoryFill)(ze_command_list_handle_t hCommandList, void *ptr,
            const void *pattern, size_t pattern_size, size_t size, ze_event_handle_t hSignalEvent,
            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendSignalEvent)(ze_command_list_handle_t hCommandList,
            ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeCommandListAppendWaitOnEvents)(ze_command_list_handle_t hCommandList, uint32_t numEvents,
            ze_event_handle_t *phEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendWriteGlobalTimestamp)(ze_command_list_handle_t hCommandList,
            uint64_t *dstptr, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
            ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeEventPoolCreate)(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc,
            uint32_t numDevices, ze_device_handle_t *phDevices, ze_event_pool_handle_t *phEventPool) noexcept nogil
        ze_result_t (*zeEventPoolDestroy)(ze_event_pool_handle_t hEventPool) noexcept nogil
        ze_result_t (*zeEventCreate)(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc,
            ze_event_handle_t *phEvent) noexcept nogil
        ze_result_t (*zeEventDestroy)(ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeEventHostSignal)(ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeEventHostReset)(ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeEventHostSynchronize)(ze_event_handle_t hEvent, uint64_t timeout) noexcept nogil
        ze_result_t (*zeEventQueryStatus)(ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeEventPoolGetIpcHandle)(ze_event_pool_handle_t hEventPool,
            ze_ipc_event_pool_handle_t *phIpc) noexcept nogil
        ze_result_t (*zeEventPoolOpenIpcHandle)(ze_context_handle_t hContext, ze_ipc_event_pool_handle_t hIpc,
            ze_event_pool_handle_t *phEventPool) noexcept nogil
        ze_result_t (*zeEventPoolCloseIpcHandle)(ze_event_pool_handle_t hEventPool) noexcept nogil
        ze_result_t (*zeMemAllocDevice)(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,
            size_t size, size_t alignment, ze_device_handle_t hDevice, void* *pptr) noexcept nogil
        ze_result_t (*zeMemAllocHost)(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc,
            size_t size, size_t alignment, void* *pptr) noexcept nogil
        ze_result_t (*zeMemAllocShared)(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,
            const ze_host_mem_alloc_desc_t *host_desc, size_t size, size_t alignment, ze_device_handle_t hDevice,
            void* *pptr) noexcept nogil
        ze_result_t (*zeMemFree)(ze_context_handle_t hContext, void *ptr) noexcept nogil
        ze_result_t (*zeMemGetAllocProperties)(ze_context_handle_t hContext, const void *ptr,
            ze_memory_allocation_properties_t *pMemAllocProperties, ze_device_handle_t *phDevice) noexcept nogil
        ze_result_t (*zeMemGetAddressRange)(ze_context_handle_t hContext, const void *ptr, void* *pBase,
            size_t *pSize) noexcept nogil
        ze_result_t (*zeMemGetIpcHandle)(ze_context_handle_t hContext, const void *ptr,
            ze_ipc_mem_handle_t *pIpcHandle) noexcept nogil
        ze_result_t (*zeMemOpenIpcHandle)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            ze_ipc_mem_handle_t handle, uint32_t flags, void* *pptr) noexcept nogil
        ze_result_t (*zeMemCloseIpcHandle)(ze_context_handle_t hContext, const void *ptr) noexcept nogil
        ze_result_t (*zeCommandListAppendMemoryPrefetch)(ze_command_list_handle_t hCommandList, const void *ptr,
            size_t size) noexcept nogil
        ze_result_t (*zeCommandListAppendMemAdvise)(ze_command_list_handle_t hCommandList, ze_device_handle_t hDevice,
            const void *ptr, size_t size, ze_memory_advice_t advice) noexcept nogil
        ze_result_t (*zeCommandListAppendMemoryCopyRegion)(ze_command_list_handle_t hCommandList, void *dstptr,
            const ze_copy_region_t *dstRegion, uint32_t dstPitch, uint32_t dstSlicePitch, const void *srcptr,
            const ze_copy_region_t *srcRegion, uint32_t srcPitch, uint32_t srcSlicePitch,
            ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandQueueCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *phCommandQueue) noexcept nogil
        ze_result_t (*zeCommandQueueDestroy)(ze_command_queue_handle_t hCommandQueue) noexcept nogil
        ze_result_t (*zeCommandQueueExecuteCommandLists)(ze_command_queue_handle_t hCommandQueue,
            uint32_t numCommandLists, ze_command_list_handle_t *phCommandLists, ze_fence_handle_t hFence) noexcept nogil
        ze_result_t (*zeCommandQueueSynchronize)(ze_command_queue_handle_t hCommandQueue,
            uint64_t timeout) noexcept nogil
        ze_result_t (*zeFenceCreate)(ze_command_queue_handle_t hCommandQueue, const ze_fence_desc_t *desc,
            ze_fence_handle_t *phFence) noexcept nogil
        ze_result_t (*zeFenceDestroy)(ze_fence_handle_t hFence) noexcept nogil
        ze_result_t (*zeFenceHostSynchronize)(ze_fence_handle_t hFence, uint64_t timeout) noexcept nogil
        ze_result_t (*zeFenceQueryStatus)(ze_fence_handle_t hFence) noexcept nogil
        ze_result_t (*zeFenceReset)(ze_fence_handle_t hFence) noexcept nogil
        ze_result_t (*zeCommandListCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_command_list_desc_t *desc, ze_command_list_handle_t *phCommandList) noexcept nogil
        ze_result_t (*zeCommandListClose)(ze_command_list_handle_t hCommandList) noexcept nogil
        ze_result_t (*zeCommandListReset)(ze_command_list_handle_t hCommandList) noexcept nogil
        ze_result_t (*zeCommandListAppendEventReset)(ze_command_list_handle_t hCommandList,
            ze_event_handle_t hEvent) noexcept nogil
        ze_result_t (*zeModuleCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_module_desc_t *desc, ze_module_handle_t *phModule,
            ze_module_build_log_handle_t *phBuildLog) noexcept nogil
        ze_result_t (*zeModuleDestroy)(ze_module_handle_t hModule) noexcept nogil
        ze_result_t (*zeModuleBuildLogDestroy)(ze_module_build_log_handle_t hModuleBuildLog) noexcept nogil
        ze_result_t (*zeModuleBuildLogGetString)(ze_module_build_log_handle_t hModuleBuildLog, size_t *pSize,
            char *pBuildLog) noexcept nogil
        ze_result_t (*zeModuleGetKernelNames)(ze_module_handle_t hModule, uint32_t *pCount,
            const char **pNames) noexcept nogil
        ze_result_t (*zeModuleGetNativeBinary)(ze_module_handle_t hModule, size_t *pSize,
            uint8_t *pModuleNativeBinary) noexcept nogil
        ze_result_t (*zeKernelCreate)(ze_module_handle_t hModule, const ze_kernel_desc_t *desc,
            ze_kernel_handle_t *phKernel) noexcept nogil
        ze_result_t (*zeKernelDestroy)(ze_kernel_handle_t hKernel) noexcept nogil
        ze_result_t (*zeKernelSetGroupSize)(ze_kernel_handle_t hKernel, uint32_t groupSizeX, uint32_t groupSizeY,
            uint32_t groupSizeZ) noexcept nogil
        ze_result_t (*zeKernelSuggestGroupSize)(ze_kernel_handle_t hKernel, uint32_t globalSizeX,
            uint32_t globalSizeY, uint32_t globalSizeZ, uint32_t *groupSizeX, uint32_t *groupSizeY,
            uint32_t *groupSizeZ) noexcept nogil
        ze_result_t (*zeKernelSuggestMaxCooperativeGroupCount)(ze_kernel_handle_t hKernel,
            uint32_t *totalGroupCount) noexcept nogil
        ze_result_t (*zeKernelSetArgumentValue)(ze_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
            const void *pArgValue) noexcept nogil
        ze_result_t (*zeKernelSetIndirectAccess)(ze_kernel_handle_t hKernel, uint32_t flags) noexcept nogil
        ze_result_t (*zeKernelSetGlobalOffsetExp)(ze_kernel_handle_t hKernel, uint32_t offsetX, uint32_t offsetY,
                                                  uint32_t offsetZ) noexcept nogil
        ze_result_t (*zeKernelGetProperties)(ze_kernel_handle_t hKernel,
            ze_kernel_properties_t *pKernelProperties) noexcept nogil
        ze_result_t (*zeCommandListAppendLaunchKernel)(ze_command_list_handle_t hCommandList,
            ze_kernel_handle_t hKernel, const ze_group_count_t *pLaunchFuncArgs, ze_event_handle_t hSignalEvent,
            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendLaunchCooperativeKernel)(ze_command_list_handle_t hCommandList,
            ze_kernel_handle_t hKernel, const ze_group_count_t *pLaunchFuncArgs, ze_event_handle_t hSignalEvent,
            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeVirtualMemReserve)(ze_context_handle_t hContext, const void *pStart, size_t size,
            void* *pptr) noexcept nogil
        ze_result_t (*zeVirtualMemFree)(ze_context_handle_t hContext, const void *ptr, size_t size) noexcept nogil
        ze_result_t (*zeVirtualMemMap)(ze_context_handle_t hContext, const void *ptr, size_t size,
            ze_physical_mem_handle_t hPhysicalMemory, size_t offset, ze_memory_access_attribute_t access) noexcept nogil
        ze_result_t (*zeVirtualMemUnmap)(ze_context_handle_t hContext, const void *ptr, size_t size) noexcept nogil
        ze_result_t (*zePhysicalMemCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            ze_physical_mem_desc_t *desc, ze_physical_mem_handle_t *phPhysicalMemory) noexcept nogil
        ze_result_t (*zePhysicalMemDestroy)(ze_context_handle_t hContext,
            ze_physical_mem_handle_t hPhysicalMemory) noexcept nogil
        ze_result_t (*zeDeviceGetSubDevices)(ze_device_handle_t hDevice, uint32_t *pCount,
            ze_device_handle_t *phSubdevices) noexcept nogil
        ze_result_t (*zeDeviceGetStatus)(ze_device_handle_t hDevice) noexcept nogil
        ze_result_t (*zeDriverGetExtensionFunctionAddress)(ze_driver_handle_t hDriver, const char *name,
            void* *ppFunctionAddress) noexcept nogil
        ze_result_t (*zeDeviceGetGlobalTimestamps)(ze_device_handle_t hDevice, uint64_t *hostTimestamp,
            uint64_t *deviceTimestamp) noexcept nogil
        ze_result_t (*zeDevicePciGetPropertiesExt)(ze_device_handle_t hDevice,
            ze_pci_ext_properties_t *pPciProperties) noexcept nogil
        ze_result_t (*zeMemFreeExt)(ze_context_handle_t hContext, const ze_memory_free_ext_desc_t *pMemFreeDesc,
            void *ptr) noexcept nogil
        ze_result_t (*zeCommandListHostSynchronize)(ze_command_list_handle_t hCommandList,
            uint64_t timeout) noexcept nogil
        ze_result_t (*zeDriverGetLastErrorDescription)(ze_driver_handle_t hDriver, const char **ppString) noexcept nogil
        ze_result_t (*zeEventPoolPutIpcHandle)(ze_context_handle_t hContext,
            ze_ipc_event_pool_handle_t hIpc) noexcept nogil
        ze_result_t (*zeMemPutIpcHandle)(ze_context_handle_t hContext, ze_ipc_mem_handle_t handle) noexcept nogil
        ze_result_t (*zeCommandListGetContextHandle)(ze_command_list_handle_t hCommandList,
            ze_context_handle_t *phContext) noexcept nogil
        ze_result_t (*zeCommandListGetDeviceHandle)(ze_command_list_handle_t hCommandList,
            ze_device_handle_t *phDevice) noexcept nogil
        ze_result_t (*zeCommandListGetOrdinal)(ze_command_list_handle_t hCommandList, uint32_t *pOrdinal) noexcept nogil
        ze_result_t (*zeCommandListIsImmediate)(ze_command_list_handle_t hCommandList,
            uint8_t *pIsImmediate) noexcept nogil
        ze_result_t (*zeCommandListGetNextCommandIdExp)(ze_command_list_handle_t hCommandList,
            const ze_mutable_command_id_exp_desc_t *desc, uint64_t *pCommandId) noexcept nogil
        ze_result_t (*zeCommandListUpdateMutableCommandsExp)(ze_command_list_handle_t hCommandList,
            const ze_mutable_commands_exp_desc_t *desc) noexcept nogil
        ze_result_t (*zeInitDrivers)(uint32_t *pCount, ze_driver_handle_t *phDrivers,
            ze_init_driver_type_desc_t *desc) noexcept nogil
        ze_result_t (*zeDeviceSynchronize)(ze_device_handle_t hDevice) noexcept nogil
        ze_result_t (*zeMemGetIpcHandleWithProperties)(ze_context_handle_t hContext, const void *ptr, void *pNext,
            ze_ipc_mem_handle_t *pIpcHandle) noexcept nogil
        ze_result_t (*zeCommandListBeginGraphCaptureExt)(ze_command_list_handle_t hCommandList,
            const void *pNext) noexcept nogil
        ze_result_t (*zeCommandListEndGraphCaptureExt)(ze_command_list_handle_t hCommandList, const void *pNext,
            ze_graph_handle_t *phGraph) noexcept nogil
        ze_result_t (*zeCommandListAppendGraphExt)(ze_command_list_handle_t hCommandList,
            ze_executable_graph_handle_t hGraph, const void *pNext, ze_event_handle_t hSignalEvent,
            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeGraphInstantiateExt)(ze_graph_handle_t hGraph, const void *pNext,
            ze_executable_graph_handle_t *phExecutableGraph) noexcept nogil
        ze_result_t (*zeGraphDestroyExt)(ze_graph_handle_t hGraph) noexcept nogil
        ze_result_t (*zeExecutableGraphDestroyExt)(ze_executable_graph_handle_t hExecutableGraph) noexcept nogil
        ze_result_t (*zelLoaderTranslateHandle)(uint32_t handleType, void *handleIn, void **handleOut) noexcept nogil
        ze_result_t (*zeDeviceGetImageProperties)(ze_device_handle_t hDevice,
            ze_device_image_properties_t *pImageProperties) noexcept nogil
        ze_result_t (*zeImageCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_image_desc_t *desc, ze_image_handle_t *phImage) noexcept nogil
        ze_result_t (*zeImageDestroy)(ze_image_handle_t hImage) noexcept nogil
        ze_result_t (*zeSamplerCreate)(ze_context_handle_t hContext, ze_device_handle_t hDevice,
            const ze_sampler_desc_t *desc, ze_sampler_handle_t *phSampler) noexcept nogil
        ze_result_t (*zeSamplerDestroy)(ze_sampler_handle_t hSampler) noexcept nogil
        ze_result_t (*zeCommandListAppendImageCopyToMemory)(ze_command_list_handle_t hCommandList, void *dstptr,
            ze_image_handle_t hSrcImage, const ze_image_region_t *pSrcRegion, ze_event_handle_t hSignalEvent,
            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
        ze_result_t (*zeCommandListAppendImageCopyFromMemory)(ze_command_list_handle_t hCommandList,
            ze_image_handle_t hDstImage, const void *srcptr, const ze_image_region_t *pDstRegion,
            ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents) noexcept nogil
