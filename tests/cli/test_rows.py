# SPDX-License-Identifier: Apache-2.0
"""How a row is defined and measured, without any driver."""

import io
import re
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from l0rt.bench import allocator_rows, counts, kernels_rows, reference_rows, replays, report, tour, traces, verdict
from l0rt.bench import command as bench
from l0rt.bench.rows import (
    FEWEST,
    ROWS,
    SMOKE,
    TOUR,
    Budget,
    Effort,
    Figure,
    Note,
    Result,
    Row,
    Skip,
    Work,
    measure,
    row,
)


def made(open, **options):
    return Row("demo.row.c", "demo", "a row", contextmanager(open), Budget(), **options)


def test_a_row_is_measured_with_its_counterparts():
    calls = []

    def loop(name, cost):
        def run(n):
            calls.append((name, n))
            return n * cost

        return run

    def open(lab):
        yield Work(loop("own", 30), loop("raw", 20), loop("beside", 10),
                   notes=lambda figures: {"share": Note(figures["own"].median)})  # fmt: skip

    result = measure(made(open), None, Effort("demo", 3000, 5))
    assert {name: figure.median for name, figure in result.figures.items()} == {"own": 30, "raw": 20, "beside": 10}
    assert len(result.figures["own"].rounds) == 5
    assert result.notes["share"].value == 30
    assert [name for name, _ in calls[-6:]] == ["own", "raw", "beside"] * 2
    assert calls[-3:] == [("own", 100), ("raw", 150), ("beside", 300)]


def test_portions_and_rests():
    seen = []

    def open(lab):
        yield Work(lambda n: seen.append(n) or n * 1.0, n=10, most=4, rest=lambda: seen.append("rest"))

    measure(made(open), None, Effort("demo", 1e6, 1))
    assert seen == [4, "rest", 4, "rest", 2, "rest"] * 2


def test_what_becomes_slow_is_done_less_often():
    done = []

    def open(lab):
        def run(n):
            done.append(n)
            return n * (1.0 if sum(done) < 30000 else 1e6)

        yield Work(run)

    measure(made(open), None, Effort("demo", 1e4, 20))
    assert done[-1] == 1


def test_one_slow_round_does_not_shorten_the_others():
    done = []

    def open(lab):
        def run(n):
            done.append(n)
            return n * (1e6 if len(done) == 12 else 1.0)

        yield Work(run)

    measure(made(open), None, Effort("demo", 1e4, 20))
    assert done[-1] == done[10] > 1000


def test_a_row_that_cannot_be_measured_says_why():
    def skips(lab):
        raise Skip("no such thing here")
        yield

    def fails(lab):
        yield Work(lambda n: 1 // 0)

    assert measure(made(skips), None, SMOKE).skipped == "no such thing here"
    assert measure(made(fails), None, SMOKE).failed.startswith("ZeroDivisionError: ")
    assert measure(made(skips, long=True), None, SMOKE).skipped == "not with --smoke"


def test_it_is_cleaned_up_after_a_failure():
    closed = []

    def fails(lab):
        try:
            yield Work(lambda n: 1 // 0)
        finally:
            closed.append(True)

    assert measure(made(fails), None, SMOKE).failed
    assert closed == [True]


def test_an_id_is_given_once():
    taken = next(iter(ROWS), None)
    if taken is None:
        row("demo", taken := "demo.once.c", "")(None)
    with pytest.raises(ValueError, match="two rows"):
        row("demo", taken, "again")(None)


@pytest.mark.parametrize(
    ("budget", "raw", "limit"),
    [
        (Budget(), 5, None),
        (Budget(ns=10), None, 20),
        (Budget(over_raw=10), 5, 25),
        (Budget(over_raw=10), None, None),
        (Budget(times=(0.5, "other")), None, 50),
        (Budget(times=(0.5, "absent")), None, None),
        (Budget(ns=30, times=(0.5, "other")), None, 50),
    ],
)
def test_budgets(budget, raw, limit):
    assert budget.limit(raw, {"other": 100}, scale=2) == limit


def test_without_a_scale_only_multiples_of_rows_are_budgets():
    assert Budget(ns=1, over_raw=1).limit(5, {}, scale=None) is None
    assert Budget(ns=1, times=(0.5, "other")).limit(None, {"other": 100}, scale=None) == 50


STEADY, BELOW = (66, 66, 66, 66, 66), (80, 90, 95, 99, 170)
ABOUT, ABOVE = (80, 95, 110, 120, 130), (60, 101, 103, 105, 110)  # 100, by quartiles and medians


@pytest.mark.parametrize(
    ("budget", "own", "other", "sign"),
    [
        ({"ns": 100}, BELOW, STEADY, "<="),
        ({"ns": 100}, ABOUT, STEADY, "~"),  # a quarter of the rounds keep it
        ({"ns": 100}, ABOVE, STEADY, ">"),
        ({"over_raw": 34}, BELOW, STEADY, "<="),
        ({"over_raw": 34}, ABOVE, STEADY, ">"),
        ({"over_raw": 34}, ABOVE, (60, 64, 66, 67, 90), "~"),  # what it is compared with may have had a quick run
        ({"times": (1.5, "demo.other.c")}, BELOW, STEADY, "<="),
        ({"times": (1.5, "demo.other.c")}, ABOVE, STEADY, ">"),
        ({"times": (1.5, "demo.other.c")}, ABOVE, (60, 64, 66, 68, 90), "~"),
    ],
)
def test_a_row_is_marked_only_when_it_is_off_by_more_than_the_runs_noise(budget, own, other, sign):
    budgets = {"other": {}, "own": budget}
    rows = [Row(f"demo.{name}.c", "demo", "a row", None, Budget(**said)) for name, said in budgets.items()]
    raw = Figure.of(other)
    results = [Result(rows[0], {"own": raw}), Result(rows[1], {"own": Figure.of(own), "raw": raw})]
    found = {row.id: bench.plain(results[: count + 1]) for count, row in enumerate(rows)}
    out = report.console(io.StringIO())
    bench.show_row(out, rows, rows[1], found)
    assert re.search(r" (\S+) \d+\.?\d* ns$", out.file.getvalue()[:-1])[1] == sign
    whole = {"head": {"device": {"is_software": True}}, "effort": "full", "interrupted": False, "summary": {},
             "rows": found, "scales": {"c": 1, "python": 1}}  # fmt: skip
    assert verdict.sentences(whole)[0].startswith("Good: none of 1 ")  # it was measured once
    found["demo.own.c"] = bench.settled(found["demo.own.c"], found["demo.own.c"])
    said = verdict.sentences(whole)[0]
    assert said.startswith("Good: none of 1 " if sign != ">" else ("Not good: 1 of 1 ", "Not sure: 1 of 1 "))


@pytest.mark.parametrize(
    ("note", "sign"),
    [
        (Note(1.05, "x", 1.06), "<="),
        (Note(1.10, "x", 1.06, noise=0.05), "~"),
        (Note(1.10, "x", 1.06, noise=0.03), ">"),
        (Note(0.98, "x", 0.97, least=True), ">="),
        (Note(0.95, "x", 0.97, least=True, noise=0.03), "~"),
        (Note(0.95, "x", 0.97, least=True, noise=0.01), "<"),
    ],
)
def test_a_further_figure_is_marked_by_its_noise_too(note, sign):
    result = Result(Row("demo.row.c", "demo", "a row", None, Budget()), {"own": Figure.of(STEADY)}, {"share": note})
    row = bench.plain([result])
    found = {"rows": {"demo.row.c": bench.settled(row, row)}, "effort": "full", "summary": {}, "interrupted": False,
             "head": {"device": {"is_software": True}}, "scales": {"c": 1, "python": 1}}  # fmt: skip
    out = report.console(io.StringIO())
    bench.show_rest(out, found)
    assert f" {sign} {note.limit}\n" in out.file.getvalue()
    assert ("Good: none of 1 " in out.file.getvalue()) == (sign not in "<>")


def quick(name, *rounds):
    """Return a row of "streams" whose measurements take so many nanoseconds an operation, one after the other."""
    figures = iter(rounds)

    def open(lab):
        ns = next(figures)
        yield Work(lambda n: n * ns, notes=lambda _: {"share": Note(ns / 100, "x", 0.5)} if "share" in name else {})

    return contextmanager(open)


@pytest.fixture
def planted(monkeypatch):
    """Return what has the bench measure rows that are planted, without a device: name -> open, budget."""
    lab = SimpleNamespace(index=0, memory_kind="ranges", close=lambda: None)
    monkeypatch.setattr(bench, "Lab", lambda: lab)
    monkeypatch.setattr(reference_rows, "scales", lambda figures: {"c": 1, "python": 1})
    head = {
        **report.machine(),
        "date": "2026",
        "driver": {"library": "", "loader": None, "version": "1", "api": "1.0"},
        "device": {"index": 0, "name": "demo", "is_software": True},
        "caveat": None,
    }
    monkeypatch.setattr(report, "head", lambda index: head)

    def run(is_tour, rows, instructions=False):
        made = [Row(id, "streams", "a row", open, Budget(**budget), counts=True) for id, (open, budget) in rows.items()]
        for each in made:
            monkeypatch.setitem(ROWS, each.id, each)
            monkeypatch.setitem(tour.ROWS, each.id, "a row")
        out = report.console(io.StringIO())
        found = bench.run(made, Effort("demo", 1000, 9), instructions, out, is_tour)
        (tour if is_tour else bench).show_rest(out, found)
        return found, out.file.getvalue()

    return run


TWICE = {"times": (1.5, "demo.other.c")}


@pytest.mark.parametrize("is_tour", [True, False])
@pytest.mark.parametrize(
    ("own", "other", "is_exceeded"),
    [
        ((30, 30), (10, 10), True),
        ((30, 12), (10, 10), False),  # a disturbance that has passed
        ((30, 30), (10, 25), False),  # what it is compared with was measured in a quick moment
        ((12,), (10,), False),
    ],
)
def test_a_ratio_is_exceeded_only_if_it_is_so_twice(planted, is_tour, own, other, is_exceeded):
    rows = {"demo.other.c": (quick("other", *other), {}), "demo.own.c": (quick("own", *own), TWICE)}
    found, text = planted(is_tour, rows)
    assert ("demo.own.c (2.00 x)" in text) == is_exceeded
    assert ("exceeded" in text.partition("\nBudgets" if is_tour else "\nNot good")[2]) == is_exceeded
    assert (list(verdict.exceeded(found)) == ["demo.own.c"]) == is_exceeded
    assert ("measured again, for exceeding a budget: 1 row\ndemo.own.c " in text) == (len(own) > 1)
    assert found["rows"]["demo.own.c"].get("before") == (own[0] if len(own) > 1 else None)
    assert found["rows"]["demo.own.c"]["ns"] == own[-1]


@pytest.mark.parametrize("is_tour", [True, False])
@pytest.mark.parametrize(("own", "is_exceeded"), [((60, 60), True), ((60, 40), False)])
def test_a_further_figure_is_exceeded_only_if_it_is_so_twice(planted, is_tour, own, is_exceeded):
    found, text = planted(is_tour, {"demo.share.c": (quick("share", *own), {})})
    assert ("demo.share.c share (1.20 x)" in text) == is_exceeded
    assert (list(verdict.exceeded(found)) == ["demo.share.c share"]) == is_exceeded


def test_nanoseconds_alone_are_never_exceeded_in_the_tour(planted):
    rows = {"demo.own.c": (quick("own", 30, 30, 30), {"ns": 10})}
    found, text = planted(True, rows)
    assert "exceeded" not in text
    assert "budget" not in found["rows"]["demo.own.c"]
    found, text = planted(False, rows)
    assert "Not good: 1 of 1 budget is exceeded, in two measurements" in text
    assert "passed" not in text


@pytest.mark.parametrize(("counted", "is_exceeded"), [((200, 200), True), ((200, 150), False)])
def test_instructions_are_exceeded_only_if_they_are_so_twice(planted, monkeypatch, counted, is_exceeded):
    answers = iter(counted)
    monkeypatch.setattr(counts, "counted", lambda ids, told: {id: next(answers) for id in ids})
    found, text = planted(True, {"demo.own.c": (quick("own", 30), {"instructions": 160})}, instructions=True)
    assert ("demo.own.c instructions (1.25 x)" in text) == is_exceeded
    assert found["rows"]["demo.own.c"]["notes"]["instructions"]["value"] == counted[-1]
    assert re.search(rf"^demo\.own\.c +{counted[-1]} +160$", text, re.MULTILINE)
    assert ("1 of 1 met" in text) != is_exceeded


def test_an_interrupted_second_measurement_exceeds_nothing(planted):
    def open(lab):
        if opened:
            raise KeyboardInterrupt
        opened.append(True)
        yield Work(lambda n: n * 30)

    opened = []
    rows = {"demo.other.c": (quick("other", 10, 10), {}), "demo.own.c": (contextmanager(open), TWICE)}
    found, text = planted(True, rows)
    assert found["interrupted"]
    assert "interrupted while rows were measured again" in text
    assert verdict.exceeded(found) == {}
    assert "1 met" not in text


def test_a_row_that_fails_when_it_is_measured_again_has_failed(planted):
    def open(lab):
        opened.append(True)
        yield Work(lambda n: n * 30 // (2 - len(opened)))

    opened = []
    rows = {"demo.other.c": (quick("other", 10, 10), {}), "demo.own.c": (contextmanager(open), TWICE)}
    found, text = planted(True, rows)
    assert found["rows"]["demo.own.c"]["failed"].startswith("ZeroDivisionError")
    assert "not measured\ndemo.own.c: ZeroDivisionError" in text
    assert "why 1 row failed" in text


def test_the_tour_has_rows_of_each_suite():
    rows = bench.select(tour.ROWS)
    assert [row.id for row in rows] == list(tour.ROWS)
    assert {row.suite for row in rows} == set(bench.SUITES)
    assert 18 <= len(rows) <= 24
    assert not [row.id for row in rows if row.long]
    assert max(map(len, tour.ROWS.values())) <= tour.WIDTH
    nouns = {row.id.partition(".")[0] for row in rows}
    assert nouns >= {"allocator", "stream", "event", "copy", "launch", "graph"}
    assert {id for ids in tour.COSTS.values() for id in ids} | set(tour.CALLS) <= set(tour.ROWS)


def test_the_tour_takes_few_rounds():
    """Half a minute, whatever it measures: rounds are short, and a row whose operation is long takes few of them."""
    loops = 3
    assert len(tour.ROWS) * loops * TOUR.rounds * TOUR.round_ns <= 5e9
    assert len(tour.ROWS) * TOUR.row_ns <= 17e9
    rounds = []

    def open(lab):
        yield Work(lambda n: rounds.append(n) or 1e9, n=1)

    measure(made(open), None, Effort("demo", 1e4, 1000, row_ns=0))
    assert len(rounds) == 1 + FEWEST  # one to warm up


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (None, ""),
        (0, "0.00 ns"),
        (1.234, "1.23 ns"),
        (12.34, "12.3 ns"),
        (99.96, "100 ns"),
        (999.4, "999 ns"),
        (999.6, "1.00 µs"),
        (12345, "12.3 µs"),
        (999_600, "1.00 ms"),
        (3.21e9, "3.21 s"),
    ],
)
def test_times_have_three_digits(ns, text):
    assert report.time_text(ns) == text


def test_a_trace_may_stop_fitting_into_its_limit(monkeypatch):
    answers = iter([5e6, None])

    @contextmanager
    def elsewhere(name, scale):
        yield lambda method, n: next(answers)

    monkeypatch.setattr(replays, "elsewhere", elsewhere)
    lab = SimpleNamespace(memory=1 << 50)
    result = measure(made(lambda lab: allocator_rows.limited(lab, traces.NAMES[0], 1)), lab, SMOKE)
    assert result.skipped == "does not fit into 1.1 times its peak here", result


def refused():
    raise RuntimeError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR")


@pytest.mark.parametrize("get_platforms", [None, list, refused])
def test_launches_are_measured_without_pyopencl_or_its_devices(get_platforms, monkeypatch):
    there = SimpleNamespace(get_platforms=get_platforms, Context=list, CommandQueue=None)
    monkeypatch.setitem(sys.modules, "pyopencl", get_platforms and there)
    loop, finish = kernels_rows.pyopencl_launches()
    assert (loop, finish()) == (None, None)


def test_launches_are_measured_beside_pyopencls(monkeypatch):
    """With a stand-in of pyopencl, as far as the row uses it."""
    launched, finished = [], []

    class Kernel:
        def set_scalar_arg_dtypes(self, types):
            assert types == [None, None, "f4", "u4"]

        def __call__(self, *args):
            launched.append(args)

    def program(context, source):
        assert "kernel void saxpy(" in source
        return SimpleNamespace(build=lambda: SimpleNamespace(saxpy=Kernel()))

    platform = SimpleNamespace(get_devices=lambda: ["device", "another"])
    queue = SimpleNamespace(finish=lambda: finished.append(1), context=["device"])
    stand_in = SimpleNamespace(
        get_platforms=lambda: [platform],
        Context=list,
        CommandQueue=lambda context: queue,
        Program=program,
        Buffer=lambda context, flags, size: size,
        mem_flags=SimpleNamespace(READ_WRITE=1),
    )
    monkeypatch.setitem(sys.modules, "pyopencl", stand_in)
    loop, finish = kernels_rows.pyopencl_launches()
    assert loop(3) > 0
    finish()
    assert launched == 3 * [(queue, (1,), (1,), 4, 4, 0.0, 1)]
    assert finished == [1]
