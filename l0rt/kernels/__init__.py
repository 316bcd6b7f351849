# SPDX-License-Identifier: Apache-2.0
"""Kernels: modules of SPIR-V or native code, their kernels, and launches in a stream's order."""

import importlib

from l0rt._base.libraries import share

share(__path__, __name__)

# Where each public name lives. It is loaded at the first use.
_DEFINED_IN = {
    "Argument": "l0rt.launch.spirv",
    "Image": "l0rt.kernels.image",
    "Kernel": "l0rt.kernels.kernel",
    "LocalMemory": "l0rt.kernels.arguments",
    "Module": "l0rt.kernels.module",
    "Pointer": "l0rt.kernels.arguments",
    "Sampler": "l0rt.kernels.image",
    "SpecializedKernel": "l0rt.kernels.specialized",
    "SpecializedModule": "l0rt.kernels.specialized",
    "compile": "l0rt.kernels.compiler",
    "sleep": "l0rt.kernels.spin",
    "specialize": "l0rt.kernels.specialized",
}

__all__ = list(_DEFINED_IN)


def __getattr__(name):
    if name not in _DEFINED_IN:
        raise AttributeError(f"module 'l0rt.kernels' has no attribute {name!r}")
    value = getattr(importlib.import_module(_DEFINED_IN[name]), name)
    globals()[name] = value
    return value


def __dir__():
    return __all__
