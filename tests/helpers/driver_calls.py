# SPDX-License-Identifier: Apache-2.0
"""How often l0rt calls each function of the driver that builds and issues work: import this before l0rt opens its
driver."""

import collections

from helpers.wrapped import wrap

COUNTED = ("zeCommandList", "zeCommandQueue", "zeFence", "zeGraph", "zeExecutableGraph", "zeKernel")
calls: collections.Counter[str] = collections.Counter()


def _counted(name, original):
    def call(*args):
        calls[name] += 1
        return original(*args)

    return call if name.startswith(COUNTED) else None


wrap(_counted)


def of(function):
    """Return what a call of the function makes of the driver: name without ``ze`` -> how often."""
    before = calls.copy()
    function()
    return {name.removeprefix("ze"): count for name, count in sorted((calls - before).items())}
