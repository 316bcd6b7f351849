# SPDX-License-Identifier: Apache-2.0
"""Processes that send Buffers and events to each other, all at once and as chance has it, while any may be killed.

Each has a socket of datagrams with a name that is in no folder: who sends needs no answer, and a process that was
killed breaks nothing but what it has sent.
"""

import contextlib
import gc
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import tempfile

from helpers.ipc_worker import pattern
from helpers.process import WITH_PARENT, python_path
from helpers.rings import TESTS

COUNT = 4
CODE = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.ipc_exchange import Party
Party(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])).run()
"""
SLOW = ["zeMemGetIpcHandle", "zeMemOpenIpcHandle", "zeMemCloseIpcHandle", "zeCommandListAppendMemoryCopy",
        "zeEventPoolOpenIpcHandle", "zeEventPoolGetIpcHandle", "zeEventPoolCloseIpcHandle", "zeMemFree"]  # fmt: skip


def say(**what):
    print(json.dumps(what), flush=True)


class Party:
    """One of the processes."""

    def __init__(self, meeting, place, seed):
        import l0rt
        import l0rt.ipc

        from helpers import ledger

        self.l0rt, self.acc, self.ledger = l0rt, l0rt.accelerator, ledger
        self.meeting, self.place, self.turn = meeting, place, random.Random(seed)
        self.pool = l0rt.memory.MemPool(interprocess=True)
        self.stream = self.acc.Stream()
        self.own, self.held, self.done = [], [], 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.address(place))
        self.export(3 << 20, None)      # what stays open from now on: a segment, a ledger
        self.own.clear()
        self.begun = self.counts()

    def address(self, place):
        return f"\0l0rt-{self.meeting}-{place}"

    def export(self, nbytes, taker):
        """Make a Buffer, and send a part of it, and at times the event behind its contents."""
        seed, first = self.turn.randrange(1 << 16), self.turn.randrange(min(nbytes, 1000))
        with self.l0rt.memory.use_mem_pool(self.pool):
            buffer = self.l0rt.empty(nbytes, stream=self.stream)
        buffer.copy_from(pattern(seed, nbytes), stream=self.stream)
        event = self.l0rt.Event(interprocess=True) if self.turn.random() < 0.4 or taker is None else None
        if event is not None:
            event.record(self.stream)
        else:
            self.stream.synchronize()
        told = {"seed": seed, "first": first, "nbytes": nbytes, "memory": buffer[first:].ipc_handle().hex(),
                "event": event and event.ipc_handle().hex()}  # fmt: skip
        self.own.append((buffer, event))
        if taker is not None:
            with contextlib.suppress(BlockingIOError, ConnectionRefusedError, FileNotFoundError):
                self.socket.sendto(json.dumps(told).encode(), socket.MSG_DONTWAIT, self.address(taker))

    def take(self, told):
        """Import what was sent, and look at it through a copy or directly."""
        try:
            event = told["event"] and self.l0rt.Event.from_ipc_handle(None, bytes.fromhex(told["event"]))
            buffer = self.l0rt.Buffer.from_ipc_handle(bytes.fromhex(told["memory"]))
        except self.l0rt.InvalidArgumentError as refused:
            if "stale" not in str(refused) and "has ended" not in str(refused):
                raise
            return
        try:
            if event:
                self.stream.wait_event(event)
            if self.turn.random() < 0.5:
                copy = self.l0rt.empty(len(buffer), stream=self.stream).copy_from(buffer, stream=self.stream)
                self.stream.synchronize()
                self.check(copy, told)
            elif event:
                self.stream.synchronize()
            self.check(buffer, told)
        except self.l0rt.L0Error as refused:
            if "ended before its event was signalled" not in str(refused):
                raise
            return
        self.held.append((buffer, told))
        self.done += 1

    def check(self, buffer, told):
        expected = pattern(told["seed"], told["nbytes"])[told["first"] :]
        if len(buffer) != len(expected) or not (buffer.numpy() == expected).all():
            say(wrong=told)
            os._exit(3)

    def step(self):
        chance = self.turn.random()
        if chance < 0.45:
            sizes = (1, 1000, 5000, 70_000, 1 << 20) if chance < 0.43 else (3 << 20,)
            others = [place for place in range(COUNT) if place != self.place]
            self.export(self.turn.choice(sizes) + self.turn.randrange(512), self.turn.choice(others))
            if len(self.own) > 8:
                self.own.pop(self.turn.randrange(len(self.own)))
        elif chance < 0.55 and self.held:
            self.check(*self.turn.choice(self.held))
        elif chance < 0.6:
            self.l0rt.ipc.collect()
        while len(self.held) > 12 or (self.held and self.turn.random() < 0.3):
            self.held.pop(self.turn.randrange(len(self.held)))

    def run(self):
        """Go on until the standard input ends; then let go of everything, and tell what is left when all have."""
        say(ready=True)
        told = 0
        while not readable(sys.stdin, 0):
            self.step()
            for what in self.received():
                self.take(what)
            if self.done > told:
                say(done=self.done - told)
                told = self.done
        sys.stdin.readline()
        for _ in self.received():
            pass
        while self.held:
            self.check(*self.held.pop())
        self.own.clear()
        say(left=True)
        sys.stdin.readline()
        say(begun=self.begun, counts=self.counts())

    def received(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                yield json.loads(self.socket.recv(1 << 16, socket.MSG_DONTWAIT))

    def counts(self):
        """Return what is exported and imported, open files, and the driver's live objects once all caches are empty."""
        gc.collect()
        self.acc.synchronize()
        self.l0rt.Event(interprocess=True).record(self.stream)  # closes those that were in use
        self.acc.synchronize()
        self.l0rt.ipc.collect()
        self.pool.empty_cache()
        self.acc.empty_cache()
        live = self.ledger.live() or {}
        return {
            "exported": self.l0rt.ipc.exported_count(),
            "imported": self.l0rt.ipc.imported_count(),
            "files": len(os.listdir("/proc/self/fd")),
            "usm": live.get("usm", 0),
        }


def readable(file, timeout):
    with selectors.DefaultSelector() as found:
        found.register(file, selectors.EVENT_READ)
        return bool(found.select(timeout))


class Child:
    """A process as the test sees it."""

    def __init__(self, meeting, place, turn):
        self.errors, self.rest = tempfile.TemporaryFile("w+"), b""  # noqa: SIM115 - close() closes it
        slow = ",".join(f"{turn.choice(SLOW)}:{turn.randrange(1, 200)}:slow={turn.randrange(1, 40)}" for _ in range(9))
        self.child = subprocess.Popen(
            [*WITH_PARENT, sys.executable, "-c", CODE, meeting, str(place), str(turn.randrange(1 << 30))],
            cwd="/",
            env={**os.environ, "PYTHONPATH": python_path() or "", "L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": slow},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
        )

    def lines(self):
        """Wait for what the process says, and return it: nothing of it stays behind where no selector sees it."""
        self.rest += os.read(self.child.stdout.fileno(), 1 << 16) or b"end\n"
        *lines, self.rest = self.rest.split(b"\n")
        found = [json.loads(line) if line.startswith(b"{") else {"wrong": line} for line in lines]
        assert not any("wrong" in one for one in found), (found, self.child.poll(), self.complaints())
        return found

    def until(self, key):
        """Read until the process says this, and return how many Buffers it has got meanwhile, and what it said last."""
        done = 0
        while True:
            found = self.lines()
            done += sum(one.get("done", 0) for one in found)
            if found and key in found[-1]:
                return done, found[-1]

    def tell(self):
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read()

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        assert self.child.wait(60) == -signal.SIGKILL, self.complaints()
        assert (b"wrong" in self.child.stdout.read(), self.complaints()) == (False, "")
        self.close()

    def close(self):
        self.child.stdout.close()
        self.errors.close()


def exchange(exchanges, every, seed, meeting):
    """Let four processes exchange so many Buffers, and kill one of them after about each ``every`` of these.

    Return how many it were, how many were killed, and what is left in the others.
    """
    turn = random.Random(seed)
    running = [Child(meeting, place, turn) for place in range(COUNT)]
    done = kills = 0
    try:
        due = turn.randrange(2 * every)
        while done < exchanges:
            with selectors.DefaultSelector() as found:
                for child in running:
                    found.register(child.child.stdout, selectors.EVENT_READ, child)
                for key, _ in found.select(60):
                    done += sum(one.get("done", 0) for one in key.data.lines())
            if done >= due:
                place = turn.randrange(COUNT)
                running[place].kill()
                running[place] = Child(meeting, place, turn)
                kills += 1
                due = done + turn.randrange(2 * every)
        for child in running:
            child.tell()
        done += sum(child.until("left")[0] for child in running)
        for child in running:
            child.tell()
        left = [child.until("counts")[1] for child in running]
        for child in running:
            child.child.stdin.close()
            assert (child.child.wait(60), child.complaints()) == (0, "")
            child.close()
    finally:
        for child in running:
            if child.child.poll() is None:
                child.child.kill()
                child.child.wait()
    return done, kills, left
