# SPDX-License-Identifier: Apache-2.0
"""Modules in Python: code and constants, checked before the driver gets any of them."""

import os
import time

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_CheckBuffer
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from l0rt._base.arguments cimport get_view, is_whole, known_as, whole
from l0rt.kernels.kernel cimport new_kernel
from l0rt.launch.built cimport (
    l0rt_module,
    module_check,
    module_close,
    module_kernel,
    module_kernel_names,
    module_native_binary,
    module_open,
    module_release,
)
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.streams.devices cimport device_at
from l0rt.runtime.streams.naming cimport device as device_name, index_of
from l0rt.runtime.streams.types cimport *

from l0rt._base import lazynumpy as np
from l0rt.launch.spirv import Spirv, is_spirv
from l0rt._base.paths import plain_path, read_file
from l0rt.errors import ModuleBuildError
from l0rt.runtime.streams.devices import is_mended, lazy, properties

__all__ = ["Module"]

cdef enum:
    SPIRV = 0
    NATIVE = 1
    HEADER_WORDS = 5
    CAPABILITY = 2 << 16 | 17       # the instruction and its length
    DEVICE_ENQUEUE = 19

MOST_BYTES = 1 << 30     # of a module's file

cdef bytes code_of(code):
    """The bytes of a module: of memory, or of the file at a path."""
    cdef Py_buffer view
    if isinstance(code, str) or isinstance(code, os.PathLike):
        return read_file(plain_path(code), MOST_BYTES)
    if not PyObject_CheckBuffer(code):
        raise TypeError(f"a module must be bytes or a path, got {type(code).__name__}")
    get_view(code, &view, PyBUF_C_CONTIGUOUS, "Module")
    try:
        return (<const char*>view.buf)[:view.len]
    finally:
        PyBuffer_Release(&view)


cdef bytes constant(number, value, kind, size_t size):
    """The bytes of a specialisation constant."""
    what = f"constant {number}"
    bits = 8 * <object>size
    if kind == "float":
        if isinstance(value, float) or isinstance(value, np.floating) or is_whole(value):
            return np.array(value, f"f{size}").tobytes()
        raise TypeError(f"{what} must be a float, got {type(value).__name__}")
    if isinstance(value, bool) or isinstance(value, np.bool_):
        return int(value).to_bytes(size, "little")
    number = whole(value, what)
    least, most = (0, 1) if kind == "bool" else (-(1 << bits - 1), (1 << bits) - 1)
    if not least <= number <= most:
        raise ValueError(f"{what} must be from {least} to {most}, got {number}")
    return (number & (1 << bits) - 1).to_bytes(size, "little")


cdef dict checked_constants(constants, spirv):
    if constants is None:
        return {}
    if not hasattr(constants, "items"):
        raise TypeError(f"constants must be a dict of SpecId to value, got {type(constants).__name__}")
    found = {}
    for number, value in constants.items():
        at = whole(number, "a SpecId")
        if spirv is None:
            raise ValueError(
                "a native module has no specialisation constants, for they were fixed when it was built; those of "
                "SPIR-V that cannot be read are not known")
        if at not in spirv.constants:
            raise ValueError(f"the module has no specialisation constant {at}: it has {sorted(spirv.constants)}")
        kind, size = spirv.constants[at]
        found[at] = constant(at, value, kind, size)
    return found


cdef object read(bytes binary, bint trusted):
    """What SPIR-V says of itself; None of a module that is trusted and cannot be read."""
    try:
        return Spirv(binary, trusted)
    except ModuleBuildError:
        if not trusted:
            raise
    return None


cdef bint enqueues(bytes binary) noexcept:
    """Whether kernels enqueue others: a module's capabilities come first."""
    cdef const char* at = binary
    cdef const char* end = at + len(binary)
    cdef uint32_t word
    cdef uint32_t capability
    at += 4 * HEADER_WORDS
    while end - at >= 8:
        memcpy(&word, at, 4)
        memcpy(&capability, at + 4, 4)
        if word != CAPABILITY:
            break
        if capability == DEVICE_ENQUEUE:
            return True
        at += 8
    return False


cdef int check_enqueues(int index) except -1:
    if is_mended(index, "fatal_enqueues"):
        log = ("its kernels enqueue others (capability DeviceEnqueue): Intel's compiler does not support that, and may "
               "end the process; with trusted=True the driver gets the module all the same")
        raise ModuleBuildError(f"the module was not built: {log}", None, log)
    return 0


watchers: list = []     # called after each compile and build with what it was of, how it went, the device, and ms


def tell(what, how, index, begun):
    """Tell the watchers of a compile or a build that began at this time of `time.perf_counter`."""
    seconds = time.perf_counter() - begun
    for watcher in tuple(watchers):
        watcher(what, how, index, 1e3 * seconds)


class Compiled:
    """What a compiler made: SPIR-V that was checked, its log, and what a driver made of it, if that is known.

    A module of it is made without another check; what the SPIR-V says of the kernels is read when somebody asks.
    """

    __slots__ = ("spirv", "log", "native", "_told")

    def __init__(self, spirv, log="", native=None):
        self.spirv, self.log, self.native = spirv, log, native
        self._told = None

    def told(self):
        """Return what the SPIR-V says, a `Spirv`."""
        if self._told is None:
            self._told = Spirv(self.spirv)
        return self._told


cdef dict _facts = {}           # device's index -> what `facts` says of it


def facts(device):
    """Return the index of a device and what a compiler asks about it, a dict; the driver is opened for it."""
    cdef int index
    lazy.init()
    index = index_of(device, current_device(), lazy.device_type)
    found = _facts.get(index)
    if found is None:
        p = properties(index)
        names = ("is_software", "vendor_id", "device_id", "ip_version", "name", "driver_version", "api_version")
        found = _facts[index] = {"uuid": p["uuid"].hex(), **{name: p[name] for name in names}}
    return index, found


@cython.binding(False)
cdef class Module:
    """Module(code, device=None, options='', constants=None, trusted=False)
--

Code that the driver builds for one device.

Parameters
----------
code : bytes-like, str or path
    SPIR-V or a native binary, or the path of a file that has it.
device : int, str, device or None, optional
    The device. None is the current device.
options : str, optional
    The driver's build options.
constants : dict of int to number, optional
    Specialisation constants by SpecId. The others keep their default values.
trusted : bool, optional
    Whether the driver gets SPIR-V that l0rt refuses: with instructions that are not in SPIR-V's public grammar, or,
    where the driver is Intel's, with kernels that enqueue others. Intel's driver ends the process on some of them.

Raises
------
ModuleBuildError
    The code is not valid, or the driver does not build it. ``log`` says why.
ValueError
    The module has no such constant, or a value does not fit it.

Notes
-----
SPIR-V is checked before the driver gets it, and what it declares of its kernels is read, whether or not the device can
run them: a kernel that the device cannot run is refused at its launch. The specification of Level Zero, "Modules and
Kernels", describes the build options.
"""
    cdef l0rt_module* ptr
    cdef object spirv           # what the SPIR-V says, a Spirv; None: native
    cdef object compiled        # the Compiled that it is made of, whose SPIR-V nobody asked about yet
    cdef str log
    cdef dict made              # name -> Kernel
    cdef tuple names            # of all kernels; None: the driver was not asked yet
    cdef object __weakref__

    def __cinit__(self, code, device=None, options="", constants=None, bint trusted=False):
        cdef bytes binary
        cdef l0rt_device* on
        if not isinstance(options, str):
            raise TypeError(f"options must be a str, got {type(options).__name__}")
        if "\0" in options:
            raise ValueError("options must not contain a null character")
        self.log = ""
        if type(code) is Compiled:
            self.compiled = code
            self.log = code.log
            binary = code.spirv if code.native is None else code.native
            is_native = code.native is not None     # with its constants
            fixed = {} if is_native or not constants else checked_constants(constants, code.told())
        else:
            binary = code_of(code)
            if trusted and not binary:
                raise ModuleBuildError("the module is not valid: it has no bytes", None, "")
            is_native = not is_spirv(binary) and len(binary) >= 8
            self.spirv = None if is_native else read(binary, trusted)
            fixed = checked_constants(constants, self.spirv)
        lazy.init()
        on = device_at(index_of(device, current_device(), lazy.device_type))
        if not is_native and not trusted and enqueues(binary):
            check_enqueues(on.index)
        self.made = {}
        begun = time.perf_counter() if watchers else 0
        self.ptr = module_open(on, NATIVE if is_native else SPIRV, binary, options.encode(), fixed)
        if watchers:
            tell(f"{len(binary)} bytes of {'native code' if is_native else 'SPIR-V'}", "built", on.index, begun)

    def __dealloc__(self):
        if self.ptr != NULL:
            module_release(self.ptr)

    @property
    def device(self):
        """The device that the module is built for."""
        Module_check(self)
        return device_name(lazy.device_type, self.ptr.device.index)

    @property
    def kernels(self):
        """The names of the kernels, in the order of the driver."""
        Module_check(self)
        if self.names is None:
            self.names = tuple(module_kernel_names(self.ptr))
        return self.names

    @property
    def build_log(self):
        """What the compiler said of the source, such as its warnings; empty if nothing was compiled."""
        return self.log or ""

    @property
    def closed(self):
        """Whether the module was closed."""
        return self.ptr == NULL or self.ptr.closed != 0

    def __getitem__(self, name):
        if not isinstance(name, str):
            raise TypeError(f"a kernel's name must be a str, got {type(name).__name__}")
        Module_check(self)
        found = self.made.get(name)
        if found is None:
            interface = self.interface_of(name)
            found = self.made.setdefault(name, new_kernel(module_kernel(self.ptr, name.encode()), name, interface))
        return found

    cdef object interface_of(self, name):
        """What the SPIR-V says of a kernel; None of a native module, or of no kernel."""
        if self.compiled is not None:
            self.spirv = self.compiled.told()
            self.compiled = None
        return None if self.spirv is None else self.spirv.kernels.get(name)

    def __contains__(self, name):
        return isinstance(name, str) and name in self.kernels

    def __iter__(self):
        return iter(self.kernels)

    def __len__(self):
        return len(self.kernels)

    def native_binary(self):
        """Return what a module can be made of again on the same device and driver, without compiling.

        Returns
        -------
        bytes
        """
        Module_check(self)
        return module_native_binary(self.ptr)

    def close(self):
        """Close the module. Its kernels cannot be launched any more; launches that still run end first.

        Nothing waits. Closing twice is harmless.
        """
        if self.ptr != NULL:
            module_close(self.ptr)

    def __enter__(self):
        Module_check(self)
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def __copy__(self):
        raise TypeError("a Module cannot be copied: make another of the same code")

    def __reduce__(self):
        raise TypeError("a Module cannot be pickled: pickle its code or native_binary()")

    def __getattr__(self, name):
        hint = f": a kernel is an item, module[{name!r}]" if not self.closed and name in self.kernels else ""
        raise AttributeError(f"'l0rt.Module' object has no attribute {name!r}{hint}")

    def __repr__(self):
        if self.closed:
            return "<l0rt.Module closed>"
        return f"<l0rt.Module on {self.device}: {', '.join(self.kernels) or 'no kernel'}>"


cdef int Module_check(Module self) except -1:
    if self.ptr == NULL:
        raise ValueError("the module was never made")
    return module_check(self.ptr)


known_as(Module, b"l0rt.Module")
