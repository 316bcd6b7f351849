# SPDX-License-Identifier: Apache-2.0
"""How a row is defined and measured, without any driver."""

import io
import re
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from l0rt.cli import allocator_rows, bench, kernels_rows, replays, report, traces, verdict
from l0rt.cli.rows import ROWS, SMOKE, Budget, Effort, Figure, Note, Result, Row, Skip, Work, measure, row


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
    whole = {"head": {"device": {"is_software": True}}, "effort": "quick", "interrupted": False, "summary": {}}
    said = verdict.sentences({**whole, "rows": found, "scales": {"c": 1, "python": 1}})[0]
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
    found = {"rows": {"demo.row.c": bench.plain([result])}, "effort": "quick", "summary": {}, "interrupted": False,
             "head": {"device": {"is_software": True}}, "scales": {"c": 1, "python": 1}}  # fmt: skip
    out = report.console(io.StringIO())
    bench.show_rest(out, found)
    assert f" {sign} {note.limit}\n" in out.file.getvalue()
    assert ("Good: none of 1 " in out.file.getvalue()) == (sign not in "<>")


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
