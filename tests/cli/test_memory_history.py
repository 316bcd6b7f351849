# SPDX-License-Identifier: Apache-2.0
"""What `l0rt memory` makes of a snapshot: the bytes at each moment, as a plain replay of the entries has them."""

import random

import numpy as np
import pytest
from l0rt.cli.memory.history import histories
from l0rt.cli.memory.stacks import BadSnapshot
from l0rt.cli.memory.summary import changes, summary

from helpers.snapshots import BASE, Machine, entry, frame, snapshot, trained


def only(value):
    """Return the stacks of a snapshot, and its only history."""
    stacks, found = histories(value)
    assert len(found) == 1
    return stacks, found[0]


def replayed(trace, before=0):
    """Return the bytes that are allocated after each number of entries, of a history that begins with nothing."""
    live, total, found = {}, before, [before]
    for one in trace:
        if one["action"] == "alloc":
            live[one["addr"]] = one["size"]
            total += one["size"]
        elif one["action"] == "free_requested":
            total -= live.pop(one["addr"])
        found.append(total)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_each_moment_has_the_bytes_that_a_replay_has(seed):
    machine = trained(2500, seed)
    _, history = only(snapshot(machine))
    assert history.allocated.tolist() == replayed(machine.trace)
    assert (history.peak, history.allocated[-1]) == (machine.peak, machine.allocated)
    assert history.reserved[-1] == sum(total for _, total in machine.segments)
    assert (history.unmatched, history.lost) == (0, 0)
    moment = history.peak_moment
    assert sum(nbytes for nbytes, _ in history.sums("tag", moment).values()) == machine.peak
    assert sum(nbytes for nbytes, _ in history.sums("node", moment).values()) == machine.peak


@pytest.mark.parametrize("lost", [1, 100, 777, 2000])
def test_a_history_whose_beginning_was_overwritten_has_the_same_bytes(lost):
    """What its frees and the last segments tell of the time before is enough."""
    machine = trained(2500, 5)
    whole = only(snapshot(machine))[1]
    value = snapshot(machine)
    value["device_traces"] = [machine.trace[lost:]]
    if machine.trace[lost]["action"] == "free_completed":  # of what was freed before: not allocated any more
        value["device_traces"] = [machine.trace[lost + 1 :]]
        lost += 1
    part = only(value)[1]
    assert part.allocated.tolist() == whole.allocated[lost:].tolist()
    assert part.reserved.tolist() == whole.reserved[lost:].tolist()


def test_what_streams_still_use_is_not_allocated_and_not_free():
    trace = [
        entry("alloc", BASE, 1000, 1),
        entry("free_requested", BASE, 1000, 2),
        entry("alloc", BASE + 1024, 5, 3),
        entry("free_completed", BASE, 1000, 4),
    ]
    history = only({"segments": [], "device_traces": [trace]})[1]
    assert history.allocated.tolist() == [0, 1000, 0, 5, 5]
    assert history.pending.tolist() == [0, 0, 1000, 1000, 0]
    trace.pop()
    block = {"address": BASE, "size": 1024, "requested_size": 1000, "state": "active_pending_free"}
    rest = {"address": BASE + 1024, "size": 512, "requested_size": 5, "state": "active_allocated"}
    segment = {"device": 0, "address": BASE, "total_size": 1536, "stream": 0, "blocks": [block, rest]}
    for state in ("active_pending_free", "active_awaiting_free"):
        block["state"] = state
        for entries in (trace, []):
            history = only({"segments": [segment], "device_traces": [entries]})[1]
            assert (history.allocated[-1], history.pending[-1], history.reserved[-1]) == (5, 1000, 1536)


def test_one_kind_of_free_alone_is_an_end():
    for action in ("free_requested", "free_completed", "free"):
        trace = [entry("alloc", BASE, 10, 1), entry(action, BASE, 10, 2)]
        history = only({"segments": [], "device_traces": [trace]})[1]
        assert (history.allocated.tolist(), history.pending.tolist()) == ([0, 10, 0], [0, 0, 0])


def test_an_end_that_no_entry_tells_is_seen():
    """The same address again, or segments that have nothing there."""
    trace = [entry("alloc", BASE, 10, 1), entry("alloc", BASE, 20, 2), entry("alloc", BASE + 512, 40, 3)]
    history = only({"segments": [], "device_traces": [trace]})[1]
    assert history.allocated.tolist() == [0, 10, 20, 60]
    block = {"size": 512, "requested_size": 20, "state": "active_allocated"}
    free = {"size": 512, "requested_size": 0, "state": "inactive"}  # neither has an address: they are in order
    segment = {"device": 0, "address": BASE, "total_size": 1024, "stream": 0, "blocks": [block, free]}
    history = only({"segments": [segment], "device_traces": [trace]})[1]
    assert (history.allocated.tolist(), history.lost) == ([0, 10, 20, 20], 1)
    assert history.largest_cached == 512


def mapped(trace, final):
    """Return the bytes that have memory at each moment, page by page."""
    pages, found = set(final), [len(final)]
    for one in reversed(trace):
        touched = set(range(one["addr"], one["addr"] + one["size"]))
        pages = pages - touched if one["action"] in ("segment_alloc", "segment_map") else pages | touched
        found.append(len(pages))
    return found[::-1]


@pytest.mark.parametrize("seed", range(40))
def test_memory_that_is_mapped_and_unmapped_in_parts_is_what_the_pages_say(seed):
    draw = random.Random(seed)
    pages, trace = set(range(8)) if seed % 2 else set(), []
    first = set(pages)
    while len(trace) < 30:
        low = draw.randrange(30)
        touched = set(range(low, low + draw.randrange(1, 9)))
        action = None
        if touched <= pages:
            action, pages = "segment_unmap", pages - touched
        elif not touched & pages:
            action, pages = "segment_map", pages | touched
        if action:
            trace.append(entry(action, low, len(touched), len(trace)))
    segments = []
    for page in sorted(pages):
        if segments and segments[-1]["address"] + segments[-1]["total_size"] == page:
            segments[-1]["total_size"] += 1
        else:
            segments.append({"device": 0, "address": page, "total_size": 1, "stream": 0, "blocks": []})
    if not segments:
        pytest.skip("nothing is mapped at the end: the rest is the test below")
    history = only({"segments": segments, "device_traces": [trace]})[1]
    assert history.reserved.tolist() == mapped(trace, pages)
    assert history.reserved[0] == len(first)


def test_a_history_without_segments_has_what_its_entries_map():
    trace = [entry("segment_alloc", BASE, 100, 1), entry("segment_map", 0, 7, 2), entry("segment_free", BASE, 100, 3)]
    assert only({"segments": [], "device_traces": [trace]})[1].reserved.tolist() == [0, 100, 107, 7]


def test_a_snapshot_without_a_history_has_its_end():
    machine = trained(1000)
    value = snapshot(machine)
    value["device_traces"] = [[]]
    stacks, history = only(value)
    assert history.allocated.tolist() == [machine.allocated]
    assert history.reserved.tolist() == [sum(total for _, total in machine.segments)]
    told = summary(stacks, history)
    assert (told["at"]["allocated"], told["entries"], told["at"]["us"]) == (machine.allocated, 0, 0)
    assert "layer_" in told["stacks"][0]["name"]


def test_devices_and_host_memory_are_apart():
    first, second = trained(500, 1, 0), trained(700, 2, 2)
    value = snapshot(first, second)
    value["device_traces"] = [first.trace, [], second.trace]
    value["host_segments"] = []
    value["host_traces"] = [[entry("alloc", BASE, 64, 1)]]
    _, found = histories(value)
    assert [history.name for history in found] == ["device 0", "device 2", "host 0"]
    assert [history.peak for history in found] == [first.peak, second.peak, 64]


def test_failures_annotations_and_clocks_that_step_back():
    trace = [entry("alloc", BASE, 8, 100), entry("oom", 0, 1 << 40, 90, device_free=77), entry("snapshot", 0, 0, 120)]
    del trace[1]["addr"]
    notes = [{"device": 0, "time_us": 110, "name": "step", "stage": "END"},
             {"device": 0, "time_us": 95, "name": "step", "stage": "START"},
             {"device": 1, "time_us": 95, "name": "other", "stage": "START"}]  # fmt: skip
    history = only({"segments": [], "device_traces": [trace], "external_annotations": notes})[1]
    assert history.failures == [(1, 1 << 40, 77)]
    assert history.time.tolist() == [100, 100, 120]
    assert history.annotations == [(0, "step", True), (2, "step", False)]


def test_annotations_of_one_moment_keep_their_order():
    """A range that takes less than a microsecond ends after it has begun."""
    notes = [{"device": 0, "time_us": 95, "name": "step", "stage": stage} for stage in ("START", "END") * 2]
    trace = [entry("alloc", BASE, 8, 100)]
    history = only({"segments": [], "device_traces": [trace], "external_annotations": notes})[1]
    assert history.annotations == [(0, "step", True), (0, "step", False)] * 2


def test_equal_stacks_are_one_whatever_objects_they_are():
    frames = [frame("inner", 1), frame("outer", 2)]
    copies = [dict(one) for one in frames]
    trace = [entry("alloc", BASE, 8, 1, 0, frames), entry("alloc", BASE + 512, 8, 2, 0, copies)]
    stacks, history = only({"segments": [], "device_traces": [trace]})
    assert len(set(history.columns["node"].tolist())) == 1
    assert stacks.path(int(history.columns["node"][0])) == [
        ("inner", "/home/user/train.py", 1),
        ("outer", "/home/user/train.py", 2),
    ]


def test_a_tag_is_a_category_and_without_any_what_the_program_annotated():
    trace = [entry("alloc", BASE, 8, 1), entry("alloc", BASE + 512, 8, 2)]
    trace[0]["user_metadata"] = "step 1"
    history = only({"segments": [], "device_traces": [trace]})[1]
    assert history.tags.texts() == ["(no tag)", "step 1"]
    trace[1]["category"] = "weights"
    history = only({"segments": [], "device_traces": [trace]})[1]
    assert history.tags.texts() == ["(no tag)", "weights"]
    assert [history.tags.texts()[tag] for tag in history.columns["tag"]] == ["(no tag)", "weights"]


def test_addresses_of_the_upper_half_and_native_streams_are_kept():
    high = 0xFFFF_8000_0000_0000
    history = only({"segments": [], "device_traces": [[entry("alloc", high, 8, 1, 0x5555_0000_1000)]]})[1]
    assert history.columns["address"].dtype == np.uint64
    assert history.columns["address"].tolist() == [high]
    assert history.streams.texts() == ["0x555500001000"]


def test_what_differs_is_told_by_tag_and_by_stack():
    first, second = Machine(seed=3), Machine(seed=3)
    for machine in (first, second):
        for _ in range(10):
            machine.alloc(1 << 20, 0, "weights")
    second.alloc(5 << 20, 0, "activations")
    told = changes(only(snapshot(first)), only(snapshot(second)))
    assert [(row["name"], row["values"]) for row in told["tags"]] == [("activations", [0, 5 << 20])]
    assert len(told["stacks"]) == 1
    assert {row["name"]: row["values"] for row in told["figures"]}["allocated"] == [10 << 20, 15 << 20]
    assert changes(only(snapshot(first)), only(snapshot(first)))["stacks"] == []


def test_more_bytes_than_a_page_can_count_are_refused():
    trace = [entry("alloc", k << 40, (1 << 53) - 1, k) for k in range(3)]
    with pytest.raises(BadSnapshot, match="more bytes than any memory"):
        histories({"segments": [], "device_traces": [trace]})
