# SPDX-License-Identifier: Apache-2.0
"""Memory functions of ``torch.accelerator`` and ``torch.xpu`` that run on l0rt, from the import of this module on.

They count l0rt's memory: that of Buffers, and of tensors over it (``torch.from_dlpack``). Memory that torch itself
allocates is not in it. ``restore`` gives torch its own functions back. docs/partners.md.
"""

from __future__ import annotations

import torch as _torch

from l0rt import accelerator, xpu

_own: dict = {}


def _serve(theirs, ours):
    """Put our functions in the place of those of the same names, in a module and in its ``memory``."""
    for name in theirs.memory.__all__:
        for module in (theirs.memory, theirs):
            if hasattr(module, name) and hasattr(ours, name):
                _own.setdefault((module, name), getattr(module, name))
                setattr(module, name, getattr(ours, name))


def serve() -> None:
    """Replace torch's functions, once more after `restore`. The import of this module has done it."""
    _serve(_torch.accelerator, accelerator)
    _serve(_torch.xpu, xpu)


def restore() -> None:
    """Give torch its own functions back."""
    while _own:
        (module, name), function = _own.popitem()
        setattr(module, name, function)


serve()
