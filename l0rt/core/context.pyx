# SPDX-License-Identifier: Apache-2.0
"""Contexts: what memory, lists and events belong to; one a driver, over all its devices."""

cimport cython
from libc.string cimport memset

from l0rt.core.driver cimport Driver
from l0rt.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Context:
    """A context of one driver. Made by ``Context.create(driver)``."""

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


cdef void Context_release(Context self) noexcept:
    cdef ze_context_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeContextDestroy(h), b"zeContextDestroy")


def make_context(Driver driver):
    """Return a new context over all devices of ``driver``."""
    return Context.create(driver)
