# SPDX-License-Identifier: Apache-2.0
# Classes that only their own module makes objects of: to Python, ``__new__`` is closed, so there is no blank object
# whose methods would have to expect one. Cython's own ``X.__new__(X)`` goes by the slot, which stays.

cdef extern from *:
    """
    static PyObject *l0rt_refuse_new(PyObject *words, PyObject *args, PyObject *kwargs) {
      (void)args, (void)kwargs;
      PyErr_SetObject(PyExc_TypeError, words);
      return NULL;
    }
    static PyMethodDef l0rt_refusing_new = {
        "__new__", (PyCFunction)(void (*)(void))l0rt_refuse_new, METH_VARARGS | METH_KEYWORDS, NULL};

    static int l0rt_close_new(PyObject *cls, PyObject *words) {
      PyTypeObject *type = (PyTypeObject *)cls;
      PyObject *refusing = PyCFunction_New(&l0rt_refusing_new, words);
      int failed = refusing == NULL || PyDict_SetItemString(type->tp_dict, "__new__", refusing) < 0;
      Py_XDECREF(refusing);
      PyType_Modified(type);
      return failed ? -1 : 0;
    }
    """
    # ``words`` says who makes the objects. The class is final: a subclass's slot would be open again.
    int made_by "l0rt_close_new"(object cls, object words) except -1
