# SPDX-License-Identifier: Apache-2.0
import l0rt
from setuptools import Extension, setup

setup(ext_modules=[Extension("checksum", ["checksum.c"], include_dirs=[l0rt.get_include()])])
