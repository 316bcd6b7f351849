/* SPDX-License-Identifier: Apache-2.0 */
/* What a foreign C module does with l0rt: the same functions, from a thread that Python has never seen. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>

#include <l0rt/l0rt.h>

static const l0rt_api *l0rt;

typedef struct {
  const char *source;
  char *target;
  size_t n;
  int failed;
} work;

static void *copy_through_device(void *argument) {
  work *w = argument;
  l0rt_stream *stream = l0rt->current_stream(-1);
  void *block = stream == NULL ? NULL : l0rt->malloc(w->n, -1, stream);
  w->failed = block == NULL || l0rt->memcpy_async(block, w->source, w->n, stream) != 0 ||
              l0rt->memcpy_async(w->target, block, w->n, stream) != 0 || l0rt->stream_synchronize(stream) != 0;
  if (block != NULL && l0rt->free(block) != 0) w->failed = 1;
  return NULL;
}

static PyObject *round_trip(PyObject *self, PyObject *argument) {
  char *source;
  Py_ssize_t n;
  pthread_t thread;
  if (PyBytes_AsStringAndSize(argument, &source, &n) != 0) return NULL;
  PyObject *result = PyBytes_FromStringAndSize(NULL, n);
  if (result == NULL) return NULL;
  work w = {source, PyBytes_AS_STRING(result), (size_t)n, 1};
  Py_BEGIN_ALLOW_THREADS
  if (pthread_create(&thread, NULL, copy_through_device, &w) == 0) pthread_join(thread, NULL);
  Py_END_ALLOW_THREADS
  if (!w.failed) return result;
  Py_DECREF(result);
  PyErr_SetString(PyExc_RuntimeError, "the thread failed");
  return NULL;
}

typedef struct {
  Py_ssize_t n;
  int known; /* whether the thread makes itself known to Python */
  int code;
  char text[256];
} failure;

static void *fail(void *argument) {
  failure *f = argument;
  PyGILState_STATE state = PyGILState_UNLOCKED;
  PyThreadState *saved = NULL;
  if (f->known) {
    state = PyGILState_Ensure();
    saved = PyEval_SaveThread();
  }
  if (l0rt->malloc((size_t)f->n, -1, NULL) == NULL) f->code = l0rt->last_error(f->text, sizeof f->text);
  if (f->known) {
    PyEval_RestoreThread(saved);
    PyErr_Clear();
    PyGILState_Release(state);
  }
  return NULL;
}

static PyObject *failure_on_a_thread(PyObject *self, PyObject *arguments) {
  pthread_t thread;
  failure f = {0, 0, 0, ""};
  if (!PyArg_ParseTuple(arguments, "ni", &f.n, &f.known)) return NULL;
  Py_BEGIN_ALLOW_THREADS
  if (pthread_create(&thread, NULL, fail, &f) == 0) pthread_join(thread, NULL);
  Py_END_ALLOW_THREADS
  return Py_BuildValue("is", f.code, f.text);
}

static PyMethodDef methods[] = {
    {"round_trip", round_trip, METH_O, "Copy bytes to the device and back."},
    {"failure_on_a_thread", failure_on_a_thread, METH_VARARGS, "Return code and text of an allocation that fails."},
    {0},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "by_c", NULL, 0, methods};

PyMODINIT_FUNC PyInit_by_c(void) {
  l0rt = l0rt_import();
  if (l0rt == NULL) return NULL; /* an exception is set */
  return PyModule_Create(&module);
}
