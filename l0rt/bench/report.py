# SPDX-License-Identifier: Apache-2.0
"""Reports: the head that says what was measured on what, and tables for a terminal of 80 columns or for a pipe."""

import os
import platform
import signal
import sys
from contextlib import contextmanager
from datetime import datetime, timezone

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

import l0rt
from l0rt import config
from l0rt._base.integers import digits, size_text, time_text  # noqa: F401 - for the other reports too
from l0rt.runtime.streams import devices

# Intel's driver can encode for a device that is not there: nothing executes then, and no figure is a GPU's.
SIMULATION = ("NEOReadDebugKeys", "SetCommandStreamReceiver")
SOFTWARE = "CPU driver: not a GPU"
ENDLESS = 1 << 14  # columns: what reads a file or a pipe finds a path or a row in one line


def console(stream=None):
    """Return a console: colours and the window's width on a terminal; plain text elsewhere, and no line is folded."""
    stream = stream or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")  # a terminal that cannot show a sign gets another one, not a traceback
    width = None if stream.isatty() else ENDLESS
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width, soft_wrap=False)


def progress(out):
    """Return a progress bar: below what is printed to ``out`` if that is a terminal, else on stderr if that is one.

    Its owner refreshes it: a thread that does so in between would be measured too.
    """
    console = out if out is not None and out.is_terminal else Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        auto_refresh=False,
        disable=not console.is_terminal,
    )


@contextmanager
def lines_of_progress(count):
    """Give a function that reports progress: a changing line on a terminal's stderr, lines of their own elsewhere."""
    console = Console(stderr=True, highlight=False, markup=False, emoji=False)
    if console.is_terminal:
        with console.status(f"{count} questions") as status:
            yield status.update
    else:
        yield lambda text: print(text, file=sys.stderr, flush=True)


def cpu_model():
    """Return the processor's name."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def cores():
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def simulated():
    """Whether Intel's driver runs without hardware."""
    return all(os.environ.get(name, "0") != "0" for name in SIMULATION)


def caveat(is_software):
    """Return what a reader must know before believing any figure, None if there is nothing."""
    if is_software:
        return SOFTWARE
    return "driver without hardware: nothing executes" if simulated() else None


def machine():
    """Return what a report says about the machine and this program."""
    return {
        "l0rt": l0rt.__version__,
        "python": platform.python_version(),
        "machine": {"cpu": cpu_model(), "cores": cores(), "system": f"{platform.system()} {platform.release()}"},
    }


def head(index):
    """Return the head of a report on device ``index`` as plain values."""
    properties, library = devices.properties(index), devices.library
    return {
        **machine(),
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "driver": {
            "setting": config.get("driver"),
            "library": library.real_path(),
            "loader": library.loader_version(),
            "version": properties["driver_version"],
            "api": "{}.{}".format(*properties["api_version"]),
        },
        "device": {"index": index, "name": properties["name"], "is_software": properties["is_software"]},
        "caveat": caveat(properties["is_software"]),
    }


def head_facts(head):
    """Return the head as (label, text)."""
    driver, device, machine = head["driver"], head["device"], head["machine"]
    loader = f", loader {driver['loader']}" if driver["loader"] else ""
    return [
        ("l0rt", f"{head['l0rt']}, Python {head['python']}, {head['date']}"),
        ("driver", driver["library"]),
        ("", f"version {driver['version']}, API {driver['api']}{loader}"),
        ("device", f"{device['index']}: {device['name']}" + (f" *** {head['caveat']} ***" if head["caveat"] else "")),
        ("machine", f"{machine['cpu']}, {machine['cores']} cores, {machine['system']}"),
    ]


def end_text(status):
    """Return how a process ended, in words."""
    if status >= 0:
        return f"failed (exit status {status})"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"ended its process by {name}"


def put(out, what=""):
    """Print; in a file or a pipe without the blanks that fill a table's lines."""
    if out.is_terminal:
        out.print(what)
        return
    with out.capture() as captured:
        out.print(what)
    out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    out.file.flush()


def put_lines(out, lines):
    """Print lines of text; a long one is folded, never cut."""
    for line in lines:
        put(out, Text(line, overflow="fold"))


def put_missing(out, record):
    """Print which rows of a bench's report have no figure, and why."""
    missing = [f"{id}: {row.get('failed') or row['skipped']}" for id, row in record["rows"].items() if "ns" not in row]
    if missing:
        put(out)
        put_lines(out, ["not measured", *missing])


def facts(pairs):
    """Return a table of (label, text) without a head; a long text goes on below its beginning."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, text in pairs:
        grid.add_row(Text(label), Text(text))
    return grid


def table(*columns):
    """Return a table without lines; the first column is text, folded if need be, the others are figures."""
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for place, name in enumerate(columns):
        grid.add_column(name, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    return grid


def row_table(out, widths, *texts, style=""):
    """Return one row of a table that is printed row by row: the first text is folded to what ``out`` leaves of it."""
    first = max(12, min(widths[0], out.width - sum(widths[1:]) - len(widths) + 1))
    grid = Table.grid(padding=(0, 1, 0, 0))
    for place, width in enumerate((first, *widths[1:])):
        grid.add_column(width=width, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    grid.add_row(*(text if isinstance(text, Text) else Text(text, style=style) for text in texts))
    return grid


def note_text(note):
    """Return the value of a note with its unit."""
    value, unit = note["value"], note["unit"]
    return f"{value:,}" if isinstance(value, int) else f"{digits(value)} {unit}"
