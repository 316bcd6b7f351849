/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of DLPack's C exchange API: it takes the table from a type once, and then calls C functions. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <time.h>

/* As in dlpack.h, version 1.3. */
typedef struct {
  int32_t type, id;
} device_t;
typedef struct {
  uint8_t code, bits;
  uint16_t count;
} type_t;
typedef struct {
  void *data;
  device_t device;
  int32_t ndim;
  type_t dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} tensor_t;
typedef struct managed_t {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct managed_t *);
  uint64_t flags;
  tensor_t tensor;
} managed_t;
typedef struct {
  uint32_t major, minor;
  void *previous;
  int (*allocate)(tensor_t *, managed_t **, void *, void (*)(void *, const char *, const char *));
  int (*lend)(void *, managed_t **);
  int (*take)(managed_t *, void **);
  int (*look)(void *, tensor_t *);
  int (*current_stream)(int, int32_t, void **);
} exchange_t;

static const exchange_t *table_of(PyObject *object) {
  PyObject *capsule = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__dlpack_c_exchange_api__");
  if (capsule == NULL) return NULL;
  const exchange_t *table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  Py_DECREF(capsule);
  if (table != NULL && table->major != 1) {
    PyErr_SetString(PyExc_BufferError, "another version of DLPack");
    return NULL;
  }
  return table;
}

/* Lend the memory and take it back as another object, `count` times; return the object and ns for each. */
static PyObject *round_trips(PyObject *self, PyObject *arguments) {
  PyObject *object, *last = NULL;
  Py_ssize_t count, i;
  struct timespec begin, end;
  managed_t *managed;
  if (!PyArg_ParseTuple(arguments, "On", &object, &count)) return NULL;
  const exchange_t *table = table_of(object);
  if (table == NULL) return NULL;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (i = 0; i < count; i++) {
    void *made;
    Py_CLEAR(last);
    if (table->lend(object, &managed) != 0) return NULL;
    if (table->take(managed, &made) != 0) {
      managed->deleter(managed);
      return NULL;
    }
    last = made;
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = 1e9 * (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec);
  return Py_BuildValue(
      "N"
      "d",
      last, ns / (double)count);
}

/* What the table says of an object without lending it. */
static PyObject *look(PyObject *self, PyObject *object) {
  tensor_t tensor;
  const exchange_t *table = table_of(object);
  if (table == NULL || table->look(object, &tensor) != 0) return NULL;
  return Py_BuildValue("KLii", (unsigned long long)(uintptr_t)tensor.data, (long long)tensor.shape[0],
                       tensor.device.type, tensor.device.id);
}

static PyMethodDef methods[] = {
    {"round_trips", round_trips, METH_VARARGS, "Lend and take back."},
    {"look", look, METH_O, "Return address, size and device."},
    {0},
};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "by_exchange", NULL, 0, methods};

PyMODINIT_FUNC PyInit_by_exchange(void) { return PyModule_Create(&module); }
