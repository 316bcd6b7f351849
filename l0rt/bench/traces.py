# SPDX-License-Identifier: Apache-2.0
"""Real allocation traces: loading them, and what is known of them before any replay."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
# Installed, they are package data; in the source tree they lie in their only place, bench/traces.
FOLDERS = (HERE.parent / "trace_data", HERE.parents[2] / "bench" / "traces")
NAMES = ("gpt_train", "conv_train")


@dataclass(frozen=True)
class Trace:
    """What a model allocated and freed, in order, one array an aspect; a slot is free again after its free."""

    ops: np.ndarray  # 0 allocates, 1 frees
    slots: np.ndarray
    sizes: np.ndarray  # bytes as requested, of the allocation also where it is freed
    slot_count: int
    peak: int  # the most bytes that are requested at one time

    def __len__(self):
        return len(self.ops)


def load(name, scale=1):
    """Return the trace ``name`` with every size times ``scale``."""
    folder = next((f for f in FOLDERS if (f / f"{name}.npz").is_file()), None)
    if folder is None:
        raise FileNotFoundError(f"there is no trace {name}.npz in {' or '.join(map(str, FOLDERS))}")
    with np.load(folder / f"{name}.npz") as file:
        return trace_of(file["trace"], scale)


def trace_of(events, scale=1):
    """Return the trace in an array with the fields ``op``, ``id`` and ``size``."""
    ops = np.ascontiguousarray(events["op"], dtype=np.uint8)
    _, numbers = np.unique(events["id"], return_inverse=True)
    size_of = np.zeros(numbers.max(initial=-1) + 1, dtype=np.uint64)
    size_of[numbers[ops == 0]] = events["size"][ops == 0] * np.uint64(scale)
    sizes = size_of[numbers]
    live = np.cumsum(np.where(ops == 0, 1, -1) * sizes.astype(np.int64))
    slots, slot_count = _reused_slots(ops.tolist(), numbers.tolist())
    return Trace(ops, slots, sizes, slot_count, int(live.max(initial=0)))


def _reused_slots(ops, numbers):
    """Number the allocations so that a freed one's number is taken again: few slots stay in the cache."""
    slot_of: dict[int, int] = {}
    free: list[int] = []
    slots = []
    for op, number in zip(ops, numbers, strict=True):
        if op == 0:
            slot_of[number] = free.pop() if free else len(slot_of)
            slots.append(slot_of[number])
        else:
            slots.append(slot_of.pop(number))
            free.append(slots[-1])
    return np.array(slots, dtype=np.uint64), len(slot_of) + len(free)
