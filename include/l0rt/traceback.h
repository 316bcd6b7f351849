/* SPDX-License-Identifier: Apache-2.0 */
/* traceback.h: the build includes it before all code that Cython generates.
 *
 * A thread that Python did not start has a thread state only while it holds the GIL, so an exception is lost when the
 * function that raised it returns. The callers of that function still add their lines to the traceback, and since
 * Python
 * 3.12 PyTraceBack_Here() crashes without an exception. So it is called only if there is one.
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
