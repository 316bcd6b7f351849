# SPDX-License-Identifier: Apache-2.0
"""What a snapshot says of one device's memory, as columns: when each allocation began and ended, and each segment.

A *moment* is a number of entries: 0 is before the first entry of the trace, and ``entries`` is the end, which is what
the snapshot's segments describe. An allocation is alive from the moment ``born`` to before the moment ``freed``, and
its memory can be used again from ``done`` on. What was allocated before the trace began is known from its end: it has
``born`` 0.
"""

from itertools import chain
from operator import itemgetter

import numpy as np

from l0rt.cli.memory.ranges import Ranges
from l0rt.cli.memory.stacks import BadSnapshot, Stacks, Table, printable

ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, MAP, UNMAP, OOM, SNAPSHOT, OTHER = range(10)
ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "free": FREE_COMPLETED,
    "segment_alloc": SEGMENT_ALLOC,
    "segment_free": SEGMENT_FREE,
    "segment_map": MAP,
    "segment_unmap": UNMAP,
    "oom": OOM,
    "snapshot": SNAPSHOT,
}
PENDING = ("active_pending_free", "active_awaiting_free")
STATES = ("active_allocated", *PENDING, "inactive")
MOST_ENTRIES = 20_000_000
MOST_DEVICES = 128  # as torch: each costs more than its bytes in the file
MOST_BITS = 256  # of a whole number in a message: Python refuses to write much longer ones
LARGEST = 1 << 53  # bytes: what a float holds exactly
HIGHEST = 1 << 64
UNTAGGED = "(no tag)"
COLUMNS = {
    "born": np.uint32,
    "freed": np.uint32,
    "done": np.uint32,
    "size": np.float64,
    "address": np.uint64,
    "node": np.uint32,
    "free_node": np.uint32,
    "tag": np.uint32,
    "stream": np.uint32,
}


def histories(snapshot):
    """Return the stacks of a snapshot, and the history of each device that has any memory or entries."""
    stacks = Stacks()
    result = []
    for key in ("device_traces", "host_traces"):
        _few([len(trace) for trace in _list(snapshot, key) if type(trace) is list], "entries")
    for key in ("segments", "host_segments"):
        blocks = [segment.get("blocks") for segment in _list(snapshot, key) if type(segment) is dict]
        _few([1 + len(some) for some in blocks if type(some) is list], "blocks")
    notes = _annotations(snapshot)
    for suffix, prefix in (("", "device "), ("host_", "host ")):
        segments = _list(snapshot, f"{suffix}segments")
        traces = _list(snapshot, "host_traces" if suffix else "device_traces")
        by_device: dict = {}
        for segment in segments:
            device = _of(segment, "device", 0, f"a segment of {prefix.strip()}s", MOST_DEVICES)
            by_device.setdefault(device, []).append(segment)
        if len(traces) > MOST_DEVICES:
            raise BadSnapshot(f"there are traces of more than {MOST_DEVICES} {prefix.strip()}s")
        for device in range(max([len(traces), *(device + 1 for device in by_device)], default=0)):
            trace = traces[device] if device < len(traces) else []
            if type(trace) is not list:
                raise BadSnapshot(f"the trace of {prefix}{device} must be a list, got {type(trace).__name__}")
            if trace or device in by_device:
                marks = [] if suffix else notes.get(device, [])
                result.append(History(f"{prefix}{device}", trace, by_device.get(device, []), marks, stacks))
    return stacks, result


def _few(lengths, what):
    """Refuse too many: a small file can have one list a million times."""
    if sum(lengths) > MOST_ENTRIES:
        raise BadSnapshot(f"there are more than {MOST_ENTRIES:,} {what}")


def _list(snapshot, key):
    value = snapshot.get(key, [])
    if type(value) is not list:
        raise BadSnapshot(f"{key} must be a list, got {type(value).__name__}")
    return value


def _of(row, key, default, what, limit=HIGHEST, least=0):
    """Return a whole number of a row."""
    if type(row) is not dict:
        raise BadSnapshot(f"{what} must be a dict, got {type(row).__name__}")
    value = row.get(key, default)
    if type(value) is not int or not least <= value < limit:
        raise BadSnapshot(
            f"{key} of {what} must be a whole number from {least} to below {limit}, got {_value_text(value)}"
        )
    return value


def _value_text(value):
    """Return a value for a message; one that contains others, perhaps itself, by its type."""
    if type(value) is int and value.bit_length() > MOST_BITS:
        return f"one of {value.bit_length()} bits"
    return printable(repr(value), 80) if type(value) in (int, float, str, bool, type(None)) else type(value).__name__


def _text(row, key, what):
    value = row.get(key, "")
    if type(value) is not str:
        raise BadSnapshot(f"{key} of {what} must be a text, got {_value_text(value)}")
    return value


def _rows(segment):
    """Return the blocks of a segment, which may be anything."""
    blocks = segment.get("blocks") if type(segment) is dict else None
    return blocks if type(blocks) is list else ()


def _is_tagged(row):
    return type(row) is dict and bool(row.get("category"))


def _annotations(snapshot):
    """Return device -> [(time, name, is_start)] of what the user annotated, in order."""
    by_device: dict = {}
    for row in _list(snapshot, "external_annotations"):
        device = _of(row, "device", 0, "an annotation", 1 << 16)
        name, stage = _text(row, "name", "an annotation"), _text(row, "stage", "an annotation")
        mark = _of(row, "time_us", 0, "an annotation", 1 << 53), printable(name, 200), stage == "START"
        by_device.setdefault(device, []).append(mark)
    for rows in by_device.values():
        rows.sort(key=itemgetter(0))  # those of one moment stay in the order in which they were noted
    return by_device


class History:
    """The allocations and segments of one device, as columns of NumPy, ordered by their beginning."""

    def __init__(self, name, trace, segments, annotations, stacks):
        self.name, self.entries, self.stacks = name, len(trace), stacks
        self.tags, self.streams, self.actions = Table(UNTAGGED), Table(), Table()
        self.failures = []  # (moment, requested, free) of each out-of-memory
        self.unmatched = 0  # frees of memory that the trace does not know
        self.lost = 0  # allocations that the trace leaves alive, and that the segments do not have
        blocks = (block for segment in segments for block in _rows(segment))
        # l0rt's tags; in a snapshot that has none, what the program annotated its entries with.
        self.tag_key = "category" if any(map(_is_tagged, chain(trace, blocks))) else "user_metadata"
        self._read(trace)
        self._match(trace)
        self._end(segments)
        self._sort()
        self._sum()
        self.annotations = [(self.moment_of(time), name, is_start) for time, name, is_start in annotations]

    def _read(self, trace):
        what = f"an entry of {self.name}"
        if not set(map(type, trace)) <= {dict}:
            raise BadSnapshot(f"{what} must be a dict")
        actions = [entry.get("action") for entry in trace]
        if not set(map(type, actions)) <= {str}:
            raise BadSnapshot(f"the action of {what} must be a text")
        self.kind = np.array([ACTIONS.get(action, OTHER) for action in actions], np.uint8)
        self.time = self._numbers(trace, "time_us", LARGEST, np.float64)
        # The clock of entries of several threads may step back a little: what is shown never does.
        if self.entries:
            self.time = np.maximum.accumulate(self.time)
        self.size = self._numbers(trace, "size", LARGEST, np.int64)
        self.address = self._numbers(trace, "addr", HIGHEST, np.uint64)
        # What an entry is about: the number of an allocation, or of one of the entries that are about none.
        self.ref = np.zeros(self.entries, np.uint32)
        self.rest = np.flatnonzero(self.kind > FREE_COMPLETED)
        self.ref[self.rest] = np.arange(len(self.rest))
        self.rest_text = np.zeros(len(self.rest), np.uint32)
        for number, place in enumerate(self.rest.tolist()):
            self.rest_text[number] = self.actions.number(actions[place])
            if self.kind[place] == OOM:
                free = _of(trace[place], "device_free", 0, what)
                self.failures.append((place, int(self.size[place]), free))

    def _numbers(self, trace, key, limit, dtype):
        """Return one number of each entry."""
        values = [entry.get(key, 0) for entry in trace]
        try:
            if set(map(type, values)) <= {int}:
                numbers = np.array(values, np.uint64)
                if not self.entries or int(numbers.max()) < limit:
                    return numbers.astype(dtype)
        except OverflowError:
            pass
        for place, value in enumerate(values):
            _of({key: value}, key, 0, f"entry {place} of {self.name}", limit)
        raise AssertionError("a value that is wrong was not found")

    def _match(self, trace):
        """Find what each entry allocates or frees."""
        rows: dict = {name: [] for name in COLUMNS}
        self.rows = rows
        self.open: dict = {}  # address -> number of an allocation that is alive
        self.waiting: dict = {}  # the same of those that were freed and that streams use
        never = self.entries + 1
        kinds, sizes, addresses = self.kind.tolist(), self.size.tolist(), self.address.tolist()
        is_deferred = FREE_REQUESTED in kinds
        has_completed = FREE_COMPLETED in kinds
        ref, freed, done, free_nodes = self.ref, rows["freed"], rows["done"], rows["free_node"]
        alive, waiting = self.open, self.waiting
        number_of = self.stacks.number
        for place, kind in enumerate(kinds):
            if kind > FREE_COMPLETED:
                continue
            address = addresses[place]
            if kind == ALLOC:
                for table in (alive, waiting):
                    if (old := table.pop(address, None)) is not None:  # whose end was not recorded
                        freed[old], done[old] = min(freed[old], place + 1), place + 1
                frames = trace[place].get("frames")
                alive[address] = ref[place] = self._add(place + 1, trace[place], sizes[place], address, frames)
                continue
            number = alive.pop(address, None)
            if number is None and kind == FREE_COMPLETED and is_deferred:
                number = waiting.pop(address, None)
                if number is not None:
                    done[number], ref[place] = place + 1, number
                    continue
            if number is None:
                self.unmatched += 1
                number = self._add(0, trace[place], sizes[place], address, None)
            freed[number], ref[place] = place + 1, number
            free_nodes[number] = number_of(trace[place].get("frames"))
            if kind == FREE_COMPLETED or not has_completed:
                done[number] = place + 1
            else:
                waiting[address] = number
                done[number] = never

    def _add(self, born, row, size, address, frames, stream=0):
        """Add an allocation that does not end; return its number. The stream counts where the row has none."""
        rows, never = self.rows, self.entries + 1
        number = len(rows["born"])
        rows["born"].append(born)
        rows["freed"].append(never)
        rows["done"].append(never)
        rows["size"].append(size)
        rows["address"].append(address)
        rows["node"].append(self.stacks.number(frames))
        rows["free_node"].append(0)
        rows["tag"].append(self._tag(row))
        stream = row.get("stream", stream)
        if type(stream) is not int or not -HIGHEST < stream < HIGHEST:
            raise BadSnapshot(
                f"the stream of an entry of {self.name} must be a whole number, got {_value_text(stream)}"
            )
        rows["stream"].append(self.streams.number(str(stream) if -4096 < stream < 4096 else hex(stream)))
        return number

    def _tag(self, row):
        value = row.get(self.tag_key)
        if not value:
            return 0
        if type(value) is not str:
            raise BadSnapshot(f"{self.tag_key} of an entry of {self.name} must be a text, got {_value_text(value)}")
        return self.tags.number(value)

    def _end(self, segments):
        """Add what the segments have and the trace does not; find the memory of the segments at each moment."""
        self.segments = []  # (address, size) at the end
        self.blocks = self.largest_cached = 0  # bytes of the largest block that could be allocated at the end
        there = set()
        for segment in segments:
            what = f"a segment of {self.name}"
            start = address = _of(segment, "address", 0, what)
            total, stream = _of(segment, "total_size", 0, what, LARGEST), segment.get("stream", 0)
            if start + total > HIGHEST:
                raise BadSnapshot(f"{what} ends behind the last address")
            blocks = segment.get("blocks", [])
            if type(blocks) is not list:
                raise BadSnapshot(f"blocks of {what} must be a list, got {type(blocks).__name__}")
            self.segments.append((start, total))
            self.blocks += len(blocks)
            for block in blocks:
                what = f"a block of {self.name}"
                address = _of(block, "address", address, what)
                size = _of(block, "size", 0, what, LARGEST)
                state = block.get("state")
                if state not in STATES:
                    raise BadSnapshot(
                        f"the state of {what} must be one of {', '.join(STATES)}, got {_value_text(state)}"
                    )
                if state == "inactive":
                    self.largest_cached = max(self.largest_cached, size)
                else:
                    there.add(address)
                    table = self.open if state not in PENDING else self.waiting
                    if address not in table and address not in self.open:
                        requested = _of(block, "requested_size", size, what, LARGEST)
                        number = self._add(0, block, requested, address, block.get("frames"), stream)
                        if state in PENDING:
                            self.rows["freed"][number] = 0
                address += size
        self._close_those_that_are_gone(there)
        self.ranges = Ranges(self.kind, self.address, self.size, self.segments)

    def _close_those_that_are_gone(self, there):
        """An allocation of the trace that the segments do not have has ended, and no entry reports when."""
        if not self.segments:
            return
        freed, done = self.rows["freed"], self.rows["done"]
        for table in (self.open, self.waiting):
            for address, number in table.items():
                if address not in there:
                    self.lost += table is self.open
                    freed[number] = min(freed[number], self.entries)
                    done[number] = self.entries

    def _sort(self):
        """Order allocations by their beginning; what was there before comes first."""
        columns = {name: np.array(self.rows[name], dtype) for name, dtype in COLUMNS.items()}
        order = np.argsort(columns["born"], kind="stable")
        self.columns = {name: column[order] for name, column in columns.items()}
        place = np.empty(len(order), np.uint32)
        place[order] = np.arange(len(order), dtype=np.uint32)
        mine = self.kind <= FREE_COMPLETED
        self.ref[mine] = place[self.ref[mine]]
        self.by_address = np.argsort(self.columns["address"], kind="stable").astype(np.uint32)
        del self.rows, self.open, self.waiting

    def _sum(self):
        """Add up the bytes at each moment."""
        sizes = self.columns["size"]
        exact = sizes.astype(np.int64)
        mapped = self.ranges.columns
        for columns, last in ((self.columns, "done"), (mapped, "freed")):
            if self._curve(columns["born"], columns[last], columns["size"]).max() >= LARGEST:
                raise BadSnapshot(f"{self.name} has more bytes than any memory")
        self.allocated = self._curve(self.columns["born"], self.columns["freed"], exact)
        self.pending = self._curve(self.columns["freed"], self.columns["done"], exact)
        self.reserved = self._curve(mapped["born"], mapped["freed"], mapped["size"].astype(np.int64))
        self.peak_moment = int(self.allocated.argmax())
        self.peak = int(self.allocated[self.peak_moment])

    def _curve(self, born, ends, sizes):
        """Return the bytes at each moment of what is there from ``born`` to before ``gone``."""
        change = np.zeros(self.entries + 2, sizes.dtype)
        np.add.at(change, born, sizes)
        np.subtract.at(change, ends, sizes)
        return np.cumsum(change)[:-1]

    def moment_of(self, time):
        """Return the moment of a time in µs."""
        return int(np.searchsorted(self.time, time))

    def time_at(self, moment):
        """Return the time of a moment, in µs since the first entry."""
        if not self.entries:
            return 0.0
        return float(self.time[max(moment - 1, 0)] - self.time[0])

    def alive(self, moment):
        """Return which allocations are alive at a moment, as numbers in the order of their beginning."""
        return np.flatnonzero((self.columns["born"] <= moment) & (self.columns["freed"] > moment))

    def sums(self, column, moment):
        """Return number -> (bytes, allocations) of what is alive, by tag, node or stream; the largest first."""
        mask = self.alive(moment)
        keys = self.columns[column][mask]
        nbytes = np.bincount(keys, self.columns["size"][mask]) if len(keys) else np.zeros(0)
        counts = np.bincount(keys) if len(keys) else np.zeros(0, int)
        order = np.argsort(-nbytes, kind="stable")
        return {int(key): (int(nbytes[key]), int(counts[key])) for key in order if counts[key]}
