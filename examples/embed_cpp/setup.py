# SPDX-License-Identifier: Apache-2.0
import l0rt
import pybind11
from setuptools import Extension, setup

include = [l0rt.get_include(), pybind11.get_include()]
flags = ["-std=c++17", "-fvisibility=hidden"]
setup(ext_modules=[Extension("history", ["history.cpp"], include_dirs=include, extra_compile_args=flags)])
