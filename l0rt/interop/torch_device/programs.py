# SPDX-License-Identifier: Apache-2.0
"""Programs of OpenCL C that torch.compile has written: the kernels of a graph are compiled together, at first use."""

import os
import threading

import l0rt_torch_device as _extension

from l0rt.interop.torch_device.build import HERE
from l0rt.kernels import cache, compiler

__all__ = ["Program"]

NATIVE = 1  # a format of module_create
_HEADERS = (HERE, os.path.dirname(os.path.abspath(cache.__file__)))  # of compiled.clh, and of philox.clh


class Program:
    """The kernels of one graph. The generated Python code adds each as it defines it."""

    def __init__(self):
        self._sources = ['#include "compiled.clh"']
        self._codes = {}
        self._lock = threading.Lock()

    def kernel(self, name, kinds, group_size, is_grouped, source):
        """Add a kernel and return the function that launches it. compiled.cpp has what the arguments mean."""
        self._sources.append(source)
        return _extension.compiled_kernel(name, kinds, group_size, is_grouped, self._load)

    def _load(self, device):
        """Return the code for a device, and its format."""
        with self._lock:
            if device not in self._codes:
                source = "\n".join(self._sources)
                module = compiler.compile(source, "-cl-std=CL2.0 -w", device, include_dirs=_HEADERS)
                self._codes[device] = module.native_binary(), NATIVE
            return self._codes[device]
