# SPDX-License-Identifier: Apache-2.0
"""What a snapshot says, as plain values: each device's figures, and its live bytes by tag, stack and allocation."""

import os

from l0rt.cli.memory.history import UNTAGGED

POINTS = 60  # of the curve
FRAMES = 4  # of a stack in one line


def moment_of(history, at):
    """Return the moment that a word means: ``peak``, ``end``, or a number of entries."""
    if at == "peak":
        return history.peak_moment
    return history.entries if at == "end" else min(at, history.entries)


def stack_text(stacks, node):
    """Return a stack in one line, innermost call first."""
    path = stacks.path(node)
    names = [f"{name} {os.path.basename(file)}:{line}" if file else name for name, file, line in path[:FRAMES]]
    return " < ".join(names) + (f" < … {len(path) - FRAMES} more" if len(path) > FRAMES else "") or "(no stack)"


def rows(sums, name_of, top):
    """Return the first rows of sums, and one of what is left."""
    items = [(key, nbytes, count) for key, (nbytes, count) in sums.items()]
    rest = items[top:]
    entries = [{"name": name_of(key), "bytes": nbytes, "count": count} for key, nbytes, count in items[:top]]
    if rest:
        nbytes, count = sum(row[1] for row in rest), sum(row[2] for row in rest)
        entries.append({"name": f"({len(rest)} more)", "bytes": nbytes, "count": count})
    return entries


def summary(stacks, history, at="peak", top=10):
    """Return what `report` prints of one device."""
    moment = moment_of(history, at)
    tags, streams = history.tags.texts(), history.streams.texts()
    reserved, allocated, pending = (int(c[moment]) for c in (history.reserved, history.allocated, history.pending))
    alive = history.alive(moment)
    sizes = history.columns["size"][alive]
    largest = alive[(-sizes).argsort(kind="stable")[:top]]
    columns = history.columns
    return {
        "device": history.name,
        "entries": history.entries,
        "allocations": len(columns["born"]),
        "seconds": history.time_at(history.entries) / 1e6,
        "peak": {"bytes": history.peak, "entry": history.peak_moment, "us": history.time_at(history.peak_moment)},
        "at": {
            "entry": moment,
            "us": history.time_at(moment),
            "allocated": allocated,
            "pending": pending,
            "reserved": reserved,
            "not_allocated": max(reserved - allocated - pending, 0),
            "live": len(alive),
        },
        "end": {
            "allocated": int(history.allocated[-1]),
            "reserved": int(history.reserved[-1]),
            "segments": len(history.segments),
            "blocks": history.blocks,
            "largest_not_allocated": history.largest_cached,
        },
        "out_of_memory": [
            {"entry": place + 1, "requested": requested, "free": free} for place, requested, free in history.failures
        ],
        "unmatched": history.unmatched,
        "lost": history.lost,
        "curve": curve(history),
        "tags": rows(history.sums("tag", moment), tags.__getitem__, top) if tags != [UNTAGGED] else [],
        "stacks": rows(history.sums("node", moment), lambda node: stack_text(stacks, node), top),
        "largest": [
            {
                "bytes": int(columns["size"][k]),
                "address": hex(columns["address"][k]),
                "tag": tags[columns["tag"][k]],
                "stream": streams[columns["stream"][k]],
                "entry": int(columns["born"][k]),
                "stack": stack_text(stacks, int(columns["node"][k])),
            }
            for k in largest.tolist()
        ],
    }


def curve(history):
    """Return the most bytes that were allocated in each of up to `POINTS` equal parts of the history."""
    total = history.entries + 1
    bounds = [total * k // POINTS for k in range(POINTS + 1)]
    return [int(history.allocated[low:high].max()) for low, high in zip(bounds, bounds[1:], strict=False) if high > low]


def changes(first, second, at="end", top=20):
    """Return what `diff` prints of two devices, each as (stacks, history)."""
    difference = {"device": [first[1].name, second[1].name], "figures": [], "tags": [], "stacks": []}
    both = [summary(stacks, history, at, 0) for stacks, history in (first, second)]
    for name, place, key in (
        ("allocated", "at", "allocated"),
        ("reserved", "at", "reserved"),
        ("not allocated", "at", "not_allocated"),
        ("peak", "peak", "bytes"),
        ("live allocations", "at", "live"),
        ("segments at the end", "end", "segments"),
    ):
        difference["figures"].append({"name": name, "values": [one[place][key] for one in both]})
    difference["tags"] = changed(first, second, at, top, "tag", lambda _, history: history.tags.texts().__getitem__)
    difference["stacks"] = changed(
        first, second, at, top, "node", lambda stacks, _: lambda node: tuple(stacks.path(node))
    )
    for row in difference["stacks"]:
        calls = [f"{name} {os.path.basename(file)}:{line}" if file else name for name, file, line in row["name"]]
        more = f" < … {len(calls) - FRAMES} more" if len(calls) > FRAMES else ""
        row["name"] = " < ".join(calls[:FRAMES]) + more or "(no stack)"
    return difference


def changed(first, second, at, top, column, namer):
    """Return the groups whose bytes differ, those that differ most first."""
    sums: dict = {}
    for place, (stacks, history) in enumerate((first, second)):
        name_of = namer(stacks, history)
        for key, (nbytes, count) in history.sums(column, moment_of(history, at)).items():
            row = sums.setdefault(name_of(key), [0, 0, 0, 0])
            row[2 * place] += nbytes
            row[2 * place + 1] += count
    result = [
        {"name": name, "values": [row[0], row[2]], "counts": [row[1], row[3]]}
        for name, row in sums.items()
        if row[0] != row[2] or row[1] != row[3]
    ]
    result.sort(key=lambda row: -abs(row["values"][1] - row["values"][0]))
    return result[:top]
