# SPDX-License-Identifier: Apache-2.0
"""The driver's calls about memory, noted: import this before l0rt opens its driver."""

import ctypes

from helpers.wrapped import wrap

ARGUMENTS = {
    "zeMemAllocDevice": 6, "zeMemAllocHost": 5, "zeMemAllocShared": 7, "zeMemFree": 2, "zeMemFreeExt": 3,
    "zeContextMakeMemoryResident": 4, "zePhysicalMemCreate": 4, "zePhysicalMemDestroy": 2, "zeVirtualMemReserve": 4,
    "zeVirtualMemFree": 3, "zeVirtualMemMap": 6, "zeVirtualMemUnmap": 3, "zeDeviceGetProperties": 2,
    "zeCommandListAppendMemoryCopy": 7,
}  # fmt: skip
MAX_ALLOC_AT = 40  # of ze_device_properties_t
max_alloc = None  # what every device is to say instead of its own
calls = []  # (name, arguments as integers, result, what the descriptor's pNext starts with)


def _words(address, count):
    """Return the first ``count`` words of 32 bits at an address; none at 0."""
    return list((ctypes.c_uint32 * count).from_address(address)) if address else []


def _next_of(descriptor):
    """Return the first words of what a descriptor's pNext points to."""
    return _words(ctypes.c_uint64.from_address(descriptor + 8).value, 5) if descriptor else []


def _noted(name, original):
    def call(*words):
        args = words[: ARGUMENTS[name]]
        extra = _next_of(args[1]) if name == "zeMemAllocDevice" else []
        size = ctypes.c_uint64.from_address(args[2] + 24).value if name == "zePhysicalMemCreate" else 0
        result = original(*words)
        if name == "zeDeviceGetProperties" and max_alloc is not None:
            ctypes.c_uint64.from_address(args[1] + MAX_ALLOC_AT).value = max_alloc
        calls.append((name, args, result, extra or size))
        return result

    return call if name in ARGUMENTS else None


wrap(_noted)


def named(*names):
    """Return the calls of these functions that succeeded."""
    return [call for call in calls if call[0] in names and call[2] == 0]
