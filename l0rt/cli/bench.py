# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench`: run rows, print them next to the raw driver's cost and the budgets, keep them as plain values."""

from fnmatch import fnmatchcase
from math import exp, log

from rich.text import Text

from l0rt.cli import (
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
    verdict,
)
from l0rt.cli.allocator_rows import HELD, HELD_IN_STEPS, SMALLEST
from l0rt.cli.lab import Lab
from l0rt.cli.rows import ROWS, Note, measure

FORMAT = 1  # of the JSON; a reader refuses another
SUITES = {
    "reference": reference_rows,
    "allocator": allocator_rows,
    "streams": streams_rows,
    "kernels": kernels_rows,
    "graphs": graphs_rows,
    "interop": interop_rows,
}
COLUMNS, WIDTHS = ("median", "min", "raw", "ratio", "budget"), (7, 7, 7, 6, 10)
LEGEND = (
    "raw: the same call in C on the same driver; ratio: median / raw",
    "budget: scaled to this machine by the reference rows; ~ passed, but by no more",
    "than this run's noise; > passed by more",
)


class UnknownRows(Exception):
    """What was asked for names no row; the text says what there is."""


def chosen(words):
    """Return the rows that suites, IDs and patterns of IDs name, the reference rows first.

    A row whose budget is a multiple of another's time brings that one along.
    """
    wanted = set()
    for word in words:
        found = {row.id for row in ROWS.values() if word == row.suite or fnmatchcase(row.id, word)}
        if not found:
            suites = ", ".join(name for name in SUITES if name != "reference")
            raise UnknownRows(f"no row is called {word!r}: expected {suites}, or IDs such as 'event.*'")
        wanted |= found
    wanted |= {row.budget.times[1] for row in ROWS.values() if row.id in wanted and row.budget.times}
    order = list(SUITES)
    return sorted((row for row in ROWS.values() if row.id in wanted), key=lambda row: order.index(row.suite))


def run(rows, effort, instructions=False, out=None):
    """Measure rows, and if asked for their instructions; return the report as plain values.

    Each row is printed to ``out`` when it is measured. Ctrl-C ends the measuring; the report has what was finished.
    """
    lab, results = Lab(), []
    found = {
        "format": FORMAT,
        "head": report.head(lab.index),
        "effort": effort.name,
        "interrupted": False,
        "rows": {},
    }
    try:
        try:
            if out:
                report.put(out, report.facts(report.head_facts(found["head"])))
            with report.progress(out) as bar:
                task = bar.add_task("", total=len(rows))
                for row in rows:
                    bar.update(task, description=row.id, refresh=True)
                    results.append(measure(row, lab, effort))
                    found["rows"][row.id] = plain(results)
                    if out:
                        show_row(out, rows, row, found["rows"])
                    bar.advance(task)
            if instructions:
                count(rows, found)
        except KeyboardInterrupt:
            found["interrupted"] = True
        found["unmeasured"] = [row.id for row in rows if row.id not in found["rows"]]
        found["scales"] = reference_rows.scales({result.row.id: result.median("own") for result in results})
        found["summary"] = summary(results, lab.memory_kind)
    finally:
        lab.close()
    return found


def count(rows, found):
    """Put instruction counts into a report, or why there are none."""
    measured = [row for row in rows if row.counts and "ns" in found["rows"][row.id]]
    if not measured:
        found["uncounted"] = "no instruction counts: only rows of the allocator have them"
        return
    try:
        counted = counts.counted([row.id for row in measured])
    except counts.Missing as why:
        found["uncounted"] = str(why)
        return
    for row in measured:
        if row.id in counted:
            found["rows"][row.id]["notes"]["instructions"] = _plain_note(
                Note(round(counted[row.id]), "", row.budget.instructions)
            )


def plain(results):
    """Return the last of some results as plain values; the results before it determine its budget."""
    result = results[-1]
    row = result.row
    found = {"suite": row.suite, "what": row.what, "long": row.long}
    if result.skipped or result.failed:
        return {**found, "skipped": result.skipped, "failed": result.failed}
    own, raw = result.figures["own"], result.median("raw")
    found.update(ns=own.median, min=own.least, rounds=list(own.rounds))
    for name in ("raw", "beside"):
        if name in result.figures:
            figure = result.figures[name]
            found[name] = {"ns": figure.median, "min": figure.least, "rounds": list(figure.rounds)}
    if raw:
        found.update(ratio=own.median / raw, over_raw=own.median - raw)
    limit = _limit(results, "median")
    if limit is not None:
        # Passed for certain: the lower quartile is above the budget that upper quartiles make.
        within = own.quartiles[0] <= max(limit, _limit(results, "upper"))
        found.update(budget=limit, within=own.median <= limit or within)
    found["notes"] = {name: _plain_note(note) for name, note in result.notes.items()}
    return found


def _limit(results, figure):
    """Return the budget of the last result, computed from the medians or the upper quartiles of its parts."""
    last, values = results[-1], {result.row.id: getattr(result, figure)("own") for result in results}
    scale = reference_rows.scales(values)[last.row.id.rpartition(".")[2]]
    return last.row.budget.limit(getattr(last, figure)("raw"), values, scale)


def _plain_note(note):
    found = {"value": note.value, "unit": note.unit}
    if note.limit is not None:
        within = note.value + note.noise >= note.limit if note.least else note.value - note.noise <= note.limit
        found.update(limit=note.limit, least=note.least, within=within)
    return found


def summary(results, kind):
    """Return what only several rows tell together, where memory comes in this ``kind`` by default: name -> note."""
    found = {}
    for mode in replays.MODES:
        limit = None if (mode or kind) == "torch" else 1.06 if (mode or kind) == "ranges" else 1.12
        for share in (HELD, SMALLEST, HELD_IN_STEPS):
            values = [r.notes[share].value for r in results if share in r.notes and mode_of(r.row.id) == mode]
            if values:
                mean = exp(sum(map(log, values)) / len(values))
                name = f"{share}{mode and f', {mode}'}, geometric mean"
                most = 1.10 if share == HELD_IN_STEPS and limit is not None else limit
                found[name] = _plain_note(Note(mean, "x", most))
    return found


def mode_of(id):
    """Return the mode that a trace's row was replayed in; its ID has it before the language."""
    word = id.split(".")[-2]
    return word if word in replays.MODES else ""


def show_row(out, rows, row, found):
    """Print the row that was measured last, below the name of its suite if it is the first of that."""
    said, widths = found[row.id], (max(len(row.id) for row in rows), *WIDTHS)
    if "ns" not in said:
        return
    if not any(other["suite"] == row.suite and "ns" in other for id, other in found.items() if id != row.id):
        report.put(out)
        report.put(out, report.row_table(out, widths, row.suite, *COLUMNS, style="bold"))
    raw = said.get("raw", {}).get("ns")
    texts = (
        row.id,
        report.time_text(said["ns"]),
        report.time_text(said["min"]),
        report.time_text(raw),
        report.digits(said["ratio"]) if raw else "",
        _limit_text(said["ns"] <= said["budget"], said["within"], "<=", ">", report.time_text(said["budget"]))
        if "budget" in said
        else "",
    )
    report.put(out, report.row_table(out, widths, *texts))


def _limit_text(kept, within, kept_sign, passed_sign, text):
    """Return a budget as it was kept; ``~`` says that it was passed by no more than the noise."""
    sign = kept_sign if kept else "~" if within else passed_sign
    return Text(f"{sign} {text}", style="" if within else "bold red")


def show_rest(out, found):
    """Print what follows the rows: further figures, what could not be measured, and the verdict."""
    notes = _notes(found)
    if notes.row_count:
        report.put(out)
        report.put(out, notes)
    if "uncounted" in found:
        report.put(out)
        report.put_lines(out, [found["uncounted"]])
    missing = [f"{id}: {row.get('failed') or row['skipped']}" for id, row in found["rows"].items() if "ns" not in row]
    if missing:
        report.put(out)
        report.put_lines(out, ["not measured", *missing])
    report.put(out)
    report.put_lines(out, [f"{found['effort']}: medians of at most {_round_count(found)} rounds", *LEGEND])
    report.put(out)
    report.put_lines(out, verdict.sentences(found))


def _round_count(found):
    return max((len(row["rounds"]) for row in found["rows"].values() if "ns" in row), default=0)


def _notes(found):
    made = report.table("further figures", "value", "budget")
    for id, row in [*found["rows"].items(), ("all traces", {"notes": found["summary"]})]:
        for name, note in row.get("notes", {}).items():
            made.add_row(f"{id} {name}", report.note_text(note), _note_limit(note))
    return made


def _note_limit(note):
    if "limit" not in note:
        return ""
    value, limit = note["value"], note["limit"]
    if note["least"]:
        return _limit_text(value >= limit, note["within"], ">=", "<", f"{limit}")
    return _limit_text(value <= limit, note["within"], "<=", ">", f"{limit}")
