# SPDX-License-Identifier: Apache-2.0
"""Random programs on several streams, a step of training, and what they leave, computed one operation after another."""

import json
import os
import random
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
from l0rt import philox

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
        self.generator, self.drawn = l0rt.Generator().manual_seed(seed), 0
        self.operations = [self._operation(choose) for _ in range(length)]

    def _operation(self, choose):
        kind = choose.choice(("add", "add", "copy", "rows", "fill", "pattern", "temporary", "draw"))
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
            elif kind == "draw":
                arrays[to][:value] = philox.uniform(self.generator.initial_seed(), self.drawn, value)
                self.drawn += (value + 3) // 4 * 4
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

    def _issue(self, kind, add, buffers, to, x, y, value):
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
        elif kind == "draw":
            buffers[to][: 4 * value].uniform_(generator=self.generator, stream=stream)
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
    graph.register_generator_state(program.generator)
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


class Step:
    """A step of training: 40 kernels on three streams, with temporary memory and dropout.

    The first stream has the forward pass, the second the backward pass, the third updates the weights.
    """

    LAYERS = 8
    RATE = 2.0**-10  # products with it are exact, so that no order of roundings matters

    def __init__(self, kernels, seed):
        self.add, self.axpy = kernels["vector_add"], kernels["axpy"]
        self.generator, self.drawn = l0rt.Generator().manual_seed(seed), 0
        choose = np.random.default_rng(seed)
        self.arrays = {"x": choose.random(COUNT, "f4"), "out": np.zeros(COUNT, "f4"), "sum": np.zeros(COUNT, "f4")}
        self.arrays |= {f"w{i}": choose.random(COUNT, "f4") for i in range(self.LAYERS)}
        self.buffers = {name: l0rt.from_numpy(array.view("u1")) for name, array in self.arrays.items()}
        self.streams = [l0rt.Stream() for _ in range(3)]
        acc.synchronize()

    def _sum(self, x, y, stream):
        made = l0rt.empty(NBYTES)
        with stream:
            self.add[2, 32](made, x, y, COUNT)
        return made

    def issue(self):
        """Give the step to the current stream and two others."""
        first, (second, third) = acc.current_stream(), self.streams[1:]
        own = self.buffers
        noise = l0rt.empty(NBYTES).uniform_(generator=self.generator)
        hidden = self._sum(own["x"], noise, first)
        total = hidden
        for i in range(self.LAYERS):
            mask = l0rt.empty(NBYTES).bernoulli_(0.5, generator=self.generator)
            before, hidden = hidden, self._sum(hidden, own[f"w{i}"], first)
            second.wait_stream(first)
            gradient = self._sum(before, mask, second)
            if i < 5:
                total = self._sum(total, gradient, second)
            third.wait_stream(second)
            with third:
                self.axpy[2, 32](own[f"w{i}"], gradient, self.RATE)
        first.wait_stream(second)
        first.wait_stream(third)
        self.add[2, 32](own["out"], hidden, noise, COUNT)
        own["sum"].copy_from(total, stream=first)

    def model(self):
        """Do the same to the arrays."""
        own, seed = self.arrays, self.generator.initial_seed()

        def draw(function, *arguments):
            self.drawn += COUNT
            return function(seed, self.drawn - COUNT, COUNT, *arguments)

        noise = draw(philox.uniform)
        hidden = total = own["x"] + noise
        for i in range(self.LAYERS):
            mask = draw(philox.bernoulli, 0.5)
            before, hidden = hidden, hidden + own[f"w{i}"]
            gradient = before + mask
            total = total + gradient if i < 5 else total
            own[f"w{i}"] = own[f"w{i}"] + np.float32(self.RATE) * gradient
        own["out"][:], own["sum"][:] = hidden + noise, total

    def capture(self):
        graph = acc.Graph()
        graph.register_generator_state(self.generator)
        with acc.graph(graph, stream=self.streams[0]):
            self.issue()
        return graph

    def wrong(self):
        """Return the names of the buffers that differ from the model."""
        return [n for n, array in self.arrays.items() if read(self.buffers[n], np.float32).tobytes() != array.tobytes()]


def wrong_steps(kernels, seed, replays):
    """Replay a step so often, on several streams, and return which buffers differ from the model after which replay."""
    step, choose, turn, wrong = Step(kernels, seed), random.Random(seed), 0, []
    graph, on = step.capture(), [acc.current_stream(), *step.streams]
    last = on[0]
    while turn < replays and not wrong:
        for _ in range(min(choose.randrange(1, 30), replays - turn)):
            stream = choose.choice(on)
            stream.wait_stream(last)
            with stream:
                graph.replay()
            last = stream
            step.model()
            turn += 1
        wrong = [(turn, name) for name in step.wrong()]
    graph.reset()
    return wrong


def under_chaos(check, seeds):
    """Return what ``check(seed, kernels)`` finds in a process with that chaos seed, where it finds anything."""
    found = {}
    for seed in seeds:
        here, there = os.pipe()
        child = os.fork()
        if child == 0:
            said = "no answer"
            os.environ["L0RT_CPU_CHAOS"] = str(seed)
            try:
                with l0rt.Module(KERNELS) as kernels:
                    said = check(seed, kernels)
            except BaseException as error:
                said = repr(error)
            os.write(there, json.dumps(said).encode()[:4096])
            os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as answer:
            said = json.loads(answer.read() or '"it died"')
        os.waitpid(child, 0)
        if said:
            found[seed] = said
    return found
