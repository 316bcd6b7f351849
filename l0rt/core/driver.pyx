# SPDX-License-Identifier: Apache-2.0
"""Drivers: what the loaded library offers; and a context over a driver's devices."""

cimport cython
from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.caps cimport extension_names
from l0rt.ze.status cimport CHECK, DROP, describe_with
from l0rt.ze.table cimport ze

from l0rt import config
from l0rt.errors import DriverNotFoundError
from l0rt.ze.status import error_of, name_of

cdef uint32_t ZEL_HANDLE_DRIVER = 0  # the handle's exact type: newer loaders accept a wrong one and translate nothing

cdef uint32_t ZEL_HANDLE_CONTEXT = 2

ctypedef const char* (*kernel_driver_fn)() noexcept nogil
ctypedef ze_result_t (*quiet_fn)(ze_context_handle_t) noexcept nogil
ctypedef ze_result_t (*version_string_fn)(ze_driver_handle_t, char*, size_t*) noexcept nogil


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Driver:
    """One driver of the loaded library. Made by ``open_drivers()``; never destroyed, as the specification says."""

    def __init__(self):
        raise TypeError("core.Driver is made by open_drivers()")

    @property
    def api_version(self):
        """The specification that the driver reports, as ``(major, minor)``."""
        return self._api_version >> 16, self._api_version & 0xFFFF

    @property
    def version(self):
        """The driver's own version text, or its number where it has no text."""
        cdef void* address = self.extension("zeIntelGetDriverVersionString")
        cdef char text[256]
        cdef size_t size = sizeof(text)
        cdef ze_driver_handle_t own
        if address != NULL:
            own = Driver_own_handle(self)
            with nogil:
                CHECK((<version_string_fn>address)(own, text, &size))
            return text[:size].rstrip(b"\0").decode("utf-8", "replace")
        return hex(self.driver_version)

    def extensions(self):
        """Return the names of the extensions that the driver tells of."""
        return extension_names(self._h)

    @property
    def handle(self):
        """The native ``ze_driver_handle_t`` as an integer."""
        return <size_t>self._h

    @property
    def simulated_kernel_driver(self):
        """The kernel driver of the devices that the CPU driver passes for, None for every other driver."""
        cdef void* address = self.extension("l0rtCpuKernelDriver")
        cdef const char* name = NULL
        if address != NULL:
            with nogil:
                name = (<kernel_driver_fn>address)()
        return None if name == NULL else name.decode()

    cdef void* extension(self, str name) except? NULL:
        """Return the address of an extension function, NULL if the driver has none.

        Such a function bypasses the loader: pass it ``Driver_own_handle``, not ``_h``.
        """
        cdef bytes text = name.encode()
        cdef const char* c_name = text
        cdef void* address = NULL
        cdef ze_result_t r
        if ze.zeDriverGetExtensionFunctionAddress == NULL:
            return NULL
        with nogil:
            r = ze.zeDriverGetExtensionFunctionAddress(self._h, c_name, &address)
        return address if r == ZE_RESULT_SUCCESS else NULL


made_by(Driver, "core.Driver is made by open_drivers()")


cdef ze_driver_handle_t Driver_own_handle(Driver self) except? NULL:
    """With several drivers the loader hands out wrapped handles; this is the driver's own."""
    cdef void* own = NULL
    if ze.zelLoaderTranslateHandle == NULL:
        return self._h
    with nogil:
        CHECK(ze.zelLoaderTranslateHandle(ZEL_HANDLE_DRIVER, self._h, &own))
    return <ze_driver_handle_t>own


cdef ze_result_t _list_drivers(uint32_t* count, ze_driver_handle_t* found) noexcept nogil:
    """zeInitDrivers for GPUs where it works, else zeInit and zeDriverGet; the two families must not be mixed."""
    global _refused, _refused_by
    cdef ze_init_driver_type_desc_t desc
    cdef ze_result_t r
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC
    desc.flags = ZE_INIT_DRIVER_TYPE_FLAG_GPU
    if _use_init_drivers and ze.zeInitDrivers != NULL:
        r = ze.zeInitDrivers(count, found, &desc)
        if r == ZE_RESULT_SUCCESS:
            return r
    r = ze.zeInit(ZE_INIT_FLAG_GPU_ONLY)
    if r != ZE_RESULT_SUCCESS:
        _refused = r
        _refused_by = <void*>ze.zeInit
        return r
    return ze.zeDriverGet(count, found)


cdef int driver_ask(Driver self) except -1:
    cdef ze_driver_properties_t properties
    memset(&properties, 0, sizeof(properties))
    properties.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES
    with nogil:
        CHECK(ze.zeDriverGetApiVersion(self._h, &self._api_version))
        CHECK(ze.zeDriverGetProperties(self._h, &properties))
    self.driver_version = properties.driverVersion
    return 0


cdef bint _use_init_drivers = True

# After a failed zeInit an old loader has unloaded its driver, and the next call of any kind would crash: the library
# is not asked again.
cdef ze_result_t _refused = ZE_RESULT_SUCCESS
cdef void* _refused_by = NULL


def open_drivers():
    """Initialise Level Zero and return its drivers; DriverNotFoundError, now and later, if the library has none."""
    global _use_init_drivers
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    cdef uint32_t count = 0
    cdef ze_driver_handle_t* found
    cdef Driver driver
    _use_init_drivers = "init_drivers" not in config.get("disable")
    if _refused_by != <void*>ze.zeInit:
        with nogil:
            r = _list_drivers(&count, NULL)
    if _refused_by == <void*>ze.zeInit:
        raise DriverNotFoundError(str(error_of(<long>_refused)), (name_of(<long>_refused), <long>_refused))
    CHECK(r)
    found = <ze_driver_handle_t*>calloc(count + 1, sizeof(ze_driver_handle_t))
    if found == NULL:
        raise MemoryError()
    try:
        with nogil:
            CHECK(_list_drivers(&count, found))
        drivers = []
        for i in range(count):
            driver = Driver.__new__(Driver)
            driver._h = found[i]
            driver.index = i
            driver_ask(driver)
            drivers.append(driver)
        if drivers:
            describe_with((<Driver>drivers[0])._h)
        return drivers
    finally:
        free(found)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Context:
    """What memory, lists and events belong to; over all devices of a driver. Made by ``Context.create(driver)``."""

    def __init__(self):
        raise TypeError("core.Context is made by Context.create()")

    @staticmethod
    cdef Context create(Driver driver):
        cdef Context self = Context.__new__(Context)
        cdef ze_context_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC
        self.driver = driver
        with nogil:
            CHECK(ze.zeContextCreate(driver._h, &desc, &self._h))
        Context_silence(self)
        return self

    @staticmethod
    cdef Context adopt(Driver driver, size_t handle):
        cdef Context self = Context.__new__(Context)
        self.driver, self.is_adopted = driver, True
        with nogil:
            CHECK(ze.zeContextGetStatus(<ze_context_handle_t>handle))
        self._h = <ze_context_handle_t>handle
        return self

    @property
    def handle(self):
        """The native ``ze_context_handle_t`` as an integer, 0 once closed."""
        return <size_t>self._h

    def close(self):
        """Destroy the context; closing twice is harmless."""
        Context_release(self)

    def __dealloc__(self):
        Context_release(self)


made_by(Context, "core.Context is made by Context.create()")


cdef int Context_silence(Context self) except -1:
    """Keep the CPU driver from printing failed launches on stderr: l0rt raises an error for each."""
    cdef void* quiet = self.driver.extension("l0rtCpuQuiet")
    cdef void* own = self._h
    if quiet == NULL:
        return 0
    with nogil:
        if ze.zelLoaderTranslateHandle != NULL:
            CHECK(ze.zelLoaderTranslateHandle(ZEL_HANDLE_CONTEXT, self._h, &own))
        CHECK((<quiet_fn>quiet)(<ze_context_handle_t>own))
    return 0


cdef void Context_release(Context self) noexcept:
    cdef ze_context_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive and not self.is_adopted:
        with nogil:
            DROP(ze.zeContextDestroy(h), b"zeContextDestroy")


def make_context(Driver driver):
    """Return a new context over all devices of ``driver``."""
    return Context.create(driver)


def adopt_context(Driver driver, size_t handle):
    """Return the context of other software with this handle; an error of the driver if it knows no such context."""
    return Context.adopt(driver, handle)
