"""`l0rt bench` measures every row of the registry; its reports can be read, kept and compared. No figure is judged."""

import json
import re
import shutil
import sys

import pytest
from l0rt.cli.bench import SUITES, chosen

from helpers.cli import complaint, l0rt
from helpers.process import run, run_python
from helpers.source import ROOT

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "COLUMNS": None}
ROWS = [row.id for row in chosen(SUITES)]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """Run both suites once, as short as can be; return the result and the report's path."""
    path = tmp_path_factory.mktemp("bench") / "report.json"
    return l0rt("bench", "--smoke", "--json", str(path), env=CPU), path


def test_the_table_names_driver_and_device(bench):
    result, _ = bench
    assert result.returncode == 0, result
    head = result.stdout.split("\n\n")[0]
    assert "libze_l0rt_cpu.so" in "".join(head.split())  # a long path is folded
    assert "l0rt CPU device" in head
    assert "CPU driver: not a GPU" in head
    assert "cores" in head


def test_the_table_has_every_row_in_plain_text_of_eighty_columns(bench):
    result, _ = bench
    for row in ROWS:
        assert re.search(rf"^{re.escape(row)}\b", result.stdout, re.MULTILINE), row
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stderr == ""


def test_the_report_has_every_row(bench):
    result, path = bench
    found = json.loads(path.read_text())
    assert list(found["rows"]) == ROWS
    assert {row: said for row, said in found["rows"].items() if said.get("failed")} == {}
    for row, said in found["rows"].items():
        assert said["skipped"] if "ns" not in said else said["ns"] >= said["min"] >= 0, row
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


def test_instructions_are_counted(tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    path = tmp_path / "report.json"
    result = l0rt("bench", "allocator", "--smoke", "--instructions", "--json", str(path), env=CPU)
    assert result.returncode == 0, result
    found = json.loads(path.read_text())
    notes = {id: row.get("notes", {}) for id, row in found["rows"].items()}
    counts = {id: said["instructions"] for id, said in notes.items() if "instructions" in said}
    assert set(counts) == {row.id for row in chosen({"allocator"}) if row.counts}
    assert min(note["value"] for note in counts.values()) > 50
    assert counts["allocator.malloc_free.4KiB.c"]["limit"] == 160
    assert re.search(r"^allocator\.malloc_free\.4KiB\.c instructions +\d+ ", result.stdout, re.MULTILINE)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_pools_cost_little_inside_and_less_beside():
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    result = run_python("""
from l0rt.cli import counts, rows
budgets = {id: row.budget.instructions for id, row in rows.ROWS.items() if id.startswith("allocator.pool.")}
counted = counts.counted(list(budgets))
assert len(counted) == len(budgets) == 8, counted
assert not {id: (figure, budgets[id]) for id, figure in counted.items() if figure > budgets[id]}, counted
""", env=CPU, timeout=300)
    assert result.returncode == 0, result


def test_without_valgrind_it_says_so(tmp_path):
    path = tmp_path / "report.json"
    result = l0rt(
        "bench", "allocator", "--smoke", "--instructions", "--json", str(path), env={**CPU, "PATH": str(tmp_path)}
    )
    assert result.returncode == 0, result
    assert "no instruction counts: valgrind is not installed" in result.stdout
    assert "valgrind" in json.loads(path.read_text())["uncounted"]


def test_one_suite_alone_as_json_on_stdout():
    result = l0rt("bench", "streams", "--smoke", "--json", "-", env=CPU)
    found = json.loads(result.stdout)
    assert {row["suite"] for row in found["rows"].values()} == {"reference", "streams"}


def test_a_report_compared_with_itself(bench):
    _, path = bench
    result = l0rt("bench", "compare", str(path), str(path))
    assert result.returncode == 0, result
    assert re.search(r"^event\.record\.python +[\d.,]+ \S+ +[\d.,]+ \S+ +1\.00$", result.stdout, re.MULTILINE)
    assert result.stdout.count("CPU driver: not a GPU") == 2
    assert "only in" not in result.stdout


def test_compare_names_what_is_only_in_one(bench, tmp_path):
    _, path = bench
    found = json.loads(path.read_text())
    del found["rows"]["event.record.python"]
    found["rows"]["event.new.python"] = found["rows"]["event.query.python"]
    other = tmp_path / "other.json"
    other.write_text(json.dumps(found))
    result = l0rt("bench", "compare", str(path), str(other))
    assert result.returncode == 0, result
    assert "only in A\n  event.record.python\n\nonly in B\n  event.new.python\n" in result.stdout


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 99, "rows": {}}', '{"format": 1, "rows": {"a": 1}}'])
def test_compare_refuses_what_is_no_report(bench, tmp_path, text):
    other = tmp_path / "other.json"
    other.write_text(text)
    assert "other.json is not" in complaint(l0rt("bench", "compare", str(bench[1]), str(other)))


def test_pytest_has_the_same_rows_under_the_same_ids():
    args = [sys.executable, "-m", "pytest", ROOT / "bench", "-q", "--collect-only", "-p", "no:cacheprovider"]
    result = run([*args, "-c", ROOT / "pyproject.toml", "--rootdir", ROOT], CPU)
    assert sorted(re.findall(r"::test_row\[(.*)\]", result.stdout)) == sorted(ROWS), result
