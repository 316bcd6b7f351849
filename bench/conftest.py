# SPDX-License-Identifier: Apache-2.0
"""`pytest bench/ --benchmark-only`: the rows of `l0rt bench`, under the same IDs, in pytest-benchmark's table."""

import os

import pytest
from l0rt import config
from l0rt.bench.command import select
from l0rt.bench.lab import Lab
from l0rt.bench.rows import TOUR, Skip, operations, run

if not os.environ.get("L0RT_DRIVER"):
    config.set("driver", "auto")


class Clock:
    """A timer that only what is measured moves on: a row's own reading of an operation, not the time around it."""

    __name__ = "l0rt.bench.rows"

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture(scope="session")
def lab():
    opened = Lab()
    yield opened
    opened.close()


@pytest.fixture
def measure(lab, benchmark):
    """Return a function that measures one row."""

    def measured(row, clock):
        benchmark.name = row.id
        benchmark.extra_info["what"] = row.what
        try:
            with row.open(lab) as work:
                n = operations(work, work.loop, TOUR.round_ns)

                def operation():
                    clock.now += run(work, work.loop, n, 4 * TOUR.round_ns) * 1e-9

                benchmark.pedantic(operation, rounds=min(TOUR.rounds, work.rounds))
        except Skip as why:
            pytest.skip(str(why))

    return measured


def pytest_generate_tests(metafunc):
    """A file's SUITES name the rows that its function is run with, each with the clock that its benchmark reads."""
    if "clock" not in metafunc.fixturenames:
        return
    pairs = [(row, Clock()) for row in select(metafunc.module.SUITES)]
    metafunc.parametrize(
        ("row", "clock"),
        [
            pytest.param(row, clock, id=row.id, marks=pytest.mark.benchmark(timer=clock, group=row.suite))
            for row, clock in pairs
        ],
    )
