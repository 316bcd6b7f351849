# SPDX-License-Identifier: Apache-2.0
"""Run the example: what it prints is what its README says."""

import l0rt
from history import History

l0rt.config.set("driver", "auto")
values = History(most=10)
for value in range(100):
    values.append(value, 4096)
print("blocks:", len(values), "total:", values.total())
try:
    values.append(1, 1 << 62)
except l0rt.OutOfMemoryError:
    print("too large: OutOfMemoryError")
