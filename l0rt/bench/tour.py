# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench` without words: some twenty rows of all suites, and what l0rt costs beside the raw driver, in a table."""

from rich.text import Text

from l0rt.bench import report, verdict

# None waits for a copy or a kernel: on a busy machine the wake-up of a thread takes more than all else, by chance.
ROWS = {  # what is shown of each beside its ID, in at most WIDTH letters
    "reference.glibc.c": "glibc malloc, free 4 KiB",
    "reference.call.python": "(1).bit_length()",
    "allocator.malloc_free.4KiB.c": "allocate, free 4 KiB",
    "allocator.malloc_free.20MiB.c": "allocate, free 20 MiB",
    "allocator.empty_drop.4KiB.python": "l0rt.empty(4096)",
    "allocator.cached.100.c": "beside 100 free blocks",
    "allocator.cached.100000.c": "beside 100,000 of them",
    "allocator.trace.gpt_train.x1.c": "a training run's memory",
    "stream.current.python": "current_stream()",
    "stream.with.python": "with stream: pass",
    "event.create_drop.python": "l0rt.Event(), dropped",
    "event.record.python": "event.record(stream)",
    "event.query.python": "event.query(), complete",
    "event.record_query_wait.python": "record, query, wait",
    "stream.wait_event.python": "stream.wait_event(event)",
    "copy.append.c": "4 KiB copy, not awaited",
    "copy.append.python": "y.copy_from(x), the same",
    "launch.append.c": "kernel with 4 arguments",
    "launch.append.python": "kernel[1, 1](y, x, 0, 1)",
    "graph.issue.1000.c": "1,000 launches",
    "graph.replay.1000.python": "the 1,000 as a graph",
    "interop.dlpack.export.python": "buffer.__dlpack__()",
}
WIDTH = 24
COSTS = {  # what the verdict says of which rows
    "allocate and free": ("allocator.malloc_free.4KiB.c", "allocator.empty_drop.4KiB.python"),
    "memory of a training run": ("allocator.trace.gpt_train.x1.c",),
    "record an event": ("event.record.python",),
    "wait for it on a stream": ("stream.wait_event.python",),
    "issue a copy": ("copy.append.c", "copy.append.python"),
    "launch a kernel": ("launch.append.c", "launch.append.python"),
    "replay 1,000 launches": ("graph.replay.1000.python",),
}
CALLS = ("event.record.python", "copy.append.c", "copy.append.python", "launch.append.c", "launch.append.python")
STEADY = 0.03  # half of the rounds of a row lie within so much of their median: little else ran


def show_row(out, rows, row, entries):
    """Print the row that was measured last, below the name of its suite if it is the first of that."""
    if "ns" not in entries[row.id]:
        return
    if not any(other["suite"] == row.suite and "ns" in other for id, other in entries.items() if id != row.id):
        report.put(out)
        report.put(out, _line(rows, row.suite, "l0rt", "driver", "ratio", style="bold"))
    show_line(out, rows, row, entries[row.id])


def show_line(out, rows, row, entry):
    """Print one row."""
    if "ns" not in entry:
        return
    raw, ratio = entry.get("raw", {}).get("ns"), entry.get("ratio")
    texts = report.time_text(entry["ns"]), report.time_text(raw), _ratio_text(ratio) if ratio else ""
    report.put(out, _line(rows, row.id, *texts, what=ROWS[row.id], good=ratio and ratio <= 1))


def _ratio_text(ratio):
    """Return a ratio with two or three digits; a driver may take a thousand times as long."""
    return report.digits(ratio) if ratio >= 0.1 else f"{ratio:.3f}"


def _line(rows, name, ns, raw, ratio, what="", style="", good=False):
    width = max(len(row.id) for row in rows)
    return Text.assemble(
        (f"{name:<{width}} {ns:>7} {raw:>7} ", style),
        (f"{ratio:>5}", "green" if good else style),
        (f"  {what}", "dim"),
    )


def show_rest(out, record):
    """Print what follows the rows: what could not be measured, and the verdict."""
    report.put_missing(out, record)
    costs = _costs(record)
    if costs:
        report.put(out)
        report.put(out, Text("One operation of l0rt beside the raw driver's: + is more time, − is less", "bold"))
        table = report.table("", "from C", "", "from Python", "")
        for what, cells in costs.items():
            table.add_row(what, *cells)
        report.put(out, table)
    _show_counts(out, record)
    report.put(out)
    report.put(out, report.facts(sentences(record)))


def _show_counts(out, record):
    """Print the instructions of rows, if they were asked for."""
    counted = {id: row.get("notes", {}).get("instructions") for id, row in record["rows"].items()}
    if any(counted.values()):
        table = report.table("", "instructions", "at most")
        for id, note in filter(all, counted.items()):
            table.add_row(id, report.note_text(note), f"{note['limit']}" if "limit" in note else "")
        report.put(out)
        report.put(out, table)
    if "uncounted" in record:
        report.put(out)
        report.put_lines(out, [record["uncounted"]])


def _costs(record):
    """Return what -> four cells: nanoseconds over the raw driver's and the ratio to it, from C and from Python."""
    costs = {}
    for what, ids in COSTS.items():
        cells = {"c": ("", ""), "python": ("", "")}
        for id in ids:
            row = record["rows"].get(id, {})
            if "ratio" in row:
                over = row["over_raw"]
                text = f"{'+' if over >= 0 else '−'}{report.time_text(abs(over))}"
                cells[id.rpartition(".")[2]] = text, f"{_ratio_text(row['ratio'])} x"
        if any(text for text, _ in cells.values()):
            costs[what] = *cells["c"], *cells["python"]
    return costs


def sentences(record):
    """Return (label, text): the verdict in words, how far to trust it, and what to do next."""
    pairs = [("In short", _short(record)), ("Trust", _trust(record)), ("Budgets", _budgets(record))]
    return [(label, text) for label, text in pairs if text] + _next(record)


def _short(record):
    rows = record["rows"]

    def ratio(id):
        return rows.get(id, {}).get("ratio")

    parts = []
    if pair := ratio("allocator.malloc_free.4KiB.c"):
        parts.append(f"Allocating takes {report.digits(100 * pair)} % of the time of the driver's own calls.")
    over = [rows[id]["over_raw"] for id in CALLS if ratio(id)]
    if over:
        least, most = max(min(over), 0), max(*over, 0)
        least, most = report.time_text(least), report.time_text(most)
        parts.append(f"An event, a copy or a launch takes {least} to {most} more than the bare call.")
    if replay := ratio("graph.replay.1000.python"):
        parts.append(f"Replaying a graph takes {report.digits(100 * replay)} % of the time of its launches.")
    return " ".join(parts)


def _trust(record):
    noise = verdict.noise(record)
    pace = "Steady" if noise <= STEADY else "Fair" if noise <= verdict.NOISY else "Rough, on a machine that was busy"
    text = (
        f"{pace}: half of the rounds lie within {100 * noise:.0f} % of their median. l0rt and the driver took turns, "
        "so ratios are surer than nanoseconds."
    )
    if record["head"]["device"]["is_software"]:
        text += " The CPU driver is no GPU: what l0rt adds is much the same above any driver, a driver's time is not."
    elif record["head"]["caveat"]:
        text += " This driver executes nothing: copies and launches are the calls alone."
    return text


def _budgets(record):
    count, exceeded = len(verdict.limits(record)), verdict.exceeded(record)
    if exceeded:
        return f"{len(exceeded)} of {count} exceeded, measured twice: {verdict.named(exceeded)}."
    if not count or record["interrupted"]:
        return ""
    return f"{count} of {count} met. Only ratios within this run are judged, and counts of instructions."


def _next(record):
    failed = verdict.failed(record)
    if record["interrupted"]:
        return [("Next", f"l0rt bench: this one was {verdict.interruption(record)}")]
    lines = [
        ("l0rt doctor", f"why {verdict.counted(len(failed), 'row')} failed" if failed else "which devices are there"),
        ("l0rt bench --full", "every row, with budgets: three minutes"),
        ("docs/performance.md", "why each figure is what it is"),
    ]
    return [("" if place else "Next", f"{command:<20} {what}") for place, (command, what) in enumerate(lines)]
