# SPDX-License-Identifier: Apache-2.0
"""A real trace is replayed until memory runs out. `l0rt memory`, its page in a browser and torch's viewer read the
snapshot that is written then: the peak is that of the statistics, of the trace and of a model."""

import ast
import base64
import json
import os
import pickle
import re

import pytest
from l0rt.cli.memory import page, snapshot
from l0rt.cli.memory.history import histories

from helpers import browser
from helpers.cli import l0rt
from helpers.histories import Model
from helpers.process import run_python

# The trace from the first allocation on; then memory that stays, and more than the limit allows.
REPLAY = """
import json
import l0rt
import l0rt.accelerator as acc
from l0rt import memory
from l0rt.bench import traces

acc.current_device_index()
trace = traces.load("gpt_train")
memory.record_memory_history({arguments})
memory.enable_oom_snapshot("oom.pickle")
blocks = {{}}
for count, (op, slot, size) in enumerate(zip(trace.ops.tolist(), trace.slots.tolist(), trace.sizes.tolist())):
    if count == len(trace.ops) // 2:
        memory.dump_snapshot("half.pickle")
    if op == 0:
        with memory.tag("small" if size < 1 << 20 else "large"):
            blocks[slot] = l0rt.empty(size)
    else:
        blocks.pop(slot).free()
kept = l0rt.empty(5 << 20)
memory.set_memory_limit(memory.memory_reserved())
try:
    l0rt.empty(acc.get_memory_info()[1] // 2)
except MemoryError as error:
    told = str(error)
stats = memory.memory_stats()
print(json.dumps({{
    "told": told,
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
    (path,) = folder.glob("oom-*.1.pickle")
    said = json.loads(result.stdout)
    assert path.name in said["told"]
    stacks, found = histories(snapshot.load(path.rename(folder / "oom.1.pickle")))
    (history,) = [one for one in found if one.name == "device 0"]
    return said, stacks, history


@pytest.fixture(scope="module")
def replay(tmp_path_factory):
    """The replay of the trace, and the folder of its snapshot."""
    folder = tmp_path_factory.mktemp("recorded")
    return folder, *recorded(folder)


def test_a_model_of_the_entries_has_the_same_peak_and_the_same_end(replay):
    folder, said, _, _ = replay
    whole = snapshot.load(folder / "oom.1.pickle")
    model = Model().play(whole["device_traces"][0])
    assert model.peak == said["peak"] == said["trace"]
    model.check([one for one in whole["segments"] if one["device"] == 0])
    assert [one["action"] for one in whole["device_traces"][0]].count("oom") == 1


def test_the_peak_is_that_of_the_statistics(replay):
    _, said, stacks, history = replay
    assert history.peak == said["peak"] == said["trace"]
    assert history.allocated[-1] == said["end"]
    assert history.reserved[-1] == said["reserved"]
    assert (history.unmatched, history.lost) == (0, 0)
    assert set(history.tags.texts()) == {"(no tag)", "small", "large"}
    assert len(history.failures) == 1
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
    path = folder / "oom.html"
    path.write_text(page.page("oom.1.pickle", stacks, [history]))
    with browser.opened() as opened:
        browser.show(opened, path)
        assert f"{said['peak']:,} bytes" in opened.find_element("id", "figures").text
        assert opened.execute_script("return l0rt.device.allocated[l0rt.device.peakMoment]") == said["peak"]
        assert opened.execute_script("return Array.from(l0rt.device.allocated)") == history.allocated.tolist()
        assert opened.execute_script("return Array.from(l0rt.device.reserved)") == history.reserved.tolist()


def test_the_report_tells_of_it(replay):
    folder, said, _, _ = replay
    told = l0rt("memory", "report", "oom.1.pickle", cwd=folder).stdout
    assert f"({said['peak']:,} bytes)" in told
    (found,) = json.loads(l0rt("memory", "report", "oom.1.pickle", "--json", "--at", "end", cwd=folder).stdout)
    assert found["at"]["allocated"] == said["end"]


@pytest.fixture
def viz():
    """torch's own viewer."""
    if os.environ.get("L0RT_TEST_TORCH") != "1":
        pytest.skip("needs torch==2.13.0 (CPU) beside l0rt: the extra `torch`")
    return pytest.importorskip("torch.cuda._memory_viz")


def bytes_of(folded):
    """Return the sum of what flamegraph.pl reads: a stack and a number in each line."""
    return sum(int(line.rpartition(" ")[2]) for line in folded.splitlines())


def test_torchs_viewer_reads_the_same(replay, viz):
    folder, said, _, history = replay
    half, whole = (pickle.loads((folder / name).read_bytes()) for name in ("half.pickle", "oom.1.pickle"))
    text = viz.segsum(whole)
    assert f"segments: {len(whole['segments'])}" in text
    assert f"total_reserved: {viz.Bytes(said['reserved'])}" in text
    told = viz.trace(whole)
    trace = whole["device_traces"][0]
    assert f"{len(trace)} entries" in told
    allocated = len(re.findall(r"^\w+ = (?:\w+)\[\d+:", told, re.MULTILINE))
    assert allocated == sum(one["action"] == "alloc" for one in trace)
    assert "raise OutOfMemoryError # " in told
    same = {"format_flamegraph": lambda lines: lines}
    for told in viz.segments, viz.memory:
        assert bytes_of(told(whole, **same)) == said["reserved"]
    assert "only_after" in viz.compare(half["segments"], whole["segments"], **same)
    for plot in viz.trace_plot, viz.segment_plot:
        (packed,) = re.findall(r'"base64":\s*("[^"]*")', plot(whole))
        inside = pickle.loads(base64.b64decode(ast.literal_eval(packed)))
        assert inside == whole
        assert histories(inside)[1][0].peak == history.peak
