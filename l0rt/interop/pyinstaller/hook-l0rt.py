# SPDX-License-Identifier: Apache-2.0
"""PyInstaller's hook for l0rt, whose compiled modules import what PyInstaller cannot see.

The modules for partners and for the command line are left out: a program that imports one brings it in itself.
"""

import os

from PyInstaller import isolated
from PyInstaller.utils.hooks import get_package_paths

LEFT_OUT = ("cli", "interop", "selftest")
SOURCES = (".py", ".pyc", ".pyi", ".pxd", ".pyx", ".h", ".hpp")
NEEDED = ("opencl.h",)  # zig's clang reads it


def _files():
    """Yield (path, folder in the program) of every file of l0rt that is no source."""
    base, package = get_package_paths("l0rt")
    for folder, folders, names in os.walk(package):
        if folder == package:
            folders[:] = [name for name in folders if name not in (*LEFT_OUT, "include")]
        elif os.path.basename(folder) == "bench":
            folders[:] = []  # the traces of l0rt bench
        for name in names:
            if name in NEEDED or not name.endswith(SOURCES):
                yield os.path.join(folder, name), os.path.relpath(folder, base)


# Run in a process of its own: the modules that are loaded once all of l0rt is, and no driver. What l0rt._base.libraries
# loads is in its package's library, and PyInstaller would look for a file.
LOADED = """
import importlib, pkgutil, sys
import l0rt
for module in pkgutil.walk_packages(l0rt.__path__, "l0rt."):
    if module.name.split(".")[1] not in (*left_out, "__main__"):
        importlib.import_module(module.name)
loaders = {name: type(getattr(module, "__loader__", None)) for name, module in sys.modules.items()}
names = [name for name, loader in loaders.items() if loader.__module__ != "l0rt._base.libraries"]
names = [name for name in names if name.split(".")[0] not in ("PyInstaller", "__main__")]
"""


@isolated.decorate
def _names(code, left_out):
    namespace = {"left_out": left_out}
    exec(code, namespace)
    return namespace["names"]


binaries = [pair for pair in _files() if ".so" in os.path.basename(pair[0])]
datas = [pair for pair in _files() if ".so" not in os.path.basename(pair[0])]
hiddenimports = _names(LOADED, LEFT_OUT)
