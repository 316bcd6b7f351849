# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from os import PathLike
from typing import Protocol

class _Writes(Protocol):
    def write(self, text: str, /) -> object: ...

def dump_state(file: str | PathLike[str] | _Writes | None = None) -> str: ...
def dump_on_signal(signum: int = ..., file: str | PathLike[str] | _Writes | None = None) -> Callable[[], None]: ...
