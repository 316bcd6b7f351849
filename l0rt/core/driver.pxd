# SPDX-License-Identifier: Apache-2.0
cimport cython

from l0rt.ze.api cimport ze_context_handle_t, ze_driver_handle_t
from l0rt.ze.caps cimport l0rt_caps


@cython.final
cdef class Driver:
    cdef ze_driver_handle_t _h
    cdef readonly int index
    cdef l0rt_caps caps
    cdef void* extension(self, str name) except? NULL


cdef ze_driver_handle_t Driver_own_handle(Driver self) except? NULL


@cython.final
cdef class Context:
    cdef ze_context_handle_t _h
    cdef readonly Driver driver

    @staticmethod
    cdef Context create(Driver driver)
