# SPDX-License-Identifier: Apache-2.0
"""Loops of the bench as other software sees l0rt: by cimport, by its table of C functions, and by DLPack's.

Every loop returns the nanoseconds that ``n`` rounds took.
"""

from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint32_t, uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from l0rt.capi cimport l0rt_free, l0rt_malloc, l0rt_stream
from l0rt.runtime.current.thread cimport current_device

from l0rt.capi import _C_API
from l0rt.buffers.buffer import Buffer

cdef extern from "l0rt/l0rt.h" nogil:
    ctypedef struct l0rt_api:
        int (*current_device)() noexcept nogil
        void* (*malloc)(size_t, int, l0rt_stream*) noexcept nogil
        int (*free)(void*) noexcept nogil

ctypedef int (*get_int)() noexcept nogil

# What is used here of DLPack's exchange API, in its place.
cdef struct Exchange:
    uint32_t[2] version
    void* previous
    void* allocate
    int (*lend)(PyObject*, void**) except -1
    int (*take)(void*, PyObject**) except -1

cdef const l0rt_api* api = <const l0rt_api*>PyCapsule_GetPointer(_C_API, b"l0rt.capi._C_API")
cdef Exchange* exchange = <Exchange*>PyCapsule_GetPointer(Buffer.__dlpack_c_exchange_api__, b"dlpack_exchange_api")


cdef inline uint64_t now_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <uint64_t>t.tv_sec * 1000000000 + <uint64_t>t.tv_nsec


def callee_current_device(uint64_t n):
    """What l0rt_current_device() ends in, by an address that is known."""
    cdef get_int callee = current_device
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            callee()
        spent = now_ns() - start
    return spent


def table_current_device(uint64_t n):
    """The table's current_device()."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            api.current_device()
        spent = now_ns() - start
    return spent


def cimport_malloc_free(size_t nbytes, uint64_t n):
    """l0rt_malloc() and l0rt_free() as another package cimports them."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            l0rt_free(l0rt_malloc(nbytes, -1, NULL))
        spent = now_ns() - start
    return spent


def table_malloc_free(size_t nbytes, uint64_t n):
    """The table's malloc() and free()."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            api.free(api.malloc(nbytes, -1, NULL))
        spent = now_ns() - start
    return spent


def lend_and_take(what, uint64_t n):
    """DLPack's exchange API: lend a Buffer, and take it as another, which is dropped."""
    cdef uint64_t _i, start = now_ns()
    cdef PyObject* buffer
    cdef void* managed
    for _i in range(n):
        exchange.lend(<PyObject*>what, &managed)
        exchange.take(managed, &buffer)
        Py_DECREF(<object>buffer)
    return now_ns() - start
