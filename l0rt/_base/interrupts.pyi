# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

_Result = TypeVar("_Result")

@final
class at_once(Generic[_Result]):
    def __init__(self, function: Callable[[Any], _Result]) -> None: ...
    def __getitem__(self, argument: object, /) -> _Result: ...
