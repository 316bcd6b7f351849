# SPDX-License-Identifier: Apache-2.0
from typing import Any

from l0rt.buffers.buffer import Buffer as Buffer
from l0rt.runtime.streams.naming import _Device

def from_usm(array: Any, /, *, device: _Device = None) -> Buffer: ...
