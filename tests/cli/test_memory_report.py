# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory report` and `diff` print what docs/viewer.md shows, and the same as JSON."""

import json
import re

import pytest

from helpers.cli import l0rt
from helpers.snapshots import BASE, documented, entry, trained, write
from helpers.snapshots import snapshot as made
from helpers.source import ROOT

DOCS = ROOT / "docs/viewer.md"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the snapshots of the documentation."""
    path = tmp_path_factory.mktemp("snapshots")
    write(path / "leak.pickle", documented())
    write(path / "fixed.pickle", documented(leak=False))
    return path


def examples():
    """Return the commands of the page, and what it says that they print."""
    text = DOCS.read_text()
    blocks = re.findall(r"^    \$ l0rt (memory .*)\n((?:    .*\n|\n(?=    ))+)", text, re.MULTILINE)
    return [(words.split(), re.sub(r"^    ", "", body, flags=re.MULTILINE)) for words, body in blocks]


@pytest.mark.parametrize(("words", "printed"), examples(), ids=["report", "diff"])
def test_the_page_shows_what_the_command_prints(folder, words, printed):
    result = l0rt(*words, cwd=folder)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout == printed


def test_the_page_has_every_command_and_every_option():
    assert [words[1] for words, _ in examples()] == ["report", "diff"]
    usage = DOCS.read_text().partition("\n\n")[2].partition("\n\n")[0]
    for name in ("view", "report", "diff", "watch"):
        told = l0rt("memory", name, "--help").stdout
        line = next(line for line in usage.splitlines() if f"memory {name} " in line)
        assert set(re.findall(r"--[a-z]+", line)) == set(re.findall(r"--[a-z]+", told)) - {"--help", "--output"}
    for name in "viewer", "viewer-dark":
        assert f"({name}.png)" in (ROOT / "docs/viewer.md").read_text()
        assert (ROOT / f"docs/{name}.png").stat().st_size < 150_000


def test_the_json_has_what_the_text_has(folder):
    (found,) = json.loads(l0rt("memory", "report", "leak.pickle", "--json", "--top", "3", cwd=folder).stdout)
    text = l0rt("memory", "report", "leak.pickle", "--top", "3", cwd=folder).stdout
    assert f"({found['peak']['bytes']:,} bytes)" in text
    assert found["stacks"][0]["name"] in text
    assert sum(row["bytes"] for row in found["stacks"]) == sum(row["bytes"] for row in found["tags"])
    assert sum(row["bytes"] for row in found["tags"]) == found["at"]["allocated"] == found["peak"]["bytes"]
    (found,) = json.loads(l0rt("memory", "diff", "fixed.pickle", "leak.pickle", "--json", cwd=folder).stdout)
    assert [row["values"] for row in found["stacks"]] == [[0, 128 << 20]]


def test_a_moment_can_be_named(folder):
    def at(word):
        (found,) = json.loads(l0rt("memory", "report", "leak.pickle", "--json", "--at", word, cwd=folder).stdout)
        return found["at"]["entry"], found["at"]["allocated"], found

    assert at("0")[:2] == (0, 0)
    entry_, allocated, found = at("end")
    assert (entry_, allocated) == (found["entries"], found["end"]["allocated"])
    assert at("999999999")[:2] == (entry_, allocated)
    assert at("peak")[1] == found["peak"]["bytes"]


def test_all_devices_are_told_or_one(tmp_path):
    value = made(trained(300, 1, 0), trained(300, 2, 1))
    path = write(tmp_path / "two", value)
    assert re.findall(r"two, (.*)", l0rt("memory", "report", path).stdout) == ["device 0", "device 1"]
    assert re.findall(r"two, (.*)", l0rt("memory", "report", path, "--device", "1").stdout) == ["device 1"]
    told = l0rt("memory", "diff", path, path).stdout
    assert told.count("Every stack has the same bytes in both.") == 2


def test_failures_frees_of_before_and_lost_frees_are_told(tmp_path):
    trace = [
        entry("free_completed", BASE, 512, 1),
        entry("alloc", BASE, 100, 2, tag="x\x1b[31m\ny"),
        entry("oom", 0, 3 << 30, 3, device_free=1 << 20),
    ]
    segment = {"device": 0, "address": BASE, "total_size": 1024, "stream": 0, "blocks": []}
    path = write(tmp_path / "x", {"segments": [segment], "device_traces": [trace]})
    told = l0rt("memory", "report", path).stdout
    assert "out of memory at entry 3: requested 3.00 GiB, free 1.00 MiB" in told
    assert "1 frees of what was allocated before the first entry" in told
    assert "1 allocations whose frees the history does not have" in told
    told = l0rt("memory", "report", path, "--at", "2").stdout
    assert "x\\x1b[31m\\ny" in told
    assert "\x1b" not in told


def test_a_narrow_terminal_and_no_rows_are_fine(folder):
    result = l0rt("memory", "report", "leak.pickle", "--top", "0", cwd=folder, env={"COLUMNS": "20"})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert "more)" in result.stdout
