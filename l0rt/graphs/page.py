# SPDX-License-Identifier: Apache-2.0
"""A graph as a page of HTML; the methods of Graph that draw it."""

import os

from l0rt._base.integers import size_text
from l0rt.graphs.drawing import label, short

WIDTH, HEIGHT = 220, 28  # of a node
ACROSS, DOWN = 260, 54  # from one stream, and from one row, to the next
TOP = 60


def escape(text):
    """Return the text as it is written in HTML."""
    import html  # here, and so below: importing l0rt needs neither

    return html.escape(text)


class Layout:
    """Where nodes are on the page: a column for each stream, below all that they wait for. Waits are arrows."""

    def __init__(self, nodes):
        self.rows = {0: 0}  # node -> row; 0 is the beginning
        self.columns = {0: 0}
        self.lines = []  # (node, node, whether it is an event)
        self.waits = {}  # node -> the nodes for which it waits
        self.end = len(nodes) + 1
        behind = {0: {0}}  # branch -> the nodes that its next one is behind
        at = {0: {0}}  # the same of each node, for the nodes that wait for it
        for number, (_, _, _, branch, _, wait) in enumerate(nodes, 1):
            if wait is not None:
                behind[branch] = behind.get(branch, set()) | at[wait[1]]
            else:
                self._place(number, branch, behind.get(branch, set()))
                behind[branch] = {number}
            at[number] = behind[branch]
        self._place(self.end, 0, behind[0])

    def _place(self, number, column, before):
        self.rows[number] = 1 + max(self.rows[one] for one in before)
        self.columns[number] = column
        self.lines += [(one, number, self.columns[one] != column) for one in sorted(before)]
        self.waits[number] = sorted(one for one in before if self.columns[one] != column)

    def middle(self, number):
        """Return the coordinates of a node's middle."""
        return 20 + WIDTH // 2 + ACROSS * self.columns[number], TOP + DOWN * self.rows[number]

    def box(self, number, kind, text, title):
        x, y = self.middle(number)
        label = text if len(text) <= 28 else f"{text[:27]}…"
        return (
            f'<g class="{kind}"><title>{escape(title)}</title>'
            f'<rect x="{x - WIDTH // 2}" y="{y - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x}" y="{y + 4}">{escape(label)}</text></g>'
        )

    def line(self, first, second, is_event):
        (x, y), (to_x, to_y) = self.middle(first), self.middle(second)
        y, to_y = y + HEIGHT // 2, to_y - HEIGHT // 2
        bend = min(DOWN, (to_y - y) // 2)
        return (
            f'<path class="{"event" if is_event else "order"}" marker-end="url(#tip)" '
            f'd="M{x} {y}C{x} {y + bend} {to_x} {to_y - bend} {to_x} {to_y}"/>'
        )


def page(nodes):
    """Return the rows of `recording.described` as one self-contained page of HTML."""
    from string import Template

    layout = Layout(nodes)
    streams = {branch: stream for _, _, stream, branch, _, _ in nodes}
    drawing = [layout.line(*line) for line in layout.lines]
    drawing += [
        f'<text class="stream" x="{20 + WIDTH // 2 + ACROSS * branch}" y="24">{escape(short(stream))}</text>'
        for branch, stream in sorted(streams.items())
    ]
    drawing += [layout.box(0, "begin", "begin", "the beginning"), layout.box(layout.end, "end", "end", "the end")]
    rows = []
    for number, (kind, name, stream, _, nbytes, wait) in enumerate(nodes, 1):
        if wait is not None:
            continue
        text = label(kind, name, nbytes)
        waits = ", ".join(str(one) if one else "begin" for one in layout.waits[number])
        drawing += [layout.box(number, kind, text, f"node {number}: {text}")]
        cells = [kind, name or "", short(stream), f"{nbytes:,}" if nbytes else "", waits]
        rows += [f'<tr><td class="number">{number}</td>' + "".join(f"<td>{escape(c)}</td>" for c in cells) + "</tr>"]
    counts = {kind: sum(node[0] == kind for node in nodes) for kind in ("kernel", "copy", "fill", "callback")}
    texts = [f"{count} of kind {kind}" for kind, count in counts.items() if count]
    events = len({one for waits in layout.waits.values() for one in waits})
    nbytes = size_text(sum(node[4] for node in nodes))
    with open(os.path.join(os.path.dirname(__file__), "page.html"), encoding="utf-8") as file:
        template = Template(file.read())
    return template.substitute(
        title=f"Graph of {len(rows)} nodes",
        summary=f"Nodes: {', '.join(texts) or 'none'}. Streams: {len(streams) or 1}. "
        f"Events that are waited for: {events}. Copied and filled: {nbytes}.",
        width=40 + ACROSS * (max(streams, default=0) + 1),
        height=TOP + DOWN * (max(layout.rows.values()) + 1),
        drawing="\n".join(drawing),
        rows="\n".join(rows),
    )
