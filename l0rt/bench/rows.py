# SPDX-License-Identifier: Apache-2.0
"""Rows: what the bench measures, each defined once, and how a figure is taken."""

import time
import timeit
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True)
class Effort:
    """How long to measure: ``rounds`` rounds of about ``round_ns`` each, after one to warm up.

    Many short rounds rather than a few long ones: what disturbs a machine comes in bursts, and a median leaves out
    the rounds that were hit. A row that has FEWEST rounds ends after ``row_ns``.
    """

    name: str
    round_ns: float
    rounds: int
    row_ns: float = float("inf")


FEWEST = 7  # rounds that have quartiles
SMOKE = Effort("smoke", 2e4, 2)  # for tests: everything runs, no figure means anything
# Rounds so short that most fit between two switches of a busy machine's threads.
TOUR = Effort("tour", 3e5, 199, 7e8)
FULL = Effort("full", 1e6, 299, 3e9)


@dataclass(frozen=True)
class Budget:
    """What a row may take. All that are given hold at once.

    ``ns`` and ``over_raw`` are for the machine that the design was measured on; a report scales them to the one at
    hand by the reference rows. ``times`` is ``(factor, id)``: a multiple of another row. ``instructions`` are counted
    apart, and not scaled.
    """

    ns: float | None = None
    over_raw: float | None = None
    times: tuple[float, str] | None = None
    instructions: int | None = None

    def limit(self, raw, figures, scale):
        """Return the nanoseconds allowed here, None if what that depends on was not measured.

        Without a ``scale`` only what is a ratio within this run counts: a multiple of another row.
        """
        limits = []
        if self.ns is not None and scale is not None:
            limits.append(self.ns * scale)
        if self.over_raw is not None and raw is not None and scale is not None:
            limits.append(raw + self.over_raw * scale)
        if self.times is not None and figures.get(self.times[1]) is not None:
            limits.append(self.times[0] * figures[self.times[1]])
        return min(limits, default=None)


@dataclass(frozen=True)
class Note:
    """A further figure of a row: ``limit`` is the most it may be, or the least where ``least`` is set.

    ``noise`` is how far this run's noise may have moved the value.
    """

    value: float
    unit: str = ""
    limit: float | None = None
    least: bool = False
    noise: float = 0.0


@dataclass
class Work:
    """What one row does. Each loop runs its operation n times and returns the nanoseconds that this took.

    ``raw`` is the same on the bare driver, ``beside`` something else to compare with. ``n`` fixes how many operations
    a round has, ``rounds`` limits their number where one takes long; ``most`` is how many operations may run in one
    go, with ``rest`` called, not timed, after each. ``notes`` is called at the end with the figures, and returns
    name -> Note.
    """

    loop: Callable[[int], float]
    raw: Callable[[int], float] | None = None
    beside: Callable[[int], float] | None = None
    n: int | None = None
    rounds: int = 1000
    most: int | None = None
    rest: Callable[[], object] = field(default=lambda: None)
    notes: Callable[[dict], dict] = field(default=lambda figures: {})


class Skip(Exception):
    """This row cannot be measured here; the text says why."""


@dataclass(frozen=True)
class Row:
    """One row. ``open(lab)`` is a context manager that prepares a Work and cleans up after it."""

    id: str
    suite: str
    what: str
    open: Callable
    budget: Budget
    long: bool = False  # left out by --smoke
    counts: bool = False  # --instructions counts it: one thread, and nothing that another process does


ROWS: dict = {}


def row(suite, id, what, *args, long=False, counts=False, **budget):
    """Define the row that the decorated generator function of ``(lab, *args)`` yields the Work of."""

    def define(function):
        if id in ROWS:
            raise ValueError(f"two rows are called {id}")
        opened = contextmanager(lambda lab: function(lab, *args))
        ROWS[id] = Row(id, suite, what, opened, Budget(**budget), long, counts)
        return function

    return define


def python(statement, **names):
    """Return a loop over a Python statement in which the ``names`` mean the given objects."""
    timer = timeit.Timer(statement, globals=names)
    return lambda n: timer.timeit(n) * 1e9


def run(work, loop, n, limit=float("inf")):
    """Run ``loop`` n times, in portions if the work needs them; return the nanoseconds an operation took.

    Between portions it may stop early: once ``limit`` nanoseconds are spent.
    """
    spent, count = 0, 0
    while count < n and spent < limit:
        portion = min(n - count, work.most or n)
        spent += loop(portion)
        work.rest()
        count += portion
    return spent / count


def operations(work, loop, round_ns):
    """Warm up; return how many operations fill a round."""
    if work.n:
        run(work, loop, work.n)
        return work.n
    run(work, loop, 1)  # the first takes what only a first one takes
    n, each = 1, run(work, loop, 1)
    while n * each < round_ns / 4:
        n = int(n * min(10, max(2, round_ns / max(n * each, 1))))
        each = run(work, loop, n)
    if n > 1:  # once more: whatever disturbed the last one would make all rounds too short to mean anything
        each = min(each, run(work, loop, n))
    return max(1, int(round_ns / each))


def quartiles(values):
    """Return the lower and the upper quartile of some values, each one of them."""
    ordered = sorted(values)
    quarter = (len(ordered) - 1) // 4
    return ordered[quarter], ordered[-1 - quarter]


@dataclass(frozen=True)
class Figure:
    """Nanoseconds an operation: the median of some rounds, and the least."""

    median: float
    least: float
    rounds: tuple

    @classmethod
    def of(cls, rounds):
        return cls(median(rounds), min(rounds), tuple(rounds))

    @property
    def quartiles(self):
        """Half of the rounds lie between these two: how far apart they are is this run's noise."""
        return quartiles(self.rounds)


def loops_of(work):
    """Return name -> loop for everything that the work measures."""
    loops = {"own": work.loop, "raw": work.raw, "beside": work.beside}
    return {name: loop for name, loop in loops.items() if loop is not None}


def figures(work, effort):
    """Measure a Work: its loops take turns, so that what disturbs the machine for a while disturbs them all."""
    loops = loops_of(work)
    most = {name: operations(work, loop, effort.round_ns) for name, loop in loops.items()}
    count = dict(most)
    rounds: dict[str, list[float]] = {name: [] for name in loops}
    began = time.perf_counter_ns()
    for round in range(min(effort.rounds, work.rounds)):
        if round >= FEWEST and time.perf_counter_ns() - began > effort.row_ns:
            break
        for name, loop in loops.items():
            each = run(work, loop, count[name], 4 * effort.round_ns)
            rounds[name].append(each)
            if not work.n:  # what has become slower since the warm-up, and stays so, is done less often
                each = min(rounds[name][-3:])
                count[name] = max(1, min(most[name], int(2 * effort.round_ns / max(each, 1e-3))))
    return {name: Figure.of(values) for name, values in rounds.items()}


@dataclass(frozen=True)
class Result:
    """The result of a row: its figures by name (``own``, ``raw``, ``beside``) and notes, or why there are none."""

    row: Row
    figures: dict = field(default_factory=dict)
    notes: dict = field(default_factory=dict)
    skipped: str | None = None
    failed: str | None = None

    def median(self, name):
        """Return the median of a figure, None if it was not measured."""
        return self.figures[name].median if name in self.figures else None

    def upper(self, name):
        """Return the upper quartile of a figure, None if it was not measured."""
        return self.figures[name].quartiles[1] if name in self.figures else None


def measure(row, lab, effort):
    """Return the row's Result; a row that cannot be measured says why and never ends the bench."""
    if row.long and effort is SMOKE:
        return Result(row, skipped="not with --smoke")
    try:
        with row.open(lab) as work:
            timings = figures(work, effort)
            return Result(row, timings, work.notes(timings))
    except Skip as why:
        return Result(row, skipped=str(why))
    except Exception as e:  # whatever one row of one driver can raise: the others are still worth having
        return Result(row, failed=" ".join(f"{type(e).__name__}: {e}".split()))


def suite(name):
    """Return the decorator `row` for one suite."""
    return partial(row, name)
