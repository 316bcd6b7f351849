# SPDX-License-Identifier: Apache-2.0
"""l0rt: the runtime layer of a deep-learning framework for Intel GPUs, directly on Level Zero.

Importing it touches no driver and loads nothing else; every name is resolved on first use.
"""

import importlib
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

__version__ = "0.1.0"

# Where each public name lives.
_DEFINED_IN = {
    "Buffer": "l0rt.buffers.buffer",
    "empty": "l0rt.buffers.empty",
    "from_dlpack": "l0rt.buffers.copies",
    "advise": "l0rt.buffers.copies",
    "from_numpy": "l0rt.buffers.copies",
    "from_usm": "l0rt.buffers.interchange",
    "memcpy": "l0rt.buffers.copies",
    "memcpy2d": "l0rt.buffers.copies",
    "memset": "l0rt.buffers.copies",
    "pinned": "l0rt.buffers.copies",
    "prefetch": "l0rt.buffers.copies",
    "Event": "l0rt.runtime.current.event",
    "Generator": "l0rt.accelerator",
    "Stream": "l0rt.runtime.current.stream",
    "device": "l0rt.runtime.streams.naming",
    "Module": "l0rt.kernels.module",
    "Image": "l0rt.kernels.image",
    "LocalMemory": "l0rt.kernels.arguments",
    "Pointer": "l0rt.kernels.arguments",
    "Sampler": "l0rt.kernels.image",
    "compile": "l0rt.kernels.compiler",
    "specialize": "l0rt.kernels.specialized",
    "L0Error": "l0rt.errors",
    "OutOfMemoryError": "l0rt.errors",
    "DeviceLostError": "l0rt.errors",
    "InvalidArgumentError": "l0rt.errors",
    "DeviceIndexError": "l0rt.errors",
    "UnsupportedError": "l0rt.errors",
    "ModuleBuildError": "l0rt.errors",
    "ModuleBuildWarning": "l0rt.errors",
    "CompilerNotFoundError": "l0rt.errors",
    "KernelFaultError": "l0rt.errors",
    "DriverNotFoundError": "l0rt.errors",
}
_SUBMODULES = (
    "accelerator",
    "bench",
    "capi",
    "config",
    "debug",
    "errors",
    "interface",
    "interop",
    "ipc",
    "kernels",
    "logs",
    "memory",
    "philox",
    "profiler",
    "sanitizer",
    "telemetry",
    "xpu",
)

__all__ = [*_DEFINED_IN, *_SUBMODULES, "cpu_driver_path", "get_include"]


def __getattr__(name):
    if name in _DEFINED_IN:
        value = getattr(importlib.import_module(_DEFINED_IN[name]), name)
    elif name in _SUBMODULES:
        value = importlib.import_module(f"l0rt.{name}")
    else:
        raise importlib.import_module("l0rt._base.instead").missing("l0rt", name)
    globals()[name] = value
    return value


def __dir__():
    return __all__


def get_include():
    """Return the include folder for a C compiler. It contains ``l0rt/l0rt.h`` and the other headers.

    Returns
    -------
    str
    """
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(here, "include")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(here), "include")


def cpu_driver_path():
    """Return the path of the CPU driver, a Level Zero driver that any loader can load.

    Returns
    -------
    str
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpu_driver", "libze_l0rt_cpu.so")


def _is_built(folder):
    """Whether the compiled modules are in the package in ``folder``."""
    return any(os.path.exists(os.path.join(folder, f"capi{suffix}")) for suffix in EXTENSION_SUFFIXES)


def _become_the_installed_package():
    """Replace this package, a source tree that is not built, by the installed one; ImportError if none is installed.

    Python in the source folder finds the sources first, for the working directory or the script's folder leads
    sys.path.
    """
    here = os.path.dirname(os.path.abspath(__file__))
    for entry in sys.path:
        spec = PathFinder.find_spec(__name__, [entry])
        if spec is not None and spec.origin and _is_built(os.path.dirname(spec.origin)):
            from importlib.util import module_from_spec  # an installed package needs it not

            sys.modules[__name__] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
            return
    raise ImportError(
        f"{here} is a source tree that is not built for Python {sys.version_info[0]}.{sys.version_info[1]}, and no "
        f"installed l0rt was found. Install it: {sys.executable} -m pip install {os.path.dirname(here)}",
        name=__name__,
        path=here,
    )


if not _is_built(os.path.dirname(os.path.abspath(__file__))):
    _become_the_installed_package()
else:
    if any(_name.startswith("L0RT_") for _name in os.environ):
        importlib.import_module("l0rt.config.variables").warn_of_unknown()

    # Hooks must exist before the events that they report. Without these variables nothing more is loaded.
    for _variable, _name in (
        ("L0RT_LOGS", "l0rt.logs"),
        ("L0RT_SANITIZE", "l0rt.sanitizer"),
        ("L0RT_OOM_SNAPSHOT", "l0rt.memory.history"),
        ("L0RT_LEAK_REPORT", "l0rt.memory.leaks"),
        ("L0RT_MONITOR", "l0rt.telemetry.monitor"),
    ):
        if os.environ.get(_variable):
            importlib.import_module(_name).begin()
