# SPDX-License-Identifier: Apache-2.0
"""zig's clang, of the package ziglang: where is it, and what does it make of a source?

It makes SPIR-V of OpenCL C by itself, and declares OpenCL's functions itself. What its package lacks, types and
constants, is in ``opencl.h`` here. Without headers everything goes through pipes; headers are written to a folder that
is removed afterwards, since clang reads them from files.
"""

import os
import tempfile
from importlib.util import find_spec

from l0rt.errors import ModuleBuildError
from l0rt.kernels.ocloc import Output, run

__all__: list[str] = []

PRELUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opencl.h")
PACKAGE = "pip install 'l0rt[zig]'"
# LLVM writes what OpenCL C has for these only if it may.
EXTENSIONS = ("SPV_EXT_shader_atomic_float_add", "SPV_EXT_shader_atomic_float_min_max", "SPV_KHR_bit_instructions",
              "SPV_KHR_integer_dot_product")  # fmt: skip
# Without optimisation LLVM writes SPIR-V that is not valid.
COMMAND = ("clang", "-x", "cl", "-target", "spirv64", "-O1", "-cl-no-stdinc", "-Xclang", "-fdeclare-opencl-builtins",
           "-fno-color-diagnostics", "-c", "-o", "-", "-mllvm",
           "--spirv-ext=" + ",".join(f"+{name}" for name in EXTENSIONS))  # fmt: skip


def find():
    """Return the path of the program; None if the package is not installed."""
    try:
        found = find_spec("ziglang")
    except (ImportError, ValueError):
        return None
    if found is None or not found.origin:
        return None
    path = os.path.join(os.path.dirname(found.origin), "zig")
    return path if os.access(path, os.X_OK) else None


def identity(path):
    """Return what distinguishes this build of the compiler from others."""
    facts, prelude = os.stat(path), os.stat(PRELUDE)
    return f"zig {path} {facts.st_size} {facts.st_mtime_ns} {prelude.st_size} {prelude.st_mtime_ns}"


def build(path, source, headers, options, device):
    """Return the `Output` of compiling a source; see `ocloc.build`. It is the same for each ``device``."""
    with open(PRELUDE, "rb") as file:
        given = b'#line 1 "opencl.h"\n' + file.read() + source
    # -cl-intel options are for the driver's part of the work.
    command = [path, *COMMAND, *[option for option in options if not option.startswith("-cl-intel")], "-"]
    if not headers:
        return _output(path, run(command, given))
    try:
        with tempfile.TemporaryDirectory(prefix="l0rt-") as folder:
            for name, content in headers:
                place = os.path.join(folder, name)
                if not os.path.isabs(name):  # else it is read where it is
                    os.makedirs(os.path.dirname(place), exist_ok=True)
                    with open(place, "wb") as file:
                        file.write(content)
            return _output(path, run(command, given, folder))
    except OSError as error:
        raise ModuleBuildError(f"the headers cannot be written for {path}: {error}") from None


def _output(path, result):
    out, errors, status = result
    log = errors.decode("utf-8", "replace").strip()
    if status < 0:
        raise ModuleBuildError(f"the compiler {path} ended with signal {-status}{log and ': '}{log[-2000:]}", None, log)
    if status == 0 and out:
        return Output(out, log)
    return Output(None, log or f"zig failed with status {status}")
