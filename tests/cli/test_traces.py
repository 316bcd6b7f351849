# SPDX-License-Identifier: Apache-2.0
"""The recorded traces: they are found, and what is known of them is right."""

import numpy as np
import pytest
from l0rt.bench import traces

FIELDS = [("op", "u1"), ("id", "u4"), ("size", "u8")]


@pytest.mark.parametrize("name", traces.NAMES)
def test_a_trace_is_found_and_well_formed(name):
    trace = traces.load(name)
    live, requested, peak = {}, 0, 0
    for op, slot, size in zip(trace.ops.tolist(), trace.slots.tolist(), trace.sizes.tolist(), strict=True):
        if op == 0:
            assert slot not in live
            live[slot] = size
            requested += size
        else:
            assert live.pop(slot) == size
            requested -= size
        peak = max(peak, requested)
    assert peak == trace.peak
    assert max(trace.slots) == trace.slot_count - 1
    assert traces.load(name, 8).peak == 8 * peak


def test_a_small_trace():
    events = [(0, 7, 100), (0, 3, 50), (1, 7, 0), (0, 9, 10), (1, 9, 10)]
    trace = traces.trace_of(np.array(events, dtype=FIELDS), scale=2)
    assert trace.slots.tolist() == [0, 1, 0, 0, 0]
    assert trace.sizes.tolist() == [200, 100, 200, 20, 20]
    assert (len(trace), trace.slot_count, trace.peak) == (5, 2, 300)


def test_an_empty_trace():
    trace = traces.trace_of(np.array([], dtype=FIELDS))
    assert (len(trace), trace.slot_count, trace.peak) == (0, 0, 0)


def test_a_trace_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="no trace dance.npz"):
        traces.load("dance")
