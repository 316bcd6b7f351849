# SPDX-License-Identifier: Apache-2.0
"""The rows of other software, as `l0rt bench interop` has them."""

SUITES = ("interop",)


def test_row(measure, row, clock):
    measure(row, clock)
