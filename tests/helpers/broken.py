# SPDX-License-Identifier: Apache-2.0
"""Breaking the driver in every process that a test starts: ``BREAK_DRIVER`` names functions of broken_driver.c, or is
``without_`` and the name of a function that is then missing."""

import ctypes
import os
import re
import subprocess
from pathlib import Path

import l0rt
from l0rt.ze import loader

SOURCE = Path(__file__).with_name("broken_driver.c")


def build(folder):
    """Compile the broken functions; return the library."""
    library = folder / "libbroken.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{l0rt.get_include()}", "-o", library, SOURCE], check=True)
    return library


def functions(how):
    """Return the functions that a breakage has."""
    return re.findall(rf"^BREAK\({how}, (\w+),", SOURCE.read_text(), re.MULTILINE) or [how.removeprefix("without_")]


def begin(library):
    """Put the functions of the breakage that the environment names into the place of the driver's own."""
    broken, how = ctypes.CDLL(library), os.environ["BREAK_DRIVER"]
    address = loader.Library.address

    def replaced(self, name):
        found = address(self, name)
        if how == f"without_{name}":
            return 0
        other = getattr(broken, f"{how}_{name}", None)
        if not found or other is None:
            return found
        ctypes.c_void_p.in_dll(broken, f"original_{name}").value = found
        return ctypes.cast(other, ctypes.c_void_p).value

    loader.Library.address = replaced
