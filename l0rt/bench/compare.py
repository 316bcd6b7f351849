# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench compare`: read two reports, which may be damaged, and say which figures differ by more than noise."""

import json
import os
import stat

from rich.text import Text

from l0rt.bench import report
from l0rt.bench.command import FORMAT
from l0rt.bench.rows import quartiles

LARGEST_FILE = 16 << 20  # bytes; a report of all rows has a tenth of that
LARGEST_NUMBER = 1e18  # nanoseconds: thirty years
MOST_LISTED = 20  # figures that one report has alone: a tour has a sixth of what all rows have
ALIKE, FASTER, SLOWER = "", "less", "more"


class BadReport(Exception):
    """A file is not a report of `l0rt bench`; the text says why."""


def load(path):
    """Return the report in a file; BadReport says why it is not one. Everything in it is checked."""
    try:
        record = json.loads(_content(path))
    except OSError as e:
        raise BadReport(f"{path!r}: {e.strerror or e}") from None
    except (ValueError, RecursionError):
        raise BadReport(f"{path!r} is not JSON") from None
    _check(record, path)
    try:
        if record["format"] != FORMAT:
            raise BadReport(f"{path!r} is not a report that this version can read")
        title("", record)
        for value, text, low, high in figures_of(record).values():
            if not (0 <= low <= high and value >= 0 and text):
                raise ValueError
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        raise BadReport(f"{path!r} is not a report of `l0rt bench --json`") from None
    return record


def _content(path):
    """Return the bytes of a regular file: a device or a pipe may never end, or never begin."""
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise BadReport(f"{path!r} is not a file")
        content = file.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise BadReport(f"{path!r} is not a report: it has more than {report.size_text(LARGEST_FILE)}")
    return content


def _check(value, path):
    """Refuse what a report never contains: control characters, NaN, and impossible numbers."""
    if isinstance(value, str):
        if not value.isprintable():
            raise BadReport(f"{path!r} is not a report: it has control characters")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check(key, path)
            _check(inner, path)
    elif isinstance(value, list):
        for inner in value:
            _check(inner, path)
    elif isinstance(value, (int, float)) and not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
        raise BadReport(f"{path!r} is not a report: it has numbers beyond {LARGEST_NUMBER:.0e}")


def figures_of(record):
    """Return name -> (value, text, low, high) for every figure: the rows by ID, their notes after it.

    ``low`` and ``high`` are the quartiles of a row's rounds; a note is one value.
    """
    figures = {}
    for id, row in record["rows"].items():
        if "ns" in row:
            figures[id] = (row["ns"], report.time_text(row["ns"]), *quartiles(row["rounds"]))
    for id, row in record["rows"].items():
        for name, note in row.get("notes", {}).items():
            value = note["value"]
            figures[f"{id} {name}"] = (value, report.note_text(note), value, value)
    return figures


def title(name, record):
    """Return the lines that say which report this is."""
    head = record["head"]
    note = f" *** {head['caveat']} ***" if head["caveat"] else ""
    cut = ", interrupted" if record.get("interrupted") else ""
    return [
        f"{name}: l0rt {head['l0rt']}, {head['date']}, {record['effort']}{cut}",
        f"   {head['device']['name']}, driver {head['driver']['version']}{note}",
        f"   {head['machine']['cpu']}, {head['machine']['cores']} cores",
    ]


def change(ours, theirs, timed):
    """Return whether B's figure is less or more than A's beyond their noise.

    Times differ where the middle halves of their rounds do not meet and the medians are more than 2 % apart; what was
    counted differs where it is more than 2 % apart.
    """
    (a, _, a_low, a_high), (b, _, b_low, b_high) = ours, theirs
    if abs(b - a) <= 0.02 * a or (timed and a_low <= b_high and b_low <= a_high):
        return ALIKE
    return FASTER if b < a else SLOWER


def compare(a, b, out):
    """Print two reports' figures next to each other, say which differ by more than noise, and what only one has."""
    report.put_lines(out, [*title("A", a), *title("B", b)])
    ours, theirs = figures_of(a), figures_of(b)
    table, changes = report.table("", "A", "B", "B/A", "B is"), {}
    for name in ours:
        if name in theirs:
            (value, text, *_), (other, other_text, *_) = ours[name], theirs[name]
            timed = name in a["rows"]
            changes[name] = word = change(ours[name], theirs[name], timed)
            label = {FASTER: "faster", SLOWER: "slower"}[word] if word and timed else word
            style = {FASTER: "green", SLOWER: "red"}.get(word, "") if timed else ""
            ratio = report.digits(other / value) if value else ""
            table.add_row(name, text, other_text, ratio, Text(label, style=style))
    report.put(out)
    report.put(out, table)
    for name, only in (("A", ours.keys() - theirs.keys()), ("B", theirs.keys() - ours.keys())):
        if only:
            report.put(out)
            lines = [f"  {id}" for id in sorted(only)] if len(only) <= MOST_LISTED else [f"  {len(only)} figures"]
            report.put_lines(out, [f"only in {name}", *lines])
    report.put(out)
    report.put_lines(out, sentences(a, b, {name: word for name, word in changes.items() if name in a["rows"]}))


def sentences(a, b, changes):
    """Return the last lines: how many times differ, whether the reports can be compared, and what to do."""
    slower, faster = list(changes.values()).count(SLOWER), list(changes.values()).count(FASTER)
    if not changes:
        return ["The reports have no row in common."]
    lines = [
        f"Of {len(changes)} times {slower} are slower in B and {faster} faster by more than their noise: the middle "
        "halves of the rounds do not meet, and the medians are more than 2 % apart."
    ]
    places = [(r["head"]["device"]["name"], r["head"]["machine"], r["effort"]) for r in (a, b)]
    if places[0] != places[1]:
        lines.append("They are of different devices, machines or efforts: a difference need not come from l0rt.")
    if slower or faster:
        lines.append("Measure both again, in turns, before you believe a difference: machines change their pace.")
    return lines
