# SPDX-License-Identifier: Apache-2.0
cimport cython

from l0rt.core.driver cimport Driver
from l0rt.ze.api cimport ze_context_handle_t


@cython.final
cdef class Context:
    cdef ze_context_handle_t _h
    cdef readonly Driver driver

    @staticmethod
    cdef Context create(Driver driver)
