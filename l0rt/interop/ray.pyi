# SPDX-License-Identifier: Apache-2.0
from typing import Any

__all__ = ["RESOURCE", "claim", "init", "resources"]

RESOURCE: str

def resources() -> dict[str, int]: ...
def init(**kwargs: Any) -> Any: ...
def claim(
    *,
    memory_limit: int | float | str | None = None,
    pool_size: int | float | str | None = None,
    timeout: float = 30.0,
) -> int: ...
