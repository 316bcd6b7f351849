# SPDX-License-Identifier: Apache-2.0
"""System management: cards, how much of their memory is free, and which processes use them.

Its devices are cards, in an order of their own and whatever ZE_FLAT_DEVICE_HIERARCHY makes of them: one is found by
UUID or PCI address, never by index.
"""

from libc cimport stdlib
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK

from l0rt.errors import UnsupportedError


cdef extern from "l0rt/ze_sysman.h" nogil:
    const uint32_t ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES, ZES_STRUCTURE_TYPE_PCI_PROPERTIES
    const uint32_t ZES_STRUCTURE_TYPE_MEM_STATE, ZES_STRUCTURE_TYPE_PROCESS_STATE

    ctypedef struct zes_device_properties_t:
        uint32_t stype
        ze_device_properties_t core
    ctypedef struct zes_pci_address_t:
        uint32_t domain
        uint32_t bus
        uint32_t device
        uint32_t function
    ctypedef struct zes_pci_properties_t:
        uint32_t stype
        zes_pci_address_t address
    ctypedef struct zes_mem_state_t:
        uint32_t stype
        uint64_t free
        uint64_t size
    ctypedef struct zes_process_state_t:
        uint32_t stype
        uint32_t processId
        uint64_t memSize

cdef enum:
    MOST_PROCESSES = 1 << 16

ctypedef ze_result_t (*init_fn)(uint32_t) noexcept nogil
ctypedef ze_result_t (*list_fn)(void*, uint32_t*, void**) noexcept nogil
ctypedef ze_result_t (*drivers_fn)(uint32_t*, void**) noexcept nogil
ctypedef ze_result_t (*get_fn)(void*, void*) noexcept nogil
ctypedef ze_result_t (*processes_fn)(void*, uint32_t*, zes_process_state_t*) noexcept nogil

cdef init_fn zes_init = NULL
cdef drivers_fn zes_drivers = NULL
cdef list_fn zes_devices = NULL, zes_modules = NULL
cdef get_fn zes_device = NULL, zes_pci = NULL, zes_memory = NULL
cdef processes_fn zes_processes = NULL


def open_cards(address, legacy):
    """Return the cards as dicts of ``uuid``, ``pci`` and ``handle``; no card if there is no system management.

    ``address(name)`` finds functions in the loaded library; ``legacy`` is what ZES_ENABLE_SYSMAN was when the driver
    was opened: with 1 the driver gave system management to the core's handles, and zesInit must not be called too.
    """
    global zes_init, zes_drivers, zes_devices, zes_modules, zes_device, zes_pci, zes_memory, zes_processes
    cdef void* drivers[16]
    cdef void* devices[64]
    cdef uint32_t driver_count = 16, count
    cdef ze_result_t r
    if legacy == "1":
        raise UnsupportedError(
            "ZES_ENABLE_SYSMAN=1 was set when the driver was opened: system management then goes through that driver's "
            "own handles, and must not be started by zesInit as well. Unset it")
    names = ("zesInit", "zesDriverGet", "zesDeviceGet", "zesDeviceEnumMemoryModules", "zesDeviceGetProperties",
             "zesDevicePciGetProperties", "zesMemoryGetState")
    found = [address(name) for name in names]
    if not all(found):
        return []
    zes_init, zes_drivers = <init_fn><size_t>found[0], <drivers_fn><size_t>found[1]
    zes_devices, zes_modules = <list_fn><size_t>found[2], <list_fn><size_t>found[3]
    zes_device, zes_pci = <get_fn><size_t>found[4], <get_fn><size_t>found[5]
    zes_memory = <get_fn><size_t>found[6]
    zes_processes = <processes_fn><size_t>(address("zesDeviceProcessesGetState") or 0)
    cards = []
    with nogil:
        r = zes_init(0)
        if r == ZE_RESULT_SUCCESS:
            r = zes_drivers(&driver_count, drivers)
    if r != ZE_RESULT_SUCCESS:
        return []
    for i in range(driver_count):
        count = 64
        with nogil:
            r = zes_devices(drivers[i], &count, devices)
        if r == ZE_RESULT_SUCCESS:
            cards += [card_of(devices[k]) for k in range(count)]
    return cards


cdef dict card_of(void* device):
    """The identity of a card; None for each part that the driver does not report."""
    cdef zes_device_properties_t p
    cdef zes_pci_properties_t pci
    cdef ze_result_t told, placed
    memset(&p, 0, sizeof(p))
    memset(&pci, 0, sizeof(pci))
    p.stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES
    p.core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES
    pci.stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES
    with nogil:
        told = zes_device(device, &p)
        placed = zes_pci(device, &pci)
    a = pci.address
    return {
        "handle": <size_t>device,
        "uuid": bytes(p.core.uuid.id[:16]) if told == ZE_RESULT_SUCCESS else None,
        "pci": f"{a.domain:04x}:{a.bus:02x}:{a.device:02x}.{a.function:x}" if placed == ZE_RESULT_SUCCESS else None,
    }


def find_card(cards, uuid, pci, alone):
    """Return the card of a device, None if it is not known. ``alone``: no other device is on that PCI address.

    A tile has the address of its card, whose memory is not the tile's alone.
    """
    for card in cards:
        if any(uuid) and card["uuid"] == uuid:
            return card
    return next((card for card in cards if alone and pci is not None and card["pci"] == pci), None)


def free_memory(size_t handle):
    """Return ``(free, size)`` bytes of the card's memory modules; None if it does not say, or cannot be believed.

    Without privileges i915 and xe call all memory free, and report success.
    """
    cdef void* modules[64]
    cdef uint32_t count = 64
    cdef zes_mem_state_t state
    cdef uint64_t free = 0, size = 0
    cdef ze_result_t r
    cdef uint32_t i
    with nogil:
        r = zes_modules(<void*>handle, &count, modules)
        for i in range(count if r == ZE_RESULT_SUCCESS else 0):
            memset(&state, 0, sizeof(state))
            state.stype = ZES_STRUCTURE_TYPE_MEM_STATE
            r = zes_memory(modules[i], &state)
            if r != ZE_RESULT_SUCCESS:
                break
            free += state.free
            size += state.size
    return (free, size) if r == ZE_RESULT_SUCCESS and free < size else None


def processes(size_t handle):
    """Return ``[(process ID, bytes)]``: what each process that uses the card has allocated of its memory.

    UnsupportedError where the driver does not say, and what else it answers, such as that privileges are missing.
    """
    cdef zes_process_state_t* states = NULL
    cdef zes_process_state_t* grown
    cdef uint32_t capacity = 64, count = 0, i
    cdef ze_result_t r = ZE_RESULT_ERROR_INVALID_SIZE
    if zes_processes == NULL:
        raise UnsupportedError("this driver has no zesDeviceProcessesGetState")
    try:
        while r == ZE_RESULT_ERROR_INVALID_SIZE and capacity < MOST_PROCESSES:      # more than at the last call
            capacity *= 2
            grown = <zes_process_state_t*>stdlib.realloc(states, capacity * sizeof(zes_process_state_t))
            if grown == NULL:
                raise MemoryError()
            states = grown
            memset(states, 0, capacity * sizeof(zes_process_state_t))
            for i in range(capacity):
                states[i].stype = ZES_STRUCTURE_TYPE_PROCESS_STATE
            count = capacity
            with nogil:
                r = zes_processes(<void*>handle, &count, states)
        CHECK(r)
        return [(states[i].processId, states[i].memSize) for i in range(min(count, capacity))]
    finally:
        stdlib.free(states)
