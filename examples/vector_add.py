# SPDX-License-Identifier: Apache-2.0
"""Two vectors are added on the device."""

import l0rt
import numpy as np

l0rt.config.set("driver", "auto")  # a GPU if there is one, else the CPU driver, with a warning
add = l0rt.compile("""
kernel void add(global float *to, const global float *x, const global float *y) {
  size_t i = get_global_id(0);
  to[i] = x[i] + y[i];
}""")["add"]
x, y = np.arange(1024, dtype="f4"), np.full(1024, 0.5, "f4")
to = l0rt.empty(x.nbytes)
add[16, 64](to, l0rt.from_numpy(x), l0rt.from_numpy(y))  # 16 groups of 64 work-items
assert (to.numpy("f4", x.shape) == x + y).all()
print(to.numpy("f4", x.shape)[:4])
