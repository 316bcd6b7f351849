# SPDX-License-Identifier: Apache-2.0
import os
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

from l0rt.kernels.module import Module

__all__ = ["compile"]

COMPILERS: dict[str, ModuleType]

class Compiler(NamedTuple):
    kind: str
    path: str
    identity: str

def compiler() -> Compiler: ...
def keeps_native(about: Mapping[str, Any]) -> bool: ...
def target_of(about: Mapping[str, Any]) -> str | None: ...
def prepare(
    source: str | bytes | bytearray | memoryview | os.PathLike[str], options: str = "", target: str | None = None
) -> None: ...
_kept: dict[str, Any]  # what is in memory

def compile(
    source: str | bytes | bytearray | memoryview | os.PathLike[str],
    options: str = "",
    device: Any = None,
    *,
    include_dirs: Iterable[str | os.PathLike[str]] | None = (),
    headers: Mapping[str, str | bytes] | None = None,
    constants: Mapping[int, int | float | bool] | None = None,
) -> Module: ...
