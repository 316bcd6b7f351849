# SPDX-License-Identifier: Apache-2.0
"""Threads that capture at once, and threads that use one graph in every way at once."""

import random
import sys
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np

from helpers.graph_programs import KERNELS, read

COUNT = 64
EXPECTED = ("nothing captured", "reset", "has a capture already", "needs a capture", "ended the capture")
# A graph that is dropped inside of a capture ends that once no other thread uses it.
UNDEFINED = ("in a capture already", "cannot be captured", "on the thread on which it began")


def in_thread(function):
    """Return what a function returns, or the exception that it raises, on a thread of its own."""
    found = []

    def run():
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def in_threads(works):
    """Run the functions at once, and return what they raise."""
    errors, begin = [], threading.Barrier(len(works))

    def run(work):
        try:
            begin.wait()
            work()
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def lost_nodes(seed, threads=4, captures=400):
    """Capture on several threads at once, and return what is wrong with which capture."""
    wrong = []

    def work(number):
        choose = random.Random(f"{seed} {number}")
        x, stream = l0rt.empty(4096).fill(0), l0rt.Stream()
        acc.synchronize()
        for turn in range(captures):
            graph, length = acc.Graph(keep_graph=True), choose.randrange(1, 5)
            with stream:
                graph.capture_begin()
                for _ in range(length):
                    x.fill(1, stream=stream)
                end = choose.randrange(4)
                if end == 0:
                    graph.reset()
                    continue
                if end == 1:  # refused: the bit is looked at from there, too
                    try:
                        stream.synchronize()
                        wrong.append((number, turn, "not refused"))
                    except RuntimeError:
                        graph.reset()
                    continue
                graph.capture_end()
            if len(graph.nodes) != length:
                wrong.append((number, turn, len(graph.nodes), length))
            graph.reset()

    sys.setswitchinterval(1e-5)
    return in_threads([lambda number=number: work(number) for number in range(threads)]) + wrong


class Shared:
    """A graph that adds one to ``total``, how often threads have replayed it, and the nodes of a capture of it."""

    def __init__(self, kernels, keeps):
        self.add, self.keeps, self.graph = kernels["vector_add"], keeps, acc.Graph(keep_graph=keeps)
        self.one = l0rt.empty(4 * COUNT).fill(pattern=np.float32(1).tobytes())
        self.total, self.scratch = l0rt.empty(4 * COUNT).fill(0), l0rt.empty(4096)
        self.replayed, self.capturing = [], threading.Lock()
        self.nodes = ()
        acc.synchronize()

    def capture(self, stream):
        """Anew, with what the last capture was waited for."""
        self.graph.reset()
        with stream:
            self.graph.capture_begin()
            self.add[2, 32](self.total, self.total, self.one, COUNT)
            self.scratch.fill(1, stream=stream)
            self.graph.capture_end()
        self.nodes = self.graph.nodes


# Long: a case for each thing that a thread may do.
def misused(seed, kernels, *, threads=4, steps=60, is_defined=True):
    """Let threads replay, build, change, reset and drop graphs at random, and return what is wrong.

    What the graphs leave is defined as long as nobody resets a graph that another thread captures."""
    held = [Shared(kernels, keeps=bool(seed % 2))]
    every, wrong = list(held), []
    held[0].capture(l0rt.Stream())

    def step(choose, stream):
        one = held[0]
        what = choose.choice(("replay", "replay", "replay", "reset", "instantiate", "update", "drop", "look"))
        if what == "replay":
            with stream:
                one.graph.replay()
            one.replayed.append(1)
        elif what == "reset" and is_defined:
            with one.capturing:
                one.capture(stream)
        elif what == "reset":
            choose.choice((one.graph.reset, *[lambda: one.capture(stream)] * 3))()
        elif what == "instantiate":
            if one.keeps:
                one.graph.instantiate()
        elif what == "update":
            if one.nodes:
                one.nodes[0].update(args={3: choose.randrange(1, COUNT + 1)}, groups=choose.randrange(2, 4))
                one.nodes[-1].update(value=choose.randrange(256))
        elif what == "look":
            [node.arguments for node in one.graph.nodes]
            one.graph.to_html()
        elif choose.random() < 0.3:
            held[0] = made = Shared(kernels, one.keeps)
            every.append(made)
            with one.capturing:  # or what is captured would run instead
                one.graph = None  # what other threads hold of it goes with them
            with made.capturing:
                made.capture(stream)

    def work(number):
        choose, stream = random.Random(f"{seed} {number}"), l0rt.Stream()
        for _ in range(steps):
            try:
                step(choose, stream)
            except RuntimeError as error:
                if not any(said in str(error) for said in (EXPECTED if is_defined else EXPECTED + UNDEFINED)):
                    wrong.append(repr(error))
            except AttributeError as error:  # dropped meanwhile
                if "NoneType" not in str(error):
                    raise
        try:
            stream.synchronize()
        except RuntimeError as error:  # it was still in a capture, which this has ended
            if is_defined or "cannot be captured" not in str(error):
                raise
            stream.synchronize()

    sys.setswitchinterval(1e-5)
    wrong += in_threads([lambda number=number: work(number) for number in range(threads)])
    acc.synchronize()
    for at, one in enumerate(every if is_defined else ()):
        found = read(one.total, np.float32)[0]
        if found != len(one.replayed):
            wrong.append((at, float(found), len(one.replayed)))
    return wrong


def all_misused(seeds, **kwargs):
    """Return what is wrong by seed."""
    with l0rt.Module(KERNELS) as kernels:
        return {seed: wrong for seed in seeds if (wrong := misused(seed, kernels, **kwargs))}
