# SPDX-License-Identifier: Apache-2.0
"""`l0rt bench` measures every row of the registry; its reports can be read, kept and compared."""

import contextlib
import fcntl
import importlib.util
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios

import l0rt as package
import pytest
from l0rt.bench.command import SUITES, select
from l0rt.bench.tour import COSTS
from l0rt.bench.tour import ROWS as TOUR
from l0rt.cli import main

from helpers.ci import skip_unless_ci
from helpers.cli import complaint, l0rt
from helpers.compilers import INSTALLED
from helpers.process import run, run_python
from helpers.source import ROOT

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "COLUMNS": None}
ROWS = [row.id for row in select(SUITES)]
TIME = r"[\d.,]+ (ns|µs|ms|s)"


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Run all suites once, as short as can be; return the result and the report's path."""
    path = tmp_path_factory.mktemp("bench") / "report.json"
    return l0rt("bench", "--full", "--smoke", "--json", str(path), env=CPU), path


# `l0rt`, where no compiler of OpenCL C is installed.
BARE = """
import sys
from l0rt.kernels import compiler
for module in compiler.COMPILERS.values():
    module.find = lambda: None
from l0rt.cli import main
sys.exit(main({words!r}))
"""


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    """Take the tour once, as short as can be, without a compiler; return the result and the report's path."""
    path = tmp_path_factory.mktemp("tour") / "report.json"
    return run_python(BARE.format(words=["bench", "--smoke", "--json", str(path)]), env=CPU), path


def test_the_tour_has_its_rows_in_lines_of_plain_text_and_their_sum_in_words(tour):
    result, path = tour
    assert (result.returncode, result.stderr) == (0, ""), result
    for row, what in TOUR.items():
        assert re.search(rf"^{re.escape(row)} +{TIME} .*  {re.escape(what)}$", result.stdout, re.MULTILINE), row
    assert "\x1b" not in result.stdout
    for what in COSTS:
        assert re.search(rf"^{re.escape(what)}( +[+−]{TIME} [\d.,]+ x)+$", result.stdout, re.MULTILINE), what
    assert re.search("^In short .* more than the bare call", result.stdout, re.MULTILINE)
    assert re.search("^Trust .*The CPU driver is no GPU", result.stdout, re.MULTILINE)
    assert result.stdout.splitlines()[-3].split()[:3] == ["Next", "l0rt", "doctor"]
    found = json.loads(path.read_text())
    assert (list(found["rows"]), found["tour"]) == (list(TOUR), True)
    assert not [row for row in found["rows"].values() if "ns" not in row]


def test_the_tour_judges_only_ratios_of_one_run(tour):
    found = json.loads(tour[1].read_text())
    judged = [id for id, row in found["rows"].items() if "budget" in row]
    assert judged == ["allocator.cached.100000.c", "graph.replay.1000.python"]
    notes = [note for row in found["rows"].values() for note in row["notes"].values() if "limit" in note]
    assert [note["unit"] for note in notes] == ["x"]  # a replay's share of issuing the same
    assert found["summary"] == {}


def test_a_row_that_needs_a_compiler_says_so_where_there_is_none():
    result = run_python(BARE.format(words=["bench", "compile.*", "specialize.*", "--smoke"]), env=CPU)
    assert (result.returncode, result.stderr) == (0, ""), result
    rows = "compile.cached.python", "compile.cached.disk.python", "specialize.fixed_loop.python"
    for row in rows:
        assert f"\n{row}: no compiler of OpenCL C is installed\n" in result.stdout


def test_the_table_names_driver_and_device(bench):
    result, _ = bench
    assert result.returncode == 0, result
    head = result.stdout.split("\n\n")[0]
    assert re.search(rf"^driver +{re.escape(package.cpu_driver_path())}$", head, re.MULTILINE)
    assert "l0rt CPU device" in head
    assert "CPU driver: not a GPU" in head
    assert "cores" in head


def test_the_table_has_every_row_in_a_line_of_plain_text(bench):
    result, path = bench
    for row, said in json.loads(path.read_text())["rows"].items():
        line = f" +{TIME} +{TIME}" if "ns" in said else f": {re.escape(said['skipped'])}$"
        assert re.search(f"^{re.escape(row)}{line}", result.stdout, re.MULTILINE), row
    assert "\x1b" not in result.stdout
    assert result.stderr == ""


def test_the_report_has_every_row(bench):
    result, path = bench
    found = json.loads(path.read_text())
    assert list(found["rows"]) == ROWS
    assert {row: said for row, said in found["rows"].items() if said.get("failed")} == {}
    reasons = {"not with --smoke", "counts simulated costs: set L0RT_CPU_PROFILE=arc-b580,timing, for example"}
    if not INSTALLED:
        reasons.add("no compiler of OpenCL C is installed")
    for row, said in found["rows"].items():
        assert said["skipped"] in reasons if "ns" not in said else said["ns"] >= said["min"] >= 0, row
    assert found["head"]["device"]["is_software"] is True
    assert found["head"]["caveat"] == "CPU driver: not a GPU"


def test_rows_with_a_raw_counterpart_have_its_figure(bench):
    found = json.loads(bench[1].read_text())["rows"]
    for row in ("allocator.malloc_free.4KiB.c", "event.record.python", "copy.h2d.64MiB.python"):
        assert found[row]["raw"]["ns"] > 0
        assert found[row]["ratio"] == pytest.approx(found[row]["ns"] / found[row]["raw"]["ns"])


def test_traces_are_replayed_in_every_way_of_getting_memory(bench):
    found = json.loads(bench[1].read_text())
    rows = {name: row for name, row in found["rows"].items() if ".trace." in name and ".tight." not in name}
    assert len(rows) == 2 * 2 * 3
    for name, row in rows.items():
        notes = {note: said["value"] for note, said in row["notes"].items()}
        assert notes["reserved/requested"] >= 1, name
        assert 1 <= notes["smallest limit"] < 2, name
        assert notes["driver calls"] > 0, name
        assert notes["driver calls again"] >= 0, name
        assert notes["again"] > 0, name
    shares = ("reserved/requested", "smallest limit")
    ways = ("", ", novm", ", torch")
    assert list(found["summary"]) == [f"{share}{way}, geometric mean" for way in ways for share in shares]
    assert "limit" not in found["summary"]["reserved/requested, torch, geometric mean"]


def test_ways_of_getting_memory_differ(bench):
    found = json.loads(bench[1].read_text())["rows"]
    held = [
        found[f"allocator.trace.conv_train.x8.{way}c"]["notes"]["reserved/requested"]["value"]
        for way in ("", "novm.", "torch.")
    ]
    assert len(set(held)) == 3


def test_one_suite_alone_as_json_on_stdout():
    result = l0rt("bench", "interop", "--smoke", "--json", "-", env=CPU)
    found = json.loads(result.stdout)
    assert {row["suite"] for row in found["rows"].values()} == {"reference", "interop"}


def test_patterns_choose_rows():
    result = l0rt("bench", "event.alive.100000.*", "stream.*.c", "--smoke", env=CPU)
    assert result.returncode == 0, result
    shown = re.findall(r"^([a-z_]+\.[\w.]+) ", result.stdout, re.MULTILINE)
    assert [id for id in shown if not id.startswith("reference.")] == [
        "stream.current.c", "stream.guard.c", "event.alive.100.python", "event.alive.100000.python"
    ]  # fmt: skip - a row whose budget is a multiple of another brings that along


def test_the_report_ends_with_three_sentences(bench):
    result, _ = bench
    *_, judgement, standard, advice = result.stdout.splitlines()
    assert re.match("(Good|Not good|Not sure): ", judgement)
    assert "the CPU driver, which is no GPU" in standard
    assert "--smoke" in advice


# An import that a Ctrl-C finds unfinished.
ENDLESS = """
import sys
from l0rt.bench import streams_rows
from l0rt.cli import main
streams_rows.IMPORT = "import time; time.sleep(600)"
sys.exit(main(["bench", "--smoke", *sys.argv[1:]]))
"""


class Bench:
    """`l0rt bench` as it runs, with its output in a pipe; the row of the import never ends."""

    def __init__(self, *words):
        command = [sys.executable, "-c", ENDLESS, *words]
        environment = {**os.environ, "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
        environment.pop("PYTHONUNBUFFERED", None)  # each line must come without it
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd="/"
        )

    def read_to(self, start):
        """Read up to the line that begins with ``start``."""
        for line in self.child.stdout:
            if line.startswith(start):
                return
        raise AssertionError(f"no line begins with {start}")

    def interrupt(self):
        """Let the terminal's Ctrl-C come; return what it printed after it, and the exit status."""
        self.child.send_signal(signal.SIGINT)
        out, err = self.child.communicate(timeout=60)
        return out, err, self.child.returncode


@pytest.mark.parametrize("row", ["stream.current.python", "allocator.trace.gpt_train.x1.c"])
def test_ctrl_c_keeps_what_is_finished(row, tmp_path):
    path = tmp_path / "report.json"
    bench = Bench(row, "import.*", "--json", str(path))
    bench.read_to(f"{row} ")  # a row appears in a pipe as soon as it is measured
    out, err, status = bench.interrupt()
    assert (status, err) == (130, "")
    assert "Interrupted with 1 row to go" in out.splitlines()[-1]
    found = json.loads(path.read_text())
    assert (found["interrupted"], found["unmeasured"]) == (True, ["import.accelerator.python"])
    assert found["rows"][row]["ns"] > 0


def test_ctrl_c_before_the_first_row(tmp_path):
    bench = Bench("import.*")
    bench.read_to("machine")
    out, err, status = bench.interrupt()
    assert (status, err) == (130, "")
    assert "Interrupted with" in out


def test_a_reader_who_has_seen_enough_ends_the_bench():
    bench = Bench("streams")
    bench.read_to("reference.glibc.c")
    bench.child.stdout.close()
    assert bench.child.wait(60) == 1
    assert bench.child.stderr.read() == ""
    bench.child.stderr.close()


def test_a_terminal_shows_what_is_measured_while_the_rows_go_into_a_pipe():
    screen, stderr = pty.openpty()
    fcntl.ioctl(stderr, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1", "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-m", "l0rt", "bench", "event.query.*", "--smoke"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment, cwd="/")
    os.close(stderr)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: nobody has the other end any more
        while piece := os.read(screen, 4096):
            shown += piece
    os.close(screen)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0, (out, shown)
    assert b"event.query.python" in shown
    assert b"4/5" in shown  # how many rows of how many are finished
    assert b"\x1b[" in shown  # it is one line, drawn anew and in the end removed
    assert "\x1b" not in out
    assert re.search("^event.query.python .*ns$", out, re.MULTILINE)


def picture(path):
    """Return the width and height of a PNG file."""
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")


@pytest.fixture(scope="module")
def fonts(tmp_path_factory):
    """A folder for what matplotlib finds out of the machine's fonts."""
    if importlib.util.find_spec("matplotlib") is None:
        skip_unless_ci("needs matplotlib: the extra `test`")
    return tmp_path_factory.mktemp("fonts")


@pytest.mark.parametrize(("suffix", "rows"), [("png", "event.*"), ("svg", "interop")])
def test_a_plot_is_drawn(tmp_path, fonts, suffix, rows):
    path = tmp_path / f"plot.{suffix}"
    result = l0rt("bench", rows, "--smoke", "--plot", str(path), env={**CPU, "MPLCONFIGDIR": fonts})
    assert (result.returncode, result.stderr) == (0, ""), result
    if suffix == "png":
        width, height = picture(path)
        assert 1000 < width < 4000
        assert 500 < height < 4000
    else:
        assert "<svg" in path.read_text()


def test_a_plot_without_matplotlib_is_refused_before_anything_is_measured(tmp_path):
    code = f"""
import sys
sys.modules["matplotlib"] = None
import importlib.util
importlib.util.find_spec = lambda name, find=importlib.util.find_spec: None if name == "matplotlib" else find(name)
from l0rt.cli import main
main(["bench", "--plot", {str(tmp_path / "a.png")!r}])
"""
    assert "pip install matplotlib" in complaint(run_python(code))
    assert list(tmp_path.iterdir()) == []


def changed(path, tmp_path, change):
    """Write a changed report; return its path."""
    found = json.loads(path.read_text())
    change(found)
    other = tmp_path / "other.json"
    other.write_text(json.dumps(found))
    return str(other)


@pytest.fixture
def compared(capsys, monkeypatch):
    """Return what compares two reports in this process, as `l0rt.cli.main` does it."""
    monkeypatch.setenv("L0RT_DRIVER", "cpu")

    def compare(*paths):
        words = ["bench", "compare", *map(str, paths)]
        try:
            status = main(words)
        except SystemExit as end:
            status = end.code
        return subprocess.CompletedProcess(words, status, *capsys.readouterr())

    return compare


def test_a_report_compared_with_itself(bench, compared):
    _, path = bench
    result = compared(path, path)
    assert result.returncode == 0, result
    assert re.search(r"^event\.record\.python +[\d.,]+ \S+ +[\d.,]+ \S+ +1\.00$", result.stdout, re.MULTILINE)
    assert result.stdout.count("CPU driver: not a GPU") == 2
    assert "only in" not in result.stdout
    assert re.search(r"^Of \d+ times 0 are slower in B and 0 faster", result.stdout, re.MULTILINE)


def test_compare_tells_what_is_more_than_noise(bench, tmp_path, compared):
    def rounds(found, id, *values):
        found["rows"][id].update(ns=values[len(values) // 2], rounds=list(values))

    def before(found):
        for id in ("event.record.python", "event.query.python", "event.elapsed_time.python"):
            rounds(found, id, 90, 95, 100, 105, 110, 300)

    def after(found):
        rounds(found, "event.record.python", 110, 115, 121, 125, 130, 400)
        rounds(found, "event.query.python", 95, 103, 120, 130, 400)  # the middle halves meet
        rounds(found, "event.elapsed_time.python", 40, 45, 50, 55, 60)

    first = tmp_path / "first.json"
    os.rename(changed(bench[1], tmp_path, before), first)
    result = compared(first, changed(first, tmp_path, after))
    assert re.search(r"^event\.record\.python .*1\.19 +slower$", result.stdout, re.MULTILINE), result
    assert re.search(r"^event\.query\.python .*1\.14$", result.stdout, re.MULTILINE)
    assert re.search(r"^event\.elapsed_time\.python .*0\.48 +faster$", result.stdout, re.MULTILINE)
    assert re.search(r"^Of \d+ times 1 are slower in B and 1 faster", result.stdout, re.MULTILINE)


def test_compare_names_what_is_only_in_one(bench, tmp_path, compared):
    def change(found):
        del found["rows"]["event.record.python"]
        found["rows"]["event.new.python"] = found["rows"]["event.query.python"]

    result = compared(bench[1], changed(bench[1], tmp_path, change))
    assert result.returncode == 0, result
    assert "only in A\n  event.record.python\n\nonly in B\n  event.new.python\n" in result.stdout


def test_compare_counts_what_a_tour_does_not_have(bench, tour, compared):
    result = compared(tour[1], bench[1])
    assert result.returncode == 0, result
    assert "only in A" not in result.stdout
    assert re.search(r"^only in B\n  \d{3} figures\n", result.stdout, re.MULTILINE)
    assert re.search(rf"^Of {len(TOUR)} times ", result.stdout, re.MULTILINE)


DEEP, HUGE = "[" * 100_000, 10**400


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"format": 99, "rows": {}}', '{"format": 1, "rows": {"a": 1}}', DEEP, "\0", "9" * 5000, "\xff"],
    ids=lambda text: text[:20],
)
def test_compare_refuses_what_is_no_report(bench, tmp_path, text, compared):
    other = tmp_path / "other.json"
    other.write_bytes(text.encode("latin-1"))
    assert "other.json' is not" in complaint(compared(bench[1], other))


def put(found, place, value):
    for key in place[:-1]:
        found = found[key]
    found[place[-1]] = value


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (["head", "device", "name"], "\x1b]0;owned\x07", "control characters"),
        (["head", "date"], "a\nb", "control characters"),
        (["rows", "event.\x1b[31m"], {}, "control characters"),
        (["head", "machine", "cores"], 10**40, "numbers beyond"),
        (["head", "machine", "cores"], HUGE, "numbers beyond"),
        (["rows", "event.query.python", "ns"], float("inf"), "numbers beyond"),
        (["rows", "event.query.python", "ns"], float("nan"), "numbers beyond"),
        (["rows", "event.query.python", "rounds"], [1e300], "numbers beyond"),
        (["rows", "event.query.python", "ns"], -1, "not a report"),
        (["rows", "event.query.python", "ns"], "1", "not a report"),
        (["rows", "event.query.python", "rounds"], [], "not a report"),
        (["rows", "event.query.python", "rounds"], ["1"], "not a report"),
        (["rows", "event.query.python", "notes"], {"a": {"value": [], "unit": ""}}, "not a report"),
        (["rows"], [], "not a report"),
        (["head"], 3, "not a report"),
    ],
    ids=lambda value: "10**400" if value == HUGE else None,
)
def test_compare_trusts_nothing_in_a_file(bench, tmp_path, place, value, says, compared):
    other = changed(bench[1], tmp_path, lambda found: put(found, place, value))
    text = complaint(compared(bench[1], other))
    assert says in text
    assert text.rstrip("\n").isprintable()


def test_compare_reads_files_only(bench, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    paths = "/dev/zero", "/dev/tty", str(tmp_path / "pipe"), str(tmp_path), "/dev/fd/0", "no\nsuch\x1bfile"
    code = f"""
from l0rt.cli import main
for path in {paths!r}:
    try:
        main(["bench", "compare", {str(bench[1])!r}, path])
    except SystemExit as end:
        assert end.code == 2
"""
    result = run_python(code, timeout=20)
    assert (result.returncode, result.stdout) == (0, ""), result
    lines = result.stderr.splitlines()
    assert len(lines) == len(paths), result
    assert all(line.startswith("l0rt: error: ") and line.isprintable() for line in lines), result


def test_compare_refuses_an_endless_file(bench, tmp_path):
    other = tmp_path / "other.json"
    with open(other, "wb") as file:
        file.truncate(1 << 40)
    assert "more than 16.00 MiB" in complaint(l0rt("bench", "compare", str(bench[1]), str(other), timeout=20))


def test_pytest_has_the_same_rows_under_the_same_ids():
    args = [sys.executable, "-m", "pytest", ROOT / "bench", "-q", "--collect-only", "-p", "no:cacheprovider"]
    result = run([*args, "-c", ROOT / "pyproject.toml", "--rootdir", ROOT], CPU)
    assert sorted(re.findall(r"::test_row\[(.*)\]", result.stdout)) == sorted(ROWS), result
