# SPDX-License-Identifier: Apache-2.0
"""torch's own tensors on l0rt: `import l0rt.interop.torch_device` gives torch the device type ``lzrt``.

torch allows letters and underscores only in the name of a device type. Importing l0rt itself registers nothing.
"""

import importlib
from typing import NamedTuple

try:
    import torch
except ImportError as error:
    raise ImportError("l0rt.interop.torch_device needs torch: pip install 'l0rt[torch]'") from error

from l0rt._base.paths import read_file
from l0rt.interop.torch_device import build

_extension = build.load()

from l0rt.interop.torch_device import module  # noqa: E402 - it needs the extension

NAME = "lzrt"


class Fallback(NamedTuple):
    """What one operator has cost on the CPU: how often it ran there, the bytes of its tensors, and the seconds."""

    name: str
    calls: int
    bytes: int
    seconds: float


def fallbacks():
    """Return the operators that ran on the CPU instead of the device, those that took longest first.

    Returns
    -------
    list of Fallback
    """
    rows = [Fallback(*row) for row in _extension.fallbacks()]
    return sorted(rows, key=lambda row: -row.seconds)


def forget_fallbacks():
    """Count the fallbacks from 0."""
    _extension.forget_fallbacks()


def _of_inductor(name):
    # Inductor asks torch.lzrt for these before it first compiles for the device type; a process that compiles nothing
    # does not import Inductor, which takes seconds.
    if name in ("Scheduling", "PythonWrapperCodegen"):
        return getattr(importlib.import_module("l0rt.interop.torch_device.registration"), name)
    raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")


def _register():
    module.__getattr__ = _of_inductor
    for number, path in enumerate(build.KERNELS):
        _extension.set_kernels(number, read_file(path, build.MOST))
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, module)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)


_register()
