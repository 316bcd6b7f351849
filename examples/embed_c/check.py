# SPDX-License-Identifier: Apache-2.0
"""Run the example: what it prints is what its README says."""

import l0rt
from checksum import checksum

l0rt.config.set("driver", "auto")
x = l0rt.empty(1000).copy_from(bytes(range(250)) * 4)
print("sum:", checksum(x.ptr), "of the last ten:", checksum(x[990:].ptr))
address = x.ptr
x.free()
try:
    checksum(address)
except ValueError:
    print("freed memory: ValueError")
