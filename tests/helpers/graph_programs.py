# SPDX-License-Identifier: Apache-2.0
"""Random programs on several streams, and what they leave, computed one operation after another."""

import random
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np

KERNELS = Path(__file__).parents[1] / "kernels" / "basic.spv"
COUNT = 64  # numbers in a buffer
NBYTES = 4 * COUNT
BUFFER = 1 << 12  # bytes of the buffer that tests are given


def read(buffer, dtype=np.uint8):
    """Return what is in a buffer once everything has run."""
    found = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    acc.synchronize()
    buffer.copy_to(found)
    return found


class Program:
    """Operations on buffers of float32. Each is ordered by events behind those whose buffers it shares."""

    def __init__(self, seed, *, streams=4, buffers=6, length=40):
        choose = random.Random(seed)
        self.streams, self.buffers = streams, buffers
        self.operations = [self._operation(choose) for _ in range(length)]

    def _operation(self, choose):
        kind = choose.choice(("add", "add", "copy", "rows", "fill", "pattern", "temporary"))
        to, x, y = choose.sample(range(self.buffers), 3)
        return kind, choose.randrange(self.streams), to, x, y, choose.randrange(1, 9)

    def model(self, arrays):
        """Do the same to arrays of NumPy."""
        for kind, _, to, x, y, value in self.operations:
            if kind == "add":
                arrays[to][:] = arrays[x] + arrays[y]
            elif kind == "copy":
                arrays[to][:] = arrays[x]
            elif kind == "rows":
                arrays[to].reshape(8, 8)[:, :4] = arrays[x].reshape(8, 8)[:, 4:]
            elif kind == "fill":
                arrays[to].view(np.uint8)[:] = value
            elif kind == "pattern":
                arrays[to][:] = value
            else:
                arrays[to][:] = arrays[x] + (arrays[x] + arrays[y])

    def issue(self, add, buffers, streams):
        """Give the operations to ``streams``, of which the first waits for the others in the end."""
        last = [[] for _ in buffers]  # events of who used a buffer since its last writer, and of that
        begun = streams[0].record_event()
        for stream in streams[1:]:
            stream.wait_event(begun)
        for kind, on, to, x, y, value in self.operations:
            stream = streams[on]
            for event in last[to] + [used for b in (x, y) for used in last[b][:1]]:
                stream.wait_event(event)
            with stream:
                self._issue(kind, add, buffers, to, x, y, value)
            done = stream.record_event()
            last[to] = [done]
            for b in {x, y}:
                last[b] = last[b] or [begun]
                last[b].append(done)
        for stream in streams[1:]:
            streams[0].wait_stream(stream)

    @staticmethod
    def _issue(kind, add, buffers, to, x, y, value):
        stream = acc.current_stream()
        if kind == "add":
            add[2, 32](buffers[to], buffers[x], buffers[y], COUNT)
        elif kind == "copy":
            buffers[to].copy_from(buffers[x], stream=stream)
        elif kind == "rows":
            l0rt.memcpy2d(buffers[to].ptr, 32, buffers[x].ptr + 16, 32, 16, 8, stream)
        elif kind == "fill":
            buffers[to].fill(value, stream=stream)
        elif kind == "pattern":
            buffers[to].fill(pattern=np.float32(value).tobytes(), stream=stream)
        else:
            between = l0rt.empty(NBYTES)
            add[2, 32](between, buffers[x], buffers[y], COUNT)
            add[2, 32](buffers[to], buffers[x], between, COUNT)


def wrong_replays(seed, add, replays=2):
    """Capture a program, replay it, and return which buffers differ from the model after which replay."""
    program = Program(seed)
    streams = [l0rt.Stream() for _ in range(program.streams)]
    arrays = [np.full(COUNT, 1 + b, np.float32) for b in range(program.buffers)]
    buffers = [l0rt.empty(NBYTES).copy_from(array.view(np.uint8)) for array in arrays]
    acc.synchronize()
    graph = acc.Graph()
    with acc.graph(graph, stream=streams[0]):
        program.issue(add, buffers, streams)
    wrong = []
    with np.errstate(all="ignore"):
        for turn in range(replays):
            graph.replay()
            program.model(arrays)
            for b, (array, buffer) in enumerate(zip(arrays, buffers, strict=False)):
                found = np.empty(COUNT, np.float32)
                buffer.copy_to(found)
                if found.tobytes() != array.tobytes():
                    wrong.append((turn, b))
    graph.reset()
    return wrong
