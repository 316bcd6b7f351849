# SPDX-License-Identifier: Apache-2.0
"""What the allocator itself takes for what it hands out."""


def test_bookkeeping_is_small(loops):
    block, small, large, of_range = loops.bookkeeping()
    assert block <= 128
    assert small <= 0.02  # of small segments, a word for every 512 bytes
    assert max(large, of_range) <= 0.001
