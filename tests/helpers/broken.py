# SPDX-License-Identifier: Apache-2.0
"""Breaking the driver in every process that a test starts: ``BREAK_DRIVER`` names functions of broken_driver.c."""

import ctypes
import os

from l0rt.ze import loader


def begin(library):
    """Put the functions of the breakage that the environment names into the place of the driver's own."""
    broken = ctypes.CDLL(library)
    address = loader.Library.address

    def replaced(self, name):
        found = address(self, name)
        other = getattr(broken, f"{os.environ['BREAK_DRIVER']}_{name}", None)
        if not found or other is None:
            return found
        ctypes.c_void_p.in_dll(broken, f"original_{name}").value = found
        return ctypes.cast(other, ctypes.c_void_p).value

    loader.Library.address = replaced
