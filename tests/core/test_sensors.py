# SPDX-License-Identifier: Apache-2.0
"""What is read of a card's sensors, from a driver made of Python functions: layouts, tiles, silent parts."""

import ctypes
from ctypes import POINTER, c_double, c_int, c_uint8, c_uint32, c_uint64, c_void_p, cast

import pytest
from l0rt.core.sensors import Sensors
from l0rt.errors import L0Error, UnsupportedError

CARD = 0xCA4D
PRIVILEGES, UNSUPPORTED = 0x70010000, 0x78000003


def structure(name, *fields):
    base = [("stype", c_uint32), ("pNext", c_void_p)]
    return type(name, (ctypes.Structure,), {"_fields_": base + list(fields)})


Place = ("onSubdevice", c_uint8), ("subdeviceId", c_uint32)
Temp = structure("Temp", ("type", c_int), *Place, ("maxTemperature", c_double), ("supports", c_uint8 * 3))
Freq = structure("Freq", ("type", c_int), *Place, ("can", c_uint8 * 2), ("min", c_double), ("max", c_double))
FreqState = structure("FreqState", *[(n, c_double) for n in ("volts", "request", "tdp", "efficient", "actual")],
                      ("throttle", c_uint32))  # fmt: skip
Power = structure("Power", *Place, ("can", c_uint8 * 2), ("limits", c_int * 3))
Ras = structure("Ras", ("type", c_int), *Place)
RasState = structure("RasState", ("category", c_uint64 * 7))
State = structure("State", ("reset", c_uint32), ("repaired", c_uint32))
Ecc = structure("Ecc", ("current", c_int), ("pending", c_int), ("action", c_int))
Two, Four = c_uint64 * 2, c_uint64 * 4


class Driver:
    """Functions by name; each structure's type is checked where the specification gives one."""

    def __init__(self):
        self.functions = {}
        self.results = {}  # (function, part): what it returns instead

    def address(self, name):
        return cast(self.functions[name], c_void_p).value if name in self.functions else None

    def lists(self, name, *parts):
        @ctypes.CFUNCTYPE(c_uint32, c_void_p, POINTER(c_uint32), POINTER(c_void_p))
        def function(card, count, out):
            assert (card, count[0] >= len(parts)) == (CARD, True)
            for i, part in enumerate(parts):
                out[i] = part
            count[0] = len(parts)
            return 0

        self.functions[name] = function

    def gets(self, name, kind, values, stype=None):
        """``values`` is part -> fields, as a dict or, of an array, a tuple."""

        @ctypes.CFUNCTYPE(c_uint32, c_void_p, c_void_p)
        def function(part, out):
            if (name, part) in self.results:
                return self.results[name, part]
            told = cast(out, POINTER(kind)).contents
            if stype is not None and told.stype != stype:
                return 0x78000004
            if isinstance(values[part], dict):
                for field, value in values[part].items():
                    setattr(told, field, value)
            elif kind in (Two, Four):
                told[:] = values[part]
            else:
                told.value = values[part]
            return 0

        self.functions[name] = function


@pytest.fixture
def driver():
    return Driver()


@pytest.fixture
def sensors(driver):
    return Sensors(CARD, driver.address)


def test_the_warmest_of_each_kind_is_told_and_a_silent_sensor_is_left_out(driver, sensors):
    kinds = {1: {"type": 1}, 2: {"type": 1}, 3: {"type": 2}, 4: {"type": 4}, 5: {"type": 0}}
    driver.lists("zesDeviceEnumTemperatureSensors", *kinds)
    driver.gets("zesTemperatureGetProperties", Temp, kinds, 0x14)
    driver.gets("zesTemperatureGetState", c_double, {1: 51.5, 2: 63.0, 3: 70.25, 4: 20.0, 5: 72.0})
    driver.results["zesTemperatureGetState", 5] = UNSUPPORTED
    assert sensors.temperatures() == {"gpu": 63.0, "memory": 70.25}


def test_a_sensor_that_wants_privileges_says_so(driver, sensors):
    driver.lists("zesDeviceEnumTemperatureSensors", 1)
    driver.gets("zesTemperatureGetProperties", Temp, {1: {"type": 1}})
    driver.gets("zesTemperatureGetState", c_double, {1: 1.0})
    driver.results["zesTemperatureGetState", 1] = PRIVILEGES
    with pytest.raises(L0Error) as caught:
        sensors.temperatures()
    assert caught.value.code[1] == PRIVILEGES


def test_a_driver_without_a_function_or_a_part_says_which(driver, sensors):
    for question in ("temperatures", "clock", "energy", "activity", "traffic", "errors", "has_ecc", "needs_reset"):
        with pytest.raises(UnsupportedError, match="this driver has no zes"):
            getattr(sensors, question)()
    driver.gets("zesEngineGetActivity", Two, {})
    driver.lists("zesDeviceEnumEngineGroups")
    with pytest.raises(UnsupportedError, match="lists none of them .zesDeviceEnumEngineGroups"):
        sensors.activity()


def test_the_clock_is_that_of_the_fastest_tile_and_not_of_memory(driver, sensors):
    driver.lists("zesDeviceEnumFrequencyDomains", 1, 2, 3, 4)
    driver.gets("zesFrequencyGetProperties", Freq, {1: {"type": 0, "max": 2400.0}, 2: {"type": 0, "max": 2400.0},
                                                    3: {"type": 1, "max": 9000.0}, 4: {"type": 0}}, 0x9)  # fmt: skip
    state = {1: {"actual": 600.0}, 2: {"actual": 2050.0, "throttle": 2}, 3: {"actual": 8000.0}, 4: {"actual": -1.0}}
    driver.gets("zesFrequencyGetState", FreqState, state, 0x1B)
    assert sensors.clock() == (2050.0, 2400.0, 2)


def test_energy_is_that_of_the_card_else_the_sum_of_its_tiles(driver, sensors):
    where = {1: {"onSubdevice": 1}, 2: {"onSubdevice": 1}, 3: {"onSubdevice": 0}}
    driver.lists("zesDeviceEnumPowerDomains", *where)
    driver.gets("zesPowerGetProperties", Power, where, 0xD)
    driver.gets("zesPowerGetEnergyCounter", Two, {1: (5, 100), 2: (7, 101), 3: (40, 102)})
    assert sensors.energy() == (40, 102)
    driver.results["zesPowerGetEnergyCounter", 3] = UNSUPPORTED
    assert sensors.energy() == (12, 101)


def test_activity_and_traffic_have_a_row_for_each_part(driver, sensors):
    driver.lists("zesDeviceEnumEngineGroups", 1, 2)
    driver.gets("zesEngineGetActivity", Two, {1: (3, 10), 2: (9, 11)})
    assert sensors.activity() == [(3, 10), (9, 11)]
    driver.lists("zesDeviceEnumMemoryModules", 1)
    driver.gets("zesMemoryGetBandwidth", Four, {1: (100, 11, 10**9, 77)})
    assert sensors.traffic() == [(111, 10**9, 77)]


def test_errors_are_counted_by_kind_and_category(driver, sensors):
    driver.lists("zesDeviceEnumRasErrorSets", 1, 2, 3)
    driver.gets("zesRasGetProperties", Ras, {1: {"type": 0}, 2: {"type": 1}, 3: {"type": 1}}, 0xF)

    @ctypes.CFUNCTYPE(c_uint32, c_void_p, c_uint8, POINTER(RasState))
    def state(part, clear, out):
        assert (clear, out[0].stype) == (0, 0x22)
        out[0].category[:] = [part, 0, 0, part * 10, 0, part * 100, 0]
        return 0

    driver.functions["zesRasGetState"] = state
    found = sensors.errors()
    assert found["resets"] == 6
    assert found["corrected"] == {
        "programming": 0, "driver": 0, "compute": 10, "other": 0, "cache": 100, "display": 0,
    }  # fmt: skip
    assert (found["uncorrected"]["compute"], found["uncorrected"]["cache"]) == (50, 500)


@pytest.mark.parametrize(("available", "state", "expected"), [(0, 0, False), (1, 1, True), (1, 2, False)])
def test_ecc_is_on_where_it_is_enabled(driver, sensors, available, state, expected):
    driver.gets("zesDeviceEccAvailable", c_uint8, {CARD: available})
    driver.gets("zesDeviceGetEccState", Ecc, {CARD: {"current": state}}, 0x26)
    assert sensors.has_ecc() is expected


def test_a_card_that_waits_for_a_reset_says_so(driver, sensors):
    driver.gets("zesDeviceGetState", State, {CARD: {"reset": 1}}, 0x15)
    assert sensors.needs_reset() is True
