# SPDX-License-Identifier: Apache-2.0
from cpython.long cimport PyLong_AsLongAndOverflow, PyLong_CheckExact
from cpython.object cimport PyObject

ctypedef PyObject* (*vectorcall)(PyObject*, PyObject* const*, size_t, PyObject*) except NULL

cdef extern from *:
    """
    #ifndef L0RT_KNOWN_AS
    #define L0RT_KNOWN_AS
    /* The name under which users know a class: in its errors, its repr and help(). */
    static inline void l0rt_known_as(PyObject *type, const char *name) { ((PyTypeObject *)type)->tp_name = name; }
    /* An attribute of a compiled class, which Python does not let anybody set. */
    static inline void l0rt_add_to_type(PyObject *type, PyObject *name, PyObject *value) {
      if (PyDict_SetItem(((PyTypeObject *)type)->tp_dict, name, value) == 0) PyType_Modified((PyTypeObject *)type);
    }
    /* By PEP 590 an object holds how it is called, at a place that its type knows. Returns what it was; NULL: its type
     * has no such place, and it is called as before. */
    static inline vectorcallfunc l0rt_vectorcall_replace(PyObject *function, vectorcallfunc with) {
      Py_ssize_t offset = Py_TYPE(function)->tp_vectorcall_offset;
      vectorcallfunc *place = (vectorcallfunc *)((char *)function + offset), was = offset > 0 ? *place : NULL;
      if (was != NULL) *place = with;
      return was;
    }
    #endif
    """
    void known_as "l0rt_known_as"(object type, const char* name) noexcept
    void add_to_type "l0rt_add_to_type"(object type, object name, object value) except *
    vectorcall vectorcall_replace "l0rt_vectorcall_replace"(object function, vectorcall replacement) noexcept

cdef size_t checked_size(nbytes) except? 0
cdef bint is_whole(value) noexcept
cdef object whole(value, str what)


# The value of an int from 0 to 2**63 - 1, which by far the most are; -1 of anything else.
cdef inline long plain_int(value) noexcept:
    cdef int beyond = 0
    return max(PyLong_AsLongAndOverflow(value, &beyond), <long>-1) if PyLong_CheckExact(value) else -1


cdef bint is_address(value) except -1
cdef object address_in(value, int low)
cdef int clamped_priority(priority) except? 2
# The command list that an object with ``__l0_stream__`` reports, which is not checked; what has none stays as it is.
cdef object list_of_protocol(what)

cdef int check_sizes(size_t source, size_t target) except -1
cdef int check_overlap(const void* target, const void* source, size_t nbytes) except -1
# The part of so many bytes that a slice names.
cdef size_t part_of(index, size_t nbytes, size_t* start) except? 0
# What fill() fills with: the byte or the pattern that it was given.
cdef bytes checked_pattern(value, pattern, size_t nbytes)
# A shape as ints, perhaps negative.
cdef tuple checked_shape(shape)
# An array of numbers, of so many bytes; ``nbytes`` -1: of as many as the shape says.
cdef object array_of(Py_ssize_t nbytes, dtype, shape)
cdef int get_view(what, Py_buffer* view, int flags, str where) except -1
cdef bytes bytes_of(what, str where)
