# SPDX-License-Identifier: Apache-2.0
"""A device of tinygrad on l0rt: ``DEV=L0RT``. docs/partners.md."""

import sys

from l0rt.interop.tinygrad import _version, device  # in this order: the first says what is missing
from l0rt.interop.tinygrad.device import L0RTDevice

__all__ = ["L0RTDevice", "register"]

NAME = "L0RT"
VERSION = _version.NEEDED


def register():
    """Give tinygrad the device ``L0RT``, and return its class.

    From then on ``DEV=L0RT``, ``Device["L0RT:1"]`` and ``Tensor(..., device="L0RT")`` work in this process. No device
    is opened. Calling it again is harmless.

    Returns
    -------
    type
        `L0RTDevice`, a subclass of tinygrad's ``Compiled``.

    Raises
    ------
    ImportError
        On import of this module: tinygrad is not installed, or is of another version than 0.14.0.
    """
    sys.modules["tinygrad.runtime.ops_l0rt"] = device.runtime.ops_l0rt = device
    if NAME not in device.ALL_DEVICES:
        device.ALL_DEVICES.append(NAME)  # behind the CPU: tinygrad chooses it when it is named, never by itself
    return L0RTDevice
