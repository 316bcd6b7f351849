# SPDX-License-Identifier: Apache-2.0
"""Ranges of addresses that have memory: segments, and the mapped parts of expandable ones, from when to when."""

from bisect import bisect_right, insort

import numpy as np

from l0rt.cli.memory.stacks import BadSnapshot

SEGMENT_ALLOC, SEGMENT_FREE, MAP, UNMAP = 3, 4, 5, 6
MOST_RANGES = 500_000
COLUMNS = {"born": np.uint32, "freed": np.uint32, "size": np.float64, "address": np.uint64}


class Starts:
    """Addresses in order. They are in parts, so that a change moves what is in one part and not all of them."""

    PART = 512

    def __init__(self):
        self.parts: list = [[]]  # of which only the first may be empty
        self.lows = [0]  # each part has addresses from this one on
        self.count = 0

    def add(self, address):
        """Add an address that is not there."""
        number = bisect_right(self.lows, address) - 1
        part = self.parts[number]
        insort(part, address)
        self.count += 1
        if len(part) > 2 * self.PART:
            self.parts[number : number + 1] = part[: self.PART], part[self.PART :]
            self.lows.insert(number + 1, part[self.PART])

    def remove(self, address):
        """Remove an address that is there."""
        number = bisect_right(self.lows, address) - 1
        part = self.parts[number]
        del part[bisect_right(part, address) - 1]
        self.count -= 1
        if not part and number:
            del self.parts[number], self.lows[number]

    def at_or_before(self, address):
        """Return the last one up to an address, or None."""
        number = bisect_right(self.lows, address) - 1
        part = self.parts[number]
        place = bisect_right(part, address)
        if not place and number:
            part = self.parts[number - 1]
            place = len(part)
        return part[place - 1] if place else None

    def behind(self, address):
        """Return the first one behind an address, or None."""
        number = bisect_right(self.lows, address) - 1
        place = bisect_right(self.parts[number], address)
        if place < len(self.parts[number]):
            return self.parts[number][place]
        return self.parts[number + 1][0] if number + 1 < len(self.parts) else None


class Ranges:
    """The ranges of a device, as columns ordered by address; a moment is what `history` says."""

    def __init__(self, kinds, addresses, sizes, final):
        """Follow the entries of ``kinds`` SEGMENT_ALLOC to UNMAP; ``final`` has (address, size) at the end."""
        self.never = len(kinds) + 1
        self.done: list = []  # (address, size, born, freed)
        self.starts = Starts()  # of what is alive
        self.alive: dict = {}  # address -> (end, born)
        for place in np.flatnonzero((kinds >= SEGMENT_ALLOC) & (kinds <= UNMAP)).tolist():
            start, size = int(addresses[place]), int(sizes[place])
            if not size:
                continue
            born = place + 1
            self._take_out(start, start + size, born, kinds[place] in (SEGMENT_FREE, UNMAP))
            if kinds[place] in (SEGMENT_ALLOC, MAP):
                self._put(start, start + size, born)
        self._compare_with_the_end(final)
        columns: dict = {name: [] for name in COLUMNS}
        for address, size, born, freed in sorted(self.done):
            for name, value in (("born", born), ("freed", freed), ("size", size), ("address", address)):
                columns[name].append(value)
        self.columns = {name: np.array(columns[name], dtype) for name, dtype in COLUMNS.items()}

    def _put(self, start, end, born):
        if self.starts.count >= MOST_RANGES:
            raise BadSnapshot(f"there are more than {MOST_RANGES:,} segments at once")
        self.starts.add(start)
        self.alive[start] = end, born

    def _take_out(self, start, end, moment, is_known):
        """End what is mapped between two addresses; if a free says so, what is not known was always there."""
        reached = start
        low = self.starts.at_or_before(start)
        if low is None or self.alive[low][0] <= start:
            low = self.starts.behind(start)
        while low is not None and low < end:
            high, born = self.alive.pop(low)
            self.starts.remove(low)
            inner_low, inner_high = max(low, start), min(high, end)
            if is_known and inner_low > reached:
                self.done.append((reached, inner_low - reached, 0, moment))
            self.done.append((inner_low, inner_high - inner_low, born, moment))
            if low < start:
                self._put(low, start, born)
            if high > end:
                self._put(end, high, born)
            reached = inner_high
            low = self.starts.behind(low)
        if is_known and reached < end:
            self.done.append((reached, end - reached, 0, moment))

    def _compare_with_the_end(self, final):
        """What the last segments have and no entry has mapped was there from the beginning."""
        last = self.never - 1
        covered = 0
        starts = sorted(self.alive)
        for start, size in sorted(final):
            start, end = max(start, covered), start + size
            covered = max(covered, end)
            while start < end:
                place = bisect_right(starts, start) - 1
                if place >= 0 and self.alive[starts[place]][0] > start:
                    start = self.alive[starts[place]][0]
                    continue
                beyond = starts[place + 1] if place + 1 < len(starts) else end
                stop = min(end, beyond)
                self.done.append((start, stop - start, 0, self.never))
                start = stop
        # What the entries leave mapped, and the last segments lack, has ended: no entry says when.
        lows = [start for start, _ in sorted(final)]
        sizes = dict(sorted(final))
        for low, (high, born) in self.alive.items():
            place = bisect_right(lows, low) - 1
            is_there = not final or (place >= 0 and lows[place] + sizes[lows[place]] > low)
            self.done.append((low, high - low, born, self.never if is_there else last))
