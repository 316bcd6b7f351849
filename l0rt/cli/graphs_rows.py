# SPDX-License-Identifier: Apache-2.0
"""The graphs' rows: a replay beside issuing the same launches again, what a capture takes in time and memory."""

import ctypes
import time
from importlib.resources import files

import l0rt
import l0rt.accelerator as acc
import l0rt.cli.launch_loops as launch_loops
from l0rt.cli.lab import Gated
from l0rt.cli.rows import Note, Work, python, suite

row = suite("graphs")
NODES = 1000
MOST_BYTES = 1024  # of host memory a node


class Launches:
    """A module, a stream, and a thousand launches of one work-item with four arguments."""

    def __init__(self, lab):
        code = (files("l0rt.cli") / "saxpy.spv").read_bytes()
        self.x, self.y = l0rt.empty(4).fill(0), l0rt.empty(4).fill(0)
        self.module, self.stream = l0rt.Module(code), acc.Stream()
        self.bare = launch_loops.Saxpy(lab.context, lab.device, code, self.y.ptr, self.x.ptr)
        self.launch = self.module["saxpy"][1, 1]

    def __enter__(self):
        self.stream.__enter__()
        return self

    def __exit__(self, *error):
        self.stream.synchronize()
        self.stream.__exit__(None, None, None)
        self.module.close()

    def from_python(self):
        """Return a loop that issues all of them."""
        names = {"launch": self.launch, "x": self.x, "y": self.y, "nodes": range(NODES)}
        return python("for _ in nodes: launch(y, x, 0.0, 1)", **names)

    def from_c(self, n):
        return sum(self.bare.launch(NODES) for _ in range(n))

    def raw(self, lab):
        return lambda n: sum(self.bare.raw_launch(lab.list, lab.events, NODES) for _ in range(n))

    def capture(self, **options):
        """Return a graph of all of them."""
        graph = acc.Graph(**options)
        launch, x, y = self.launch, self.x, self.y
        graph.capture_begin()
        for _ in range(NODES):
            launch(y, x, 0.0, 1)
        graph.capture_end()
        return graph


@row("graph.issue.1000.c", "l0rt_launch of 1000 nodes; raw: 4 KernelSetArgumentValue, AppendLaunchKernel for each")
def issue(lab):
    """What a replay is compared with."""
    with Launches(lab) as work:
        yield Work(work.from_c, work.raw(lab))


@row(
    "graph.replay.1000.python",
    "graph.replay() of 1000 launches, the call alone; beside: launch(y, x, 0.0, 1) 1000 times",
    times=(0.5, "graph.issue.1000.c"),
)
def replay(lab):
    """A replay takes at most a fifth of the host's time of issuing the same from Python, and a half of that from C."""
    with Launches(lab) as work, Gated(lab, work.stream) as gated:
        graph = work.capture()

        def notes(figures):
            own, beside = figures["own"], figures["beside"]
            share = own.median / beside.median
            noise = share - own.quartiles[0] / beside.quartiles[1]
            return {"share of issuing from Python": Note(share, "x", 0.2, noise=noise)}

        gated.shut()
        yield Work(
            python("replay()", replay=graph.replay),
            beside=work.from_python(),
            most=1,
            rest=gated.rest,
            notes=notes,
        )
        gated.open()
        graph.reset()


@row(
    "graph.capture.1000.python",
    "capture_begin, 1000 launches, capture_end, which builds the graph; beside: the launches without a capture",
)
def capture(lab):
    """What a capture adds to each launch, and how much host memory a node takes beside the lists of the driver."""
    with Launches(lab) as work:
        held = host_bytes()
        graph = work.capture(keep_graph=True)
        held = None if held is None else host_bytes() - held
        graph.reset()

        def loop(n):
            spent = 0
            for _ in range(n):
                began = time.perf_counter_ns()
                graph = work.capture()
                spent += time.perf_counter_ns() - began
                graph.reset()
            return spent

        def notes(figures):
            adds = max(0.0, figures["own"].median - figures["beside"].median) / NODES
            found = {"adds to each launch": Note(adds, "ns", 1000)}
            if held is not None:
                found["host memory a node"] = Note(max(0, held) / NODES, "bytes", MOST_BYTES)
            return found

        yield Work(loop, beside=work.from_python(), rest=work.stream.synchronize, most=1, notes=notes)


def host_bytes():
    """Return how much memory malloc has handed out, None where the C library does not tell."""

    class Told(ctypes.Structure):
        _fields_ = [  # of its struct mallinfo2
            (name, ctypes.c_size_t)
            for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        ]

    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = Told
    told = ask()
    return told.uordblks + told.hblkhd
