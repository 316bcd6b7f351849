# SPDX-License-Identifier: Apache-2.0
"""Find the Level Zero library and resolve its entry points, through ctypes."""

import ctypes
import os

LOADER = "libze_loader.so.1"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CPU_DRIVER = os.path.join(_PACKAGE, "cpu_driver", "libze_l0rt_cpu.so")


class Library:
    """An opened library: ``path`` as given, and the addresses of its functions."""

    def __init__(self, path):
        self.path = path
        # RTLD_LOCAL: a driver that was linked without -Bsymbolic must not find the loader's functions by name.
        self._dll = ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_NOW)

    def address(self, name):
        """Return the address of the function ``name``, 0 if the library has none."""
        try:
            return ctypes.cast(getattr(self._dll, name), ctypes.c_void_p).value
        except AttributeError:
            return 0

    def complaint(self):
        """Return what the CPU driver says is wrong with its environment variables, empty if nothing is."""
        if not self.address("l0rt_cpu_complaint"):
            return ""
        self._dll.l0rt_cpu_complaint.restype = ctypes.c_char_p
        return self._dll.l0rt_cpu_complaint().decode("utf-8", "replace")

    def real_path(self):
        """Return the file that the dynamic linker chose, if /proc shows it."""
        return real_path(self.path)

    def loader_version(self):
        """Return the loader's version as text, None if this library is not a loader or too old to report it."""

        class Component(ctypes.Structure):  # zel_component_version_t
            _fields_ = [
                ("component_name", ctypes.c_char * 64),
                ("spec_version", ctypes.c_uint32),
                ("major", ctypes.c_int),
                ("minor", ctypes.c_int),
                ("patch", ctypes.c_int),
            ]

        if not self.address("zelLoaderGetVersions"):
            return None
        count = ctypes.c_size_t(0)
        if self._dll.zelLoaderGetVersions(ctypes.byref(count), None) != 0 or count.value == 0:
            return None
        found = (Component * count.value)()
        if self._dll.zelLoaderGetVersions(ctypes.byref(count), found) != 0:
            return None
        loader = next((c for c in found if c.component_name == b"loader"), found[0])
        return f"{loader.major}.{loader.minor}.{loader.patch}"


def real_path(path):
    """Return the file that the dynamic linker chose for a library that is loaded, if /proc shows it."""
    name = os.path.basename(path).split(".so")[0]
    try:
        with open("/proc/self/maps") as maps:
            return next((line.split(maxsplit=5)[5].strip() for line in maps if name in line), path)
    except OSError:
        return path


def library_name(driver):
    """Return what to open for a value of ``L0RT_DRIVER`` other than ``auto``."""
    return {"gpu": LOADER, "cpu": CPU_DRIVER}.get(driver, driver)


def open_library(driver):
    """Open the library for ``gpu``, ``cpu`` or a path; OSError says why it cannot be opened."""
    return Library(library_name(driver))
