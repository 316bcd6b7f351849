# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from types import TracebackType
from typing import Any

from typing_extensions import Self

class Guard:
    _make: Callable[[], Any]
    _block: Any
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None: ...
