# SPDX-License-Identifier: Apache-2.0
"""The graphs' rows, as `l0rt bench graphs` has them."""

SUITES = ("graphs",)


def test_row(measure, row, clock):
    measure(row, clock)
