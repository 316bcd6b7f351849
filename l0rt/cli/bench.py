"""`l0rt bench`: run rows, print them next to the raw driver's cost and the budgets, keep them as JSON, compare."""

import json
from math import exp, log
from pathlib import Path

from rich.text import Text

from l0rt.cli import allocator_rows, counts, reference_rows, replays, report, streams_rows
from l0rt.cli.allocator_rows import HELD, SMALLEST
from l0rt.cli.lab import Lab
from l0rt.cli.rows import ROWS, Note, measure

FORMAT = 1  # of the JSON; a reader refuses another
SUITES = {"reference": reference_rows, "allocator": allocator_rows, "streams": streams_rows}
LEGEND = (
    "raw: the same call in C on the same driver; ratio: median / raw",
    "budget: scaled to this machine by the reference rows; > where it is passed",
)


class BadReport(Exception):
    """A file is no report of `l0rt bench`; the text says why."""


def chosen(suites):
    """Return the rows of some suites, in the order of their definition."""
    return [row for row in ROWS.values() if row.suite in suites]


def run(suites, effort, instructions=False):
    """Measure the rows of some suites, and if asked for their instructions; return the report as plain values."""
    lab = Lab()
    rows, results = chosen({"reference", *suites}), []
    try:
        with report.progress(len(rows)) as bar:
            task = bar.add_task("", total=len(rows))
            for row in rows:
                bar.update(task, description=row.id, refresh=True)
                results.append(measure(row, lab, effort))
                bar.advance(task)
        found = {
            "format": FORMAT,
            "head": report.head(lab.index),
            "effort": effort.name,
            "rows": plain(results),
            "summary": summary(results, lab.capabilities),
        }
    finally:
        lab.close()
    if instructions:
        count(rows, found)
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
    """Return id -> what came of the row, as plain values."""
    own = {result.row.id: result.median("own") for result in results}
    scales = reference_rows.scales(own)
    return {result.row.id: _plain(result, own, scales) for result in results}


def _plain(result, own, scales):
    row = result.row
    found = {"suite": row.suite, "what": row.what, "long": row.long}
    if result.skipped or result.failed:
        return {**found, "skipped": result.skipped, "failed": result.failed}
    ns, raw = own[row.id], result.median("raw")
    limit = row.budget.limit(raw, own, scales[row.id.rpartition(".")[2]])
    found.update(ns=ns, min=result.figures["own"].least, rounds=list(result.figures["own"].rounds))
    for name in ("raw", "beside"):
        if name in result.figures:
            figure = result.figures[name]
            found[name] = {"ns": figure.median, "min": figure.least, "rounds": list(figure.rounds)}
    if raw:
        found.update(ratio=ns / raw, over_raw=ns - raw)
    if limit is not None:
        found.update(budget=limit, within=ns <= limit)
    found["notes"] = {name: _plain_note(note) for name, note in result.notes.items()}
    return found


def _plain_note(note):
    found = {"value": note.value, "unit": note.unit}
    if note.limit is not None:
        within = note.value >= note.limit if note.least else note.value <= note.limit
        found.update(limit=note.limit, least=note.least, within=within)
    return found


def summary(results, capabilities):
    """Return what only several rows tell together: name -> note."""
    found = {}
    for mode in replays.MODES:
        limit = None if mode == "torch" else 1.06 if mode == "" and capabilities.get("vmm") else 1.12
        for share in (HELD, SMALLEST):
            values = [r.notes[share].value for r in results if share in r.notes and mode_of(r.row.id) == mode]
            if values:
                mean = exp(sum(map(log, values)) / len(values))
                name = f"{share}{mode and f', {mode}'}, geometric mean"
                found[name] = _plain_note(Note(mean, "x", limit))
    return found


def mode_of(id):
    """Return the mode that a trace's row was replayed in; its ID has it before the language."""
    word = id.split(".")[-2]
    return word if word in replays.MODES else ""


def show(found, out):
    """Print a report: the head, a table for each suite, further figures, and what could not be measured."""
    report.put(out, report.facts(report.head_facts(found["head"])))
    for suite in SUITES:
        rows = {id: row for id, row in found["rows"].items() if row["suite"] == suite}
        measured = {id: row for id, row in rows.items() if "ns" in row}
        if measured:
            report.put(out)
            report.put(out, _times(suite, measured))
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


def _round_count(found):
    return max((len(row["rounds"]) for row in found["rows"].values() if "ns" in row), default=0)


def _times(suite, rows):
    made = report.table(suite, "median", "min", "raw", "ratio", "budget")
    for id, row in rows.items():
        raw = row.get("raw", {}).get("ns")
        made.add_row(
            id,
            report.time_text(row["ns"]),
            report.time_text(row["min"]),
            report.time_text(raw),
            report.digits(row["ratio"]) if raw else "",
            report.limit_text(report.time_text(row["budget"]), row["within"]) if "budget" in row else "",
        )
    return made


def _notes(found):
    made = report.table("further figures", "value", "budget")
    for id, row in [*found["rows"].items(), ("all traces", {"notes": found["summary"]})]:
        for name, note in row.get("notes", {}).items():
            made.add_row(f"{id} {name}", note_text(note), _note_limit(note))
    return made


def note_text(note):
    """Return the value of a note with its unit."""
    value, unit = note["value"], note["unit"]
    return f"{value:,}" if isinstance(value, int) else f"{report.digits(value)} {unit}"


def _note_limit(note):
    if "limit" not in note:
        return ""
    if note["least"]:
        sign = ">=" if note["within"] else "<"
        return Text(f"{sign} {note['limit']}", style="" if note["within"] else "bold red")
    return report.limit_text(f"{note['limit']}", note["within"])


def load(path):
    """Return the report in a file; BadReport says why it is none."""
    try:
        found = json.loads(Path(path).read_text())
    except OSError as e:
        raise BadReport(f"{path}: {e.strerror or e}") from None
    except ValueError:
        raise BadReport(f"{path} is not JSON") from None
    try:
        if found["format"] != FORMAT:
            raise BadReport(f"{path} is not a report that this version can read")
        title("", found), figures_of(found)
    except (KeyError, TypeError, AttributeError):
        raise BadReport(f"{path} is not a report of `l0rt bench --json`") from None
    return found


def figures_of(found):
    """Return name -> (value, text) for every figure of a report: the rows by ID, their notes after it."""
    figures = {id: (row["ns"], report.time_text(row["ns"])) for id, row in found["rows"].items() if "ns" in row}
    for id, row in found["rows"].items():
        figures.update(
            {f"{id} {name}": (note["value"], note_text(note)) for name, note in row.get("notes", {}).items()}
        )
    return figures


def title(name, found):
    """Return the lines that say which report this is."""
    head = found["head"]
    note = f" *** {head['caveat']} ***" if head["caveat"] else ""
    return [
        f"{name}: l0rt {head['l0rt']}, {head['date']}, {found['effort']}",
        f"   {head['device']['name']}, driver {head['driver']['version']}{note}",
        f"   {head['machine']['cpu']}, {head['machine']['cores']} cores",
    ]


def compare(a, b, out):
    """Print two reports' figures next to each other, with their ratios, and name what is only in one."""
    report.put_lines(out, [*title("A", a), *title("B", b)])
    ours, theirs = figures_of(a), figures_of(b)
    made = report.table("", "A", "B", "B/A")
    for name, (value, text) in ours.items():
        if name in theirs:
            other, other_text = theirs[name]
            made.add_row(name, text, other_text, report.digits(other / value) if value else "")
    report.put(out)
    report.put(out, made)
    for name, only in (("A", ours.keys() - theirs.keys()), ("B", theirs.keys() - ours.keys())):
        if only:
            report.put(out)
            report.put_lines(out, [f"only in {name}", *(f"  {id}" for id in sorted(only))])
