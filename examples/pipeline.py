# SPDX-License-Identifier: Apache-2.0
"""Data that does not fit the device at once: parts of it are copied in, computed and copied out at the same time.

Each slot has a Buffer, pinned memory and a stream. While the device computes one part, the next is copied in and the
last one out. Nothing waits for everything: an event says when a slot's memory may be filled again.
"""

import l0rt
import l0rt.accelerator as acc
import numpy as np

SOURCE = """
kernel void logistic(global float *x, uint rounds) {
  size_t i = get_global_id(0);
  float value = x[i];
  for (uint k = 0; k < rounds; k++) value = 3.2f * value * (1 - value);
  x[i] = value;
}
"""
PART, PARTS, ROUNDS = 1 << 16, 24, 50


class Slot:
    """What one part needs on its way."""

    def __init__(self):
        self.stream = acc.Stream()
        self.host = l0rt.pinned(PART, "f4")  # copies of pinned memory need not be staged: they return at once
        self.device = l0rt.empty(4 * PART, stream=self.stream)
        self.done = l0rt.Event()
        self.part = None  # the number of the part that is on its way

    def begin(self, kernel, data, part):
        """Send a part through the device. Nothing here waits."""
        self.part = part
        self.host[:] = data[part]
        self.device.copy_from(self.host, non_blocking=True, stream=self.stream)
        kernel[PART // 256, 256, self.stream](self.device, ROUNDS)
        self.device.copy_to(self.host, non_blocking=True, stream=self.stream)
        self.done.record(self.stream)

    def end(self, results):
        """Wait until the part has come back, and keep it."""
        if self.part is not None:
            self.done.synchronize()
            results[self.part] = self.host
            self.part = None


def expected(x):
    x = x.copy()
    for _ in range(ROUNDS):
        x = np.float32(3.2) * x * (1 - x)
    return x


def main():
    l0rt.config.set("driver", "auto")  # a GPU if there is one, else the CPU driver, with a warning
    kernel = l0rt.compile(SOURCE)["logistic"]
    data = np.random.default_rng(1).uniform(0.1, 0.9, (PARTS, PART)).astype("f4")
    results = np.empty_like(data)
    slots = [Slot() for _ in range(3)]
    for part in range(PARTS):
        slot = slots[part % len(slots)]
        slot.end(results)  # the part that this slot had before
        slot.begin(kernel, data, part)
    for slot in slots:
        slot.end(results)
    assert np.allclose(results, expected(data), atol=1e-3)
    used = acc.max_memory_allocated()
    print(f"{data.nbytes >> 10} KiB in {PARTS} parts on {len(slots)} streams, at most {used >> 10} KiB on the device")
    print(f"the mean of the results is {results.mean():.2f}, as with NumPy")


if __name__ == "__main__":
    main()
