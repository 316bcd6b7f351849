# SPDX-License-Identifier: Apache-2.0
from typing import SupportsIndex

def sleep(cycles: SupportsIndex) -> None: ...
