# SPDX-License-Identifier: Apache-2.0
"""The allocator's rows, as `l0rt bench allocator` has them."""

SUITES = ("reference", "allocator")


def test_row(measure, row, clock):
    measure(row, clock)
