# SPDX-License-Identifier: Apache-2.0
"""Run the example: what it prints is what its README says."""

import threading

import l0rt
from ring_buffer import produce

l0rt.config.set("driver", "auto")
threads = [threading.Thread(target=produce, args=(1 << 16, 50)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("good blocks:", produce(1 << 20, 100))
try:
    produce(1 << 62, 1)
except l0rt.OutOfMemoryError:
    print("too large: OutOfMemoryError")
