# SPDX-License-Identifier: Apache-2.0
"""Launches: kernels, graphs that replay them, and threads that launch one kernel with arguments of their own."""

import threading
from importlib.resources import files

import numpy as np

import l0rt
import l0rt.accelerator as acc
from l0rt.selftest.ground import fails, verdict, works

COUNTS = (1, 31, 256, 4097, 100_000)
THREADS, LAUNCHES = 4, 64


def saxpy(index):
    """Return the module whose kernel computes y += a * x."""
    return l0rt.Module((files("l0rt.bench") / "saxpy.spv").read_bytes(), device=index)


def kernels(ground):
    """C11: sums of several sizes on two streams; a fill comes before each launch, and a copy behind it."""
    with saxpy(ground.index) as module:
        streams = acc.Stream(ground.index), acc.Stream(ground.index)
        for turn, count in enumerate(COUNTS):
            stream = streams[turn % 2]
            with stream:
                x = l0rt.from_numpy(np.arange(count, dtype="f4"))
                y = l0rt.empty(4 * count).fill(0)
                for factor in (1.0, 2.0):
                    module["saxpy"].launch(y, x, factor, count, groups=-(-count // 64), group_size=64)
                wrong = int((y.numpy("f4") != 3 * np.arange(count, dtype="f4")).sum())
            if wrong:
                return fails(f"{wrong} of {count} sums are wrong")
    return works(f"{len(COUNTS)} sizes of up to {COUNTS[-1]} sums")


def graphs(ground):
    """C12: two streams, of which each replay adds one to what the last one has left."""
    count, replays = 4096, 20
    with acc.device_index(ground.index), saxpy(ground.index) as module:
        one, y, copy = (l0rt.empty(4 * count) for _ in range(3))
        one.fill(pattern=np.float32(1).tobytes())
        y.fill(0)
        side, graph = acc.Stream(ground.index), acc.Graph()
        acc.synchronize(ground.index)
        with acc.graph(graph):
            stream = acc.current_stream(ground.index)
            module["saxpy"].launch(y, one, 1.0, count, groups=count // 64, group_size=64)
            side.wait_stream(stream)
            copy.copy_from(y, stream=side)
            stream.wait_stream(side)
        for _ in range(replays):
            graph.replay()
        wrong = int((copy.numpy("f4") != replays).sum())
        graph.reset()
    return fails(f"{wrong} of {count} sums are wrong after {replays} replays") if wrong else works(f"{replays} replays")


def changed_graphs(ground):
    """C15: each replay adds a factor of its own to what a fill of its own left; the next change comes at once."""
    count, replays, wrong = 4096, 20, 0
    with acc.device_index(ground.index), saxpy(ground.index) as module:
        one, y = l0rt.from_numpy(np.ones(count, "f4")), l0rt.empty(4 * count)
        backs = [l0rt.empty(4 * count, kind="host") for _ in range(replays)]
        graph, stream = acc.Graph(), acc.Stream(ground.index)
        acc.synchronize(ground.index)
        with acc.graph(graph, stream=stream):
            y.fill(0, stream=stream)
            module["saxpy"].launch(y, one, 0.0, count, groups=count // 64, group_size=64)
        fill, launch = graph.nodes
        with stream:
            for turn, back in enumerate(backs):
                fill.update(value=np.float32(turn % 3).tobytes())
                launch.update(args={2: float(turn)})
                graph.replay()
                back.copy_from(y, non_blocking=True)
        stream.synchronize()
        for turn, back in enumerate(backs):
            wrong += int((np.frombuffer(memoryview(back), "f4") != turn + turn % 3).any())
        graph.reset()
    return fails(f"wrong sums after {wrong} of {replays} changes") if wrong else works(f"{replays} replays")


def arguments(ground):
    """T35: each thread's launches add its own number to its own memory."""
    count, wrong = 256, []
    with saxpy(ground.index) as module:
        kernel = module["saxpy"]
        x = l0rt.from_numpy(np.ones(count, "f4"), device=ground.index)
        acc.synchronize(ground.index)

        def launch(number):
            stream = acc.Stream(ground.index)
            y = l0rt.empty(4 * count, stream=stream).fill(0, stream=stream)
            for _ in range(LAUNCHES):
                kernel.launch(y, x, float(number), count, groups=4, group_size=64, stream=stream)
            if (y.numpy("f4", stream=stream) != number * LAUNCHES).any():
                wrong.append(number)
            x.record_use(stream)

        threads = [threading.Thread(target=launch, args=(number,)) for number in range(1, THREADS + 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return verdict(wrong, f"wrong sums in {len(wrong)} of {THREADS} threads" if wrong else f"{THREADS} threads")


ASK = {"C11": kernels, "C12": graphs, "C15": changed_graphs, "T35": arguments}
