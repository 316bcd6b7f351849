# SPDX-License-Identifier: Apache-2.0
"""Builds the helpers that are Cython into a folder, against the package's .pxd files and headers, and imports them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
module = Extension({name!r}, [{source!r}], include_dirs={include!r}, extra_compile_args=["-O2", "-g1", "-std=gnu11"])
setup(name={name!r}, ext_modules=cythonize([module], build_dir={folder!r}, include_path={paths!r}, quiet=True))
"""


def compile(folder, name, source=None):
    """Compile a helper, or another file."""
    import l0rt

    package = Path(l0rt.__path__[0])
    include = next(p for p in (package / "include", package.parent / "include") if (p / "l0rt").is_dir())
    script = SETUP.format(
        name=name,
        source=str(source or HERE / f"{name}.pyx"),
        include=[str(include)],
        folder=str(folder),
        paths=[str(package.parent)],
    )
    folders = ["--build-lib", str(folder), "--build-temp", str(folder)]
    command = [sys.executable, "-c", script, "-q", "build_ext", *folders]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


def build(folder, name="allocator_loops"):
    """Compile the helper and return the imported module."""
    compile(folder, name)
    spec = importlib.util.spec_from_file_location(name, next(Path(folder).glob(f"{name}.*.so")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
