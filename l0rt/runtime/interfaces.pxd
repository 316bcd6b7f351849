from cpython.object cimport PyObject, PyTypeObject

cdef extern from "Python.h":
    object PyObject_Call(object, PyObject*, PyObject*)     # kwargs may be NULL
    PyObject* call "PyObject_Call"(object, PyObject*, PyObject*) except NULL

# A type's tp_new that hands a new reference on as it is, without counting.
ctypedef PyObject* (*rawnew)(PyTypeObject*, PyObject*, PyObject*) except NULL

# The current accelerator's interface; NULL: the built-in accelerator is current, and its own code runs.
cdef PyObject* other
cdef dict registered         # device type -> interface
cdef str current_type()
cdef object interface_of(str type)
cdef object interface_of_stream(object stream)
