# SPDX-License-Identifier: Apache-2.0
"""A program of calls to every public name with hostile objects, from everywhere that code can run.

``python -m helpers.hostile SEED STEPS [--only STEP,STEP,...]``: the program of that seed. Each step has random numbers
of its own, so that some of them can be run without the others. What is wrong is told on stderr, and the exit status is
3. The last calls stand in the file that ``--log`` names.
"""

import argparse
import atexit
import faulthandler
import gc
import os
import queue
import random
import signal
import sys
import threading
import time
import traceback
import weakref

import l0rt
from l0rt import config, interface, memory
from l0rt.runtime.streams import devices, hooks

from helpers import hostile_oracle as oracle
from helpers.hostile_door import HostileDoor
from helpers.hostile_world import DEPTH, MOST, World

LONG = 0.02  # seconds after which a call is interrupted where commands hang
ENOUGH = 2000  # calls after which each function of the C table has succeeded once
STALLED = 10  # times that long without another call: something waits


class Later(threading.Thread):
    """A thread that a `Starter` starts."""

    def __init__(self, function):
        super().__init__(target=function)
        self.has_begun = threading.Event()

    def join(self):
        self.has_begun.wait()
        super().join()


class Starter:
    """Starts threads and does not wait for them.

    ``Thread.start`` waits until the new thread has had the locks of `threading`. A finalizer that calls it may have
    interrupted `threading` while it had one of them, so it would wait for ever.
    """

    def __init__(self):
        self.threads = queue.SimpleQueue()  # a finalizer may put into it
        threading.Thread(target=self.serve, daemon=True).start()

    def start(self, function):
        thread = Later(function)
        self.threads.put(thread)
        return thread

    def serve(self):
        while True:
            thread = self.threads.get()
            try:
                thread.start()
            finally:
                thread.has_begun.set()


class Program(World):
    """Where the calls of a `World` come from."""

    def __init__(self, seed, contexts, log, patience):
        super().__init__(seed, contexts, log, patience)
        self.starter = Starter()

    def thread(self, steps):
        if self.is_child or len(self.threads) > 4 or not self.contexts["threads"]:
            return
        seed = self.rng.random()

        def run():
            self.local.rng, self.local.step, self.local.left = random.Random(seed), f"{step}t", MOST
            for _ in range(steps):
                self.step()
            if self.door:
                self.door.leave_scopes()

        step = self.local.step
        self.threads.append(self.starter.start(run))

    def fork(self, steps):
        """Let a forked child make calls of its own."""
        if self.is_child or not self.contexts["forks"] or self.forks > self.contexts["forks"] or self.is_leaving:
            return
        self.forks += 1
        pid = os.fork()
        if pid == 0:
            self.in_child(steps)
        end = time.monotonic() + self.patience / 2
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                os.kill(pid, signal.SIGABRT)  # faulthandler tells where it is
                os.waitpid(pid, 0)
                self.finding("a forked child hangs")
                return
            time.sleep(0.0005)
        if status:
            self.finding(f"a forked child ended with status {status:#x}")

    def in_child(self, steps):
        code = 4
        try:
            self.is_child = True
            self.threads, self.interrupts, self.findings = [], {}, []
            self.local.armed = False
            for _ in range(steps):
                self.step()
            if self.rng.random() < 0.3:
                self.instances.clear()
                gc.collect()
                atexit._run_exitfuncs()
            code = 3 if self.findings else 0
            for text in self.findings:
                os.write(2, f"in a forked child: {text}\n".encode("utf-8", "backslashreplace"))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def alarmed(self, act):
        """Make a call while a signal arrives whose handler does ``act``."""

        def handler(number, frame):
            may = self.may_interrupt if act == self.interrupt else self.local.armed
            if may and self.local.depth <= DEPTH:
                act()

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, self.rng.choice((1e-6, 1e-5, 5e-5, 2e-4, 1e-3)))
        try:
            for _ in range(4):
                self.step()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_IGN)

    def end_waits(self):
        """Interrupt every call that takes long, from now on; also where the harness itself waits."""
        last, ticks = None, 0

        def handler(number, frame):
            nonlocal last, ticks
            last, ticks = self.performs, ticks + 1 if last == self.performs else 0
            if self.may_interrupt or ticks > STALLED:
                ticks = 0
                raise self.new_interrupt()

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, LONG, LONG)

    def finalize(self):
        """Let calls come from finalizers, weak references and the collector's callbacks."""
        rng = self.rng
        world = self

        class Garbage:
            def __del__(self):
                world.disturb(0.8, in_destructor=True)

        made = Garbage()
        made.itself, made.held = made, [self.values.anything() for _ in range(2)]
        weak = weakref.ref(made, self.callback("weakref", is_finalizer=True))
        if rng.random() < 0.5:
            del weak
        del made
        before = gc.get_threshold()
        told = self.callback("gc callback", chance=0.1, is_finalizer=True)
        gc.callbacks.append(told)
        gc.set_threshold(rng.choice((1, 5, 20)))
        try:
            for _ in range(4):
                self.step()
            gc.collect()
        finally:
            gc.callbacks.remove(told)
            gc.set_threshold(*before)

    def watched(self):
        """Let calls come from trace callbacks, observers and stream callbacks."""
        rng = self.rng
        for _ in range(3):
            name = rng.choice(hooks.NAMES)
            told = self.callback(f"trace callback of {name}", chance=0.2)
            hooks.add(name, told)
            self.watching.append((name, told))
        detach = memory.attach_oom_observer(self.callback("oom observer"))
        stream = self.instance_of("Stream")
        try:
            if hasattr(stream, "add_callback"):  # the host's has none
                self.perform("add_callback", stream.add_callback, [self.callback("stream callback", 0.8)], {}, None)
            for _ in range(4):
                self.step()
        finally:
            detach()

    def pooled(self):
        """Let calls come from a pool's functions."""
        host = self.values.host()
        pool = memory.MemPool(host.allocator(), on_oom=self.callback("on_oom"))
        self.keep(pool)
        with memory.use_mem_pool(pool):
            for _ in range(4):
                if self.rng.random() < 0.5:
                    self.perform("l0rt.empty", l0rt.empty, [self.values.size()], {}, None)
                self.step()

    def together(self):
        """Let several threads make calls at once."""
        for _ in range(2):
            self.thread(8)
        for _ in range(8):
            self.step()

    def run(self, number):
        """Make the calls of one step of the program."""
        rng = self.local.rng = random.Random(f"{self.seed}:{number}")
        self.local.step, self.local.depth, self.local.left = number, 0, MOST
        ways = [self.step] * 6 + [self.finalize, self.watched, self.pooled]
        if self.contexts["signals"]:
            ways += [lambda: self.alarmed(self.step)] * 2
        if self.contexts["signals"] and self.contexts["interrupts"]:
            ways += [lambda: self.alarmed(self.interrupt)] * 2
        if self.contexts["threads"]:
            ways.append(self.together)
        if self.contexts["forks"] and rng.random() < 0.1:
            ways.append(lambda: self.fork(5))
        way = rng.choice(ways)
        self.log(f"--- {getattr(way, '__name__', 'way')}")
        try:
            way()
        except BaseException as error:
            oracle.judge(self, f"step {number}", error, None)
        oracle.settle(self)

    def checkpoint(self):
        """Drop everything: nothing may be left."""
        oracle.settle(self)
        oracle.wait_for_callbacks()
        oracle.settle(self)  # what they raised
        self.local.step = f"{self.local.step}c"
        self.local.depth = DEPTH + 1  # finalizers rest
        while self.blocks:
            self.door.leave_scopes()
            leave_block(self.blocks.pop())
        self.door.release()
        for detach in self.detachers:
            detach()
        self.detachers.clear()
        for name, told in self.watching:
            hooks.remove(name, told)
        self.watching.clear()
        interface.set_accelerator("xpu")
        for path, text in self.texts.items():
            config._SETTINGS[path].text = text
        config._notify(self.texts)
        oracle.nothing_is_left(self)
        self.local.depth = 0


def leave_block(value):
    for _ in range(3):
        try:
            type(value).__exit__(value, None, None, None)
        except Exception:
            break


def contexts_of(text):
    """Return where calls come from, and whether KeyboardInterrupt does: ``signals,threads,forks=20,interrupts``.

    ``hangs``: commands may never end, and an alarm ends whatever waits for one. ``table``: almost every call is one of
    the C table, and each of its functions has to succeed once, if there are many.
    """
    words = ("signals", "threads", "forks", "exit", "interrupts", "hangs", "table")
    found = dict.fromkeys(words, False)
    for word in filter(None, text.split(",")):
        name, _, number = word.partition("=")
        found[name] = int(number) if number else True
    return found


def leave(world):
    """Go with everything still there: calls go on from threads, finalizers and exit functions."""
    world.is_leaving = True
    world.local.depth, world.local.left = 0, MOST
    atexit.register(lambda: [world.step() for _ in range(3)])

    def forever():
        world.local.rng = random.Random(world.seed)
        while True:
            world.local.left = MOST
            world.step()
            time.sleep(0)

    if world.contexts["threads"]:
        threading.Thread(target=forever, daemon=True).start()
    sys.modules["__main__"].__dict__["_last"] = world.make_subclass(l0rt.Event)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seed", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("--contexts", default="signals,threads,forks=10,interrupts")
    parser.add_argument("--only", default="", help="the numbers of the steps to do")
    parser.add_argument("--log", default=os.devnull)
    parser.add_argument("--patience", type=float, default=60.0, help="seconds without progress that are a hang")
    given = parser.parse_args()
    faulthandler.enable()
    only = [int(number) for number in given.only.split(",") if number]
    world = Program(given.seed, contexts_of(given.contexts), given.log, given.patience)
    devices.lazy.init()
    world.door = HostileDoor(world)
    if world.contexts["hangs"]:
        world.end_waits()
    number = 0
    while (world.calls < given.steps) if not only else (number < len(only)):
        if number % 20 == 0:
            faulthandler.dump_traceback_later(given.patience, exit=True)
        try:
            world.run(only[number] if only else number)
            if number % 100 == 99:
                world.checkpoint()
        except KeyboardInterrupt as error:  # it came late, between two calls
            oracle.heard(world, error)
            oracle.settle(world)
        number += 1
    if world.contexts["exit"]:
        leave(world)
    else:
        world.checkpoint()
    if world.contexts["table"] and world.calls >= ENOUGH:
        world.findings += [f"no call of {path} has succeeded" for path in world.door.never_done()]
    faulthandler.cancel_dump_traceback_later()
    faulthandler.dump_traceback_later(given.patience, exit=True)
    for text in world.findings:
        print(text.encode("utf-8", "backslashreplace").decode(), file=sys.stderr)
    print(f"{world.calls} calls, {number} steps, {world.forks} forks", flush=True)
    code = 3 if world.findings else 0
    if world.contexts["hangs"]:  # exit would wait
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
