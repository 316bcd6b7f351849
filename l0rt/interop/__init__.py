# SPDX-License-Identifier: Apache-2.0
"""Doors to other software; each module but `worker` needs the package that it is named after; loaded at its use."""

import importlib

_PARTNERS = ("dask", "dpctl", "mpi", "ray", "tinygrad", "torch", "torch_device", "torch_memory", "worker")


def __getattr__(name):
    if name in _PARTNERS:
        return importlib.import_module(f"l0rt.interop.{name}")
    raise AttributeError(f"module 'l0rt.interop' has no attribute {name!r}")


def __dir__():
    return _PARTNERS
