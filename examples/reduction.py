# SPDX-License-Identifier: Apache-2.0
"""The sum of a million numbers: each group adds its share in local memory, and the next launch adds the sums."""

import l0rt

SOURCE = """
/* Each work-item first adds what is one grid apart; then halves of the group are added, until one number is left. */
kernel void reduce(global float *sums, const global float *x, uint n, local float *scratch) {
  uint me = get_local_id(0);
  float sum = 0;
  for (uint i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
  scratch[me] = sum;
  for (uint width = get_local_size(0) / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < width) scratch[me] += scratch[me + width];
  }
  if (me == 0) sums[get_group_id(0)] = scratch[0];
}
"""
GROUPS, SIZE = 64, 128


def main():
    l0rt.config.set("driver", "auto")  # a GPU if there is one, else the CPU driver, with a warning
    reduce = l0rt.compile(SOURCE)["reduce"]
    n = 1_000_000
    x = l0rt.empty(4 * n).uniform_(generator=l0rt.Generator().manual_seed(1))
    sums, total = l0rt.empty(4 * GROUPS), l0rt.empty(4)
    scratch = l0rt.LocalMemory(4 * SIZE)
    reduce[GROUPS, SIZE](sums, x, n, scratch)
    reduce[1, SIZE](total, sums, GROUPS, scratch)  # in the same stream, so after the first
    found, expected = total.numpy("f4", 1)[0], x.numpy("f4", n).sum(dtype="f8")
    assert abs(found - expected) < 1e-5 * expected
    print(f"sum {found:.0f}, mean {found / n:.4f}, and NumPy's sum differs by less than {1e-5 * expected:.0f}")


if __name__ == "__main__":
    main()
