# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory view`, `report`, `diff` and `watch`: their words, and what runs them."""

import argparse
import json
import os
import sys

from l0rt.bench import report
from l0rt.cli.memory import page, snapshot, summary, tables, watch
from l0rt.cli.memory.history import histories
from l0rt.cli.memory.snapshot import NotASnapshot
from l0rt.cli.memory.stacks import BadSnapshot, printable

FILE = "a snapshot that dump_snapshot wrote, of l0rt or of torch: a pickle, or JSON"
ADVICE = "record fewer entries"
EPILOG = "Exit status 0, 2 if a file is no snapshot or the words make no sense."


def add(commands, show_help):
    """Add the words of `l0rt memory` to the command line."""
    memory = commands.add_parser(
        "memory",
        help="look at a snapshot of memory: a page, a report, a comparison",
        description="Look at snapshots of memory, which l0rt.memory.dump_snapshot or torch wrote: docs/viewer.md.",
    )
    memory.set_defaults(run=lambda _: show_help(memory))
    parts = memory.add_subparsers(title="commands", metavar="{view,report,diff,watch}")

    command = parts.add_parser(
        "view",
        help="write a snapshot as a page for a browser",
        description="Write a snapshot as one page of HTML that needs no network: timeline, segments, flame graph.",
        epilog=EPILOG,
    )
    command.add_argument("file", metavar="FILE", help=FILE)
    command.add_argument("-o", "--output", metavar="PAGE.html", help="the page; by default FILE with .html at its end")
    command.set_defaults(run=run_view)

    command = parts.add_parser(
        "report",
        help="print what a snapshot says",
        description="Print what a snapshot says of each device: figures, and live bytes by tag, stack and allocation.",
        epilog=EPILOG,
    )
    command.add_argument("file", metavar="FILE", help=FILE)
    command.add_argument("--at", type=moment, default="peak", metavar="WHEN", help="peak (default), end, or an entry")
    add_common(command, 10)
    command.set_defaults(run=run_report)

    command = parts.add_parser(
        "diff",
        help="print what differs between two snapshots",
        description="Print what differs between two snapshots at their ends: figures, live bytes by tag and stack.",
        epilog=EPILOG,
    )
    command.add_argument("first", metavar="A", help=FILE)
    command.add_argument("second", metavar="B", help="another one")
    command.add_argument("--at", choices=("end", "peak"), default="end", help="what is compared (end)")
    add_common(command, 20)
    command.set_defaults(run=run_diff)

    command = parts.add_parser(
        "watch",
        help="show the memory of a process while it runs",
        description="Show how much memory a process with L0RT_MONITOR=1 has, or a command that is started so.",
        usage="l0rt memory watch [--interval S] [--count N] [--json] (PID | COMMAND ...)",
        epilog="q ends it. A command gets Ctrl-C and other keys itself, and SIGTERM. Exit status 0, the command's, or "
        "1 if the process cannot be watched.",
    )
    command.add_argument("--interval", type=seconds, default=1.0, metavar="S", help="seconds between two looks (1)")
    command.add_argument("--count", type=index, metavar="N", help="how many times; by default until it ends")
    command.add_argument("--json", action="store_true", help="print everything as a line of JSON each time")
    command.add_argument("words", nargs=argparse.REMAINDER, metavar="PID | COMMAND", help="a number, or a command")
    command.set_defaults(run=run_watch)


def add_common(command, top):
    """Add the words that the commands for a terminal share."""
    command.add_argument("--device", metavar="N", type=index, help="only this device; by default each that has memory")
    command.add_argument("--top", metavar="N", type=index, default=top, help=f"how many rows a table has ({top})")
    command.add_argument("--json", action="store_true", help="print the same as JSON")


def index(text):
    """Parse a small number."""
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number below a million")
    return int(text)


def seconds(text):
    """Parse a time between two looks."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.01 to 86400")
    return value


def moment(text):
    """Parse a moment: a word, or a number of entries."""
    if text in ("peak", "end"):
        return text
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise argparse.ArgumentTypeError(f"{text!r} is neither peak, end nor an entry's number")
    return int(text)


def opened(path, device=None):
    """Return the stacks and the histories of a file; one device's if one is named."""
    try:
        with snapshot.bounded_memory():
            stacks, selection = histories(snapshot.load(path))
    except BadSnapshot as e:
        raise NotASnapshot(f"{printable(path)} is no snapshot of memory: {e}") from None
    except MemoryError:
        raise NotASnapshot(f"{printable(path)} does not fit into this machine's memory: {ADVICE}") from None
    if device is not None:
        selection = [history for history in selection if history.name == f"device {device}"]
    if not selection:
        reason = f"nothing of device {device}" if device is not None else "no segments and no entries"
        raise NotASnapshot(f"{printable(path)} has {reason}")
    return stacks, selection


def run_view(options):
    """`l0rt memory view`."""
    target = options.output or f"{os.path.splitext(options.file)[0]}.html"
    if os.path.exists(target) and os.path.exists(options.file) and os.path.samefile(target, options.file):
        raise NotASnapshot(f"the page would replace {printable(options.file)}: name another with -o")
    try:
        with snapshot.bounded_memory():
            stacks, selection = opened(options.file)
            text = page.page(os.path.basename(options.file), stacks, selection)
        page.write(target, text)
    except MemoryError:
        raise NotASnapshot(f"{printable(options.file)} does not fit into this machine's memory: {ADVICE}") from None
    except OSError as e:
        raise NotASnapshot(f"cannot write {printable(target)}: {e.strerror}") from None
    print(printable(os.path.abspath(target), 4096))
    return 0


def run_report(options):
    """`l0rt memory report`."""
    stacks, selection = opened(options.file, options.device)
    summaries = [summary.summary(stacks, history, options.at, options.top) for history in selection]
    if options.json:
        print(json.dumps(summaries, indent=1))
        return 0
    out = report.console()
    for place, entry in enumerate(summaries):
        if place:
            report.put(out)
        tables.show(entry, out, printable(options.file))
    return 0


def run_diff(options):
    """`l0rt memory diff`."""
    files = options.first, options.second
    sides = []
    for file in files:
        stacks, selection = opened(file, options.device)
        sides.append({history.name: (stacks, history) for history in selection})
    names = [name for name in sides[0] if name in sides[1]]
    if not names:
        raise NotASnapshot(f"{printable(files[0])} and {printable(files[1])} have no device in common")
    changes = [summary.changes(sides[0][name], sides[1][name], options.at, options.top) for name in names]
    if options.json:
        print(json.dumps(changes, indent=1))
        return 0
    out = report.console()
    for place, entry in enumerate(changes):
        if place:
            report.put(out)
        tables.show_changes(entry, out, [printable(file) for file in files])
    return 0


def run_watch(options):
    """`l0rt memory watch`."""
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise NotASnapshot("l0rt memory watch needs a process's number or a command")
    try:
        return watch.run(words, options.interval, options.count, options.json)
    except watch.CannotWatch as e:
        print(f"l0rt: {e}", file=sys.stderr)
        return 1
