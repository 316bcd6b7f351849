# SPDX-License-Identifier: Apache-2.0
"""A queue that somebody made with Level Zero directly, on l0rt's first device, and a gate that holds its work up.

Its code runs in a process of its own, in front of a test's.
"""

CODE = """
import ctypes, os
import l0rt, l0rt.accelerator as acc
from l0rt.runtime.streams import devices

class Desc(ctypes.Structure):               # large enough for each of them
    _fields_ = [("stype", ctypes.c_uint32), ("pNext", ctypes.c_void_p), ("values", ctypes.c_uint32 * 16)]

class Foreign:
    def __init__(self):
        self.lib, P = ctypes.CDLL(l0rt.cpu_driver_path()), ctypes.c_void_p
        self.driver, self.context, self.list, self.pool, self.gate = P(), P(), P(), P(), P()
        self.device = P(devices._devices[0].handle)
        self.call("zeDriverGet", ctypes.byref(ctypes.c_uint32(1)), ctypes.byref(self.driver))
        self.call("zeContextCreate", self.driver, self.desc(0xd), ctypes.byref(self.context))
        self.call("zeCommandListCreateImmediate", self.context, self.device, self.desc(0xe, 0, 0, 2, 2, 0),
                  ctypes.byref(self.list))
        self.call("zeEventPoolCreate", self.context, self.desc(0x10, 1, 1), 0, None, ctypes.byref(self.pool))
        self.call("zeEventCreate", self.pool, self.desc(0x11), ctypes.byref(self.gate))

    def call(self, name, *arguments):
        assert getattr(self.lib, name)(*arguments) == 0, name

    def desc(self, stype, *values):
        return ctypes.byref(Desc(stype, None, values))

    def hold(self):
        self.call("zeEventHostReset", self.gate)
        self.call("zeCommandListAppendWaitOnEvents", self.list, 1, ctypes.byref(self.gate))

    def go(self):
        self.call("zeEventHostSignal", self.gate)

acc.current_stream()
foreign = Foreign()
threads = lambda: len(os.listdir("/proc/self/task"))
"""
