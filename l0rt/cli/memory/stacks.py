# SPDX-License-Identifier: Apache-2.0
"""Stacks and texts of a snapshot, each kept once: a tree of calls, whose leaves are the stacks."""

from array import array

LONGEST = 512  # characters of a text
DEEPEST = 256  # calls of a stack; of a deeper one the outermost are left out
MOST_NODES = 4_000_000
ROOT = 0  # of the tree: a stack that was not recorded


class BadSnapshot(Exception):
    """A value of the snapshot is none that a snapshot can have; one line says which."""


def printable(text, longest=LONGEST):
    """Return a text as a terminal and a page can show it: in one line, without control characters, and not endless."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class Table:
    """Texts by number, in the order of their first use."""

    def __init__(self, *first):
        self.numbers = {text: number for number, text in enumerate(first)}

    def number(self, text):
        """Return the number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))

    def texts(self):
        """Return all texts, as they can be shown."""
        return list(map(printable, self.numbers))


class Stacks:
    """All stacks of a snapshot. The number of a stack is its innermost call in the tree of calls."""

    def __init__(self):
        self.texts = Table()
        self.calls = {}  # (file, line, function) -> number; file and function are numbers of texts
        self.parents, self.of_node = array("I", [0]), array("I", [0])  # of each node of the tree: parent, call
        self._children = {}  # parent << 32 | call -> node
        self._calls_by_id = {}
        self._known = {}  # by the identity of a list of frames, which the snapshot keeps alive

    def number(self, frames):
        """Return the number of a stack that is a list of frames, innermost first; 0 for none."""
        if not frames:
            if frames is None or type(frames) is list:
                return ROOT
            raise BadSnapshot(f"frames must be a list, got {type(frames).__name__}")
        index = self._known.get(id(frames))
        if index is None:
            index = self._known[id(frames)] = self._add(frames)
        return index

    def _add(self, frames):
        if type(frames) is not list:
            raise BadSnapshot(f"frames must be a list, got {type(frames).__name__}")
        node, children, calls = ROOT, self._children, self._calls_by_id
        for frame in reversed(frames[:DEEPEST]):
            call = calls.get(id(frame))
            if call is None:
                call = calls[id(frame)] = self._call(frame)
            key = node << 32 | call
            index = children.get(key)
            if index is None:
                if len(self.parents) >= MOST_NODES:
                    return node
                index = children[key] = len(self.parents)
                self.parents.append(node)
                self.of_node.append(call)
            node = index
        return node

    def _call(self, frame):
        if type(frame) is not dict:
            raise BadSnapshot(f"a frame must be a dict, got {type(frame).__name__}")
        file, line, name = frame.get("filename", ""), frame.get("line", 0), frame.get("name", "")
        if type(file) is not str or type(name) is not str:
            raise BadSnapshot("filename and name of a frame must be texts")
        if type(line) is not int or not -1 << 31 <= line < 1 << 31:
            raise BadSnapshot("the line of a frame must be an int of 32 bits")
        key = self.texts.number(file), line, self.texts.number(name)
        return self.calls.setdefault(key, len(self.calls))

    def frames(self):
        """Return [file, line, function] of each call, with the texts' numbers."""
        return [list(key) for key in self.calls]

    def path(self, node):
        """Return the stack's calls as (function, file, line), innermost first."""
        if not hasattr(self, "_shown"):
            self._shown, self._frames = self.texts.texts(), self.frames()
        frames = []
        while node:
            file, line, name = self._frames[self.of_node[node]]
            frames.append((self._shown[name], self._shown[file], line))
            node = self.parents[node]
        return frames
