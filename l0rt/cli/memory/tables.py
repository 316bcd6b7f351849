# SPDX-License-Identifier: Apache-2.0
"""The tables of `l0rt memory report` and `l0rt memory diff`."""

from rich.text import Text

from l0rt._base.integers import size_text, time_text
from l0rt.bench import report

MOST_FAILURES = 20  # of which each is a line
BARS = "▁▂▃▄▅▆▇█"


def amount(nbytes):
    """Return a size with its bytes where these say more."""
    return f"{size_text(nbytes)} ({nbytes:,} bytes)" if nbytes >= 1024 else size_text(nbytes)


def share(part, total):
    """Return a share in percent; nothing of nothing."""
    return f"{100 * part / total:.1f} %" if total else ""


def bars(values):
    """Return a curve as text."""
    top = max(values, default=0)
    return "".join(BARS[min(value * 8 // (top + 1), 7)] if top else BARS[0] for value in values)


def show(summary, out, name):
    """Print one device's summary."""
    at, end, peak = summary["at"], summary["end"], summary["peak"]
    entries = f"{summary['entries']:,} entries in {time_text(summary['seconds'] * 1e9)}"
    lines = [
        ("snapshot", f"{name}, {summary['device']}"),
        ("history", f"{entries if summary['entries'] else 'no entries'}, {summary['allocations']:,} allocations"),
        ("peak", f"{amount(peak['bytes'])} at entry {peak['entry']:,}, {time_text(peak['us'] * 1e3)}"),
        ("moment", f"entry {at['entry']:,}, {time_text(at['us'] * 1e3)}: what follows is of this moment"),
        ("allocated", f"{amount(at['allocated'])} in {at['live']:,} allocations"),
    ]
    if at["pending"]:
        lines.append(("pending", f"{size_text(at['pending'])} freed, in use by streams"))
    if at["reserved"]:
        rest = f"{size_text(at['not_allocated'])}, {share(at['not_allocated'], at['reserved'])}, not allocated"
        lines.append(("reserved", f"{size_text(at['reserved'])}; {rest}"))
    largest = f"; the largest block not allocated has {size_text(end['largest_not_allocated'])}"
    lines.append(("end", f"{size_text(end['allocated'])} allocated, {size_text(end['reserved'])} reserved"))
    lines.append(("", f"{end['segments']:,} segments, {end['blocks']:,} blocks{largest}"))
    failures = summary["out_of_memory"]
    for failure in failures[:MOST_FAILURES]:
        text = f"requested {size_text(failure['requested'])}, free {size_text(failure['free'])}"
        lines.append(("failed", f"out of memory at entry {failure['entry']:,}: {text}"))
    if len(failures) > MOST_FAILURES:
        lines.append(("", f"and {len(failures) - MOST_FAILURES:,} times more"))
    if summary["unmatched"]:
        lines.append(("before", f"{summary['unmatched']:,} frees of what was allocated before the first entry"))
    if summary["lost"]:
        lines.append(
            ("lost", f"{summary['lost']:,} allocations whose frees the history does not have: ended at its end")
        )
    if summary["entries"]:
        lines.append(("timeline", f"{bars(summary['curve'])} 0 to {size_text(max(summary['curve']))}"))
    report.put(out, report.facts(lines))
    for title, key in (("by tag", "tags"), ("by stack, innermost call first", "stacks")):
        if not summary[key]:
            continue
        table = report.table(title, "bytes", "share", "count")
        for row in summary[key]:
            cells = size_text(row["bytes"]), share(row["bytes"], at["allocated"]), f"{row['count']:,}"
            table.add_row(Text(row["name"]), *cells)
        report.put(out)
        report.put(out, table)
    if summary["largest"]:
        table = report.table("largest allocations", "bytes", "address", "tag", "stream", "entry")
        for row in summary["largest"]:
            entry = f"{row['entry']:,}" if row["entry"] else "before"
            texts = row["stack"], size_text(row["bytes"]), row["address"], row["tag"], row["stream"], entry
            table.add_row(*map(Text, texts))
        report.put(out)
        report.put(out, table)


def signed(change):
    """Return a change of bytes."""
    return f"{'+' if change > 0 else '-' if change < 0 else ''}{size_text(abs(change))}"


def show_changes(difference, out, names):
    """Print what differs between two devices."""
    sides = zip("AB", names, difference["device"], strict=True)
    report.put(out, report.facts([(label, f"{name}, {of}") for label, name, of in sides]))
    table = report.table("", "A", "B", "change")
    for row in difference["figures"]:
        is_count = row["name"].startswith(("live", "segments"))
        first, second = row["values"]
        texts = [f"{value:,}" if is_count else size_text(value) for value in row["values"]]
        table.add_row(row["name"], *texts, f"{second - first:+,}" if is_count else signed(second - first))
    report.put(out)
    report.put(out, table)
    for title, key in (("by tag", "tags"), ("by stack, innermost call first", "stacks")):
        if not difference[key]:
            continue
        table = report.table(title, "A", "B", "change", "count")
        for row in difference[key]:
            first, second = row["values"]
            count = row["counts"][1] - row["counts"][0]
            table.add_row(Text(row["name"]), size_text(first), size_text(second), signed(second - first), f"{count:+,}")
        report.put(out)
        report.put(out, table)
    if not difference["tags"] and not difference["stacks"]:
        report.put(out)
        report.put(out, "Every stack has the same bytes in both.")
