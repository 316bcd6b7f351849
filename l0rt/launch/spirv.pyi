# SPDX-License-Identifier: Apache-2.0
from typing import NamedTuple

MAGIC: int

class Argument(NamedTuple):
    name: str
    kind: str
    size: int
    address_space: str
    number: str
    reads: bool
    writes: bool
    layout: str = ""
    source: str = ""

class Interface(NamedTuple):
    arguments: tuple[Argument, ...]
    required_group_size: tuple[int, int, int] | None
    counts_items: bool
    required_subgroup_size: int | None

class Specialization(NamedTuple):
    number: str
    size: int

def is_spirv(code: bytes) -> bool: ...

class Spirv:
    kernels: dict[str, Interface]
    constants: dict[int, Specialization]
    capabilities: tuple[int, ...]
    version: tuple[int, int]
    imports: tuple[str, ...]
    def __new__(cls, code: bytes, trusted: bool = False) -> Spirv: ...
