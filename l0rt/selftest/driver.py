# SPDX-License-Identifier: Apache-2.0
"""The bare driver of one device, by ctypes: what the self-test asks it with nothing of l0rt's around the calls.

Every call is checked. What is made is destroyed by `close`, in the opposite order.
"""

import ctypes
from contextlib import ExitStack, contextmanager

import l0rt.bench.loops as loops
from l0rt.runtime.streams import devices
from l0rt.ze.status import name_of

P, N, U32, U64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint32, ctypes.c_uint64
FOREVER = (1 << 64) - 1
HOST_SCOPE = 4
IN_ORDER, COPY_OFFLOAD = 2, 4
VISIBLE, IPC, TIMED = 1, 2, 4
UNKNOWN, HOST, DEVICE, SHARED = range(4)  # ze_memory_type_t
SUCCESS, NOT_READY = 0, 1
OUT_OF_MEMORY = (0x70000002, 0x70000003, 0x78000009)


class Handle(ctypes.Structure):
    """A handle for other processes: of memory, or of a pool of events."""

    _fields_ = (("data", ctypes.c_char * 64),)


SIGNATURES = {
    "zeDriverGetApiVersion": (P, P),
    "zeDriverGetExtensionFunctionAddress": (P, ctypes.c_char_p, P),
    "zelLoaderTranslateHandle": (U32, P, P),
    "zeCommandListCreateImmediate": (P, P, P, P),
    "zeCommandListDestroy": (P,),
    "zeCommandListAppendBarrier": (P, P, U32, P),
    "zeCommandListAppendMemoryCopy": (P, P, P, N, P, U32, P),
    "zeCommandListAppendMemoryFill": (P, P, P, N, N, P, U32, P),
    "zeCommandListAppendSignalEvent": (P, P),
    "zeCommandListAppendWaitOnEvents": (P, U32, P),
    "zeCommandListHostSynchronize": (P, U64),
    "zeEventPoolCreate": (P, P, U32, P, P),
    "zeEventPoolDestroy": (P,),
    "zeEventPoolGetIpcHandle": (P, P),
    "zeEventPoolCloseIpcHandle": (P,),
    "zeEventCreate": (P, P, P),
    "zeEventDestroy": (P,),
    "zeEventHostSignal": (P,),
    "zeEventHostReset": (P,),
    "zeEventHostSynchronize": (P, U64),
    "zeEventQueryStatus": (P,),
    "zeMemAllocDevice": (P, P, N, N, P, P),
    "zeMemAllocHost": (P, P, N, N, P),
    "zeMemFree": (P, P),
    "zeMemFreeExt": (P, P, P),
    "zeMemGetAllocProperties": (P, P, P, P),
    "zeContextMakeMemoryResident": (P, P, P, N),
    "zeVirtualMemReserve": (P, P, N, P),
    "zeVirtualMemFree": (P, P, N),
    "zeVirtualMemMap": (P, P, N, P, N, U32),
    "zeVirtualMemUnmap": (P, P, N),
    "zePhysicalMemCreate": (P, P, P, P),
    "zePhysicalMemDestroy": (P, P),
    "zeMemGetIpcHandle": (P, P, P),
    "zeMemPutIpcHandle": (P, Handle),
    "zeMemOpenIpcHandle": (P, P, Handle, U32, P),
    "zeMemCloseIpcHandle": (P, P),
    "zeCommandListBeginGraphCaptureExt": (P, P),
    "zeCommandListEndGraphCaptureExt": (P, P, P),
    "zeCommandListAppendGraphExt": (P, P, P, P, U32, P),
    "zeGraphInstantiateExt": (P, P, P),
    "zeGraphDestroyExt": (P,),
    "zeExecutableGraphDestroyExt": (P,),
    "zeModuleCreate": (P, P, P, P, P),
    "zeModuleDestroy": (P,),
    "zeModuleGetKernelNames": (P, P, P),
    "zeDeviceGetStatus": (P,),
    "zeDeviceGetGlobalTimestamps": (P, P, P),
}


class Refused(Exception):
    """The driver's answer to a call is an error."""

    def __init__(self, call, code):
        super().__init__(f"{call}: {name_of(code).removeprefix('ZE_RESULT_')}")
        self.call, self.code = call, code


class Missing(Exception):
    """The library has no such function."""


def structure(name, **fields):
    """Return a structure of Level Zero's: its type and extension first."""
    return type(name, (ctypes.Structure,), {"_fields_": [("stype", U32), ("pNext", P), *fields.items()]})


QueueDesc = structure("QueueDesc", ordinal=U32, index=U32, flags=U32, mode=U32, priority=U32)
PoolDesc = structure("PoolDesc", flags=U32, count=U32)
EventDesc = structure("EventDesc", index=U32, signal=U32, wait=U32)
FlagsDesc = structure("FlagsDesc", flags=U32)
DeviceMemoryDesc = structure("DeviceMemoryDesc", flags=U32, ordinal=U32)
PhysicalDesc = structure("PhysicalDesc", flags=U32, size=N)
ImportDesc = structure("ImportDesc", address=P, size=U64)
ModuleDesc = structure("ModuleDesc", format=U32, size=N, code=P, flags=P, constants=P)
MemoryProperties = structure("MemoryProperties", type=U32, id=U64, page_size=U64)


class Driver:
    """The bare driver behind device ``index``, and what was made with it."""

    def __init__(self, index):
        context, device = loops.core_objects(index)
        self.index = index
        self.context, self.device = context.handle, device.handle
        properties = devices.properties(index)
        self.compute, self.copies = properties["compute_ordinal"], properties["copy_ordinal"]
        self.list_sync = devices.capabilities(index)["list_sync"]
        self.functions: dict = {}
        self.cleanup = ExitStack()

    def close(self):
        """Destroy what was made."""
        self.cleanup.close()

    @contextmanager
    def scope(self):
        """Destroy at its end what was made in this block."""
        before, self.cleanup = self.cleanup, ExitStack()
        try:
            yield self
        finally:
            ended, self.cleanup = self.cleanup, before
            ended.close()

    def later(self, name, *args):
        """Call a function at the end, whatever it answers."""
        self.cleanup.callback(self.ask, name, *args)

    def function(self, name):
        """Return a function of the driver's; `Missing` if there is none."""
        if name not in self.functions:
            address = devices.library.address(name)
            if not address:
                raise Missing(f"the library has no {name}")
            self.functions[name] = ctypes.CFUNCTYPE(U32, *SIGNATURES[name])(address)
        return self.functions[name]

    def ask(self, name, *args):
        """Call a function; return its answer as a number."""
        return self.function(name)(*args)

    def do(self, name, *args):
        """Call a function that must succeed."""
        code = self.function(name)(*args)
        if code != SUCCESS:
            raise Refused(name, code)

    def list(self, in_order=True, ordinal=None, index=0, flags=0, priority=0, device=None):
        """Return an immediate list."""
        ordinal = self.compute if ordinal is None else ordinal
        desc = QueueDesc(0xE, None, ordinal, index, flags | (IN_ORDER if in_order else 0), 2, priority)
        handle = P()
        handles = self.context, device or self.device
        self.do("zeCommandListCreateImmediate", *handles, ctypes.byref(desc), ctypes.byref(handle))
        self.later("zeCommandListDestroy", handle.value)
        return handle.value

    def events(self, count=1, counter_based=False, signal=HOST_SCOPE, flags=VISIBLE):
        """Return events of a new pool."""
        pool = self.pool(count, counter_based, flags)
        return [self.event(pool, i, signal) for i in range(count)]

    def pool(self, count=1, counter_based=False, flags=VISIBLE):
        """Return a pool of events."""
        points = FlagsDesc(0x20014, None, 1)
        desc = PoolDesc(0x10, ctypes.addressof(points) if counter_based else None, flags, count)
        pool = P()
        self.do("zeEventPoolCreate", self.context, ctypes.byref(desc), 0, None, ctypes.byref(pool))
        self.later("zeEventPoolDestroy", pool.value)
        return pool.value

    def event(self, pool, index=0, signal=HOST_SCOPE):
        """Return an event of a pool."""
        desc, handle = EventDesc(0x11, None, index, signal, HOST_SCOPE), P()
        self.do("zeEventCreate", pool, ctypes.byref(desc), ctypes.byref(handle))
        self.later("zeEventDestroy", handle.value)
        return handle.value

    def allocate(self, nbytes, kind=DEVICE, device=None):
        """Return the address of new memory."""
        address = P()
        if kind == DEVICE:
            desc = DeviceMemoryDesc(0x15)
            owner = device or self.device
            self.do("zeMemAllocDevice", self.context, ctypes.byref(desc), nbytes, 0, owner, ctypes.byref(address))
        else:
            host = FlagsDesc(0x16)
            self.do("zeMemAllocHost", self.context, ctypes.byref(host), nbytes, 64, ctypes.byref(address))
        self.later("zeMemFree", self.context, address.value)
        return address.value

    def import_memory(self, address, nbytes):
        """Let devices reach memory of this process's."""
        source = ImportDesc(0x20037, None, address, nbytes)
        desc, result = FlagsDesc(0x16, ctypes.addressof(source)), P()
        self.do("zeMemAllocHost", self.context, ctypes.byref(desc), nbytes, 0, ctypes.byref(result))
        self.later("zeMemFree", self.context, result.value)
        return result.value

    def resident(self, address, nbytes):
        """Have memory backed now."""
        self.do("zeContextMakeMemoryResident", self.context, self.device, address, nbytes)

    def copy(self, list_, target, source, nbytes, signal=None, waits=()):
        """Append a copy."""
        events = (P * len(waits))(*waits)
        self.do("zeCommandListAppendMemoryCopy", list_, target, source, nbytes, signal, len(waits), events)

    def fill(self, list_, target, value, nbytes, signal=None, pattern=None):
        """Append a fill."""
        text = pattern or bytes([value])
        self.do("zeCommandListAppendMemoryFill", list_, target, text, len(text), nbytes, signal, 0, None)

    def signal(self, list_, event):
        """Append a signal."""
        self.do("zeCommandListAppendSignalEvent", list_, event)

    def wait_on(self, list_, event):
        """Append a wait."""
        self.do("zeCommandListAppendWaitOnEvents", list_, 1, (P * 1)(event))

    def query(self, event):
        """Is the event complete?"""
        code = self.ask("zeEventQueryStatus", event)
        if code not in (SUCCESS, NOT_READY):
            raise Refused("zeEventQueryStatus", code)
        return code == SUCCESS

    def wait(self, event, seconds=5.0):
        """Wait for an event; return whether it came."""
        code = self.ask("zeEventHostSynchronize", event, int(seconds * 1e9))
        if code not in (SUCCESS, NOT_READY):
            raise Refused("zeEventHostSynchronize", code)
        return code == SUCCESS

    def drain(self, list_, seconds=10.0):
        """Wait for everything that a list was given; return whether that ended."""
        if self.list_sync:
            code = self.ask("zeCommandListHostSynchronize", list_, int(seconds * 1e9))
            if code not in (SUCCESS, NOT_READY):
                raise Refused("zeCommandListHostSynchronize", code)
            return code == SUCCESS
        with self.scope():
            (last,) = self.events()
            self.do("zeCommandListAppendBarrier", list_, last, 0, None)
            return self.wait(last, seconds)

    def reserve(self, nbytes):
        """Return the beginning of reserved addresses."""
        address = P()
        self.do("zeVirtualMemReserve", self.context, None, nbytes, ctypes.byref(address))
        self.later("zeVirtualMemFree", self.context, address.value, nbytes)
        return address.value

    def physical(self, nbytes):
        """Return physical memory; its owner destroys it."""
        desc, handle = PhysicalDesc(0x20, None, 0, nbytes), P()
        self.do("zePhysicalMemCreate", self.context, self.device, ctypes.byref(desc), ctypes.byref(handle))
        return handle.value

    def destroy_physical(self, physical):
        """Destroy physical memory."""
        self.do("zePhysicalMemDestroy", self.context, physical)

    def map(self, address, nbytes, physical):
        """Map physical memory at an address."""
        self.do("zeVirtualMemMap", self.context, address, nbytes, physical, 0, 1)

    def unmap(self, address, nbytes):
        """Take the memory away from an address."""
        self.do("zeVirtualMemUnmap", self.context, address, nbytes)

    def mapped(self, nbytes, pieces=1):
        """Return the beginning of a range that consists of mapped pieces."""
        base, piece = self.reserve(nbytes * pieces), nbytes
        for i in range(pieces):
            part = self.physical(piece)
            self.later("zePhysicalMemDestroy", self.context, part)
            self.map(base + i * piece, piece, part)
            self.later("zeVirtualMemUnmap", self.context, base + i * piece, piece)
        return base

    def memory_type(self, address):
        """Return what the driver knows about an address."""
        properties = MemoryProperties(0x17)
        self.do("zeMemGetAllocProperties", self.context, address, ctypes.byref(properties), None)
        return properties.type

    def kernel_names(self, code):
        """Return the names of the kernels in SPIR-V, in the driver's order."""
        desc, module, count = ModuleDesc(0x1B, None, 0, len(code)), P(), U32()
        desc.code = ctypes.cast(ctypes.c_char_p(code), P)
        self.do("zeModuleCreate", self.context, self.device, ctypes.byref(desc), ctypes.byref(module), None)
        self.later("zeModuleDestroy", module.value)
        self.do("zeModuleGetKernelNames", module.value, ctypes.byref(count), None)
        names = (ctypes.c_char_p * count.value)()
        self.do("zeModuleGetKernelNames", module.value, ctypes.byref(count), names)
        return [(name or b"").decode() for name in names]

    def clocks(self):
        """Return the host's nanoseconds and the device's ticks of one moment."""
        host, ticks = U64(), U64()
        self.do("zeDeviceGetGlobalTimestamps", self.device, ctypes.byref(host), ctypes.byref(ticks))
        return host.value, ticks.value


def view(address, nbytes):
    """Return memory that the host may touch, as bytes that can be read and written."""
    return (ctypes.c_ubyte * nbytes).from_address(address)
