# SPDX-License-Identifier: Apache-2.0
"""A package outside l0rt that is built against the installed one, by Cython and by C."""

import shutil

import l0rt
from Cython.Build import cythonize
from setuptools import Extension, setup

include = [l0rt.get_include()]
by_cython = [
    Extension(f"foreign.{name}", [f"foreign/{name}.pyx"], include_dirs=include)
    for name in ("by_cython", "by_mistake", "by_kernel")
]
strict = ["-Wall", "-Werror"]
by_c = [
    Extension(f"foreign.{name}", [f"foreign/{name}.c"], include_dirs=include, extra_compile_args=strict)
    for name in ("by_c", "by_embedder", "by_exchange")
]
by_cpp = Extension(
    "foreign.by_cpp", ["foreign/by_cpp.cpp"], include_dirs=include, extra_compile_args=[*strict, "-std=c++17"]
)
modules = [*cythonize(by_cython, language_level=3), *by_c]
if shutil.which("c++"):  # README's packages do not bring it
    modules.append(by_cpp)
setup(name="foreign", packages=["foreign"], ext_modules=modules)
