# SPDX-License-Identifier: Apache-2.0
"""Devices: what they are, asked once and kept as plain values."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from l0rt.core.driver cimport Driver
from l0rt.factory cimport made_by
from l0rt.ze.api cimport *
from l0rt.ze.caps cimport caps_probe, extension_names
from l0rt.ze.status cimport CHECK
from l0rt.ze.table cimport ze

from l0rt import config


cdef enum:
    ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT = 0x1000F            # 1.5
    ZE_STRUCTURE_INTEL_DEVICE_MODULE_DP_EXP_PROPERTIES = 0x30013   # Intel's, since 24.05
    DPAS = 1 << 1


cdef struct word_ext_t:
    # What these extensions hang on a structure: one word. A driver that does not know one leaves it alone.
    ze_structure_type_t stype
    void* pNext
    uint32_t word


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Device:
    """One root device of a driver. Made by ``open_devices(driver)``."""

    def __init__(self):
        raise TypeError("core.Device is made by open_devices()")

    @property
    def handle(self):
        """The native ``ze_device_handle_t`` as an integer."""
        return <size_t>self._h

    @property
    def is_gpu(self):
        """Whether the driver calls it a GPU (an NPU is listed beside it on some machines)."""
        cdef ze_device_properties_t p
        _properties(self, &p, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
        return p.type == ZE_DEVICE_TYPE_GPU

    @property
    def pci(self):
        """The PCI address as Linux writes it, None if the driver reports none."""
        return "{:04x}:{:02x}:{:02x}.{:x}".format(*self.info.pci) if self.info.has_pci else None

    @property
    def capabilities(self):
        """What its driver does for this device, name to bool, after `L0RT_DISABLE`."""
        record = dict(self.caps)
        return {name: bool(record[name]) for name in config.CAPABILITIES if name in record}

    def values(self):
        """Return everything known about the device as a dict of plain values."""
        values = dict(self.info)
        values["name"] = self.info.name.decode("utf-8", "replace")
        values["pci"] = self.pci
        values["uuid"] = bytes(self.info.uuid[:16])
        values.update(_module_values(self))
        values.update(_more_values(self))
        values.update(_compute_values(self))
        return values

    def can_access_peer(self, Device peer):
        """Whether this device can read and write memory of ``peer``."""
        cdef unsigned char answer = 0
        with nogil:
            CHECK(ze.zeDeviceCanAccessPeer(self._h, peer._h, &answer))
        return bool(answer)

    def usable_memory(self):
        """Return the bytes that the driver says are free now, None if it does not say: an error is no answer either."""
        cdef ze_device_properties_t p
        cdef ze_result_t r
        cdef ze_device_usablemem_size_ext_properties_t usable
        if not self.caps.usable_mem:
            return None
        memset(&p, 0, sizeof(p))
        memset(&usable, 0, sizeof(usable))
        p.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
        p.pNext = &usable
        usable.stype = ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES
        with nogil:
            r = ze.zeDeviceGetProperties(self._h, &p)
        return usable.currUsableMemSize if r == ZE_RESULT_SUCCESS else None


made_by(Device, "core.Device is made by open_devices()")


cdef int _properties(Device self, ze_device_properties_t* p, ze_structure_type_t stype) except -1:
    memset(p, 0, sizeof(p[0]))
    p.stype = stype
    with nogil:
        CHECK(ze.zeDeviceGetProperties(self._h, p))
    return 0


cdef uint64_t timer_hz(uint64_t asked_in_hz, uint64_t asked_in_ns) noexcept nogil:
    """Ticks per second from both queries; a driver older than 1.2 returns nanoseconds for both."""
    if asked_in_hz >= 10000:
        return asked_in_hz
    return 1000000000 // asked_in_ns if asked_in_ns else 0


cdef int _fill_identity(Device self) except -1:
    cdef l0rt_device_info* info = &self.info
    cdef ze_device_properties_t p, p12
    _properties(self, &p, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
    _properties(self, &p12, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2)
    memcpy(info.name, p.name, 256)
    memcpy(info.uuid, p.uuid.id, 16)
    info.vendor_id = p.vendorId
    info.device_id = p.deviceId
    info.core_clock_mhz = p.coreClockRate
    info.max_alloc = p.maxMemAllocSize
    info.slices = p.numSlices
    info.subslices_per_slice = p.numSubslicesPerSlice
    info.eus_per_subslice = p.numEUsPerSubslice
    info.threads_per_eu = p.numThreadsPerEU
    info.timestamp_bits = p.timestampValidBits if 0 < p.timestampValidBits <= 64 else 64
    info.kernel_timestamp_bits = p.kernelTimestampValidBits if 0 < p.kernelTimestampValidBits <= 64 else 64
    info.timer_hz = timer_hz(p12.timerResolution, p.timerResolution)
    info.integrated = (p.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0
    return 0


cdef int _fill_pci(Device self) except -1:
    cdef ze_pci_ext_properties_t p
    cdef ze_result_t r
    memset(&p, 0, sizeof(p))
    p.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES
    if ze.zeDevicePciGetPropertiesExt == NULL:
        return 0
    with nogil:
        r = ze.zeDevicePciGetPropertiesExt(self._h, &p)
    self.info.has_pci = r == ZE_RESULT_SUCCESS
    if self.info.has_pci:
        self.info.pci = [p.address.domain, p.address.bus, p.address.device, p.address.function]
    return 0


cdef int _fill_memory(Device self) except -1:
    cdef uint32_t count = 0
    cdef ze_device_memory_properties_t* found
    with nogil:
        CHECK(ze.zeDeviceGetMemoryProperties(self._h, &count, NULL))
    found = <ze_device_memory_properties_t*>calloc(count + 1, sizeof(found[0]))
    if found == NULL:
        raise MemoryError()
    for i in range(count):
        found[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES
    try:
        with nogil:
            CHECK(ze.zeDeviceGetMemoryProperties(self._h, &count, found))
        for i in range(count):
            self.info.total_memory += found[i].totalSize
            self.info.memory_clock_mhz = found[i].maxClockRate
            self.info.memory_bus_width = found[i].maxBusWidth
    finally:
        free(found)
    return 0


cdef int _fill_caches(Device self) except -1:
    cdef uint32_t count = 0
    cdef ze_device_cache_properties_t* found
    with nogil:
        CHECK(ze.zeDeviceGetCacheProperties(self._h, &count, NULL))
    found = <ze_device_cache_properties_t*>calloc(count + 1, sizeof(found[0]))
    if found == NULL:
        raise MemoryError()
    for i in range(count):
        found[i].stype = ZE_STRUCTURE_TYPE_DEVICE_CACHE_PROPERTIES
    try:
        with nogil:
            CHECK(ze.zeDeviceGetCacheProperties(self._h, &count, found))
        for i in range(count):
            self.info.cache_bytes = max(self.info.cache_bytes, <uint64_t>found[i].cacheSize)
    finally:
        free(found)
    return 0


cdef int _fill_queue_groups(Device self) except -1:
    """Compute: the group with most queues that computes. Copy: the first that only copies, the main engine's.

    Ponte Vecchio has another behind it, for its links: l0rt makes no stream there, but may adopt a list of it.
    """
    cdef l0rt_device_info* info = &self.info
    cdef uint32_t pattern, count = 0
    cdef ze_command_queue_group_properties_t* found
    info.compute_ordinal = info.copy_ordinal = -1
    with nogil:
        CHECK(ze.zeDeviceGetCommandQueueGroupProperties(self._h, &count, NULL))
    found = <ze_command_queue_group_properties_t*>calloc(count + 1, sizeof(found[0]))
    if found == NULL:
        raise MemoryError()
    for i in range(count):
        found[i].stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES
    try:
        with nogil:
            CHECK(ze.zeDeviceGetCommandQueueGroupProperties(self._h, &count, found))
        for i in range(count):
            if found[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE:
                if found[i].numQueues > info.compute_queues:
                    info.compute_ordinal = i
                    info.compute_queues = found[i].numQueues
            elif found[i].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY:
                pattern = <uint32_t>min(found[i].maxMemoryFillPatternSize, <size_t>0xFFFFFFFF)
                if info.copy_ordinal < 0:
                    info.copy_ordinal = i
                    info.copy_queues = found[i].numQueues
                    info.copy_fill_pattern = pattern
                info.copy_fill_pattern = min(info.copy_fill_pattern, pattern)
    finally:
        free(found)
    return 0


cdef dict _module_values(Device self):
    cdef ze_device_module_properties_t p
    cdef word_ext_t dot
    memset(&dot, 0, sizeof(dot))
    dot.stype = <ze_structure_type_t>ZE_STRUCTURE_INTEL_DEVICE_MODULE_DP_EXP_PROPERTIES
    module_properties(self, &p, &dot)
    return {
        "has_fp16": bool(p.flags & ZE_DEVICE_MODULE_FLAG_FP16),
        "has_fp64": bool(p.flags & ZE_DEVICE_MODULE_FLAG_FP64),
        "has_atomic64": bool(p.flags & ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS),
        "has_dpas": bool(dot.word & DPAS),
    }


cdef dict _more_values(Device self):
    """What the record has no field for: tiles, the kinds of memory, the architecture's version, bfloat16."""
    cdef ze_device_properties_t p
    cdef word_ext_t version
    cdef uint32_t tiles = 0
    cdef ze_result_t r
    _properties(self, &p, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES)
    queues = p.physicalEUSimdWidth
    memset(&p, 0, sizeof(p))
    memset(&version, 0, sizeof(version))
    p.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
    version.stype = <ze_structure_type_t>ZE_STRUCTURE_TYPE_DEVICE_IP_VERSION_EXT
    p.pNext = &version
    with nogil:
        CHECK(ze.zeDeviceGetProperties(self._h, &p))
        if ze.zeDeviceGetSubDevices != NULL:
            r = ze.zeDeviceGetSubDevices(self._h, &tiles, NULL)
            CHECK(ZE_RESULT_SUCCESS if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE else r)    # it is one tile then
    return {
        "tiles": max(tiles, 1),
        "simd_width": queues,
        "ip_version": version.word,
        "memory_kinds": _memory_kinds(self),
        "has_bfloat16": "ZE_extension_bfloat16_conversions" in extension_names(self.driver._h),
    }


cdef list _memory_kinds(Device self):
    """The device's memories, each ``(name, bytes)``."""
    cdef uint32_t count = 8
    cdef ze_device_memory_properties_t[8] found
    memset(&found, 0, sizeof(found))
    for i in range(8):
        found[i].stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES
    with nogil:
        CHECK(ze.zeDeviceGetMemoryProperties(self._h, &count, found))
    return [(found[i].name.decode("utf-8", "replace"), found[i].totalSize) for i in range(min(count, 8))]


cdef int module_properties(Device self, ze_device_module_properties_t* p, void* next) except -1:
    memset(p, 0, sizeof(p[0]))
    p.stype, p.pNext = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, next
    with nogil:
        CHECK(ze.zeDeviceGetModuleProperties(self._h, p))
    return 0


cdef int compute_properties(Device self, ze_device_compute_properties_t* p) except -1:
    memset(p, 0, sizeof(p[0]))
    p.stype = ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES
    with nogil:
        CHECK(ze.zeDeviceGetComputeProperties(self._h, p))
    return 0


cdef Limits device_limits(Device device) except *:
    cdef ze_device_compute_properties_t p
    cdef ze_device_module_properties_t m
    cdef Limits found
    compute_properties(device, &p)
    found.total_group_size = p.maxTotalGroupSize
    found.group_size = [p.maxGroupSizeX, p.maxGroupSizeY, p.maxGroupSizeZ]
    found.group_count = [p.maxGroupCountX, p.maxGroupCountY, p.maxGroupCountZ]
    found.local_bytes = p.maxSharedLocalMemory
    module_properties(device, &m, NULL)
    found.argument_bytes = m.maxArgumentsSize
    return found


cdef dict _compute_values(Device self):
    cdef ze_device_compute_properties_t p
    compute_properties(self, &p)
    return {
        "max_work_group_size": p.maxTotalGroupSize,
        "local_mem_size": p.maxSharedLocalMemory,
        "sub_group_sizes": [p.subGroupSizes[i] for i in range(min(p.numSubGroupSizes, 8))],
    }


cdef ze_result_t device_status(ze_device_handle_t device) noexcept nogil:
    """What the driver says about the device's health."""
    cdef ze_result_t r = ze.zeDeviceGetStatus(device)
    return ZE_RESULT_SUCCESS if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE else r


cdef ze_result_t device_rest(ze_device_handle_t device) noexcept nogil:
    return ze.zeDeviceSynchronize(device)


cdef ze_result_t device_clocks(ze_device_handle_t device, uint64_t* host_ns, uint64_t* ticks) noexcept nogil:
    """Read both clocks at one moment. Only where the capability record says ``global_ts``."""
    return ze.zeDeviceGetGlobalTimestamps(device, host_ns, ticks)


def open_devices(Driver driver):
    """Return the GPUs of ``driver`` in the driver's order."""
    cdef uint32_t count = 0
    cdef ze_device_handle_t* found
    cdef Device device
    with nogil:
        CHECK(ze.zeDeviceGet(driver._h, &count, NULL))
    found = <ze_device_handle_t*>calloc(count + 1, sizeof(ze_device_handle_t))
    if found == NULL:
        raise MemoryError()
    try:
        with nogil:
            CHECK(ze.zeDeviceGet(driver._h, &count, found))
        devices = []
        for i in range(count):
            device = Device.__new__(Device)
            device._h = found[i]
            device.driver = driver
            device.is_first = i == 0
            if device.is_gpu:
                caps_probe(driver._h, device._h, &device.caps)
                _fill_identity(device)
                _fill_pci(device)
                _fill_memory(device)
                _fill_caches(device)
                _fill_queue_groups(device)
                devices.append(device)
        return devices
    finally:
        free(found)
