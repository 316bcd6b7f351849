# SPDX-License-Identifier: Apache-2.0
"""How often l0rt calls each function of the driver that builds and issues work: import this before l0rt opens its
driver. Its functions take and return words, so one wrapper with more words than any of them has serves all."""

import collections
import ctypes

from l0rt.ze import loader

COUNTED = ("zeCommandList", "zeCommandQueue", "zeGraph", "zeExecutableGraph", "zeKernel")
MOST = 14  # arguments of one of them
calls: collections.Counter[str] = collections.Counter()
_kind = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_size_t] * MOST)
_kept = []
_address = loader.Library.address


def _counted(self, name):
    found = _address(self, name)
    if not found or not name.startswith(COUNTED):
        return found
    original = _kind(found)

    def call(*args):
        calls[name] += 1
        return original(*args)

    _kept.append(_kind(call))
    return ctypes.cast(_kept[-1], ctypes.c_void_p).value


loader.Library.address = _counted


def of(function):
    """Return what a call of the function makes of the driver: name without ``ze`` -> how often."""
    before = calls.copy()
    function()
    return {name.removeprefix("ze"): count for name, count in sorted((calls - before).items())}
