# SPDX-License-Identifier: Apache-2.0
cimport cython

from libc.stdint cimport uint32_t

from l0rt.ze.api cimport ze_context_handle_t, ze_driver_handle_t, ze_result_t


@cython.final
cdef class Driver:
    cdef ze_driver_handle_t _h
    cdef readonly int index
    cdef uint32_t _api_version
    cdef uint32_t driver_version        # as zeDriverGetProperties gives it
    cdef void* extension(self, str name) except? NULL


cdef ze_driver_handle_t Driver_own_handle(Driver self) except? NULL


# Intel's functions by which copies reach memory of the program as they reach pinned memory, and nothing else does.
cdef struct l0rt_importer:
    ze_driver_handle_t driver
    void* begin                         # NULL: the driver lacks them
    void* end

cdef int driver_importer(Driver self, l0rt_importer* out) except -1
# Whole pages, which no command uses any more when it ends.
cdef ze_result_t pointer_import(const l0rt_importer* importer, void* ptr, size_t nbytes) noexcept nogil
cdef ze_result_t pointer_release(const l0rt_importer* importer, void* ptr) noexcept nogil


@cython.final
cdef class Context:
    cdef ze_context_handle_t _h
    cdef readonly Driver driver
    cdef readonly bint is_adopted   # other software has made it, and destroys it

    @staticmethod
    cdef Context create(Driver driver)

    @staticmethod
    cdef Context adopt(Driver driver, size_t handle)
