# SPDX-License-Identifier: Apache-2.0
"""``l0rt cpu-driver``: where the CPU driver is, and the environment in which other programs use it."""

import ctypes
import os
import shlex

import l0rt
from l0rt.ze.loader import LOADER


def environment():
    """Return the variables, name -> value, that make a Level Zero program use the CPU driver.

    Returns
    -------
    dict
    """
    driver = l0rt.cpu_driver_path()
    stand_in = os.path.join(os.path.dirname(driver), "loader")
    variables = {"ZE_ENABLE_ALT_DRIVERS": driver, "ZEL_LIBRARY_PATH": stand_in}
    if not has_loader():
        folders = [stand_in, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    return variables


def has_loader():
    """Whether the dynamic linker finds a loader: where it finds none, the stand-in has to be in its path."""
    try:
        ctypes.CDLL(LOADER)
    except OSError:
        return False
    return True


def shell_lines():
    """Return the environment as lines for a POSIX shell's ``eval``."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment().items())
