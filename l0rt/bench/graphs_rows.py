# SPDX-License-Identifier: Apache-2.0
"""The graphs' rows: a replay beside issuing the same launches again, on one stream and two, as the driver's own graph
and as command lists; what a capture takes in time and memory, and what a change of a node takes."""

import ctypes
import time
from importlib.resources import files

import l0rt
import l0rt.accelerator as acc
import l0rt.bench.launch_loops as launch_loops
from l0rt.bench.lab import Gated
from l0rt.bench.rows import Note, Work, python, suite

row = suite("graphs")
NODES = 1000
MOST_BYTES = 1024  # of host memory a node


class Launches:
    """A module, a stream, and a thousand launches of one work-item with four arguments."""

    def __init__(self, lab):
        code = (files("l0rt.bench") / "saxpy.spv").read_bytes()
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

    def capture(self, streams=1, **options):
        """Return a graph of all of them, with two streams in turns of 100, each half of them on either stream."""
        graph = acc.Graph(**options)
        launch, x, y = self.launch, self.x, self.y
        graph.capture_begin()
        if streams == 1:
            for _ in range(NODES):
                launch(y, x, 0.0, 1)
        else:
            side, stream = acc.Stream(), acc.current_stream()
            for _ in range(NODES // 200):
                side.wait_stream(stream)
                for on in (stream, side):
                    with on:
                        for _ in range(100):
                            launch(y, x, 0.0, 1)
                stream.wait_stream(side)
        graph.capture_end()
        return graph


def changed(graph):
    """Replay the graph with a change of its first launch, which makes it command lists."""
    next(node for node in graph.nodes if node.kind == "kernel").update(args={2: 0.0})
    graph.replay()


@row("graph.issue.1000.c", "l0rt_launch of 1000 nodes; raw: 4 KernelSetArgumentValue, AppendLaunchKernel for each")
def issue(lab):
    """What a replay is compared with."""
    with Launches(lab) as work:
        yield Work(work.from_c, work.raw(lab))


WAYS = {
    ".1000": ("the driver's own graph where it has one", 1, False),
    ".1000.lists": ("command lists", 1, True),
    ".1000.streams": ("two streams, the driver's own graph where it has one", 2, False),
    ".1000.streams.lists": ("two streams, command lists", 2, True),
}


def replay(lab, streams, lists):
    """A replay takes at most a fifth of the host's time of issuing the same from Python, and a half of that from C."""
    with Launches(lab) as work, Gated(lab, work.stream) as gated:
        graph = work.capture(streams)
        if lists:
            changed(graph)
            work.stream.synchronize()

        def notes(figures):
            own, beside = figures["own"], figures["beside"]
            share = own.median / beside.median
            noise = share - own.quartiles[0] / beside.quartiles[1]
            return {"share of issuing from Python": Note(share, "x", 0.2, noise=noise)}

        yield Work(
            gated.around(python("replay()", replay=graph.replay)),
            work.raw(lab),
            gated.around(work.from_python()),
            most=1,
            notes=notes,
        )
        graph.reset()


for _way, (_what, *_how) in WAYS.items():
    row(
        f"graph.replay{_way}.python",
        f"graph.replay() of 1000 launches, the call alone: {_what}; raw: the driver's calls for each launch; beside: "
        "launch(y, x, 0.0, 1) 1000 times",
        *_how,
        times=(0.5, "graph.issue.1000.c"),
    )(replay)


@row("graph.update.python", "node.update(args={2: 0.0}) of a launch in a graph of 1000", ns=2000)
def update(lab):
    """A change of one argument asks nothing of the driver before the next replay."""
    with Launches(lab) as work:
        graph = work.capture()
        changed(graph)
        yield Work(python("update(args={2: 0.0})", update=graph.nodes[0].update))
        work.stream.synchronize()
        graph.reset()


@row("graph.update.replay.python", "the same, and graph.replay(), the calls alone; beside: graph.replay()")
def update_and_replay(lab):
    """The next replay changes the list, or records it anew, and one that is in use has another take its place."""
    with Launches(lab) as work:
        graph = work.capture()
        for _ in range(2):
            changed(graph)
        names = {"update": graph.nodes[0].update, "replay": graph.replay}
        yield Work(
            python("update(args={2: 0.0}); replay()", **names),
            beside=python("replay()", **names),
            most=1,
            rest=work.stream.synchronize,
        )
        graph.reset()


@row(
    "graph.capture.1000.python",
    "capture_begin, 1000 launches, capture_end, which builds the graph; beside: the launches without a capture",
)
def capture(lab):
    """What a capture adds to each launch, and how much host memory a node takes beside the lists of the driver."""
    with Launches(lab) as work:
        for _ in range(2):  # the first takes what only a first one takes
            nbytes = host_bytes()
            graph = work.capture(keep_graph=True)
            nbytes = None if nbytes is None else host_bytes() - nbytes
            beyond = None if nbytes is None else nbytes + bytes_beyond_lists(lab, work, graph)
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
            notes = {"adds to each launch": Note(adds, "ns", 1000)}
            if nbytes is not None:
                notes["host memory a node"] = Note(max(0, nbytes) / NODES, "bytes", MOST_BYTES)
                notes["beyond the driver's lists"] = Note(max(0, beyond or 0) / NODES, "bytes", MOST_BYTES)
            return notes

        yield Work(loop, beside=work.from_python(), rest=work.stream.synchronize, most=1, notes=notes)


def bytes_beyond_lists(lab, work, graph):
    """Return how much host memory a graph takes that was built as lists, without what the driver has for them.

    That is what another list of the same takes, which a change makes while replays with the others have not run."""
    before = host_bytes()
    for _ in range(3):  # the first builds the driver's own graph, the second takes lists, the third drops the former
        changed(graph)
        work.stream.synchronize()
    growth = host_bytes() - before
    with Gated(lab, work.stream) as gated:
        gated.shut()
        changed(graph)
        before = host_bytes()
        changed(graph)
        another = host_bytes() - before
    return growth - another


def host_bytes():
    """Return how much memory malloc has handed out, None where the C library does not report it."""

    class Told(ctypes.Structure):
        _fields_ = [  # of its struct mallinfo2
            (name, ctypes.c_size_t)
            for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
        ]

    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if ask is None:
        return None
    ask.restype = Told
    info = ask()
    return info.uordblks + info.hblkhd
