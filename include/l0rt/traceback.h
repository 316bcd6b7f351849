/* SPDX-License-Identifier: Apache-2.0 */
/* traceback.h: included by the build before all that Cython generates.
 *
 * A thread that Python does not know has a thread state only while it holds the GIL: an exception that a function
 * raised there is gone once that function returns. Its callers add their lines to the traceback all the same, and since
 * Python 3.12 PyTraceBack_Here() takes an exception for granted.
 */
#ifndef L0RT_TRACEBACK_H
#define L0RT_TRACEBACK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>
#include <traceback.h>

static inline int l0rt_traceback_here(PyFrameObject *frame) {
  return PyErr_Occurred() != NULL ? PyTraceBack_Here(frame) : 0;
}
#define PyTraceBack_Here l0rt_traceback_here

#endif
