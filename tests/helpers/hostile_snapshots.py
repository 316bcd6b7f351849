# SPDX-License-Identifier: Apache-2.0
"""Snapshots that say as much as a file of some size can: what they have most of grows with the file.

A pickle has an object that occurs again as two bytes. So a list of a file can be in it thousands of times, and whatever
looks at all of it each time takes time that grows with the square of the file.
"""

import io
import pickle
import random
import time

from l0rt.bench import report
from l0rt.cli.memory import page, snapshot, summary, tables
from l0rt.cli.memory.history import ACTIONS, histories
from l0rt.cli.memory.snapshot import NotASnapshot
from l0rt.cli.memory.stacks import BadSnapshot

BASE = 1 << 40
PAGE = 1 << 21
# What may be as much as the file allows; everything else is as much as ever.
WIDTHS = ("devices", "entries", "traces", "annotations", "keys", "frames", "stacks", "segments", "blocks", "letters",
          "digits")  # fmt: skip
KINDS = [kind for kind in ACTIONS if kind != "free"]


class Hostile:
    """The snapshot of a seed, of about ``size`` bytes. The same seed has the same shape with every size."""

    def __init__(self, seed, size):
        self.draw, self.size = random.Random(seed), size
        wide = self.draw.sample(WIDTHS, 2)  # whose product something may look at
        self.widths = {name: max(size // 16, 3) if name in wide else 3 for name in WIDTHS}
        self.kinds = self.draw.choices(KINDS, k=self.draw.randrange(1, 4))
        self.is_shared = self.draw.random() < 0.7
        self.pattern = self.draw.choice(("up", "down", "low", "one"))

    def value(self):
        """Return the snapshot as plain values."""
        width, draw = self.widths, self.draw
        wide = {f"key {k}": k for k in range(width["keys"])} | {
            "text": "x" * width["letters"], "number": (1 << 8 * width["digits"]) - 1}  # fmt: skip
        if draw.random() < 0.3:
            wide[draw.choice(("size", "addr", "stream", "time_us", "device", "line"))] = wide["number"]
        calls = [{"filename": "f.py", "line": k, "name": f"f{k}"} for k in range(width["frames"])]
        stacks = [calls, *([{**calls[0], "line": k}] for k in range(width["stacks"]))]
        own = [self.entry(k, wide, stacks) for k in range(1 if self.is_shared else max(width["entries"] // 16, 1))]
        trace = (own * (width["entries"] // len(own) + 1))[: width["entries"]]
        devices = min(width["devices"], draw.choice((8, 1 << 16)))
        traces = [trace] * min(width["traces"], 8) + [own[:1]] * (devices - 3)
        block = {"size": 512, "state": "active_allocated", "frames": calls, **wide}
        segment = {"address": BASE, "total_size": PAGE, "blocks": [block] * width["blocks"], **wide}
        note = {"name": "x" * width["letters"], "stage": "START", "time_us": 5}
        return {
            "segments": [segment] * width["segments"],
            "device_traces": traces,
            "external_annotations": [{**note, "device": k % 3} for k in range(3)] * (width["annotations"] // 3),
        }

    def entry(self, k, wide, stacks):
        place = {"up": k, "down": (1 << 18) - k, "low": (1 << 18) - 2 * k if k % 2 else 0, "one": 0}[self.pattern]
        return {
            "action": self.kinds[k % len(self.kinds)], "addr": BASE + place * 2 * PAGE, "size": PAGE, "time_us": k,
            "device_free": 1, "frames": stacks[k % len(stacks)], "user_metadata": f"{k % 3}", **wide,
        }  # fmt: skip


def work(path):
    """Do with a file what the commands do; return why it was refused, or nothing."""
    try:
        tree, found = histories(snapshot.load(path))
        out = report.console(io.StringIO())
        for history in found:
            for at in ("peak", "end"):
                tables.show(summary.summary(tree, history, at), out, "x")
            tables.show_changes(summary.changes((tree, history), (tree, history)), out, ["a", "b"])
        page.page("x", tree, found)
    except (NotASnapshot, BadSnapshot) as e:
        return str(e)
    return ""


def seconds(seed, size, path, tries=1):
    """Return the least processor time of a seed's file of a size, and the bytes that it has."""
    path.write_bytes(pickle.dumps(Hostile(seed, size).value(), protocol=4))
    taken = []
    for _ in range(tries):
        start = time.process_time()
        work(path)
        taken.append(time.process_time() - start)
    return min(taken), path.stat().st_size


def growth(seed, folder, small=32 << 10, factor=8):
    """Return by how much more than the bytes the time of a seed grows, if its file has ``factor`` times the bytes; what
    takes less than a twentieth of a second has no time that could be judged."""
    first, few = seconds(seed, small, folder / "small")
    last, many = seconds(seed, small * factor, folder / "large")
    return 0.0 if last < 0.05 else last / first / (many / few)
