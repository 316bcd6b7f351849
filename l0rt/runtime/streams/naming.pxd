# SPDX-License-Identifier: Apache-2.0
cimport cython
from cpython.object cimport PyObject


@cython.final
cdef class device:
    cdef readonly str type
    cdef readonly object index


cdef int index_of(object what, int otherwise, str type) except? -1
# The type and index that an object says that a device is; None if it is no device.
cdef tuple device_like(what)
# The same of whatever names a device, or has one.
cdef tuple named_by(what)
cdef str type_named(what)
cdef int only_built_in(what, str which) except -1
cdef object maker_for(PyObject* args, PyObject* kwargs)
