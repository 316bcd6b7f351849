# SPDX-License-Identifier: Apache-2.0
"""From OpenCL C to the result of a launch, in C alone and in C++ alone, by every compiler, without a warning."""

import shutil
import sys
import sysconfig

import l0rt
import pytest

from helpers import compilers
from helpers.process import run

TEXT = "kernel void twice(global float *x, float by, local float *s) { int i = get_global_id(0); x[i] *= by; }"
IN_C = """
#include <Python.h>
#include <l0rt/l0rt.h>

static const l0rt_api *l0rt;

static PyObject *run(PyObject *self, PyObject *text) {
  Py_ssize_t length;
  const char *program = PyUnicode_AsUTF8AndSize(text, &length);
  float host[64], by = 3;
  void *x = NULL;
  l0rt_module *module = NULL;
  l0rt_kernel *kernel = NULL;
  l0rt_arg arguments[3];
  uint32_t groups[3] = {4, 1, 1}, group_size[3] = {16, 1, 1};
  double sum = 0;
  int i, status = -1;
  (void)self;
  if (program == NULL) return NULL;
  for (i = 0; i < 64; i++) host[i] = (float)i;
  module = l0rt->module_create(-1, program, (size_t)length, L0RT_MODULE_OPENCL_C, "-cl-std=CL2.0");
  if (module != NULL) kernel = l0rt->kernel_get(module, "twice");
  if (kernel != NULL) x = l0rt->malloc(sizeof host, -1, NULL);
  if (x != NULL && l0rt->memcpy_async(x, host, sizeof host, NULL) == 0) {
    arguments[0].value = &x, arguments[0].size = sizeof x;
    arguments[1].value = &by, arguments[1].size = sizeof by;
    arguments[2].value = NULL, arguments[2].size = 64;
    status = l0rt->launch(kernel, groups, group_size, arguments, 3, 0, NULL);
  }
  if (status == 0) status = l0rt->memcpy_async(host, x, sizeof host, NULL);
  if (status == 0) status = l0rt->stream_synchronize(l0rt->current_stream(-1));
  if (x != NULL) l0rt->free(x);
  l0rt->module_release(module);
  if (status != 0) return NULL;
  for (i = 0; i < 64; i++) sum += host[i];
  return PyFloat_FromDouble(sum);
}

static PyMethodDef methods[] = {{"run", run, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "shown", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_shown(void) {
  l0rt = l0rt_import();
  return l0rt == NULL ? NULL : PyModule_Create(&definition);
}
"""
IN_CPP = """
#include <Python.h>
#include <l0rt/l0rt.hpp>

#include <numeric>

namespace {

double sum_of(const char *program) {
  l0rt::pool pool;
  l0rt::pool_guard inside(pool); /* what ends by a failure leaves it, and the failure stays */
  l0rt::graph unused;
  l0rt::module code = l0rt::module::from_source(program, "-cl-std=CL2.0");
  std::vector<float> host(64);
  std::iota(host.begin(), host.end(), 0.0f);
  l0rt::buffer x(host.size() * sizeof(float));
  l0rt::stream stream = l0rt::pool_stream();
  l0rt::wait_stream(stream, l0rt::current_stream());
  l0rt::copy(x.data(), host.data(), x.size(), stream);
  code["twice"].launch_on(stream, 4, {16, 1}, x, 3.0f, l0rt::local_memory{64});
  {
    l0rt::stream_guard guard(stream);
    code["twice"].launch(4, 16, x.data(), 1.0f, l0rt::local_memory{64});
  }
  code["twice"].launch_cooperative(stream, 4, 16, x, 1.0f, l0rt::local_memory{64});
  l0rt::copy(host.data(), x.data(), x.size(), stream);
  l0rt::synchronize(stream);
  l0rt::module moved = std::move(code);
  return std::accumulate(host.begin(), host.end(), 0.0);
}

PyObject *run(PyObject *, PyObject *text) {
  const char *program = PyUnicode_AsUTF8(text);
  if (program == nullptr) return nullptr;
  try {
    return PyFloat_FromDouble(sum_of(program));
  } catch (const l0rt::error &) {
    return nullptr;
  }
}

PyMethodDef methods[] = {{"run", run, METH_O, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "shown", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_shown() {
  try {
    l0rt::import();
  } catch (const l0rt::import_error &failure) {
    if (failure.what()[0] == 0) PyErr_Clear();
    return nullptr;
  }
  return PyModule_Create(&definition);
}
"""
LANGUAGES = {"gcc": ("c", IN_C), "clang": ("c", IN_C), "g++": ("cpp", IN_CPP), "clang++": ("cpp", IN_CPP)}
CODE = """
import os, shown
assert shown.run({text!r}) == 3 * sum(range(64))
for wrong, expected in (("kernel void twice(", "ModuleBuildError"), ("kernel void other() {{}}", "KeyError")):
    try:
        shown.run(wrong)
    except Exception as error:
        assert type(error).__name__ == expected, repr(error)
    else:
        raise AssertionError(wrong)
"""


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.needs_cxx] * ("+" in name)) for name in LANGUAGES])
def extension(request, tmp_path):
    """The folder of an extension module, compiled without a warning."""
    compiler = shutil.which(request.param)
    if compiler is None:
        pytest.skip(f"{request.param} is not installed")
    suffix, text = LANGUAGES[request.param]
    source = tmp_path / f"shown.{suffix}"
    source.write_text(text)
    standards = ["c99", "c17"] if suffix == "c" else ["c++17", "c++20"]
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-shared", f"-I{l0rt.get_include()}"]
    flags += ["-isystem", sysconfig.get_path("include")]  # Python's own headers are not pedantic
    for standard in standards:
        command = [compiler, f"-std={standard}", *flags, source, "-o", tmp_path / "shown.so"]
        result = run(command, timeout=300)
        assert (result.returncode, result.stderr) == (0, ""), result
    return tmp_path


@pytest.mark.skipif(not compilers.INSTALLED, reason=compilers.WITHOUT)
def test_a_program_of_opencl_c_is_built_and_launched(extension):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_QUIET": 1, "PYTHONPATH": extension}
    result = run([sys.executable, "-c", CODE.format(text=TEXT)], env, cwd=extension)
    assert (result.returncode, result.stderr) == (0, ""), result


def test_an_extension_says_what_to_do_without_l0rt(extension):
    """In C++ the import throws, which the module's function catches: an exception would end the process."""
    code = f"import sys; sys.path.insert(0, {str(extension)!r}); import shown"
    result = run([sys.executable, "-S", "-c", code], cwd=extension)  # -S: without the installed packages
    last = result.stderr.strip().splitlines()[-1]
    assert result.returncode == 1
    assert last.startswith("ModuleNotFoundError: the C API of l0rt comes from the Python package l0rt, which is not on")
    assert "python3 -m pip install l0rt" in last
