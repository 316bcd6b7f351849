# SPDX-License-Identifier: Apache-2.0
"""Random programs in which few interprocess events are recorded again and again, under waits that are still queued.

Every step waits for the event of the step before, which may be of another stream, device or process, changes memory
that all share, and records an event. So the steps run one after another, and the memory is what they say in that order.
Between them streams wait for any event, as it was recorded last, and others are kept busy.
"""

import random

import l0rt
import l0rt.accelerator as acc
import l0rt.memory
import numpy as np

COUNT = 64  # numbers in a part of the shared memory
NBYTES = 4 * COUNT
PARTS = 4
SLOW = 4 << 20  # bytes of a fill that keeps a stream busy


class Party:
    """What one process has: its streams and its events, and the memory and the events of all."""

    def __init__(self, number, kinds, shared=None):
        self.number = number
        devices = range(acc.device_count())
        self.streams = [l0rt.Stream(device=device) for device in devices for _ in range(2)]
        self.events = {}  # (process, device, number) -> Event
        for device in devices:
            for at, interprocess in enumerate(kinds):
                self.events[number, device, at] = event = l0rt.Event(interprocess=interprocess)
                event.record(self.streams[2 * device])
        with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
            self.shared = l0rt.empty(PARTS * NBYTES).fill(0) if shared is None else shared
        self.own = [l0rt.empty(SLOW, device=stream.device.index) for stream in self.streams]
        synchronize()

    def handles(self):
        own = [(key, event) for key, event in self.events.items() if key[0] == self.number]
        return [(key, event.ipc_handle().hex()) for key, event in own]

    def open(self, handles):
        self.events |= {tuple(key): l0rt.Event.from_ipc_handle(None, bytes.fromhex(text)) for key, text in handles}

    def part(self, at):
        return self.shared[NBYTES * at : NBYTES * (at + 1)]

    def run(self, step):
        stream = self.streams[step["stream"] % len(self.streams)]
        if step["slow"]:
            self.own[step["stream"] % len(self.own)].fill(1, non_blocking=True, stream=stream)
        for key in step["waits"]:
            stream.wait_event(self.events[tuple(key)])
        if step["kind"] == "fill":
            pattern = np.float32(step["value"]).tobytes()
            self.part(step["to"]).fill(pattern=pattern, non_blocking=True, stream=stream)
        elif step["kind"] == "copy":
            self.part(step["to"]).copy_from(self.part(step["source"]), non_blocking=True, stream=stream)
        if step["event"] is not None:
            self.events[tuple(step["event"])].record(stream)


def synchronize():
    for device in range(acc.device_count()):
        acc.synchronize(device)


def steps_of(seed, length, processes, devices, events):
    """Return the steps of a program, and what it leaves in the shared memory."""
    choose = random.Random(seed)
    model = np.zeros((PARTS, COUNT), np.float32)
    steps, last = [], None
    for value in range(1, length + 1):
        process, number = choose.randrange(processes), choose.randrange(2 * devices)
        step = {"process": process, "stream": number, "slow": choose.random() < 0.3, "value": value, "event": None}
        keys = [(p, d, e) for p in range(processes) for d in range(devices) for e in range(events)]
        step["waits"] = choose.sample(keys, choose.choice((0, 0, 1, 2)))
        step["kind"] = choose.choice(("fill", "copy", "none"))
        if step["kind"] != "none":
            step["waits"].append(last) if last is not None else None
            step["to"], step["source"] = choose.sample(range(PARTS), 2)
            model[step["to"]] = value if step["kind"] == "fill" else model[step["source"]]
            last = step["event"] = (process, number // 2, choose.randrange(events))
        steps.append(step)
    return steps, model


def wrong_alone(seeds, length):
    """Run programs in this process, with ordinary events among the others, and return which leave other memory."""
    wrong = []
    for seed in seeds:
        party = Party(0, [random.Random(seed).random() < 0.7 for _ in range(3)])
        steps, model = steps_of(seed, length, 1, acc.device_count(), 3)
        for step in steps:
            party.run(step)
        synchronize()
        if party.shared.numpy("float32").tobytes() != model.tobytes():
            wrong.append(seed)
    return wrong


START = """
from helpers import event_programs
self.party = event_programs.Party(1, [True] * 2, l0rt.Buffer.from_ipc_handle(bytes.fromhex({handle!r})))
self.party.open({handles!r})
found = self.party.handles()
"""


def wrong_between(worker, seeds, length):
    """The same with the steps of one of two processes each; the other one is a helpers.ipc_worker.Worker."""
    wrong = []
    for seed in seeds:
        party = Party(0, [True] * 2)
        party.open(worker.run(START.format(handle=party.shared.ipc_handle().hex(), handles=party.handles())))
        steps, model = steps_of(seed, length, 2, acc.device_count(), 2)
        for step in steps:
            party.run(step) if step["process"] == 0 else worker.run(f"self.party.run({step!r})")
        worker.run("from helpers import event_programs; event_programs.synchronize()")
        synchronize()
        if party.shared.numpy("float32").tobytes() != model.tobytes():
            wrong.append(seed)
        worker.run("del self.party")
    return wrong
