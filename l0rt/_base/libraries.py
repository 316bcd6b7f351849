# SPDX-License-Identifier: Apache-2.0
"""Compiled modules that share a library, one a package: to load it once costs a fraction of a library for each module.

setup.py notes which modules it has linked into which package's library. Where it has noted nothing, every module is
a file of its own, which Python finds itself.
"""

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = f"linked.modules{EXTENSION_SUFFIXES[0]}"  # with a dot: no module itself


def _noted():
    """Return package -> the names of the modules in its library."""
    try:
        with open(os.path.join(_HERE, "libraries.txt"), encoding="utf-8") as notes:
            rows = [line.split() for line in notes]
    except FileNotFoundError:
        return {}
    return {package: frozenset(names) for package, *names in rows}


class _Loader(ExtensionFileLoader):
    """Loads a module, unless it belongs to an interpreter that has ended: what such a module had is gone."""

    def exec_module(self, module):
        super().exec_module(module)
        if module.__dict__.get("__test__") is None:  # every module that Cython compiled has one
            raise ImportError(
                "l0rt was used in this process by an interpreter that has ended (Py_Finalize), and cannot be used by "
                "another one: keep one interpreter for the whole process, or start a new process"
            )


class _Finder:
    """What is in one library: the finder of an entry of a package's path."""

    def __init__(self, library):
        self._library, self._names = library, _libraries[library]

    def find_spec(self, name, target=None):
        if name.rpartition(".")[2] not in self._names:
            return None
        spec = ModuleSpec(name, _Loader(name, self._library), origin=self._library)
        spec.has_location = True
        return spec

    def iter_modules(self, prefix=""):
        """Return the modules' names, for `pkgutil`."""
        return [(prefix + name, False) for name in sorted(self._names)]


def _hook(entry):
    if entry not in _libraries:
        raise ImportError(f"not a library of l0rt: {entry}")
    return _Finder(entry)


_modules = _noted()
_libraries: dict[str, frozenset[str]] = {}  # path -> names of modules
sys.path_hooks.append(_hook)


def share(path, package):
    """Let the modules of ``package`` be found in its library, if it has one, before all else on its ``path``."""
    if package in _modules:
        library = os.path.join(_HERE, *package.split(".")[1:], _LIBRARY)
        _libraries[library] = _modules[package]
        sys.path_importer_cache[library] = _Finder(library)  # else Python asks first whether it is a ZIP archive
        path.insert(0, library)
