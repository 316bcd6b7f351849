# SPDX-License-Identifier: Apache-2.0
"""The command line: ``l0rt doctor``, ``selftest``, ``bench``, ``bench compare``, ``cache``, ``top``,
``memory``, ``cpu-driver``."""

import argparse
import json
import os
import sys

import l0rt
from l0rt import config
from l0rt.bench import command as bench
from l0rt.bench import compare, plot, report, rows, tour
from l0rt.cli import advice, cache, cpu_driver, doctor, top
from l0rt.cli.memory import command as memory_command
from l0rt.cli.memory.snapshot import NotASnapshot
from l0rt.errors import L0Error
from l0rt.selftest import examination, page

INTERRUPTED = 130  # the exit status of a program that Ctrl-C ended


class BadUse(Exception):
    """What was asked for makes no sense; one line says why."""


def main(argv=None):
    """Run the command line; return the exit status: 0, 1 for "it did not work", 2 for bad use."""
    parser = make_parser()
    try:
        try:
            options = parser.parse_args(argv)
            if not os.environ.get("L0RT_DRIVER"):
                config.set("driver", "auto")
            return options.run(options)
        finally:
            sys.stdout.flush()  # here, where it may fail; also behind --help, which raises SystemExit
    except (BadUse, bench.UnknownRows, compare.BadReport, plot.CannotPlot, NotASnapshot) as e:
        parser.exit(2, f"l0rt: error: {e}\n")
    except L0Error as e:
        parser.exit(1, f"l0rt: {e}\n")
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line."""

    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def show_help(parser):
    """Print the help; the command has succeeded."""
    parser.print_help()
    return 0


# Long: the options of each command, one command after the other.
def make_parser():
    parser = Parser(
        prog="l0rt",
        description="The runtime layer of a deep-learning framework for Intel GPUs, directly on Level Zero.",
        epilog="All commands use a GPU if there is one, else the bundled CPU driver, unless L0RT_DRIVER is set.",
    )
    parser.add_argument("--version", action="version", version=f"l0rt {l0rt.__version__}")
    parser.set_defaults(run=lambda options: show_help(parser))
    commands = parser.add_subparsers(title="commands", metavar="{doctor,selftest,bench,top,memory,cache,cpu-driver}")

    command = commands.add_parser(
        "doctor",
        help="which driver and devices are there, and if no GPU is seen, why",
        description="Say which driver and devices are there and used; if no GPU is seen, why, and what to do.",
        epilog="Exit status: 0 a device is usable; 1 there is none; 3 with --gpu: only the CPU driver is; 4 a driver "
        "or a device is there and does not work; 2 if the words make no sense.",
    )
    command.add_argument("--json", action="store_true", help="print the findings as JSON, with a code for each cause")
    command.add_argument("--gpu", action="store_true", help="exit status 0 only if a GPU is usable")
    command.add_argument(
        "--root", default="/", metavar="DIR", help="look for /sys, /dev, /proc and /run in this folder, such as a copy"
    )
    command.set_defaults(run=run_doctor)

    command = commands.add_parser(
        "selftest",
        help="try everything on the device that l0rt builds on: two minutes",
        description="Use the device for real: capabilities, known defects of drivers, measurements, random programs. "
        "It is safe on a desktop: memory and time are bounded, and each part runs in a process of its own.",
        usage="l0rt selftest [QUESTIONS ...] [--seconds N] [--device N] [--provoke] [--json FILE]",
        epilog="Ctrl-C ends it with what is known. Exit status 0, 1 if something is wrong that l0rt does not cope "
        "with or the device cannot be opened, 2 if the words make no sense.",
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="QUESTIONS",
        help="what to ask: capabilities, quirks, traps, measurements, programs, or IDs such as Q1; without any: all",
    )
    command.add_argument("--seconds", type=seconds, default=120.0, metavar="N", help="how long it may take (120)")
    command.add_argument("--device", type=index, default=0, metavar="N", help="which device (0)")
    command.add_argument(
        "--provoke",
        action="store_true",
        help="on a GPU too, try what may crash the process, hang the device or use its memory up",
    )
    command.add_argument(
        "--json", metavar="FILE", help="also write the report to FILE, for L0RT_TUNING; with - print it"
    )
    command.set_defaults(run=run_selftest)

    command = commands.add_parser(
        "bench",
        help="what l0rt costs here beside the raw driver: half a minute; compare two reports",
        description="Measure l0rt on this machine beside the raw driver. Without ROWS it is a tour of some twenty "
        "rows, which ends within half a minute and says in words what l0rt costs.",
        usage="l0rt bench [ROWS ... | --full] [--instructions] [--json FILE] [--plot FILE]\n"
        "       l0rt bench compare A.json B.json",
        epilog="Ctrl-C ends it with what is finished. Exit status 0, 1 if a row failed, 2 if the words make no sense.",
    )
    command.add_argument(
        "words",
        nargs="*",
        metavar="ROWS | compare A.json B.json",
        help="what to measure: allocator, streams, kernels, graphs, interop, or IDs such as '*.c'; or two reports, "
        "which are compared",
    )
    command.add_argument(
        "--full", action="store_true", help="all rows with their budgets, for work on l0rt: about three minutes"
    )
    command.add_argument(
        "--instructions",
        action="store_true",
        help="count the instructions of the allocator's rows too, where valgrind is installed: a minute more",
    )
    command.add_argument("--json", metavar="FILE", help="also write the report to FILE; with - print it and no table")
    command.add_argument("--plot", metavar="FILE", help="also draw the report into FILE.png or FILE.svg")
    command.add_argument("--smoke", action="store_true", help=argparse.SUPPRESS)
    command.set_defaults(run=run_bench)

    top.add(commands)
    memory_command.add(commands, show_help)

    command = commands.add_parser(
        "cache",
        help="what the cache of compiled kernels has; empty it",
        description="Show the cache of l0rt.compile: its folder, its size, and the compiler that fills it.",
        epilog="L0RT_CACHE_DIR and L0RT_CACHE_SIZE say where it is and how large it may be: docs/kernels.md. Exit "
        "status 0, 1 if the cache cannot be used.",
    )
    command.add_argument("--clear", action="store_true", help="remove all entries; programs that run go on")
    command.add_argument("--json", action="store_true", help="print the findings as JSON")
    command.set_defaults(run=run_cache)

    command = commands.add_parser(
        "cpu-driver",
        help="where the CPU driver is, and how other programs use it",
        description="Print the path of the CPU driver, which any Level Zero program can use in place of a GPU's.",
        epilog="docs/cpu-driver.md has recipes: SYCL and dpctl, UMF, C programs, CI without a GPU.",
    )
    command.add_argument(
        "--env",
        action="store_true",
        help='print the environment variables that do it, for a shell: eval "$(l0rt cpu-driver --env)"',
    )
    command.set_defaults(run=run_cpu_driver)
    return parser


def run_doctor(options):
    """`l0rt doctor`."""
    if not os.path.isdir(options.root):
        raise BadUse(f"--root: there is no folder {options.root!r}")
    findings = doctor.examine(os.path.abspath(options.root))
    if options.json:
        print(json.dumps(findings, indent=1))
    else:
        doctor.show(findings, report.console())
    return advice.exit_status(findings, options.gpu)


def seconds(text):
    """Parse a time that is long enough to open a driver in."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 1 to 86400")
    return value


def index(text):
    """Parse a device's index."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no device's index: 0, 1, ...")
    return int(text)


def run_selftest(options):
    """`l0rt selftest`."""
    try:
        ids = examination.select(options.words)
        config.explain()  # a setting in the environment that is not valid names itself
    except ValueError as e:
        raise BadUse(e) from None
    if options.json not in (None, "-"):
        check_writable(options.json)
    with report.lines_of_progress(len(ids)) as progress:
        exam = examination.Examination(ids, options.seconds, options.provoke, options.device, progress).run()
    record = exam.report()
    if options.json == "-":
        print(json.dumps(page.document(record), indent=1))
    else:
        page.show(record, report.console())
        if options.json:
            with open(options.json, "w") as file:
                json.dump(page.document(record), file, indent=1)
                file.write("\n")
    if record["interrupted"]:
        return INTERRUPTED
    return 1 if record["error"] or examination.problems(record) else 0


def run_bench(options):
    """`l0rt bench`."""
    words = options.words
    if words and words[0] == "compare":
        if len(words) != 3:
            raise BadUse("bench compare takes two reports: l0rt bench compare A.json B.json")
        compare.compare(compare.load(words[1]), compare.load(words[2]), report.console())
        return 0
    is_tour = not (words or options.full)
    selection = bench.select(tour.ROWS if is_tour else {"reference", *(words or bench.SUITES)})
    if options.json not in (None, "-"):
        check_writable(options.json)
    if options.plot:
        plot.check(options.plot)
        check_writable(options.plot)
    try:
        config.explain()  # a setting in the environment that is not valid names itself
    except ValueError as e:
        raise BadUse(e) from None
    effort = rows.SMOKE if options.smoke else rows.TOUR if is_tour else rows.FULL
    out = None if options.json == "-" else report.console()
    record = bench.run(selection, effort, options.instructions, out, is_tour)
    if out is None:
        print(json.dumps(record, indent=1))
    else:
        (tour if is_tour else bench).show_rest(out, record)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(record, file, indent=1)
                file.write("\n")
    if options.plot:
        plot.draw(record, options.plot)
    if record["interrupted"]:
        return INTERRUPTED
    return 1 if any(row.get("failed") for row in record["rows"].values()) else 0


def run_cache(options):
    """`l0rt cache`."""
    try:
        config.explain()  # a setting in the environment that is not valid names itself
    except ValueError as e:
        raise BadUse(e) from None
    if options.clear and not cache.clear(report.console(sys.stderr if options.json else None)):
        return 1
    facts = cache.examine()
    if options.json:
        print(json.dumps(facts, indent=1))
    elif not options.clear:
        cache.show(facts, report.console())
    return 1 if facts["problem"] else 0


def run_cpu_driver(options):
    """`l0rt cpu-driver`."""
    print(cpu_driver.shell_lines() if options.env else f"{l0rt.cpu_driver_path()}\n", end="")
    return 0


def check_writable(path):
    """Find out before measuring for minutes whether a file can be written; leave none behind that was not there."""
    there = os.path.exists(path)
    try:
        with open(path, "a"):
            pass
        if not there:
            os.unlink(path)
    except OSError as e:
        raise BadUse(f"cannot write {path!r}: {e.strerror}") from None
