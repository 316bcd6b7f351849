# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport l0rt_stream, l0rt_thread


# The calling thread's record; NULL until it first asks for anything current.
cdef l0rt_thread* thread_peek() noexcept nogil
cdef l0rt_thread* thread_record() except NULL nogil
# Call a function with the record of every thread that ends, before the record goes. Not in a forked child for the
# threads that it does not have, nor for what the parent's thread had begun.
cdef void on_thread_end(void (*function)(l0rt_thread* thread) noexcept nogil) noexcept


cdef inline PyObject* current_stream_object() noexcept:
    """The object of the calling thread's current stream; NULL if it has none yet."""
    cdef l0rt_thread* thread = thread_peek()
    return NULL if thread == NULL else thread.streams[thread.device].object


cdef int current_device() noexcept nogil
cdef int exchange_device(int device) except -1 nogil
cdef l0rt_stream* current_stream(int device) except NULL nogil
cdef l0rt_stream* stream_or_current(device, Queue stream) except NULL
cdef l0rt_stream* exchange_stream(l0rt_stream* stream) except NULL nogil
cdef int restore(int device, l0rt_stream* stream) noexcept nogil

# A guard's memory: what to restore, found again by the guard's object even if blocks end out of turn.
cdef int save(void* owner, int device, l0rt_stream* stream) except -1 nogil
cdef int restore_saved(void* owner) noexcept nogil
