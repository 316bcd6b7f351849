# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory` reads what l0rt itself recorded: the peak is that of the statistics, and a browser shows the same."""

import json

import pytest
from l0rt.cli.memory import page, snapshot
from l0rt.cli.memory.history import histories

from helpers import browser
from helpers.cli import l0rt
from helpers.process import run_python

# A real trace, from the first allocation on; then memory that stays.
REPLAY = """
import json
import l0rt
import l0rt.accelerator as acc
from l0rt import memory
from l0rt.cli import traces

acc.current_device_index()
trace = traces.load("gpt_train")
memory.record_memory_history({arguments})
blocks = {{}}
for op, slot, size in zip(trace.ops.tolist(), trace.slots.tolist(), trace.sizes.tolist()):
    if op == 0:
        with memory.tag("small" if size < 1 << 20 else "large"):
            blocks[slot] = l0rt.empty(size)
    else:
        blocks.pop(slot).free()
kept = l0rt.empty(5 << 20)
stats = memory.memory_stats()
memory.dump_snapshot("x.pickle")
print(json.dumps({{
    "trace": trace.peak,
    "peak": stats["requested_bytes.all.peak"],
    "end": stats["requested_bytes.all.current"],
    "reserved": stats["reserved_bytes.all.current"],
}}))
"""


def recorded(folder, arguments=""):
    """Return what the statistics say, and the stacks and the history of the file that was written."""
    result = run_python(REPLAY.format(arguments=arguments), {"L0RT_DRIVER": "cpu"}, cwd=folder)
    assert result.returncode == 0, result
    stacks, found = histories(snapshot.load(folder / "x.pickle"))
    (history,) = [one for one in found if one.name == "device 0"]
    return json.loads(result.stdout), stacks, history


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """The replay of the trace, and the folder of its snapshot."""
    folder = tmp_path_factory.mktemp("recorded")
    return folder, *recorded(folder)


def test_the_peak_is_that_of_the_statistics(replay):
    _, said, stacks, history = replay
    assert history.peak == said["peak"] == said["trace"]
    assert history.allocated[-1] == said["end"]
    assert history.reserved[-1] == said["reserved"]
    assert (history.unmatched, history.lost) == (0, 0)
    assert set(history.tags.texts()) == {"(no tag)", "small", "large"}
    node = int(history.columns["node"][0])
    assert stacks.path(node)[0][0] == "<module>"


def test_a_short_history_has_the_same_end(replay, tmp_path):
    said, _, part = recorded(tmp_path, "max_entries=1000")
    assert part.entries < replay[3].entries
    assert part.allocated[-1] == said["end"] == 5 << 20
    assert part.reserved[-1] == said["reserved"]


def test_a_browser_shows_the_same_peak_to_the_byte(replay):
    browser.need()
    folder, said, stacks, history = replay
    path = folder / "x.html"
    path.write_text(page.page("x.pickle", stacks, [history]))
    with browser.opened() as opened:
        browser.show(opened, path)
        assert f"{said['peak']:,} bytes" in opened.find_element("id", "figures").text
        assert opened.execute_script("return l0rt.device.allocated[l0rt.device.peakMoment]") == said["peak"]
        assert opened.execute_script("return Array.from(l0rt.device.allocated)") == history.allocated.tolist()
        assert opened.execute_script("return Array.from(l0rt.device.reserved)") == history.reserved.tolist()


def test_the_report_tells_of_it(replay):
    folder, said, _, _ = replay
    told = l0rt("memory", "report", "x.pickle", cwd=folder).stdout
    assert f"({said['peak']:,} bytes)" in told
    (found,) = json.loads(l0rt("memory", "report", "x.pickle", "--json", "--at", "end", cwd=folder).stdout)
    assert found["at"]["allocated"] == said["end"]
