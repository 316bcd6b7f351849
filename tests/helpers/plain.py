# SPDX-License-Identifier: Apache-2.0
"""`PlainMemory`: a memory that knows no device, compiled once for an installed l0rt and then kept."""

import contextlib
import hashlib
import os
import sys
import tempfile
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from l0rt.runtime.alloc import allocator

from helpers import build_loops

NAME = "plainmemory"


def compiled():
    """Return the compiled module's file. Who finds none builds one, and puts it there whole."""
    core = os.stat(allocator.__file__)
    facts = ((build_loops.HERE / f"{NAME}.pyx").read_text(), core.st_size, core.st_mtime_ns, sys.version)
    key = hashlib.sha1(repr(facts).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"l0rt-{NAME}-{os.getuid()}-{key}"
    if not folder.is_dir():
        built = tempfile.mkdtemp(prefix=f"l0rt-{NAME}-")
        build_loops.compile(built, NAME)
        with contextlib.suppress(OSError):  # another process was first
            os.rename(built, folder)
    return str(folder / f"{NAME}{EXTENSION_SUFFIXES[0]}")


def load():
    path = compiled()
    spec = spec_from_file_location(NAME, path, loader=ExtensionFileLoader(NAME, path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PlainMemory = load().PlainMemory
