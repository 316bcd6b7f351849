# SPDX-License-Identifier: Apache-2.0
"""Functions of the driver in whose place others are called: use this before l0rt opens its driver.

The driver's functions take and return words, so one type with more words than any of them takes serves all.
"""

import ctypes

from l0rt.ze import loader

MOST = 14  # arguments of one of them
_kind = ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_size_t] * MOST)
_kept = []


def wrap(choose):
    """Let ``choose(name, original)`` return what is called in a function's place, or None for itself.

    What is called gets `MOST` words, of which the first are the arguments.
    """
    address = loader.Library.address

    def wrapped(self, name):
        found = address(self, name)
        if not found:
            return found
        chosen = choose(name, _kind(found))
        if chosen is None:
            return found
        _kept.append(_kind(chosen))
        return ctypes.cast(_kept[-1], ctypes.c_void_p).value

    loader.Library.address = wrapped


def replace(functions):
    """Let functions be called in the places of those of the same name; return the originals, once l0rt has them."""
    originals = {}

    def choose(name, original):
        originals[name] = original
        return functions.get(name)

    wrap(choose)
    return originals
