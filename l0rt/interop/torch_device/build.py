# SPDX-License-Identifier: Apache-2.0
"""The C++ extension: compiled once for each version of torch, of Python and of the sources, into l0rt's cache."""

import importlib.machinery
import importlib.util
import os
import shutil
import sys
import sysconfig
from contextlib import contextmanager
from glob import glob

import torch

from l0rt._base.paths import read_file
from l0rt.kernels import cache

__all__: list[str] = []

NAME = "l0rt_torch_device"
HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = sys.modules["l0rt"].get_include()  # the package above, whose import has begun this one
RANDOM = os.path.join(HERE, "..", "..", "launch")
KERNELS = [  # in the order of the modules' numbers in tensors.h
    *(os.path.join(HERE, f"kernels{what}.spv") for what in ("", "_long", "_fp64")),
    *(os.path.join(RANDOM, f"random{what}.spv") for what in ("", "_fp64", "_graph", "_graph_fp64")),
]
MOST = 1 << 24  # bytes of a source
FLAGS = ["-O2", "-g0", "-std=c++20", "-fvisibility=hidden"]


def sources():
    """Return the paths of the C++ files."""
    return sorted(glob(os.path.join(HERE, "*.cpp")))


def folder():
    """Return the folder of the compiled extension."""
    headers = [*glob(os.path.join(HERE, "*.h")), *glob(os.path.join(INCLUDE, "l0rt", "*.h"))]
    texts = [read_file(path, MOST) for path in [*sources(), *sorted(headers)]]
    key = cache.digest(sys.version, torch.__version__, *FLAGS, *texts)
    return os.path.join(cache.path(), "torch_device", key)


def load():
    """Return the extension module. Where it is not compiled yet, compile it, with a message."""
    place = folder()
    path = os.path.join(place, f"{NAME}.so")
    if not os.path.exists(path):
        compile_into(place)
    loader = importlib.machinery.ExtensionFileLoader(NAME, path)
    spec = importlib.machinery.ModuleSpec(NAME, loader, origin=path)
    extension = importlib.util.module_from_spec(spec)
    loader.exec_module(extension)
    sys.modules[NAME] = extension
    return extension


def compile_into(place):
    """Compile the extension into a folder. Another process that does the same meanwhile is waited for."""
    from torch.utils import cpp_extension  # it takes long to import

    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        raise ImportError(f"l0rt.interop.torch_device is compiled at its first import, and there is no {compiler}: "
                          "install g++, or name a C++ compiler in the variable CXX")  # fmt: skip
    with scripts_on_path():
        if not cpp_extension.is_ninja_available():
            raise ImportError("l0rt.interop.torch_device is compiled at its first import, and there is no ninja: "
                              "pip install ninja")  # fmt: skip
        os.makedirs(place, mode=0o700, exist_ok=True)
        print(f"l0rt: compiling the extension for torch {torch.__version__} into {place}; this is done once",
              file=sys.stderr, flush=True)  # fmt: skip
        cpp_extension.load(
            NAME,
            sources(),
            extra_cflags=FLAGS,
            extra_include_paths=[INCLUDE],
            build_directory=place,
            is_python_module=False,
            is_standalone=False,
        )


@contextmanager
def scripts_on_path():
    """Let programs that pip has installed be found, though nobody has activated the environment."""
    before = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([sysconfig.get_path("scripts"), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before
