# SPDX-License-Identifier: Apache-2.0
"""Compiles the helpers that are Cython, against the package's .pxd files and headers, and imports them.

A helper is compiled once for an installed l0rt and then kept, for the other processes of a test run and the next runs.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

HERE = Path(__file__).parent
SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
module = Extension({name!r}, [{source!r}], include_dirs={include!r}, extra_compile_args=["-O2", "-g1", "-std=gnu11"])
setup(name={name!r}, ext_modules=cythonize([module], build_dir={folder!r}, include_path={paths!r}, quiet=True))
"""


def compile(folder, name, source=None, declarations=None):
    """Compile a helper, or another file; against other .pxd files than the package's, if they are in that folder."""
    import l0rt

    package = Path(l0rt.__path__[0])
    include = next(p for p in (package / "include", package.parent / "include") if (p / "l0rt").is_dir())
    script = SETUP.format(
        name=name,
        source=str(source or HERE / f"{name}.pyx"),
        include=[str(include)],
        folder=str(folder),
        paths=[str(declarations or package.parent)],
    )
    folders = ["--build-lib", str(folder), "--build-temp", str(folder)]
    command = [sys.executable, "-c", script, "-q", "build_ext", *folders]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


def compiled(name):
    """Return the compiled helper's file. A process that finds none builds one, and renames it to its place."""
    from l0rt.runtime.alloc import allocator

    core = os.stat(allocator.__file__)
    facts = ((HERE / f"{name}.pyx").read_text(), core.st_size, core.st_mtime_ns, sys.version)
    key = hashlib.sha1(repr(facts).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"l0rt-{name}-{os.getuid()}-{key}"
    if not folder.is_dir():
        built = tempfile.mkdtemp(prefix=f"l0rt-{name}-")
        compile(built, name)
        with contextlib.suppress(OSError):  # another process was first
            os.rename(built, folder)
    return str(folder / f"{name}{EXTENSION_SUFFIXES[0]}")


def load(name):
    """Return the imported helper."""
    path = compiled(name)
    spec = spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
