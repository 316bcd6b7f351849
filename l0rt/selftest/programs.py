# SPDX-License-Identifier: Apache-2.0
"""Random programs of copies, fills, events and waits on several streams, beside a model that runs them in order.

A `Program` is one thread's. Several run at once on streams that they share: each keeps its own buffers and events, so
each has its own model, while the streams' order, the events' recycling and the locks are everybody's.
"""

import random
import threading
from typing import Any

import numpy as np

import l0rt
import l0rt.accelerator as acc
from l0rt import philox

STREAMS, BUFFERS, NBYTES = 8, 6, 4096


def rows_in(choice, nbytes):
    """Return a width, a height, and for the target and the source an offset and a pitch, all within so many bytes."""
    width, height = choice.randrange(1, nbytes // 16), choice.randrange(1, 9)
    sides = []
    for _ in range(2):
        pitch = choice.choice((width, choice.randrange(width, nbytes // 8)))
        sides.append((choice.randrange(nbytes - (height - 1) * pitch - width + 1), pitch))
    return width, height, *sides


def copied_rows(target, source, width, height, here, there):
    """Return what a copy of rows leaves in the target."""
    result = target.copy()
    for i in range(height):
        at, start = here[0] + i * here[1], there[0] + i * there[1]
        result[at : at + width] = source[start : start + width]
    return result


def part_in(choice, nbytes):
    """Return where two parts of the same size begin, and their size."""
    size = choice.randrange(1, nbytes + 1)
    return choice.randrange(nbytes - size + 1), choice.randrange(nbytes - size + 1), size


class Program:
    """A program of ``steps`` steps, given by its seed. Every dependency between streams is an event and a wait.

    ``forgetful``: leave every such wait out. Where the driver uses its freedom, the bytes come out wrong.
    ``devices``: on how many, from the ``first`` on.
    """

    def __init__(self, seed, steps=60, forgetful=False, devices=1, first=0):
        self.choice = random.Random(seed)
        self.forgetful = forgetful
        self.steps = steps
        self.streams = [acc.Stream(first + i % devices, priority=i % 3 - 1) for i in range(STREAMS)]
        self.events = [l0rt.Event(enable_timing=i % 2 == 0) for i in range(STREAMS)]  # recorded anew with every step
        self.buffers = [l0rt.empty(NBYTES, stream=self.streams[i]) for i in range(BUFFERS)]
        self.model = [np.zeros(NBYTES, "u1") for _ in range(BUFFERS)]
        self.writer = [None] * BUFFERS  # event behind the last write
        self.readers: list = [[] for _ in range(BUFFERS)]  # events behind the reads since then
        self.home = list(range(BUFFERS))

    def run(self):
        """Run the program; return the buffers' bytes and the model's."""
        for i in range(BUFFERS):
            self.fill(i)
        for _ in range(self.steps):
            self.choice.choice(
                [self.fill, self.copy, self.copy, self.part, self.rows, self.upload, self.idle, self.replace]
            )(self.choice.randrange(BUFFERS))
        for i in range(BUFFERS):
            self.enter(0, reads=[i])
        contents = [b.copy_to(np.empty(NBYTES, "u1"), stream=self.streams[0]) for b in self.buffers]
        for buffer in self.buffers:
            for stream in self.streams:
                buffer.record_stream(stream)
        return contents, self.model

    def enter(self, s, reads=(), writes=()):
        """Make stream ``s`` wait for whatever its next command depends on."""
        events = [self.writer[b] for b in [*reads, *writes]] + [e for b in writes for e in self.readers[b]]
        for event in events:
            if event is not None and not self.forgetful:
                if self.choice.random() < 0.5:
                    self.streams[s].wait_event(event)
                else:
                    event.wait(self.streams[s])

    def leave(self, s, reads=(), writes=()):
        """Mark the point behind the command just given to stream ``s``."""
        if self.choice.random() < 0.3:
            self.events[s] = l0rt.Event(enable_timing=self.choice.random() < 0.3)
        event = self.events[s]
        event.record(self.streams[s])
        for b in writes:
            self.writer[b], self.readers[b] = event, []
        for b in reads:
            self.readers[b].append(event)

    def stream(self):
        return self.choice.randrange(STREAMS)

    def fill(self, target):
        s, value = self.stream(), self.choice.randrange(256)
        self.enter(s, writes=[target])
        self.buffers[target].fill(value, stream=self.streams[s])
        self.leave(s, writes=[target])
        self.model[target][:] = value

    def copy(self, target):
        s, source = self.stream(), self.choice.choice([b for b in range(BUFFERS) if b != target])
        self.enter(s, reads=[source], writes=[target])
        self.buffers[target].copy_from(self.buffers[source], stream=self.streams[s])
        self.leave(s, reads=[source], writes=[target])
        self.model[target][:] = self.model[source]

    def part(self, target):
        """Copy a part of one buffer onto a part of another."""
        s, source = self.stream(), self.choice.choice([b for b in range(BUFFERS) if b != target])
        here, there, size = part_in(self.choice, NBYTES)
        self.enter(s, reads=[source], writes=[target])
        self.buffers[target][here : here + size].copy_from(
            self.buffers[source][there : there + size], stream=self.streams[s]
        )
        self.leave(s, reads=[source], writes=[target])
        self.model[target][here : here + size] = self.model[source][there : there + size]

    def rows(self, target):
        """Copy rows from one buffer to another."""
        s, source = self.stream(), self.choice.choice([b for b in range(BUFFERS) if b != target])
        width, height, here, there = rows_in(self.choice, NBYTES)
        self.enter(s, reads=[source], writes=[target])
        l0rt.memcpy2d(self.buffers[target][here[0] :], here[1], self.buffers[source][there[0] :], there[1],
                      width, height, self.streams[s])  # fmt: skip
        self.leave(s, reads=[source], writes=[target])
        self.model[target] = copied_rows(self.model[target], self.model[source], width, height, here, there)

    def upload(self, target):
        s, value = self.stream(), np.frombuffer(self.choice.randbytes(NBYTES), "u1")
        self.enter(s, writes=[target])
        self.buffers[target].copy_from(value, stream=self.streams[s])
        self.leave(s, writes=[target])
        self.model[target][:] = value

    def replace(self, target):
        """Drop the buffer while its work is in flight, and allocate another of its size, perhaps the same memory."""
        s = self.stream()
        for stream in self.streams:
            self.buffers[target].record_stream(stream)
        self.buffers[target].free()
        self.buffers[target] = l0rt.empty(NBYTES, stream=self.streams[s])
        self.writer[target], self.readers[target] = None, []
        value = self.choice.randrange(256)
        self.buffers[target].fill(value, stream=self.streams[s])
        self.leave(s, writes=[target])
        self.model[target][:] = value

    def idle(self, _):
        {0: self.streams[self.stream()].query, 1: self.streams[self.stream()].synchronize}[self.choice.randrange(2)]()


class PlainProgram:
    """A program without any stream or event: what the current streams order is right by itself.

    Buffers of every kind on every device are filled, copied both ways, drawn, read, dropped and allocated anew.
    ``forgetful``: name the stream of each copy between devices, which then has that stream's order alone.
    """

    streams = ()  # the current ones are everybody's

    def __init__(self, seed, steps=60, forgetful=False, devices=2):
        self.choice = random.Random(seed)
        self.forgetful = forgetful
        self.steps, self.devices = steps, devices
        self.nbytes = self.choice.choice([512, NBYTES, NBYTES, NBYTES, 160 << 10])
        self.generator = l0rt.Generator("xpu:0")
        self.generator.manual_seed(seed)
        self.buffers: list = [None] * BUFFERS
        self.model: list = [None] * BUFFERS
        self.failed = []

    def run(self):
        """Run the program; return the buffers' bytes and the model's."""
        for i in range(BUFFERS):
            self.replace(i)
        steps = [self.fill, self.copy, self.copy, self.copy, self.upload, self.draw, self.read, self.write,
                 self.replace, self.replace, self.elsewhere, self.part, self.part, self.rows, self.rows]  # fmt: skip
        with acc.device_index(acc.current_device_index()):
            for _ in range(self.steps):
                self.choice.choice(steps)(self.choice.randrange(BUFFERS))
        return [self.bytes_of(i) for i in range(BUFFERS)] + self.failed, self.model + [None] * len(self.failed)

    def bytes_of(self, i):
        return self.buffers[i].copy_to(np.empty(self.nbytes, "u1"))

    def elsewhere(self, _):
        """Make another device current: that of host and shared memory's work."""
        acc.set_device_index(self.choice.randrange(self.devices))

    def replace(self, i):
        """Drop the buffer while its work is in flight, and allocate another, perhaps the same memory."""
        self.buffers[i] = None
        kind: Any = self.choice.choice(["device"] * 4 + ["host", "shared"])
        self.buffers[i] = l0rt.empty(self.nbytes, device=self.choice.randrange(self.devices), kind=kind)
        self.choice.choice([self.fill, self.copy if all(self.buffers) else self.fill, self.upload, self.draw])(i)

    def fill(self, i):
        pattern = self.choice.randbytes(self.choice.choice([1, 2, 4, 8, 16]))
        self.buffers[i].fill(pattern=pattern) if len(pattern) > 1 else self.buffers[i].fill(pattern[0])
        self.model[i] = np.frombuffer(pattern * (self.nbytes // len(pattern)), "u1")

    def copy(self, i):
        j = self.choice.choice([j for j in range(BUFFERS) if j != i])
        source, target = self.buffers[j], self.buffers[i]
        named = {}
        if self.forgetful and source.kind == target.kind == "device" and source.device != target.device:
            named["stream"] = acc.current_stream(self.choice.choice([source, target]).device)
        target.copy_from(source, **named) if self.choice.random() < 0.5 else source.copy_to(target, **named)
        self.model[i] = self.model[j]

    def part(self, i):
        """Copy onto a part of a buffer, fill it, draw it or read it."""
        here, there, size = part_in(self.choice, self.nbytes)
        target = self.buffers[i][here : here + size]
        j = self.choice.choice([j for j in range(BUFFERS) if j != i])
        value = self.model[j][there : there + size]
        way = self.choice.choice(["buffer", "address", "host", "fill", "read"])
        if way == "read":
            if not np.array_equal(target.numpy(), self.model[i][here : here + size]):
                self.failed.append(target.numpy())
            return
        if way == "buffer":
            target.copy_from(self.buffers[j][there : there + size])
        elif way == "address":
            l0rt.memcpy(self.buffers[i].ptr + here, self.buffers[j].ptr + there, size)
        elif way == "host":
            target.copy_from(value)
        else:
            pattern = self.choice.randbytes(self.choice.choice([n for n in (1, 2, 4, 8, 16) if size % n == 0]))
            target.fill(pattern=pattern)
            value = np.frombuffer(pattern * (size // len(pattern)), "u1")
        self.model[i] = np.concatenate([self.model[i][:here], value, self.model[i][here + size :]])

    def rows(self, i):
        """Copy rows to a buffer: of another one, or of host memory."""
        j = self.choice.choice([j for j in range(BUFFERS) if j != i])
        width, height, here, there = rows_in(self.choice, self.nbytes)
        source = self.buffers[j] if self.choice.random() < 0.7 else self.model[j]
        l0rt.memcpy2d(self.buffers[i][here[0] :], here[1], source[there[0] :], there[1], width, height)
        self.model[i] = copied_rows(self.model[i], self.model[j], width, height, here, there)

    def upload(self, i):
        self.model[i] = np.frombuffer(self.choice.randbytes(self.nbytes), "u1")
        self.buffers[i].copy_from(self.model[i])

    def draw(self, i):
        state = self.generator.clone_state()
        self.model[i] = philox.randint(state.initial_seed(), state.get_offset(), self.nbytes, 0, 256, "uint8")
        self.buffers[i].randint_(0, 256, dtype="uint8", generator=self.generator)

    def read(self, i):
        """The host sees what was done by then: by a copy, or in memory that is the host's as well."""
        data = self.bytes_of(i) if self.buffers[i].kind == "device" else np.frombuffer(self.buffers[i], "u1").copy()
        if not np.array_equal(data, self.model[i]):
            self.failed.append(data)

    def write(self, i):
        """The host writes to memory that is its own as well."""
        if self.buffers[i].kind != "device":
            self.model[i] = np.frombuffer(self.choice.randbytes(self.nbytes), "u1")
            np.frombuffer(self.buffers[i], "u1")[:] = self.model[i]


def wrong_buffers(seed, kind=Program, **options):
    """Run a program of that class; return the indices of the buffers whose bytes differ from the model's."""
    return different(kind(seed, **options))


def different(program):
    contents, expected = program.run()
    return [i for i, (a, b) in enumerate(zip(contents, expected, strict=True)) if not np.array_equal(a, b)]


def wrong_in_threads(seed, kind=Program, threads=4, **options):
    """Run ``threads`` programs at once on the same streams; return what is wrong, thread -> buffers, or its failure."""
    wrong, gate = {}, threading.Barrier(threads)
    streams = kind(seed, **options).streams

    def run(thread):
        try:
            program = kind(1000 * seed + thread, **options)
            program.streams = streams
            gate.wait()
            if bad := different(program):
                wrong[thread] = bad
        except BaseException as failure:
            wrong[thread] = repr(failure)
            gate.abort()

    running = [threading.Thread(target=run, args=(thread,)) for thread in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return wrong
