# SPDX-License-Identifier: Apache-2.0
"""Random programs on several streams, a step of training, and what they leave, computed one operation after another."""

import contextlib
import functools
import json
import os
import random
import threading
from concurrent.futures import ThreadPoolExecutor
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


class Memory:
    """What one run of a program works on: its buffers, of which the last ones are pinned, and what callbacks saw.

    Each stream counts its callbacks on the device: it adds one, copies the sum to the host, and the callback notes it.
    """

    def __init__(self, program):
        self.arrays = program.arrays()
        self.buffers = [
            l0rt.empty(NBYTES, kind="host" if b in program.pinned else "device").copy_from(array.view(np.uint8))
            for b, array in enumerate(self.arrays)
        ]
        self.one = l0rt.empty(NBYTES).fill(pattern=np.float32(1).tobytes())
        self.counts = [l0rt.empty(NBYTES).fill(0) for _ in range(program.streams)]
        self.notes = {at: l0rt.empty(NBYTES, kind="host") for at in program.calls}
        self.views = {at: np.frombuffer(note, "f4") for at, note in self.notes.items()}
        self.seen, self.more = [], threading.Condition()  # (which callback, the sum that it saw), as they came
        synchronize()

    def note(self, at):
        with self.more:
            self.seen.append((at, float(self.views[at][0])))
            self.more.notify_all()

    def differs(self, arrays):
        """Return which buffers are not as the arrays once everything has run."""
        synchronize()
        found = [buffer.numpy("float32") for buffer in self.buffers]
        return [b for b, array in enumerate(arrays) if found[b].tobytes() != array.tobytes()]

    def wrong_calls(self, program, turns, is_exact):
        """Return what is wrong with the callbacks of so many turns: one was called before what precedes it was done, or
        out of turn, or not at all. In exact turns nothing else ran until all were called."""
        with self.more:
            if not self.more.wait_for(lambda: len(self.seen) >= turns * len(program.calls), 60):
                return [("not called", len(self.seen))]
        wrong = []
        for stream in range(program.streams):
            calls = [at for at in program.calls if program.operations[at][1] == stream]
            seen = [(at, count) for at, count in self.seen if at in calls]
            expected = [(at, float(number)) for number, at in enumerate(calls * turns, 1)]
            if [at for at, _ in seen] != [at for at, _ in expected]:
                wrong.append(("order", stream, seen))
            elif any(got != least if is_exact else got < least
                     for (_, got), (_, least) in zip(seen, expected, strict=True)):  # fmt: skip
                wrong.append(("too early", stream, seen))
        return wrong


class Bystanders:
    """Memory of the program that no graph knows, of every stream and pinned, with a byte in it that must stay."""

    BYTE = 77

    def __init__(self, streams):
        l0rt.memory.empty_host_cache()  # what the captures have freed, as another caller may at any time
        kinds = ("device", "host") * 4
        self.buffers = [l0rt.empty(NBYTES, kind=kind, stream=stream) for stream in streams for kind in kinds]
        for buffer in self.buffers:
            buffer.fill(self.BYTE)

    def hit(self):
        """Return which do not have it any more."""
        synchronize()
        return [b for b, buffer in enumerate(self.buffers) if (buffer.numpy() != self.BYTE).any()]


class Program:
    """Operations on buffers of float32. Each is ordered by events behind those whose buffers it shares, and issued by
    this thread or by another one.

    With ``devices=2`` a part of the streams is of the second device, and works on the memory of the first."""

    KINDS = (
        "add", "add", "copy", "rows", "fill", "pattern", "temporary", "freed", "staged", "pooled", "draw", "call"
    )  # fmt: skip

    def __init__(self, seed, *, streams=4, buffers=6, length=40, devices=1):
        choose = random.Random(seed)
        self.streams, self.buffers = streams, buffers
        self.pinned = {buffers - 1, buffers - 2}
        self.far = {stream for stream in range(1, streams) if choose.random() < 0.4} if devices > 1 else set()
        self.seed, self.drawn = seed, 0
        self.operations = [self._operation(choose) for _ in range(length)]
        self.elsewhere = {at for at in range(length) if choose.random() < 0.4}  # issued by another thread
        self.calls = [at for at, (kind, *_) in enumerate(self.operations) if kind == "call"]

    def _operation(self, choose):
        kind, on = choose.choice(self.KINDS), choose.randrange(self.streams)
        to, x, y = choose.sample(range(self.buffers), 3)
        if kind == "draw":  # of the generator's device
            on, to = 0, choose.randrange(self.buffers - len(self.pinned))
        return kind, on, to, x, y, choose.randrange(1, 9)

    def arrays(self):
        """Return what is in the buffers before anything has run."""
        return [np.full(COUNT, 1 + b, np.float32) for b in range(self.buffers)]

    def model(self, arrays):
        """Do the same to arrays of NumPy."""
        for kind, _, to, x, y, value in self.operations:
            if kind == "add":
                arrays[to][:] = arrays[x] + arrays[y]
            elif kind in ("copy", "staged"):
                arrays[to][:] = arrays[x]
            elif kind == "rows":
                arrays[to].reshape(8, 8)[:, :4] = arrays[x].reshape(8, 8)[:, 4:]
            elif kind == "fill":
                arrays[to].view(np.uint8)[:] = value
            elif kind == "pattern":
                arrays[to][:] = value
            elif kind == "draw":
                arrays[to][:value] = philox.uniform(self.seed, self.drawn, value)
                self.drawn += (value + 3) // 4 * 4
            elif kind in ("temporary", "pooled", "freed"):
                arrays[to][:] = arrays[x] + (arrays[x] + arrays[y])

    def generator(self):
        return l0rt.Generator().manual_seed(self.seed)

    def make_streams(self):
        return [l0rt.Stream(device=int(stream in self.far)) for stream in range(self.streams)]

    def issue(self, adds, memory, streams, generator=None):
        """Give the operations to ``streams``, of which the first waits for the others in the end. ``adds`` has the
        kernel of each device."""
        with ThreadPoolExecutor(1) as other:
            self._issue_all(adds, memory, streams, generator, other)

    def _issue_all(self, adds, memory, streams, generator, other):
        last = [[] for _ in memory.buffers]  # events of who used a buffer since its last writer, and of that
        begun = streams[0].record_event()
        for stream in streams[1:]:
            stream.wait_event(begun)
        for at, (kind, on, to, x, y, value) in enumerate(self.operations):
            stream = streams[on]
            if kind == "call":
                with stream:
                    adds[stream.device.index][2, 32](memory.counts[on], memory.counts[on], memory.one, COUNT)
                memory.notes[at].copy_from(memory.counts[on], non_blocking=True, stream=stream)
                stream.add_callback(memory.note, at)
                continue
            for event in last[to] + [used for b in (x, y) for used in last[b][:1]]:
                stream.wait_event(event)
            if kind == "freed":
                call = self._issue_freed, adds, memory.buffers, stream, streams[value % self.streams], to, x, y
                stream = call[4]
            elif kind == "draw":
                draw = memory.buffers[to][: 4 * value].uniform_
                call = (functools.partial(draw, generator=generator, stream=stream),)
            else:
                call = self._issue, kind, adds[stream.device.index], memory.buffers, stream, to, x, y, value
            other.submit(*call).result() if at in self.elsewhere else call[0](*call[1:])
            done = stream.record_event()
            last[to] = [done]
            for b in {x, y}:
                last[b] = last[b] or [begun]
                last[b].append(done)
        for stream in streams[1:]:
            streams[0].wait_stream(stream)

    def _issue(self, kind, add, buffers, stream, to, x, y, value):
        if kind == "add":
            with stream:
                add[2, 32](buffers[to], buffers[x], buffers[y], COUNT)
        elif kind == "copy":
            buffers[to].copy_from(buffers[x], non_blocking=True, stream=stream)
        elif kind == "rows":
            l0rt.memcpy2d(buffers[to].ptr, 32, buffers[x].ptr + 16, 32, 16, 8, stream, non_blocking=True)
        elif kind == "fill":
            buffers[to].fill(value, non_blocking=True, stream=stream)
        elif kind == "pattern":
            buffers[to].fill(pattern=np.float32(value).tobytes(), non_blocking=True, stream=stream)
        elif kind == "staged":
            between = l0rt.empty(NBYTES, kind="host", stream=stream)
            between.copy_from(buffers[x], non_blocking=True, stream=stream)
            buffers[to].copy_from(between, non_blocking=True, stream=stream)
        else:
            pool = l0rt.memory.use_mem_pool(l0rt.memory.MemPool()) if kind == "pooled" else contextlib.nullcontext()
            with pool, stream:
                between = l0rt.empty(NBYTES)
                add[2, 32](between, buffers[x], buffers[y], COUNT)
                add[2, 32](buffers[to], buffers[x], between, COUNT)

    def _issue_freed(self, adds, buffers, stream, other, to, x, y):
        """As a temporary; but another stream uses it, which is announced, and it is freed by hand."""
        with stream:
            between = l0rt.empty(NBYTES)
            adds[stream.device.index][2, 32](between, buffers[x], buffers[y], COUNT)
        other.wait_stream(stream)
        with other:
            adds[other.device.index][2, 32](buffers[to], buffers[x], between, COUNT)
        between.record_use(other)
        between.free()


@contextlib.contextmanager
def adds_of(add, devices):
    """Give the kernel for each device: that of the second is of a module of its own."""
    if devices == 1:
        yield [add]
        return
    with l0rt.Module(KERNELS, device=1) as module:
        yield [add, module["vector_add"]]


def synchronize():
    for device in range(acc.device_count()):
        acc.synchronize(device)


def wrong_replays(seed, add, replays=2):
    """Capture a program, replay it, run it without a graph, too, and return what differs from the model after which
    turn: buffers, and callbacks. A third of the programs has streams of two devices, where there are two."""
    devices = min(acc.device_count(), 2 if seed % 3 == 2 else 1)
    program, is_exact = Program(seed, devices=devices), seed % 2 == 0
    streams, memory, eager = program.make_streams(), Memory(program), Memory(program)
    graph, arrays, generators = acc.Graph(), program.arrays(), [program.generator(), program.generator()]
    graph.register_generator_state(generators[0])
    wrong = []
    with adds_of(add, devices) as adds, np.errstate(all="ignore"):
        with acc.graph(graph, stream=streams[0]):
            program.issue(adds, memory, streams, generators[0])
        bystanders = Bystanders(streams)
        for turn in range(replays):
            graph.replay()
            program.issue(adds, eager, streams, generators[1])
            program.model(arrays)
            if is_exact or turn + 1 == replays:
                for name, one in (("replayed", memory), ("eager", eager)):
                    wrong += [(name, turn, b) for b in one.differs(arrays)]
                    wrong += [(name, turn, *what) for what in one.wrong_calls(program, turn + 1, is_exact)]
        wrong += [("bystander", b) for b in bystanders.hit()]
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
