"""l0rt: the runtime layer of a deep-learning framework for Intel GPUs, directly on Level Zero.

Importing it touches no driver and loads nothing else; every name is resolved on first use.
"""

import importlib
import os

__version__ = "0.1.0"

# Where each public name lives.
_HOME = {
    "Buffer": "l0rt.buffer",
    "empty": "l0rt.otherbuffer",
    "Event": "l0rt.runtime.event",
    "Generator": "l0rt.runtime.generator",
    "Stream": "l0rt.runtime.stream",
    "device": "l0rt.runtime.naming",
    "L0Error": "l0rt.errors",
    "OutOfMemoryError": "l0rt.errors",
    "DeviceLostError": "l0rt.errors",
    "InvalidArgumentError": "l0rt.errors",
    "UnsupportedError": "l0rt.errors",
    "ModuleBuildError": "l0rt.errors",
    "DriverNotFoundError": "l0rt.errors",
}
_ROOMS = (
    "accelerator",
    "capi",
    "config",
    "errors",
    "interface",
    "interop",
    "logs",
    "memory",
    "philox",
    "sanitizer",
    "xpu",
)

__all__ = [*_HOME, *_ROOMS, "cpu_driver_path", "get_include"]


def __getattr__(name):
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"l0rt.{name}")
    else:
        raise AttributeError(f"module 'l0rt' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})


def get_include():
    """Return the folder to give a C compiler as an include folder: it has ``l0rt/l0rt.h`` and its neighbours."""
    here = os.path.dirname(os.path.abspath(__file__))
    installed = os.path.join(here, "include")
    return installed if os.path.isdir(installed) else os.path.join(os.path.dirname(here), "include")


def cpu_driver_path():
    """Return the path of the bundled CPU driver, a Level Zero driver for any loader."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "cpu_driver", "libze_l0rt_cpu.so")


# Watchers have to be there before what they watch. Without these variables nothing more is loaded.
for _variable, _room in (("L0RT_LOGS", "l0rt.logs"), ("L0RT_SANITIZE", "l0rt.sanitizer")):
    if os.environ.get(_variable):
        importlib.import_module(_room).begin()
