# SPDX-License-Identifier: Apache-2.0
from typing import final

@final
class LocalMemory:
    def __new__(cls, nbytes: int) -> LocalMemory: ...
    @property
    def nbytes(self) -> int: ...
