# SPDX-License-Identifier: Apache-2.0
from typing import Any

GET_NATIVE: str

def native_context(queue: Any) -> int: ...
def share_context(queue: Any) -> None: ...
