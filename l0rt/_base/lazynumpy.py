# SPDX-License-Identifier: Apache-2.0
"""NumPy, imported when something of it is asked for first: it takes longer to import than all of l0rt, and a program
that has streams, events and memory alone needs nothing of it."""


def __getattr__(name):
    import numpy

    value = getattr(numpy, name)
    globals()[name] = value  # the next access does not come here
    return value
