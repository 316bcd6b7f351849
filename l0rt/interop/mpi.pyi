# SPDX-License-Identifier: Apache-2.0
from contextlib import AbstractContextManager
from typing import Any, Literal

from l0rt.buffers.buffer import Buffer

__all__ = ["bcast", "recv", "send", "setup", "share", "staged"]

def setup(
    comm: Any = None,
    *,
    memory_limit: int | float | str | None = None,
    pool_size: int | float | str | None = None,
    oversubscribe: bool = False,
) -> int: ...
def staged(
    buffer: Buffer, dtype: Any = "uint8", *, mode: Literal["r", "w", "rw"] = "rw"
) -> AbstractContextManager[Any]: ...
def send(buffer: Buffer, dest: int, tag: int = 0, comm: Any = None) -> None: ...
def recv(buffer: Buffer, source: int = ..., tag: int = ..., comm: Any = None) -> Buffer: ...
def bcast(buffer: Buffer, root: int = 0, comm: Any = None) -> Buffer: ...
def share(buffer: Buffer | None, comm: Any = None) -> list[Buffer | None]: ...
