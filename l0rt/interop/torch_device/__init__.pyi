# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

NAME: str

class Fallback(NamedTuple):
    name: str
    calls: int
    bytes: int
    seconds: float

def fallbacks() -> list[Fallback]: ...
def forget_fallbacks() -> None: ...
