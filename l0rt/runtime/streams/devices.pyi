# SPDX-License-Identifier: Apache-2.0
from typing import Any

def device_count() -> int: ...
def __getattr__(name: str) -> Any: ...  # for l0rt's own modules
