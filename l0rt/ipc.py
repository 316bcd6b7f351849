# SPDX-License-Identifier: Apache-2.0
"""Memory between processes: how pickles share Buffers, and what is left of those that were shared.

`Buffer.ipc_handle` and `Buffer.from_ipc_handle` share without a pickle.
"""

import multiprocessing.reduction as _reduction  # noqa: F401 - it is known from now on
from contextlib import contextmanager as _contextmanager

from l0rt.buffers.buffer import add_to_multiprocessing as _add_to_multiprocessing
from l0rt.buffers.buffer import here as _here
from l0rt.runtime.memory.exported import collect as _collect_exported
from l0rt.runtime.memory.exported import exported_count
from l0rt.runtime.memory.imported import collect as _collect_imported
from l0rt.runtime.memory.imported import imported_count
from l0rt.runtime.memory.importedpool import ImportedPool

__all__ = ["ImportedPool", "collect", "exported_count", "imported_count", "sharing"]


def collect():
    """Free exported memory that was freed here and that no other process uses any more; end unused imports.

    This also happens with each export and import, and with ``l0rt.memory.empty_cache()``.
    """
    _collect_exported()
    _collect_imported()


@_contextmanager
def sharing():
    """Let pickles of the calling thread share device memory instead of copying it, inside a with block.

    Whoever unpickles gets a Buffer of the same memory. Each pickle keeps its Buffers until it was unpickled once.
    `multiprocessing` shares Buffers without this block.

    Returns
    -------
    context manager
    """
    _here.depth = getattr(_here, "depth", 0) + 1
    try:
        yield
    finally:
        _here.depth -= 1


_add_to_multiprocessing()


def __dir__():
    return __all__
