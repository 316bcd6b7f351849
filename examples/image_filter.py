# SPDX-License-Identifier: Apache-2.0
"""An image is blurred: its rows are copied into a larger one with a border, filtered there, and a part copied back."""

import l0rt
import numpy as np

SOURCE = """
/* The mean of the nine neighbours. `pitch` is the number of pixels from one row to the next. */
kernel void blur(global uchar *to, const global uchar *from, uint pitch) {
  size_t at = (get_global_id(1) + 1) * pitch + get_global_id(0) + 1;
  uint sum = 0;
  for (int y = -1; y <= 1; y++)
    for (int x = -1; x <= 1; x++) sum += from[at + y * (int)pitch + x];
  to[at] = sum / 9;
}
"""
WIDTH, HEIGHT = 320, 200
PITCH = 384  # rows begin at multiples of 128 bytes, with room for the border


def circles():
    """Return a picture of rings."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    return np.where(np.hypot(x - WIDTH / 2, y - HEIGHT / 2).astype(int) // 10 % 2, 255, 0).astype("u1")


def blurred(image):
    """Return what the kernel is to compute, by NumPy."""
    padded = np.pad(image, 1).astype("u4")
    return (sum(padded[y : y + HEIGHT, x : x + WIDTH] for y in range(3) for x in range(3)) // 9).astype("u1")


def main():
    l0rt.config.set("driver", "auto")  # a GPU if there is one, else the CPU driver, with a warning
    blur = l0rt.compile(SOURCE)["blur"]
    image, result = circles(), np.empty((HEIGHT, WIDTH), "u1")
    padded = l0rt.empty(PITCH * (HEIGHT + 2)).fill(0)
    filtered = l0rt.empty(PITCH * (HEIGHT + 2))
    inside = PITCH + 1  # the first pixel that is not border
    l0rt.memcpy2d(padded[inside:], PITCH, image, WIDTH, WIDTH, HEIGHT)
    blur.launch(filtered, padded, PITCH, global_size=(WIDTH, HEIGHT))
    l0rt.memcpy2d(result, WIDTH, filtered[inside:], PITCH, WIDTH, HEIGHT)
    assert (result == blurred(image)).all()
    levels = len(np.unique(image)), len(np.unique(result))
    print(f"{WIDTH} x {HEIGHT} pixels, {levels[0]} levels of grey before and {levels[1]} after")
    for row in result[60:141:10, 120:201:2]:  # a part of it, as text
        print("".join(" .:-=+*#%@"[int(level) * 9 // 255] for level in row).rstrip())


if __name__ == "__main__":
    main()
