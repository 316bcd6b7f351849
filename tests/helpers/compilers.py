# SPDX-License-Identifier: Apache-2.0
"""Compilers of OpenCL C: which are installed, and one that stands in for them and counts what it compiles."""

import os
from pathlib import Path

from l0rt.kernels import compiler, ocloc, zig

KERNELS = Path(__file__).parents[1] / "kernels"
INSTALLED = [kind for kind, module in compiler.COMPILERS.items() if module.find() is not None]
WITHOUT = f"l0rt.compile needs libocloc ({ocloc.PACKAGE}) or ziglang ({zig.PACKAGE})"


class StandIn:
    """A compiler that makes the same module of every source, and appends a letter to a file for each.

    It works where no compiler is installed, and takes no time.
    """

    PACKAGE = "it cannot be installed"

    def __init__(self, path, log="", name="stand-in"):
        self.path, self.log, self.name = os.fspath(path), log, name
        self.before = lambda: None

    def find(self):
        return self.path

    def identity(self, path):
        return self.name

    def build(self, path, source, headers, options, device):
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, b"x")
        os.close(file)
        self.before()
        return ocloc.Output((KERNELS / "add.spv").read_bytes(), self.log)

    @property
    def builds(self):
        return os.path.getsize(self.path) if os.path.exists(self.path) else 0

    def install(self):
        """Put it in the place of libocloc, in a process that has compiled nothing."""
        compiler.COMPILERS["ocloc"] = self
        forget()
        return self


def forget():
    """Forget what this process has compiled, and with what: as in a new process."""
    compiler._kept.clear()
    compiler._found.clear()
