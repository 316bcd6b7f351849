# SPDX-License-Identifier: Apache-2.0
"""torch's own tools read a snapshot of l0rt: torch.cuda._memory_viz of torch 2.13."""

import os
import pickle

import l0rt
import pytest
from l0rt import memory

if os.environ.get("L0RT_TEST_TORCH") != "1":
    pytest.skip("needs torch==2.13.0 (CPU) beside l0rt: the extra `torch`", allow_module_level=True)
viz = pytest.importorskip("torch.cuda._memory_viz")


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """A snapshot before and one after, read from files."""
    folder = tmp_path_factory.mktemp("snapshots")
    memory.record_memory_history()
    kept = [l0rt.empty(size) for size in (1000, 5 << 20, 24 << 20)]
    memory.dump_snapshot(folder / "before.pickle")
    kept.append(l0rt.empty(48 << 20))
    kept.pop(0).free()
    memory.set_memory_limit(1 << 20)
    with pytest.raises(MemoryError):
        l0rt.empty(256 << 20)
    memory.set_memory_limit(None)
    memory.dump_snapshot(folder / "after.pickle")
    memory.record_memory_history(None)
    return [pickle.loads((folder / f"{name}.pickle").read_bytes()) for name in ("before", "after")]


def test_segments_are_summed(snapshots):
    text = viz.segsum(snapshots[1])
    assert "total_reserved:" in text
    assert f"segments: {len(snapshots[1]['segments'])}" in text


def test_the_trace_is_told(snapshots):
    text = viz.trace(snapshots[1])
    assert " = seg_" in text
    assert "OutOfMemoryError" in text


def test_flame_graphs_have_the_stacks(snapshots):
    for told in (viz.segments, viz.memory):
        lines = told(snapshots[1], format_flamegraph=lambda lines: lines)
        assert f"{os.path.basename(__file__)}" in lines
    before, after = (shot["segments"] for shot in snapshots)
    assert "only_after" in viz.compare(before, after, format_flamegraph=lambda lines: lines)


@pytest.mark.parametrize("plot", ["trace_plot", "segment_plot"])
def test_pages_contain_the_snapshot(snapshots, plot):
    assert "snapshot.pickle" in getattr(viz, plot)(snapshots[1])
