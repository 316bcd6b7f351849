# SPDX-License-Identifier: Apache-2.0
"""Random programs whose nodes are changed between replays, and what they leave."""

import random

import l0rt.accelerator as acc
import numpy as np

from helpers.graph_programs import COUNT, Memory, Program, adds_of, synchronize

NODES = {"temporary": 2, "pooled": 2, "freed": 2, "call": 3}  # of an operation; others have one


class Changing(Program):
    """A program with what its nodes do at present. Changes keep to the order that was captured: an operation reads the
    two buffers that it was captured with, or either of them twice, and writes its own or one that nobody reads."""

    KINDS = tuple(kind for kind in Program.KINDS if kind not in ("draw", "staged"))

    def __init__(self, seed, **kwargs):
        super().__init__(seed, **kwargs)
        self.choose = random.Random(seed + 1)
        self.now = [
            {"reads": (x, y), "writes": to, "value": value, "count": COUNT}
            for _, _, to, x, y, value in self.operations
        ]

    def arrays(self):
        """With one for each operation, which nobody reads."""
        return [np.full(COUNT, 1 + b, np.float32) for b in range(self.buffers + len(self.operations))]

    def change(self, nodes, buffers):
        """Change one operation at random: the node, and what is known of it."""
        at = self.choose.choice([at for at in range(len(self.operations)) if at not in self.calls])
        kind, _, to, x, y, _ = self.operations[at]
        now, node = self.now[at], nodes[at][0]
        what = self.choose.choice(("reads", "reads", "writes", "value", "count"))
        if kind in ("fill", "pattern"):
            what = "writes" if what == "writes" else "value"
        elif kind in ("copy", "rows"):
            what = "writes" if what == "writes" else "reads"
        if kind in ("temporary", "pooled", "freed"):
            what = "reads"
        if what == "reads":
            now["reads"] = self.choose.choice((x, y)), self.choose.choice((x, y))
        elif what == "writes":
            now["writes"] = self.choose.choice((to, self.buffers + at))
        elif what == "value":
            now["value"] = self.choose.randrange(1, 9)
        else:
            now["count"] = self.choose.randrange(COUNT + 1)
        self._update(kind, node, what, now, buffers)

    def _update(self, kind, node, what, now, buffers):
        one, two = now["reads"]
        if kind in ("add", "temporary", "pooled", "freed"):
            groups = self.choose.choice(({}, {"groups": 1, "group_size": COUNT}, {"groups": 4, "group_size": 16}))
            writes = {0: buffers[now["writes"]]} if what == "writes" else {}
            count = {3: now["count"]} if what == "count" else {}
            reads = {1: buffers[one], 2: buffers[two]} if what == "reads" else {}
            node.update(args={**writes, **count, **reads}, **groups)
        elif what == "value":
            node.update(value=now["value"] if kind == "fill" else np.float32(now["value"]).tobytes())
        elif what == "writes":
            node.update(dst=buffers[now["writes"]] if self.choose.random() < 0.5 else buffers[now["writes"]].ptr)
        elif kind == "copy":
            node.update(src=buffers[one])
        else:
            node.update(src=buffers[one].ptr + 16)

    def model(self, arrays):
        for (kind, _, _, captured, _, _), now in zip(self.operations, self.now, strict=True):
            x, y, to = (arrays[b] for b in (*now["reads"], now["writes"]))
            if kind == "add":
                to[: now["count"]] = x[: now["count"]] + y[: now["count"]]
            elif kind == "copy":
                to[:] = x
            elif kind == "rows":
                to.reshape(8, 8)[:, :4] = x.reshape(8, 8)[:, 4:]
            elif kind == "fill":
                to.view(np.uint8)[:] = now["value"]
            elif kind == "pattern":
                to[:] = now["value"]
            elif kind != "call":  # two kernels, of which the first is changed
                to[:] = arrays[captured] + (x + y)


def wrong_updates(seed, add, replays=8):
    """Capture a program, replay it with changes in between, and return what differs from the model in the end.

    Most replays are issued while earlier ones may be running: those do what the nodes were then."""
    devices = min(acc.device_count(), 2 if seed % 3 == 2 else 1)
    program = Changing(seed, streams=3, buffers=5, length=24, devices=devices)
    choose = random.Random(seed + 2)
    streams, memory, arrays = program.make_streams(), Memory(program), program.arrays()
    graph = acc.Graph(keep_graph=choose.random() < 0.3)
    with adds_of(add, devices) as adds, np.errstate(all="ignore"):
        with acc.graph(graph, stream=streams[0]):
            program.issue(adds, memory, streams)
        work = iter([node for node in graph.nodes if node.kind != "wait"])
        nodes = [[next(work) for _ in range(NODES.get(kind, 1))] for kind, *_ in program.operations]
        for _ in range(replays):
            for _ in range(choose.choice((0, 1, 1, 3, 20))):
                program.change(nodes, memory.buffers)
            graph.replay()
            program.model(arrays)
            if choose.random() < 0.2:
                synchronize()
        wrong = memory.differs(arrays) + memory.wrong_calls(program, replays, False)
        graph.reset()
    return wrong
