# SPDX-License-Identifier: Apache-2.0
"""Functions for pluggable allocators, over host memory: no device touches it, so every driver may have it."""

import ctypes

from l0rt.memory import PluggableAllocator

LIBC = ctypes.CDLL(None)
LIBC.aligned_alloc.restype = ctypes.c_void_p
LIBC.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]


class Host:
    """Functions over host memory that remember what they gave."""

    def __init__(self, alignment=1 << 16):
        self.alignment = alignment
        self.live, self.calls = {}, []

    def alloc(self, nbytes, device, stream):
        raw = LIBC.aligned_alloc(1 << 16, nbytes + self.alignment)
        ptr = raw + self.alignment % (1 << 16)
        self.live[ptr] = raw, nbytes
        self.calls.append((nbytes, device, stream))
        return ptr

    def free(self, ptr, nbytes, device, stream):
        raw, size = self.live.pop(ptr)
        assert size == nbytes
        LIBC.free(raw)

    def allocator(self):
        return PluggableAllocator(self.alloc, self.free)
