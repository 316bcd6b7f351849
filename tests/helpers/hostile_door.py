# SPDX-License-Identifier: Apache-2.0
"""Calls through the C table, with every pointer that the table promises to look at.

A stream's pointer is the caller's word, and what a copy touches is memory: these are right, or NULL.
"""

import ctypes

from helpers.door import SIGNATURES, Door, Failed

LARGEST = 1 << 16


class HostileDoor:
    """The functions of the C table as targets of a `World`."""

    def __init__(self, world):
        self.world, self.door = world, Door()
        self.names = [name for name, *_ in SIGNATURES]

    def stream(self):
        rng = self.world.rng
        try:
            return rng.choice((None, self.door.current_stream(rng.randrange(2)), self.door.pool_stream(1, 0)))
        except Failed:
            return None

    def step(self, hostility):
        """Call one function."""
        world, rng = self.world, self.world.rng
        name = rng.choice(self.names)
        device = rng.choice((-1, 0, 1)) if not hostility else rng.choice((-2, -1, 0, 1, 2, 1 << 30, -(1 << 31)))
        pointer = world.values.pointer()
        held = [ptr for ptr, size in world.raw.items() if type(size) is int and size >= 16]
        inside = rng.choice(held) if held else None
        size = rng.choice((0, 1, 16)) if inside else 0
        args = {
            "exchange_device": (device,), "current_stream": (device,), "exchange_stream": (self.stream(),),
            "pool_stream": (device, rng.choice((-1, 0, 1, 1 << 20))), "stream_handle": (self.stream(),),
            "stream_synchronize": (self.stream(),), "device_synchronize": (device,),
            "malloc": (rng.choice((0, 1, 512, LARGEST, 1 << 40, (1 << 64) - 1)), device, self.stream()),
            "free": (pointer,), "free_async": (pointer, self.stream()), "record_stream": (pointer, self.stream()),
            "memcpy_async": (inside, inside, size, self.stream()), "memset_async": (inside, 7, size, self.stream()),
            "last_error": (ctypes.create_string_buffer(64), 64), "record_use": (pointer, self.stream()),
        }.get(name, ())  # fmt: skip
        world.perform(f"door.{name}", getattr(self.door, name), list(args), {}, None)
