# SPDX-License-Identifier: Apache-2.0
"""What a driver says of itself and of its device, and how it answers wrong calls: name -> text.

tests/xe_device/test/profiles.txt has where Intel's driver and the CPU driver's profile of the same device differ, with
the reason. `python -m helpers.driver_facts` prints the facts of the driver that L0RT_DRIVER selects. Calls that end the
process in Intel's driver are left out: a copy to no address, a pool of no events, a module that is none.
"""

import ctypes
import json

import l0rt.accelerator as acc
from l0rt.runtime.streams import devices
from l0rt.selftest.driver import HOST, U32, Driver, Handle, P, Refused, structure
from l0rt.ze.status import name_of

from helpers.rings import TESTS

TABLE = TESTS / "xe_device" / "test" / "profiles.txt"
PROFILES = {"bmg": "arc-b580", "lnl": "lunar-lake", "pvc": "pvc", "dg2": "arc-a770-xe"}
ANY = "*"  # in the table: a value of the machine's or of a version's
QueueGroup = structure("QueueGroup", flags=U32, pattern=ctypes.c_size_t, queues=U32)
FOREIGN = ("uuid", "pci", "name", "is_software")  # of no driver's making


class Extension(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char * 256), ("version", U32))


def call(name, signature, *args):
    """Call a function of the library, which the self-test does without."""
    address = devices.library.address(name)
    return ctypes.CFUNCTYPE(U32, *signature)(address)(*args) if address else None


def properties():
    found = {name: value for name, value in devices.properties(0).items() if name not in FOREIGN}
    return {f"property {name}": str(value) for name, value in found.items()}


def capabilities():
    return {f"capability {name}": str(able) for name, able in devices.capabilities(0).items()}


def groups(bare):
    count = U32()
    call("zeDeviceGetCommandQueueGroupProperties", (P, P, P), bare.device, ctypes.byref(count), None)
    rows = (QueueGroup * count.value)(*[QueueGroup(0x6) for _ in range(count.value)])
    call("zeDeviceGetCommandQueueGroupProperties", (P, P, P), bare.device, ctypes.byref(count), rows)
    return {f"queue group {i}": f"flags {row.flags:#x}, {row.queues} queues, patterns of {row.pattern}"
            for i, row in enumerate(rows)}  # fmt: skip


def extensions(bare):
    driver, count = devices.native_handles(0)[0], U32()
    call("zeDriverGetExtensionProperties", (P, P, P), driver, ctypes.byref(count), None)
    rows = (Extension * count.value)()
    call("zeDriverGetExtensionProperties", (P, P, P), driver, ctypes.byref(count), rows)
    return {f"extension {row.name.decode()}": f"{row.version >> 16}.{row.version & 0xFFFF}" for row in rows}


def answers(bare):
    """How the driver answers calls that the specification does not allow, or that it may refuse."""
    list_, host, there = bare.list(), bare.allocate(4096, HOST), bare.allocate(4096)
    pool = bare.pool(1)
    wrong = {
        "an allocation of no bytes": lambda: bare.allocate(0),
        "host memory of no bytes": lambda: bare.allocate(0, HOST),
        "an allocation beyond the device's memory": lambda: bare.allocate(1 << 44),
        "a fill with a pattern of 3 bytes": lambda: bare.fill(list_, there, 0, 96, pattern=b"abc"),
        "a fill with a pattern of 256 bytes": lambda: bare.fill(list_, there, 0, 1024, pattern=bytes(256)),
        "a fill of half a pattern": lambda: bare.fill(list_, there, 0, 6, pattern=b"abcd"),
        "the end of memory that is none": lambda: bare.do("zeMemFree", bare.context, host + 64),
        "an event beyond its pool": lambda: bare.event(pool, 1),
        "a list of a group that is not there": lambda: bare.list(ordinal=99),
        "a list of a queue that is not there": lambda: bare.list(index=99),
        "a wait for no events": lambda: bare.do("zeCommandListAppendWaitOnEvents", list_, 0, None),
        "a reservation of no bytes": lambda: bare.reserve(0),
        "physical memory of an odd size": lambda: bare.physical(4097),
        "a handle of no memory": lambda: bare.do("zeMemGetIpcHandle", bare.context, there + 64, ctypes.byref(Handle())),
    }
    found = {}
    for what, try_ in wrong.items():
        try:
            try_()
            found[f"answer to {what}"] = "SUCCESS"
        except Refused as refused:
            found[f"answer to {what}"] = name_of(refused.code)
        bare.drain(list_)
    return found


def facts():
    acc.current_stream()
    bare = Driver(0)
    with bare.scope():
        return {**properties(), **capabilities(), **groups(bare), **extensions(bare), **answers(bare)}


def rows():
    """Return the table: (products, what, Intel's driver, the CPU driver, reason)."""
    lines = (line for line in TABLE.read_text().splitlines() if line and not line.startswith("#"))
    return [tuple(part.strip() for part in line.split(" | ")) for line in lines]


def differences(intel, cpu):
    """Return what -> the two values, where the facts differ."""
    return {what: (intel.get(what, "none"), cpu.get(what, "none"))
            for what in {*intel, *cpu} if intel.get(what) != cpu.get(what)}  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(facts()))
