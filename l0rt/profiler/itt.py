# SPDX-License-Identifier: Apache-2.0
"""Tasks for Intel's ITT tools, such as VTune: ranges and marks of `l0rt.profiler`, with the setting ``itt``.

A tool sets ``INTEL_LIBITTNOTIFY64`` to the path of its collector, a library that exports ITT's functions by name, or
only ``__itt_api_init``, which is given a table of the functions that are wanted and fills in their addresses.
"""

import ctypes
import functools
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_long,
    c_ubyte,
    c_uint,
    c_ulong,
    c_ulonglong,
    c_void_p,
)

from l0rt import config
from l0rt._base import callers

DOMAIN = b"l0rt"
ALL_GROUPS = -1
STRUCTURE_GROUP = 1 << 12
TRACK_SCOPE = 3  # of a mark: its thread
MOST_NAMES = 4096  # a collector keeps each for ever


class Id(Structure):
    """What names one task among all, where a program needs that; all zeros here."""

    _fields_ = (("d1", c_ulonglong), ("d2", c_ulonglong), ("d3", c_ulonglong))


class Domain(Structure):
    _fields_ = (
        ("flags", c_int),
        ("name", c_char_p),
        ("wide_name", c_void_p),
        ("extra1", c_int),
        ("extra2", c_void_p),
        ("next", c_void_p),
    )


class StringHandle(Structure):
    _fields_ = (
        ("text", c_char_p),
        ("wide_text", c_void_p),
        ("extra1", c_int),
        ("extra2", c_void_p),
        ("next", c_void_p),
    )


class Entry(Structure):
    """A function that is wanted, and where its address goes."""

    _fields_ = (
        ("name", c_char_p),
        ("address", POINTER(c_void_p)),
        ("at_first", c_void_p),
        ("without", c_void_p),
        ("group", c_int),
    )


class Table(Structure):
    """ITT's ``__itt_global``, version 3."""

    _fields_ = (
        ("magic", c_ubyte * 8),
        ("major", c_ulong),
        ("minor", c_ulong),
        ("build", c_ulong),
        ("api_initialized", c_long),
        ("mutex_initialized", c_long),
        ("counter", c_long),
        ("mutex", c_ubyte * 40),
        ("library", c_void_p),
        ("error_handler", c_void_p),
        ("path", c_void_p),
        ("entries", POINTER(Entry)),
        ("next", c_void_p),
        ("threads", c_void_p),
        ("domains", POINTER(Domain)),
        ("strings", POINTER(StringHandle)),
        ("state", c_int),
        ("counters", c_void_p),
        ("collect_events", c_uint),
        ("histograms", c_void_p),
        ("later", c_void_p * 16),  # what newer versions have behind it
    )


TYPES = {
    b"__itt_domain_create": CFUNCTYPE(c_void_p, c_char_p),
    b"__itt_string_handle_create": CFUNCTYPE(c_void_p, c_char_p),
    b"__itt_task_begin": CFUNCTYPE(None, c_void_p, Id, Id, c_void_p),
    b"__itt_task_end": CFUNCTYPE(None, c_void_p),
    b"__itt_marker": CFUNCTYPE(None, c_void_p, Id, c_void_p, c_int),
}
NONE = Id()


class Collector:
    """A loaded collector."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.kept = []  # what the collector may look at for ever
        functions = self.by_table() if hasattr(self.library, "__itt_api_init") else self.by_name()
        missing = [name.decode() for name in (b"__itt_task_begin", b"__itt_task_end") if name not in functions]
        if missing:
            raise OSError(f"{path} has no {' and no '.join(missing)}")
        self.functions = functions
        self.task_begin, self.task_end = functions[b"__itt_task_begin"], functions[b"__itt_task_end"]
        self.marker = functions.get(b"__itt_marker")
        self.domain = self.address_for(b"__itt_domain_create", Domain(flags=1, name=DOMAIN), DOMAIN)
        self.on = c_int.from_address(self.domain)  # its flags: a tool switches a domain off with 0
        self.handle = functools.lru_cache(MOST_NAMES)(self.new_handle)

    def by_name(self):
        """Return the functions that the library exports."""
        return {name: kind((name.decode(), self.library)) for name, kind in TYPES.items()
                if hasattr(self.library, name.decode())}  # fmt: skip

    def by_table(self):
        """Return the functions that the library fills in."""
        addresses = (c_void_p * len(TYPES))()
        entries = (Entry * (len(TYPES) + 1))()
        for entry, name, at in zip(entries, TYPES, range(len(TYPES)), strict=False):
            entry.name, entry.group = name, STRUCTURE_GROUP
            entry.address = ctypes.cast(ctypes.byref(addresses, at * ctypes.sizeof(c_void_p)), POINTER(c_void_p))
        table = Table(magic=(0xED, 0xAB, 0xAB, 0xEC, 0x0D, 0xEE, 0xDA, 0x30), major=3, minor=24, build=20230630)
        table.library = self.library._handle
        table.entries = entries
        table.api_initialized = table.mutex_initialized = 1
        self.kept += [addresses, entries, table]
        initialize = self.library["__itt_api_init"]  # a class mangles the name of an attribute
        initialize.argtypes, initialize.restype = (POINTER(Table), c_int), None
        initialize(ctypes.byref(table), ALL_GROUPS)
        return {name: kind(address) for (name, kind), address in zip(TYPES.items(), addresses, strict=True) if address}

    def address_for(self, creator, own, text):
        """Return what the collector makes of a text, or where it leaves that to the program, the program's own."""
        create = self.functions.get(creator)
        address = create(text) if create is not None else None
        if address:
            return address
        self.kept.append(own)
        return ctypes.addressof(own)

    def new_handle(self, name):
        text = name.encode("utf-8", "replace").replace(b"\0", b"?")
        return self.address_for(b"__itt_string_handle_create", StringHandle(text=text), text)

    def begin(self, name):
        """Begin a task of this thread, inside of those that it has begun."""
        if self.on.value:
            self.task_begin(self.domain, NONE, NONE, self.handle(name))

    def end(self):
        """End the task that this thread has begun last."""
        if self.on.value:
            self.task_end(self.domain)

    def mark(self, name):
        """Note a moment, if the collector takes any."""
        if self.marker is not None and self.on.value:
            self.marker(self.domain, NONE, self.handle(name), TRACK_SCOPE)


@functools.cache
def collector():
    """Return the collector, if the setting ``itt`` asks for one at the first use of this; None and a warning if it
    cannot be loaded."""
    if not config.get("itt"):
        return None
    path = os.environ.get("INTEL_LIBITTNOTIFY64") or "libittnotify.so"
    try:
        return Collector(path)
    except OSError as error:
        callers.warn(f"L0RT_ITT=1 has no effect, for ITT's collector cannot be loaded (INTEL_LIBITTNOTIFY64): {error}")
        return None
