# SPDX-License-Identifier: Apache-2.0
"""Random programs of several threads that make, launch, close and drop modules, their own and each other's.

Some launches wait for a word of memory, so that modules which were closed are kept until somebody's later call finds
them idle. A launch writes its number, or says that its module was closed; after a round, no module is left.
"""

import ctypes
import gc
import random
import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np

from helpers.door import Arg, Door

CODE = (Path(__file__).parents[1] / "kernels" / "basic.spv").read_bytes()
ONE = (ctypes.c_uint32 * 3)(1, 1, 1)
SHARED, ITEMS = 3, 16  # modules that all threads have; numbers of a thread


class Flag:
    """A word that kernels wait for, in host memory: a kernel on a card may not see later writes to shared memory."""

    def __init__(self):
        self.memory = l0rt.empty(4, kind="host")
        self.word = np.frombuffer(self.memory, np.int32)
        self.word[0] = 0

    def open(self):
        self.word[0] = 1

    def is_open(self):
        return self.word[0] == 1


class Worker:
    """One thread: its own modules, of Python and of the C API, and everybody's."""

    def __init__(self, seed, steps, shared, flag):
        self.rng, self.steps, self.shared, self.flag = random.Random(seed), steps, shared, flag
        self.own, self.kernels, self.handles = [], [], []
        self.door, self.stream = Door(), acc.Stream()
        self.numbers, self.last, self.wrong = l0rt.empty(4 * ITEMS, kind="shared"), 0, []
        self.opens = -1  # the step after which nothing waits for the flag any more

    def run(self):
        acts = [self.make, self.get, self.launch, self.launch, self.close, self.drop, self.replace, self.make_in_c,
                self.launch_in_c, self.end_in_c]  # fmt: skip
        try:
            for step in range(self.steps):
                self.rng.choice(acts)()
                if step == self.opens:
                    self.flag.open()
        except BaseException as error:
            self.wrong.append(repr(error))
        while self.handles:
            self.end_in_c()

    def module(self):
        """A module that may be closed, and perhaps another thread's."""
        return self.rng.choice(self.own) if self.own and self.rng.random() < 0.6 else self.rng.choice(self.shared)

    def expect_closed(self, error):
        if str(error) != "the module was closed":
            raise error

    def make(self):
        self.own.append(l0rt.Module(CODE))
        if self.rng.random() < 0.5:  # the more kernels, the longer the end of the module
            self.kernels += [kernel for kernel in map(self.own[-1].__getitem__, self.own[-1]) if kernel.name == "store"]

    def get(self):
        try:
            self.kernels.append(self.module()["store"])
        except ValueError as error:
            self.expect_closed(error)

    def launch(self):
        if not self.kernels:
            return
        self.last += 1
        try:
            self.rng.choice(self.kernels).launch(self.numbers, self.last, groups=1, group_size=1, stream=self.stream)
        except ValueError as error:
            self.expect_closed(error)
            return
        if self.flag.is_open() and self.rng.random() < 0.1:
            self.stream.synchronize()
            found = np.frombuffer(self.numbers, np.int32)[0]
            assert found == self.last, (found, self.last)

    def close(self):
        self.module().close()

    def drop(self):
        kept = self.rng.choice((self.own, self.kernels))
        if kept:
            kept.pop(self.rng.randrange(len(kept)))

    def replace(self):
        """Everybody's module is another one from now on: others may be about to launch the old one."""
        at = self.rng.randrange(SHARED)
        self.shared[at] = l0rt.Module(CODE)

    def make_in_c(self):
        made = self.door.module_create(-1, CODE, len(CODE), 0, None)
        self.handles.append((made, self.door.kernel_get(made, b"store")))

    def launch_in_c(self):
        if not self.handles:
            return
        self.last += 1
        address, number = ctypes.c_void_p(self.numbers.ptr), ctypes.c_int32(self.last)
        args = (Arg * 2)(Arg(ctypes.addressof(address), 8), Arg(ctypes.addressof(number), 4))
        with self.stream:
            self.door.launch(self.rng.choice(self.handles)[1], ONE, ONE, args, 2, 0, None)

    def end_in_c(self):
        if self.handles:
            self.door.module_release(self.handles.pop(self.rng.randrange(len(self.handles)))[0])


def wrong_modules(seed, threads=4, steps=60):
    """Run a program and return what was wrong in it."""
    rng, flag = random.Random(seed), Flag()
    held = [acc.Stream() for _ in range(2)]
    with l0rt.Module(CODE) as waiting:
        for stream in held:  # what is launched there does not end before the threads do
            waiting["wait_until"].launch(flag.memory, 1, groups=1, group_size=1, stream=stream)
        shared = [l0rt.Module(CODE) for _ in range(SHARED)]
        workers = [Worker(rng.random(), steps, shared, flag) for _ in range(threads)]
        workers[0].opens = steps // 2
        for worker in workers[1:]:
            worker.stream = rng.choice((worker.stream, *held))
        running = [threading.Thread(target=worker.run) for worker in workers]
        for thread in running:
            thread.start()
        running[0].join()
        flag.open()  # if it has failed before
        for thread in running:
            thread.join()
        acc.synchronize()
    wrong = [(seed, text) for worker in workers for text in worker.wrong]
    del workers, shared, waiting, running, held
    gc.collect()
    l0rt.Module(CODE).close()  # whatever was closed and was in use is destroyed now
    return wrong
