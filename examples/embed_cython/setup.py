# SPDX-License-Identifier: Apache-2.0
import l0rt
from Cython.Build import cythonize
from setuptools import Extension, setup

extension = Extension("ring_buffer", ["ring_buffer.pyx"], include_dirs=[l0rt.get_include()])
setup(ext_modules=cythonize([extension], language_level=3))
