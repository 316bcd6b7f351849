# SPDX-License-Identifier: Apache-2.0
from typing import Any

__all__ = ["L0RTDevice", "register"]

NAME: str
VERSION: str

class L0RTDevice:
    name: str
    stream: Any
    def __init__(self, device: str) -> None: ...
    def count(self) -> int: ...
    def synchronize(self) -> None: ...

def register() -> type[L0RTDevice]: ...
