# SPDX-License-Identifier: Apache-2.0
"""Threads and callbacks that use, free and replace the same buffers without asking each other, beside programs that
keep to their own: those must not notice."""

import random
import sys
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
from l0rt import memory
from l0rt.runtime.streams import hooks
from l0rt.selftest.programs import PlainProgram, wrong_buffers

NBYTES, PLACES = 4096, 8
TOLD = ("the buffer was freed", "in use by", "is a Buffer's memory", "is not the start", "freed already")


class Vandals:
    """Buffers that everybody uses. What goes wrong and should not is in ``failures``."""

    def __init__(self, seed, devices):
        self.seed, self.devices = seed, devices
        self.places = [self.made(random.Random(seed)) for _ in range(PLACES)]
        self.failures, self.done = [], False
        self.inside = threading.local()

    def made(self, choice):
        return l0rt.empty(NBYTES, device=choice.randrange(self.devices),
                          kind=choice.choice(["device", "device", "host", "shared"]))  # fmt: skip

    def step(self, choice):
        """Do anything to any of the buffers; it may be refused, but in words."""
        buffer, other = choice.choice(self.places), choice.choice(self.places)
        stream = acc.Stream(choice.randrange(self.devices))
        named = choice.choice([{}, {"stream": stream}])
        if named:
            # What used the memory before may still be under way in the order of the stream that it was allocated for.
            for i in range(self.devices):
                stream.wait_stream(acc.default_stream(i))
        if choice.random() < 0.1:
            stream.synchronize()
        try:
            choice.choice([
                lambda: buffer.fill(1, **named),
                lambda: buffer.fill(pattern=b"abcd", non_blocking=True, **named),
                lambda: buffer.copy_from(other, **named),
                lambda: buffer.copy_to(other, non_blocking=True, **named),
                lambda: buffer.copy_from(bytes(NBYTES), **named),
                lambda: buffer.copy_to(np.empty(NBYTES, "u1"), **named),
                lambda: buffer.copy_from(memoryview(other)) if other.kind != "device" else None,
                lambda: buffer.randint_(0, 9, dtype="uint8", **named),
                lambda: buffer.record_stream(stream),
                lambda: buffer.record_use(stream),
                lambda: memory.caching_allocator_delete(buffer.ptr),
                lambda: memoryview(buffer).release() if buffer.kind != "device" else None,
                buffer.free,
                lambda: buffer.free(stream=stream),
                lambda: self.places.__setitem__(choice.randrange(PLACES), self.made(choice)),
                lambda: self.places.__setitem__(choice.randrange(PLACES), self.made(choice)),
            ])()  # fmt: skip
        except (ValueError, BufferError) as error:
            if not any(text in str(error) for text in TOLD):
                self.failures.append(repr(error))

    def thread(self, number):
        choice = random.Random(f"{self.seed}/{number}")
        try:
            while not self.done:
                self.step(choice)
        except BaseException as error:
            self.failures.append(repr(error))

    def callback(self, *values):
        """Be told of something, inside a call: do one more thing, unless that is what it is told of."""
        if not getattr(self.inside, "is", False) and not self.done:
            self.inside.__dict__["is"] = True
            try:
                self.step(random.Random(repr(values)))
            finally:
                self.inside.__dict__["is"] = False


def run(seeds, threads=2, devices=2, told=()):
    """Run a plain program for each seed beside the vandals; return what went wrong."""
    acc.init()
    before, interval = [acc.memory_allocated(i) for i in range(devices)], sys.getswitchinterval()
    vandals = Vandals(seeds[0], devices)
    running = [threading.Thread(target=vandals.thread, args=(number,)) for number in range(threads)]
    sys.setswitchinterval(2e-5)
    for name in told:
        hooks.add(name, vandals.callback)
    for thread in running:
        thread.start()
    wrong = {seed: bad for seed in seeds if (bad := wrong_buffers(seed, PlainProgram, steps=30, devices=devices))}
    vandals.done = True
    for thread in running:
        thread.join()
    for name in told:
        hooks.remove(name, vandals.callback)
    sys.setswitchinterval(interval)
    failures = vandals.failures[:5]
    del vandals
    acc.synchronize()
    memory.empty_cache()
    held = [acc.memory_allocated(i) - before[i] for i in range(devices)]
    return {name: what for name, what in (("wrong", wrong), ("failures", failures), ("held", held)) if any(what)}
