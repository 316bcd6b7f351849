# SPDX-License-Identifier: Apache-2.0
cimport cython
from cpython.object cimport PyObject, PyTypeObject

from l0rt.runtime.streams.guard_impl cimport l0rt_guard_impl


@cython.final
cdef class device:
    cdef readonly str type
    cdef readonly object index


cdef int index_of(object what, int otherwise, str type) except? -1
# No index: a name without one, or nothing.
cdef enum:
    NO_INDEX = -0x80000000
cdef int settable_index(what, str type) except? -1
cdef object other_index(interface, int index)
cpdef object existing_index_in(what, interface, str type=*)
# The type and index of an object that describes a device; None if it does not.
cdef tuple device_like(what)
# The same of whatever names a device, or has one.
cdef tuple named_by(what)
cdef str type_named(what)
cdef int only_built_in(what, str which) except -1
cdef object maker_for(PyObject* args, PyObject* kwargs)

cdef extern from *:
    """
    #ifndef L0RT_INTERFACES_SLOTS
    #define L0RT_INTERFACES_SLOTS
    /* How calling a class makes an object. CPython asks vectorcall first; a Cython that knows it fills it in. */
    typedef struct {
      PyObject *(*make)(PyTypeObject *, PyObject *, PyObject *);
      vectorcallfunc vectorcall;
    } l0rt_slots;
    static inline void l0rt_get_slots(PyObject *type, l0rt_slots *slots) {
      slots->make = ((PyTypeObject *)type)->tp_new;
      slots->vectorcall = ((PyTypeObject *)type)->tp_vectorcall;
    }
    static inline void l0rt_set_slots(PyObject *type, const l0rt_slots *slots) {
      ((PyTypeObject *)type)->tp_new = slots->make;
      ((PyTypeObject *)type)->tp_vectorcall = slots->vectorcall;
    }
    #endif
    """
    ctypedef struct slots "l0rt_slots":
        PyObject* (*make)(PyTypeObject*, PyObject*, PyObject*) except NULL  # a new reference; kwargs may be NULL
        PyObject* (*vectorcall)(PyObject*, PyObject* const*, size_t, PyObject*) except NULL
    void get_slots "l0rt_get_slots"(object, slots*) noexcept
    void set_slots "l0rt_set_slots"(object, const slots*) noexcept
    PyObject* call "PyObject_Call"(object, PyObject*, PyObject*) except NULL

# The current accelerator's interface; NULL: the built-in one is current, and its own code runs.
cdef PyObject* other
cdef dict registered         # device type -> interface
cdef str current_type()
cdef object interface_of(str type)
cdef object interface_of_stream(object stream)
cdef object maker_of(str type)

# The table of a device type, NULL if it has none.
cdef const l0rt_guard_impl* guard_impl_of(const char* type) noexcept nogil
cdef int add_guard_impl(const l0rt_guard_impl* impl) except -1
# Give a table of l0rt's own its head, and let it be found by its type.
cdef int publish(l0rt_guard_impl* impl, const char* type) except -1
cdef int needed(const void* what, const char* name) except -1 nogil
# The host's own table.
cdef l0rt_guard_impl cpu_impl
