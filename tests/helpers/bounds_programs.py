# SPDX-License-Identifier: Apache-2.0
"""Random programs that allocate, free, cut, capture and launch kernels which store four bytes somewhere near a Buffer.

A model of which bytes are allocated says which launches must fail. Run as a program: seeds from A up to B.
"""

import random
import sys
from pathlib import Path

import l0rt
import l0rt.accelerator as acc

PATH = Path(__file__).parents[1] / "cpu_driver" / "kernels" / "launch.spv"
SIZES = (1, 4, 100, 511, 512, 513, 1000, 4096, 65536, 1 << 20, (1 << 20) + 4, 3 << 20)


class Fault(Exception):
    pass


def own_memory():
    """The addresses and sizes of what graphs have in the default pool for themselves, where Buffers may have been."""
    blocks = [block for segment in l0rt.memory.snapshot()["segments"] for block in segment["blocks"]]
    return [(block["address"], block["requested_size"]) for block in blocks
            if block["state"] == "active_allocated" and block["requested_size"] == 16]  # fmt: skip


def is_of_a_graph(address, pool):
    """Is that in a graph's pool, whose launches may reach what was there at any time of the capture?"""
    return any(segment["address"] <= address < segment["address"] + segment["total_size"]
               and segment["segment_pool_id"] not in ((0, 0), pool.id)
               for segment in l0rt.memory.snapshot()["segments"])  # fmt: skip


class Program:
    def __init__(self, seed):
        self.choice = random.Random(seed)
        self.wild = l0rt.Module(PATH)["wild"]
        self.streams = [acc.Stream(), acc.Stream(), acc.default_stream()]
        self.pool = l0rt.memory.MemPool()
        self.buffers = []  # with the address and size of each
        self.freed = []  # what was freed, as its address and size
        self.graphs = []  # with their streams, whether the stores to their own memory are right, and what else they use
        self.counts = {"good": 0, "bad": 0, "replays": 0}

    def is_allocated(self, address):
        places = [(start, size) for _, start, size in self.buffers]
        if self.graphs and not any(start <= address < start + size for start, size in places):
            places += own_memory()
        return any(start <= address and address + 4 <= start + size for start, size in places)

    def allocate(self):
        kind = self.choice.choice(["device", "device", "device", "host", "shared"])
        size = self.choice.choice(SIZES) if kind != "shared" else 4096
        stream = {"stream": self.choice.choice(self.streams)} if kind == "device" else {}
        if kind == "device" and self.choice.random() < 0.3:
            with l0rt.memory.use_mem_pool(self.pool):
                buffer = l0rt.empty(size, kind=kind, **stream)
        else:
            buffer = l0rt.empty(size, kind=kind, **stream)
        self.buffers.append((buffer, buffer.ptr, size))

    def free(self):
        buffer, start, size = self.buffers.pop(self.choice.randrange(len(self.buffers)))
        if buffer.kind == "device":
            self.freed.append((start, size))
            del self.freed[:-8]
        buffer.free()

    def place(self):
        """A Buffer or a part of one, or None for memory that was freed; its address, and the one to store to."""
        chance = self.choice.random
        if self.freed and chance() < 0.15:
            start, size = self.choice.choice(self.freed)
            if not is_of_a_graph(start, self.pool):
                return None, start, start + self.choice.randrange(max(size - 3, 1))
        buffer, start, size = self.choice.choice(self.buffers)
        if size >= 4 and (buffer.kind == "shared" or chance() < 0.75):
            address = start + self.choice.randrange(size - 3)
            if chance() < 0.5 and address > start:
                buffer = buffer[self.choice.randrange(address - start) :]
            return buffer, buffer.ptr, address
        return buffer, start, start - 4 if chance() < 0.3 else start + size - 4 + self.choice.randrange(1, 200)

    def store(self, stream):
        """Launch; whether it must succeed."""
        buffer, start, address = self.place()
        distance, rest = divmod(address - start, 4)
        near = buffer if rest == 0 and buffer is not None else l0rt.Pointer(start + rest)
        self.wild.launch(near, distance, groups=1, group_size=1, stream=stream)
        return address

    def check(self, stream, addresses):
        expected = all(self.is_allocated(address) for address in addresses)
        try:
            stream.synchronize()
            got = True
        except l0rt.KernelFaultError as error:
            got = "wild" not in str(error)
        if got != expected:
            wrong = [hex(a) for a in addresses if not self.is_allocated(a)]
            told = ", ".join(f"{start:#x} ({size} bytes, {buffer.kind})" for buffer, start, size in self.buffers)
            raise Fault(f"stores to {list(map(hex, addresses))}: {'good' if got else 'failed'}, but wrong are {wrong}: "
                        f"allocated are {told}")  # fmt: skip
        self.counts["good" if expected else "bad"] += 1

    def launch(self):
        stream = self.choice.choice(self.streams)
        self.check(stream, [self.store(stream) for _ in range(self.choice.randrange(1, 3))])

    def free_behind(self):
        """What is freed behind a launch is the launch's."""
        device = [each for each in self.buffers if each[0].kind == "device" and each[2] >= 4]
        if not device:
            return
        stream = self.choice.choice(self.streams)
        each = self.choice.choice(device)
        each[0].record_stream(stream)
        self.wild.launch(each[0], 0, groups=1, group_size=1, stream=stream)
        self.buffers.remove(each)
        each[0].free()
        stream.synchronize()

    def capture(self):
        graph, stream = acc.Graph(), acc.Stream()
        size = self.choice.choice(SIZES[2:10])
        offset = self.choice.choice([0, size // 4 - 1, size // 4 - 1, -1, size // 4 + 4])
        outer = self.choice.choice(self.buffers)
        with acc.graph(graph, stream=stream):
            for _ in range(3):  # of which the same memory may be
                x = l0rt.empty(size)
                self.wild.launch(x, 0, groups=1, group_size=1, stream=stream)
                del x
            x = l0rt.empty(size)
            self.wild.launch(x, offset, groups=1, group_size=1, stream=stream)
            if outer[2] >= 4:
                self.wild.launch(outer[0], 0, groups=1, group_size=1, stream=stream)
        self.graphs.append((graph, stream, 0 <= offset <= size // 4 - 1, outer))
        if len(self.graphs) > 2:
            self.graphs.pop(0)[0].reset()

    def replay(self):
        if not self.graphs:
            return
        graph, stream, expected, (_, start, size) = self.choice.choice(self.graphs)
        if size >= 4 and not self.is_allocated(start):
            expected = False
            if is_of_a_graph(start, self.pool):
                return
        try:
            with stream:
                graph.replay()
            stream.synchronize()
            acc.synchronize()
            got = True
        except l0rt.KernelFaultError:
            got = False
        if got != expected:
            raise Fault(f"a replay {'succeeded' if got else 'failed'}, expected the other")
        self.counts["replays"] += 1

    def run(self, steps):
        for _ in range(steps):
            if not self.buffers:
                self.allocate()
            step = self.choice.choices(
                [self.allocate, self.free, self.launch, self.free_behind, self.capture, self.replay, self.empty],
                [6, 4, 12, 2, 0.5, 2, 0.3])[0]
            step()
        for graph, *_ in self.graphs:
            graph.reset()

    def empty(self):
        acc.empty_cache()


def main(first, last, steps):
    total = {"good": 0, "bad": 0, "replays": 0}
    for seed in range(first, last):
        program = Program(seed)
        try:
            program.run(steps)
        except Fault as error:
            raise SystemExit(f"seed {seed}: {error}") from None
        for name, count in program.counts.items():
            total[name] += count
        del program
    print(*(f"{count} {name}" for name, count in total.items()), sep=", ")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
