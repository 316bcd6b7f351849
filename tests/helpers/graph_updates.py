# SPDX-License-Identifier: Apache-2.0
"""Random programs whose nodes are changed between replays, and what they leave."""

import random

import l0rt
import l0rt.accelerator as acc
import numpy as np

from helpers.graph_programs import COUNT, NBYTES, Program


class Changing(Program):
    """A program with what its nodes do at present. Changes keep to the order that was captured: an operation reads the
    two buffers that it was captured with, or either of them twice, and writes its own or one that nobody reads."""

    def __init__(self, seed, **kwargs):
        super().__init__(seed, **kwargs)
        self.choose = random.Random(seed + 1)
        self.now = [
            {"reads": (x, y), "writes": to, "value": value, "count": COUNT}
            for _, _, to, x, y, value in self.operations
        ]

    def _operation(self, choose):
        while (made := super()._operation(choose))[0] == "draw":
            pass
        return made

    def change(self, nodes, buffers):
        """Change one operation at random: the node, and what is known of it."""
        at = self.choose.randrange(len(self.operations))
        kind, _, to, x, y, _ = self.operations[at]
        now, node = self.now[at], nodes[at][0]
        what = self.choose.choice(("reads", "reads", "writes", "value", "count"))
        if kind in ("fill", "pattern"):
            what = "writes" if what == "writes" else "value"
        elif kind in ("copy", "rows"):
            what = "writes" if what == "writes" else "reads"
        if kind == "temporary":
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
        if kind in ("add", "temporary"):
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
            else:  # two kernels, of which the first is changed
                to[:] = arrays[captured] + (x + y)


def wrong_updates(seed, add, replays=8):
    """Capture a program, replay it with changes in between, and return which buffers differ from the model in the end.

    Most replays are issued while earlier ones may be running: those do what the nodes were then."""
    program = Changing(seed, streams=3, buffers=5, length=24)
    choose = random.Random(seed + 2)
    streams = [l0rt.Stream() for _ in range(program.streams)]
    arrays = [np.full(COUNT, 1 + b, np.float32) for b in range(program.buffers + len(program.operations))]
    buffers = [l0rt.empty(NBYTES).copy_from(array.view(np.uint8)) for array in arrays]
    acc.synchronize()
    graph = acc.Graph(keep_graph=choose.random() < 0.3)
    with acc.graph(graph, stream=streams[0]):
        program.issue(add, buffers, streams)
    work = iter([node for node in graph.nodes if node.kind != "wait"])
    nodes = [[next(work) for _ in range(1 + (kind == "temporary"))] for kind, *_ in program.operations]
    with np.errstate(all="ignore"):
        for _ in range(replays):
            for _ in range(choose.choice((0, 1, 1, 3, 20))):
                program.change(nodes, buffers)
            graph.replay()
            program.model(arrays)
            if choose.random() < 0.2:
                acc.synchronize()
    acc.synchronize()
    wrong = [
        b
        for b, (array, buffer) in enumerate(zip(arrays, buffers, strict=True))
        if buffer.numpy("float32").tobytes() != array.tobytes()
    ]
    graph.reset()
    return wrong
