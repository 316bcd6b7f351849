# SPDX-License-Identifier: Apache-2.0
"""Snapshots of memory in torch's schema that no allocator made: of any size, with every kind of entry."""

import pickle
import random
import struct

BASE = 0x7F00_0000_0000
SEGMENT = 64 << 20
MODEL = "/home/user/model.py"


def frame(name, line, file="/home/user/train.py"):
    return {"filename": file, "line": line, "name": name}


def stacks(count, seed=0):
    """Return stacks, innermost frame first, that share their outer frames."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        layer = number % 24
        inner = [frame(f"{op}_{number // 24}", 10 + number, "/usr/lib/python3/site-packages/model/ops.py")
                 for op in draw.sample(("linear", "softmax", "matmul", "norm", "gelu", "dropout"), 3)]
        outer = [frame(f"layer_{layer}", 100 + layer, MODEL), frame("forward", 40, MODEL)]
        outer += [frame("step", 21), frame("main", 7), frame("<module>", 99)]
        found.append(inner + outer)
    return found


def entry(action, addr, size, time, stream=0, frames=None, tag="", **more):
    made = {"action": action, "addr": addr, "size": size, "stream": stream, "time_us": time, "pool_id": (0, 0),
            "compile_context": "N/A", "user_metadata": "", **more}
    if tag:
        made["category"] = tag
    if frames is not None:
        made["frames"] = frames
    return made


def unused(address, size):
    return {"address": address, "size": size, "requested_size": 0, "state": "inactive", "frames": []}


class Machine:
    """An allocator of one device that notes what it does, as torch's does: first fit in segments of one size."""

    def __init__(self, device=0, seed=0, depth=200):
        self.device, self.draw = device, random.Random(seed)
        self.trace, self.time, self.segments = [], 1_700_000_000_000_000, []
        self.live = {}  # address -> (size, stream, frames, tag, segment)
        self.stacks = stacks(depth, seed)
        self.free = {}  # size -> addresses that were freed
        self.end, self.limit = BASE, BASE
        self.allocated = self.peak = 0

    def note(self, *values, **more):
        self.time += self.draw.randrange(1, 20)
        self.trace.append(entry(*values[:3], self.time, *values[3:], **more))

    def alloc(self, size, stream=0, tag="", frames=None):
        rounded = (size + 511) & ~511
        frames = frames or self.draw.choice(self.stacks)
        if not self.free.setdefault(rounded, []):
            if self.end + rounded > self.limit:
                total = max(SEGMENT, (rounded + SEGMENT - 1) // SEGMENT * SEGMENT)
                self.end, self.limit = self.limit + (16 << 20), self.limit + (16 << 20) + total
                self.segments.append((self.end, total))
                self.note("segment_alloc", self.end, total, stream, frames)
            self.free[rounded].append(self.end)
            self.end += rounded
        address = self.free[rounded].pop()
        self.live[address] = (size, stream, frames, tag)
        self.note("alloc", address, size, stream, frames, tag)
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        return address

    def release(self, address):
        size, stream, frames, tag = self.live.pop(address)
        self.allocated -= size
        self.note("free_requested", address, size, stream, None, tag)
        self.note("free_completed", address, size, stream, None, tag)
        self.free[(size + 511) & ~511].append(address)

    def blocks(self, start, total):
        """Return the blocks of a segment at the end, contiguous and in order."""
        found, at = [], start
        for address in sorted(a for a in self.live if start <= a < start + total):
            size, _, frames, tag = self.live[address]
            if address > at:
                found.append(unused(at, address - at))
            rounded = (size + 511) & ~511
            found.append({"address": address, "size": rounded, "requested_size": size, "state": "active_allocated",
                          "frames": frames, **({"category": tag} if tag else {})})
            at = address + rounded
        if at < start + total:
            found.append(unused(at, start + total - at))
        return found

    def segment(self, start, total):
        blocks = self.blocks(start, total)
        live = [block for block in blocks if block["state"] == "active_allocated"]
        active = sum(block["size"] for block in live)
        return {"device": self.device, "address": start, "total_size": total, "stream": 0, "segment_type": "large",
                "allocated_size": active, "active_size": active,
                "requested_size": sum(block["requested_size"] for block in live), "is_expandable": False,
                "segment_pool_id": (0, 0), "frames": [], "blocks": blocks}


def snapshot(*machines, annotations=()):
    """Return the snapshot of some machines, one a device."""
    return {
        "segments": [machine.segment(*one) for machine in machines for one in machine.segments],
        "device_traces": [machine.trace for machine in machines],
        "allocator_settings": {"PYTORCH_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
        "external_annotations": list(annotations),
    }


def trained(entries=3000, seed=0, device=0):
    """Return a machine that trained: weights that stay, activations that come and go with each step, a leak."""
    machine = Machine(device, seed)
    draw = machine.draw
    for _ in range(48):
        machine.alloc(draw.choice((1 << 20, 4 << 20, 3_145_728)), 0, "weights")
    for _ in range(48):
        machine.alloc(draw.choice((2 << 20, 8 << 20)), 0, "optimizer")
    while len(machine.trace) < entries:
        sizes = [draw.choice((300_000, 1 << 20, 2_500_000, 700)) for _ in range(60)]
        activations = [machine.alloc(size, draw.choice((0, 0, 1)), "activations") for size in sizes]
        gradients = []
        for address in reversed(activations):
            gradients.append(machine.alloc(draw.choice((512, 1 << 20)), 0, "gradients"))
            machine.release(address)
        for address in gradients[:-1]:
            machine.release(address)
        draw.random() < 0.1 or machine.release(gradients[-1])
    return machine


def call(*lines):
    """Return a stack of ("function", line) of train.py, or of model.py where a class is named; innermost first."""
    return [frame(name, line, "model.py" if "." in name else "train.py") for name, line in lines]


# Of a layer: the function that allocates, its line, the width of what it makes.
OPERATIONS = (("Norm", 58, 1), ("Attention", 21, 4), ("Attention", 25, 6), ("MLP", 44, 4), ("MLP", 47, 1))


def documented(steps=8, layers=12, leak=True):
    """Return the snapshot that docs/viewer.md shows: a transformer is trained, and a list keeps each step's logits."""
    machine, ends = Machine(0, 1), [("main", 61), ("<module>", 70)]
    hidden, tokens = 768, 2048
    shapes = {"Attention": 4 * hidden * hidden, "MLP": 8 * hidden * hidden, "Norm": 2 * hidden}
    weights = []
    for layer in range(layers):
        for line, (name, count) in enumerate(shapes.items()):
            stack = call((f"{name}.__init__", 12 + 20 * line), ("Block.__init__", 80 + line), ("build", 18), *ends)
            weights.append((machine.alloc(4 * count, 0, "weights", stack), count, layer, name))
    notes, kept, states = [], [], []
    for step in range(steps):
        notes.append({"device": 0, "time_us": machine.time + 1, "name": f"step {step}", "stage": "START"})
        live = []
        for _ in range(layers):
            for name, line, width in OPERATIONS:
                stack = call((f"{name}.forward", line), ("Block.forward", 88), ("train_step", 33), *ends)
                live.append(machine.alloc(4 * tokens * hidden * width // 4, 0, "activations", stack))
                scratch = machine.alloc(4 * tokens * hidden // 8, 1, "", stack[:1] + call(("train_step", 33), *ends))
                machine.release(scratch)
        stack = call(("Head.forward", 97), ("train_step", 33), *ends)
        logits = machine.alloc(4 * tokens * 2048, 0, "activations", stack)
        gradients = []
        for _, count, _, name in reversed(weights):
            stack = call((f"{name}.backward", 30), ("train_step", 36), *ends)
            gradients.append(machine.alloc(4 * count, 0, "gradients", stack))
            for _ in range(2 if name != "Norm" else 1):
                machine.release(live.pop())
        if not states:
            stack = call(("Adam.__init__", 109), ("train_step", 38), *ends)
            states = [machine.alloc(8 * count, 0, "optimizer", stack) for _, count, _, _ in weights]
        for address in gradients:
            machine.release(address)
        kept.append(logits)
        if not leak:
            machine.release(kept.pop())
        notes.append({"device": 0, "time_us": machine.time + 1, "name": f"step {step}", "stage": "END"})
    return snapshot(machine, annotations=notes)


def write(path, value, protocol=4):
    path.write_bytes(pickle.dumps(value, protocol))
    return path


def write_distinct(path, count):
    """Write a pickle of so many entries, no two of which share a value; without making them, which takes gigabytes."""

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value

    def number(value):
        return b"\x8a\x08" + struct.pack("<q", value)

    first, second = (b"}(" + text(b"action") + text(name) + text(b"addr") for name in (b"alloc", b"free_completed"))
    size, stream, end = text(b"size"), text(b"stream") + number(0) + text(b"time_us"), b"u"
    with open(path, "wb") as file:
        file.write(b"\x80\x03}(" + text(b"segments") + b"](e" + text(b"device_traces") + b"](](")
        for k in range(count // 2):
            rest = number(BASE + 512 * k) + size + number(1 + k) + stream
            file.write(first + rest + number(2 * k) + end + second + rest + number(2 * k + 1) + end)
        file.write(b"eeu.")
    return path
