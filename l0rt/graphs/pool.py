# SPDX-License-Identifier: Apache-2.0
"""Ids of the memory pools that graphs allocate from."""

from __future__ import annotations

from l0rt.runtime.memory.pools import MemPool, XpuMemPool, pool_of


class PoolHandle(tuple):
    """The id of a graph's pool, which lives as long as a graph or a handle has it."""

    pool: MemPool

    def __reduce__(self):
        return tuple, (tuple(self),)


def graph_pool_handle() -> tuple[int, int]:
    """Return the id of a new memory pool, for graphs that share it: see `l0rt.accelerator.graph_pool_handle`.

    Returns
    -------
    tuple of two int
    """
    return handle_of(XpuMemPool())


def handle_of(pool: MemPool) -> PoolHandle:
    """Return the id of a MemPool, which keeps the pool."""
    handle = PoolHandle(pool.id)
    handle.pool = pool
    return handle


def pool_named(handle: tuple[int, int] | MemPool | None) -> MemPool:
    """Return the MemPool that a handle, an id or None means; None is a new one."""
    if handle is None:
        return XpuMemPool()
    if isinstance(handle, MemPool):
        return handle
    pool = getattr(handle, "pool", None)
    if isinstance(handle, PoolHandle) and pool is not None:
        return pool
    if not isinstance(handle, tuple):
        raise TypeError(f"pool must be what graph_pool_handle() or Graph.pool() returned, not {type(handle).__name__}")
    pool = pool_of(handle)
    if pool is None:
        raise ValueError(f"there is no memory pool with the id {handle}")
    return pool
