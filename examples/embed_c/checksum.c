/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of a block of device memory: copied to pinned memory in the order of its stream, without the GIL. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <l0rt/l0rt.h>

static const l0rt_api *l0rt;

/* Returns 0; or -1, and a Python exception is set. */
static int sum_of(const void *address, uint64_t *sum) {
  l0rt_pointer_info info;
  int known = l0rt->pointer_query(address, &info);
  if (known < 0) return -1;
  if (known == 0 || info.kind != L0RT_MEMORY_DEVICE) return 1; /* not ours to read */
  size_t offset = (size_t)((const char *)address - (const char *)info.base);
  if (offset >= info.requested) return 1; /* behind what was asked for: the allocation is larger */
  size_t nbytes = info.requested - offset;
  unsigned char *host = l0rt->host_malloc(nbytes, info.device);
  int status = host == NULL || l0rt->memcpy_async(host, address, nbytes, info.stream) < 0 ||
                       l0rt->stream_synchronize(info.stream) < 0
                   ? -1
                   : 0;
  *sum = 0;
  for (size_t i = 0; status == 0 && i < nbytes; i++) *sum += host[i];
  if (l0rt->host_free(host) < 0) status = -1;
  return status;
}

static PyObject *checksum(PyObject *self, PyObject *argument) {
  const void *address = PyLong_AsVoidPtr(argument);
  uint64_t sum = 0;
  int status;
  if (PyErr_Occurred()) return NULL;
  Py_BEGIN_ALLOW_THREADS
  status = sum_of(address, &sum);
  Py_END_ALLOW_THREADS
  if (status < 0) return NULL;
  if (status > 0) return PyErr_Format(PyExc_ValueError, "%p is in no device memory of l0rt", address);
  return PyLong_FromUnsignedLongLong(sum);
}

static PyMethodDef methods[] = {
    {"checksum", checksum, METH_O, "Return the sum of the bytes from an address to the end of its allocation."},
    {0},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "checksum", NULL, 0, methods};

PyMODINIT_FUNC PyInit_checksum(void) {
  l0rt = l0rt_import();
  return l0rt == NULL ? NULL : PyModule_Create(&module); /* NULL: l0rt is missing or too old, and an error says so */
}
