# SPDX-License-Identifier: Apache-2.0
"""The streams' rows, as `l0rt bench streams` has them."""

SUITES = ("streams",)


def test_row(measure, row, clock):
    measure(row, clock)
