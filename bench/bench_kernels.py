# SPDX-License-Identifier: Apache-2.0
"""The kernels' rows, as `l0rt bench kernels` has them."""

SUITES = ("kernels",)


def test_row(measure, row, clock):
    measure(row, clock)
