# SPDX-License-Identifier: Apache-2.0
from typing import overload

from l0rt.runtime.current.event import Event, _Policy
from l0rt.runtime.current.stream import Stream

@overload
def wait_all(*events: Event | Stream, stream: Stream) -> None: ...
@overload
def wait_all(
    *events: Event | Stream, stream: None = None, timeout: float | None = None, policy: _Policy = None
) -> bool | None: ...
def wait_any(*events: Event | Stream, timeout: float | None = None, policy: _Policy = None) -> int | None: ...
