# SPDX-License-Identifier: Apache-2.0
"""A graph as text for Graphviz."""

from l0rt._base.integers import size_text


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def label(kind, name, nbytes):
    """Return what a node is called."""
    return " ".join(filter(None, (kind, name, size_text(nbytes) if nbytes else None)))


def short(stream):
    """Return a stream's name without what all have, and without its priority."""
    return " ".join(stream.strip("<>").split()[1:3])


def dot(nodes):
    """Return a digraph of the rows of `recording.described`: a cluster for each stream, and dashed edges for events."""
    streams: dict[int, tuple[str, list[tuple[int, str]]]] = {}
    lines = []
    for number, (kind, name, stream, branch, nbytes, _) in enumerate(nodes, 1):
        streams.setdefault(branch, (stream, []))[1].append((number, label(kind, name, nbytes)))
    for branch, (stream, members) in sorted(streams.items()):
        lines += [f"  subgraph cluster_{branch} {{", f"    label={_quoted(stream)};"]
        lines += [f"    n{number} [label={_quoted(text)}];" for number, text in members]
        lines += ["  }"]
        numbers = [number for number, _ in members]
        lines += [f"  n{before} -> n{after};" for before, after in zip(numbers, numbers[1:], strict=False)]
    if any(wait is not None and wait[1] == 0 for *_, wait in nodes):
        lines += ['  n0 [label="begin"];']
    for number, (*_, wait) in enumerate(nodes, 1):
        if wait is not None:
            lines += [f'  n{wait[1]} -> n{number} [style=dashed, label="event"];']
    return "\n".join(["digraph captured {", *lines, "}", ""])
