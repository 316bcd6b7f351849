# SPDX-License-Identifier: Apache-2.0
"""The sensors of a card: temperature, clock, energy, how long its engines worked, bytes moved, errors and ECC.

A card has several parts of a kind, one for each tile or each engine. A part that does not answer is left out; if none
answers, what the last one said is raised: UnsupportedError, or the `L0Error` of missing privileges.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK

from l0rt.errors import L0Error, UnsupportedError


cdef extern from "l0rt/ze_sysman.h" nogil:
    const uint32_t ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES, ZES_STRUCTURE_TYPE_DEVICE_STATE
    const uint32_t ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES, ZES_STRUCTURE_TYPE_FREQ_PROPERTIES
    const uint32_t ZES_STRUCTURE_TYPE_FREQ_STATE, ZES_STRUCTURE_TYPE_POWER_PROPERTIES
    const uint32_t ZES_STRUCTURE_TYPE_RAS_PROPERTIES, ZES_STRUCTURE_TYPE_RAS_STATE
    const uint32_t ZES_STRUCTURE_TYPE_TEMP_PROPERTIES
    const int ZES_DEVICE_ECC_STATE_ENABLED, ZES_FREQ_DOMAIN_GPU, ZES_MAX_RAS_ERROR_CATEGORY_COUNT
    const int ZES_RAS_ERROR_TYPE_CORRECTABLE
    const int ZES_TEMP_SENSORS_GLOBAL, ZES_TEMP_SENSORS_GPU, ZES_TEMP_SENSORS_MEMORY

    ctypedef unsigned char ze_bool_t
    ctypedef struct zes_base_t "zes_device_state_t":
        uint32_t stype
    ctypedef struct zes_device_state_t:
        uint32_t stype
        uint32_t reset
        uint32_t repaired
    ctypedef struct zes_temp_properties_t:
        int type
    ctypedef struct zes_freq_properties_t:
        int type
        double min
        double max
    ctypedef struct zes_freq_state_t:
        double actual
        uint32_t throttleReasons
    ctypedef struct zes_power_properties_t:
        ze_bool_t onSubdevice
    ctypedef struct zes_power_energy_counter_t:
        uint64_t energy
        uint64_t timestamp
    ctypedef struct zes_engine_properties_t:
        int type
    ctypedef struct zes_engine_stats_t:
        uint64_t activeTime
        uint64_t timestamp
    ctypedef struct zes_mem_bandwidth_t:
        uint64_t readCounter
        uint64_t writeCounter
        uint64_t maxBandwidth
        uint64_t timestamp
    ctypedef struct zes_ras_properties_t:
        int type
    ctypedef struct zes_ras_state_t:
        uint32_t stype
        uint64_t category[7]
    ctypedef struct zes_device_ecc_properties_t:
        int currentState

cdef enum:
    MOST_PARTS = 128

ctypedef ze_result_t (*list_fn)(void*, uint32_t*, void**) noexcept nogil
ctypedef ze_result_t (*get_fn)(void*, void*) noexcept nogil
ctypedef ze_result_t (*ras_fn)(void*, ze_bool_t, void*) noexcept nogil

TEMPERATURES = {ZES_TEMP_SENSORS_GLOBAL: "card", ZES_TEMP_SENSORS_GPU: "gpu", ZES_TEMP_SENSORS_MEMORY: "memory"}
ERRORS = ("resets", "programming", "driver", "compute", "other", "cache", "display")    # zes_ras_error_cat_t


cdef int ask(size_t function, size_t part, void* out, uint32_t stype, size_t nbytes) except -1:
    """Fill a structure; ``stype`` is 0 for one without."""
    cdef ze_result_t r
    memset(out, 0, nbytes)
    if stype:
        (<zes_base_t*>out).stype = stype
    with nogil:
        r = (<get_fn>function)(<void*>part, out)
    CHECK(r)
    return 0


cdef list parts_of(size_t function, size_t card):
    cdef void* parts[MOST_PARTS]
    cdef uint32_t count = MOST_PARTS, i
    cdef ze_result_t r
    with nogil:
        r = (<list_fn>function)(<void*>card, &count, parts)
    CHECK(r)
    return [<size_t>parts[i] for i in range(min(count, MOST_PARTS))]


class Sensors:
    """What the sensors of one card say. ``address(name)`` finds functions in the loaded library."""

    def __init__(self, handle, address):
        self._handle = handle
        self._address = address
        self._parts = {}

    def _function(self, name):
        found = self._address(name)
        if not found:
            raise UnsupportedError(f"this driver has no {name}")
        return found

    def _read(self, name, read):
        """Return what ``read(part)`` says of each part that the function ``name`` lists."""
        if name not in self._parts:
            self._parts[name] = parts_of(self._function(name), self._handle)
        told, failure = [], UnsupportedError(f"this driver lists none of them ({name})")
        for part in self._parts[name]:
            try:
                told.append(read(part))
            except L0Error as error:
                failure = error
        if not told:
            raise failure
        return told

    def temperatures(self):
        """Return the warmest of each kind of sensor (``card``, ``gpu``, ``memory``), in degrees Celsius."""
        properties, state = self._function("zesTemperatureGetProperties"), self._function("zesTemperatureGetState")

        def read(part):
            cdef zes_temp_properties_t p
            cdef double celsius
            ask(properties, part, &p, ZES_STRUCTURE_TYPE_TEMP_PROPERTIES, sizeof(p))
            ask(state, part, &celsius, 0, sizeof(celsius))
            return TEMPERATURES.get(p.type), celsius

        found: dict = {}
        for kind, celsius in self._read("zesDeviceEnumTemperatureSensors", read):
            if kind is not None:
                found[kind] = max(celsius, found.get(kind, celsius))
        return found

    def clock(self):
        """Return ``(MHz, the most it reaches, why it is held back as bits)`` of the fastest tile; MHz of one that
        rests may be 0."""
        properties, state = self._function("zesFrequencyGetProperties"), self._function("zesFrequencyGetState")

        def read(part):
            cdef zes_freq_properties_t p
            cdef zes_freq_state_t s
            ask(properties, part, &p, ZES_STRUCTURE_TYPE_FREQ_PROPERTIES, sizeof(p))
            if p.type != ZES_FREQ_DOMAIN_GPU:
                raise UnsupportedError("this driver tells no clock of the GPU")
            ask(state, part, &s, ZES_STRUCTURE_TYPE_FREQ_STATE, sizeof(s))
            if s.actual < 0:
                raise UnsupportedError("this driver does not know the clock")
            return s.actual, p.max, s.throttleReasons

        return max(self._read("zesDeviceEnumFrequencyDomains", read))

    def energy(self):
        """Return ``(microjoules, microseconds)`` since some time: of the card, or the sum of its tiles."""
        properties = self._function("zesPowerGetProperties")
        counter = self._function("zesPowerGetEnergyCounter")

        def read(part):
            cdef zes_power_properties_t p
            cdef zes_power_energy_counter_t c
            ask(properties, part, &p, ZES_STRUCTURE_TYPE_POWER_PROPERTIES, sizeof(p))
            ask(counter, part, &c, 0, sizeof(c))
            return bool(p.onSubdevice), c.energy, c.timestamp

        told = self._read("zesDeviceEnumPowerDomains", read)
        whole = [row for row in told if not row[0]]
        if whole:
            return max(row[1:] for row in whole)    # a card's contains its package's
        return sum(row[1] for row in told), max(row[2] for row in told)

    def activity(self):
        """Return ``[(microseconds of work, microseconds)]``, one for each engine or group of engines, since some
        time."""
        stats = self._function("zesEngineGetActivity")

        def read(part):
            cdef zes_engine_stats_t s
            ask(stats, part, &s, 0, sizeof(s))
            return s.activeTime, s.timestamp

        return self._read("zesDeviceEnumEngineGroups", read)

    def traffic(self):
        """Return ``[(bytes read and written, the most in a second, microseconds)]``, one for each memory module."""
        bandwidth = self._function("zesMemoryGetBandwidth")

        def read(part):
            cdef zes_mem_bandwidth_t b
            ask(bandwidth, part, &b, 0, sizeof(b))
            return b.readCounter + b.writeCounter, b.maxBandwidth, b.timestamp

        return self._read("zesDeviceEnumMemoryModules", read)

    def needs_reset(self):
        """Whether the card waits for a reset or a repair."""
        cdef zes_device_state_t s
        ask(self._function("zesDeviceGetState"), self._handle, &s, ZES_STRUCTURE_TYPE_DEVICE_STATE, sizeof(s))
        return s.reset != 0

    def errors(self):
        """Return the counts ``{"resets": n, "corrected": {...}, "uncorrected": {...}}`` by category."""
        properties, state = self._function("zesRasGetProperties"), self._function("zesRasGetState")

        def read(part):
            cdef zes_ras_properties_t p
            cdef zes_ras_state_t s
            cdef ze_result_t r
            cdef size_t function = state, handle = part
            ask(properties, part, &p, ZES_STRUCTURE_TYPE_RAS_PROPERTIES, sizeof(p))
            memset(&s, 0, sizeof(s))
            s.stype = ZES_STRUCTURE_TYPE_RAS_STATE
            with nogil:
                r = (<ras_fn>function)(<void*>handle, 0, &s)
            CHECK(r)
            return p.type == ZES_RAS_ERROR_TYPE_CORRECTABLE, [s.category[i] for i in range(len(ERRORS))]

        found: dict = {"resets": 0, "corrected": {}, "uncorrected": {}}
        for corrected, counts in self._read("zesDeviceEnumRasErrorSets", read):
            found["resets"] += counts[0]
            kind = found["corrected" if corrected else "uncorrected"]
            for name, count in zip(ERRORS[1:], counts[1:]):
                kind[name] = kind.get(name, 0) + count
        return found

    def has_ecc(self):
        """Whether the card's memory corrects errors now."""
        cdef zes_device_ecc_properties_t p
        cdef ze_bool_t there = 0
        ask(self._function("zesDeviceEccAvailable"), self._handle, &there, 0, sizeof(there))
        if not there:
            return False
        ask(self._function("zesDeviceGetEccState"), self._handle, &p, ZES_STRUCTURE_TYPE_DEVICE_ECC_PROPERTIES,
            sizeof(p))
        return p.currentState == ZES_DEVICE_ECC_STATE_ENABLED
