# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench`: run rows, print them next to the raw driver's cost and the budgets, keep them as plain values."""

from fnmatch import fnmatchcase
from math import exp, log

from rich.text import Text

from l0rt.bench import (
    allocator_rows,
    counts,
    graphs_rows,
    history_rows,  # noqa: F401 - defines rows
    interop_rows,
    kernels_rows,
    reference_rows,
    replays,
    report,
    streams_rows,
    tour,
    traces,
    verdict,
)
from l0rt.bench.allocator_rows import HELD, HELD_IN_STEPS, SMALLEST
from l0rt.bench.lab import Lab
from l0rt.bench.rows import ROWS, SMOKE, Note, Result, measure

FORMAT = 1  # of the JSON; a reader refuses another
SUITES = {
    "reference": reference_rows,
    "allocator": allocator_rows,
    "streams": streams_rows,
    "kernels": kernels_rows,
    "graphs": graphs_rows,
    "interop": interop_rows,
}
SHARES = (HELD, SMALLEST, HELD_IN_STEPS)  # of a trace's peak: notes that a summary is made of
COLUMNS, WIDTHS = ("median", "min", "raw", "ratio", "budget"), (7, 7, 7, 6, 10)
LEGEND = (
    "raw: the same call in C on the same driver; ratio: median / raw",
    "budget: scaled to this machine by the reference rows; <= met; ~ exceeded by no",
    "more than this run's noise, or in one of two measurements; > exceeded by more",
)


class UnknownRows(Exception):
    """What was asked for names no row; the text says what there is."""


def select(words):
    """Return the rows that suites, IDs and patterns of IDs name, the reference rows first.

    A row whose budget is a multiple of another's time brings that one along.
    """
    ids = set()
    for word in words:
        matches = {row.id for row in ROWS.values() if word == row.suite or fnmatchcase(row.id, word)}
        if not matches:
            suites = ", ".join(name for name in SUITES if name != "reference")
            raise UnknownRows(f"no row is called {word!r}: expected {suites}, or IDs such as 'event.*'")
        ids |= matches
    ids |= {row.budget.times[1] for row in ROWS.values() if row.id in ids and row.budget.times}
    order = list(SUITES)
    return sorted((row for row in ROWS.values() if row.id in ids), key=lambda row: order.index(row.suite))


def run(rows, effort, instructions=False, out=None, is_tour=False):
    """Measure rows, and if asked for their instructions; return the report as plain values.

    Each row is printed to ``out`` when it is measured. What exceeds its budget is measured again, after all others.
    Ctrl-C ends the measuring; the report has what was finished.
    """
    lab = Lab()
    results: list[Result] = []
    record = {
        "format": FORMAT,
        "head": report.head(lab.index),
        "effort": effort.name,
        "tour": is_tour,
        "interrupted": False,
        "rows": {},
        "summary": {},
    }

    def sums():
        return {} if is_tour else summary(results, lab.memory_kind)

    try:
        try:
            if out:
                report.put(out, report.facts(report.head_facts(record["head"])))
            with report.progress(out) as bar:
                for row in _in_turn(rows, lab, effort, results, bar):
                    record["rows"][row.id] = plain(results, is_tour)
                    if out:
                        (tour.show_row if is_tour else show_row)(out, rows, row, record["rows"])
                record["summary"] = sums()
                if effort is not SMOKE:
                    _repeat(rows, lab, effort, record, bar, out)
                if instructions:
                    _count(rows, record, bar, out)
        except KeyboardInterrupt:
            record["interrupted"] = True
            record["summary"] = record["summary"] or sums()
        record["unmeasured"] = [row.id for row in rows if row.id not in record["rows"]]
        record["scales"] = reference_rows.scales({result.row.id: result.median("own") for result in results})
    finally:
        lab.close()
    return record


def _in_turn(rows, lab, effort, results, bar):
    """Measure rows one after the other: each Result is appended to ``results``, and its row yielded."""
    task = bar.add_task("", total=len(rows))
    for row in rows:
        bar.update(task, description=row.id, refresh=True)
        results.append(measure(row, lab, effort))
        yield row
        bar.advance(task)
    bar.remove_task(task)


def _repeat(rows, lab, effort, record, bar, out):
    """Measure again what exceeded its budget, with what the budgets depend on: a burst of other work has passed."""
    is_tour, measured = record["tour"], {id: row for id, row in record["rows"].items() if "ns" in row}
    modes = [
        mode for mode in replays.MODES if any(_is_missed(record["summary"][name]) for name in _names(mode, record))
    ]
    missed = {id for id, row in measured.items() if _is_missed(row) or any(map(_is_missed, row["notes"].values()))}
    missed |= {id for id, row in measured.items() if row["notes"].keys() & {*SHARES} and mode_of(id) in modes}
    if not missed:
        return
    if out:
        report.put(out)
        report.put_lines(out, [f"measured again, for exceeding a budget: {verdict.counted(len(missed), 'row')}"])
    results: list[Result] = []
    for row in _in_turn(select(missed if is_tour else {"reference", *missed}), lab, effort, results, bar):
        if row.id in missed:
            record["rows"][row.id] = settled(record["rows"][row.id], plain(results, is_tour))
            if out:
                (tour.show_line if is_tour else show_line)(out, rows, row, record["rows"][row.id])
    again = summary(results, lab.memory_kind)
    for mode in modes:
        for name in _names(mode, record):
            if name in again:  # not where each replay failed the second time
                record["summary"][name] = settled(record["summary"][name], again[name])


def _is_missed(figure):
    return not figure.get("within", True)


def settled(first, second):
    """Return a row, or a note, as it was measured again: what met its budget once has met it."""
    if "failed" in second:  # or skipped: there is no second figure
        return second if second["failed"] else first
    row = {**second, "before": first["value"] if "value" in first else first["ns"]}
    if "within" in second:
        row["within"] = second["within"] or first.get("within", True)
    if "notes" in second:
        notes = first["notes"]
        row["notes"] = {
            name: settled(notes[name], note) if name in notes else note for name, note in second["notes"].items()
        }
    return row


def _count(rows, record, bar, out):
    """Put instruction counts into a report, or why there are none; those above their budget are counted again."""
    ids = [row.id for row in rows if row.counts and "ns" in record["rows"][row.id]]
    if not ids:
        record["uncounted"] = "no instruction counts: only rows of the allocator have them"
        return
    task = bar.add_task("", total=len(ids))

    def advance(id):
        bar.update(task, description=f"instructions of {id}", advance=1, refresh=True)

    if out:
        report.put(out)
        report.put_lines(out, [f"counting the instructions of {len(ids)} rows under valgrind"])
    try:
        _put_counts(record, counts.counted(ids, advance))
        missed = [id for id in ids if _is_missed(record["rows"][id]["notes"].get("instructions", {}))]
        if missed:
            _put_counts(record, counts.counted(missed, advance))
    except counts.Missing as why:
        record["uncounted"] = str(why)


def _put_counts(record, counted):
    for id, count in counted.items():
        notes = record["rows"][id]["notes"]
        note = _plain_note(Note(round(count), "", ROWS[id].budget.instructions))
        notes["instructions"] = settled(notes["instructions"], note) if "instructions" in notes else note


def plain(results, is_tour=False):
    """Return the last of some results as plain values; the results before it determine its budget.

    In the tour only budgets that are ratios count: nanoseconds of another machine mean nothing to a stranger.
    """
    result = results[-1]
    row = result.row
    entry = {"suite": row.suite, "what": row.what, "long": row.long}
    if result.skipped or result.failed:
        return {**entry, "skipped": result.skipped, "failed": result.failed}
    own, raw = result.figures["own"], result.median("raw")
    entry.update(ns=own.median, min=own.least, rounds=list(own.rounds))
    for name in ("raw", "beside"):
        if name in result.figures:
            figure = result.figures[name]
            entry[name] = {"ns": figure.median, "min": figure.least, "rounds": list(figure.rounds)}
    if raw:
        entry.update(ratio=own.median / raw, over_raw=own.median - raw)
    limit = _limit(results, "median", is_tour)
    if limit is not None:
        # Exceeded for certain: the lower quartile is above the budget that upper quartiles make. In the tour, which
        # also runs on machines that are busy, even the quickest round is.
        low = own.least if is_tour else own.quartiles[0]
        within = low <= max(limit, _limit(results, "upper", is_tour))
        entry.update(budget=limit, within=own.median <= limit or within)
    entry["notes"] = {name: _plain_note(note) for name, note in result.notes.items()}
    return entry


def _limit(results, figure, is_tour):
    """Return the budget of the last result, computed from the medians or the upper quartiles of its parts."""
    last, values = results[-1], {result.row.id: getattr(result, figure)("own") for result in results}
    scale = None if is_tour else reference_rows.scales(values)[last.row.id.rpartition(".")[2]]
    return last.row.budget.limit(getattr(last, figure)("raw"), values, scale)


def _plain_note(note):
    entry = {"value": note.value, "unit": note.unit}
    if note.limit is not None:
        within = note.value + note.noise >= note.limit if note.least else note.value - note.noise <= note.limit
        entry.update(limit=note.limit, least=note.least, within=within)
    return entry


def summary(results, kind):
    """Return figures that several rows give together, where memory comes in this ``kind`` by default: name -> note.

    It has a budget if all traces were replayed.
    """
    notes = {}
    for mode in replays.MODES:
        limit = None if (mode or kind) == "torch" else 1.06 if (mode or kind) == "ranges" else 1.12
        for share in SHARES:
            values = [r.notes[share].value for r in results if share in r.notes and mode_of(r.row.id) == mode]
            if values:
                mean = exp(sum(map(log, values)) / len(values))
                name = _name(share, mode)
                most = 1.10 if share == HELD_IN_STEPS and limit is not None else limit
                most = most if len(values) == 2 * len(traces.NAMES) else None
                notes[name] = _plain_note(Note(mean, "x", most))
    return notes


def _name(share, mode):
    return f"{share}{mode and f', {mode}'}, geometric mean"


def _names(mode, record):
    """Return the names of what a report's summary says of a mode of replays."""
    return [name for share in SHARES if (name := _name(share, mode)) in record["summary"]]


def mode_of(id):
    """Return the mode that a trace's row was replayed in; its ID has it before the language."""
    word = id.split(".")[-2]
    return word if word in replays.MODES else ""


def show_row(out, rows, row, entries):
    """Print the row that was measured last, below the name of its suite if it is the first of that."""
    if "ns" not in entries[row.id]:
        return
    if not any(other["suite"] == row.suite and "ns" in other for id, other in entries.items() if id != row.id):
        report.put(out)
        report.put(out, report.row_table(out, _widths(rows), row.suite, *COLUMNS, style="bold"))
    show_line(out, rows, row, entries[row.id])


def _widths(rows):
    return max(len(row.id) for row in rows), *WIDTHS


def show_line(out, rows, row, entry):
    """Print one row."""
    if "ns" not in entry:
        return
    raw = entry.get("raw", {}).get("ns")
    texts = (
        row.id,
        report.time_text(entry["ns"]),
        report.time_text(entry["min"]),
        report.time_text(raw),
        report.digits(entry["ratio"]) if raw else "",
        _limit_text(entry["ns"] <= entry["budget"], entry, "<=", ">", report.time_text(entry["budget"]))
        if "budget" in entry
        else "",
    )
    report.put(out, report.row_table(out, _widths(rows), *texts))


def _limit_text(is_met, figure, met_sign, exceeded_sign, text):
    """Return a budget and how it was met; ``~`` says that it was exceeded by no more than noise, red that it was
    exceeded twice."""
    sign = met_sign if is_met else "~" if figure["within"] else exceeded_sign
    return Text(f"{sign} {text}", style="bold red" if verdict.is_exceeded(figure) else "")


def show_rest(out, record):
    """Print what follows the rows: further figures, what could not be measured, and the verdict."""
    notes = _notes(record)
    if notes.row_count:
        report.put(out)
        report.put(out, notes)
    if "uncounted" in record:
        report.put(out)
        report.put_lines(out, [record["uncounted"]])
    report.put_missing(out, record)
    report.put(out)
    report.put_lines(out, [f"{record['effort']}: medians of at most {_round_count(record)} rounds", *LEGEND])
    report.put(out)
    report.put_lines(out, verdict.sentences(record))


def _round_count(record):
    return max((len(row["rounds"]) for row in record["rows"].values() if "ns" in row), default=0)


def _notes(record):
    table = report.table("further figures", "value", "budget")
    for id, row in [*record["rows"].items(), ("all traces", {"notes": record["summary"]})]:
        for name, note in row.get("notes", {}).items():
            table.add_row(f"{id} {name}", report.note_text(note), _note_limit(note))
    return table


def _note_limit(note):
    if "limit" not in note:
        return ""
    value, limit = note["value"], note["limit"]
    if note["least"]:
        return _limit_text(value >= limit, note, ">=", "<", f"{limit}")
    return _limit_text(value <= limit, note, "<=", ">", f"{limit}")
