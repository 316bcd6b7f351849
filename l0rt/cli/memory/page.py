# SPDX-License-Identifier: Apache-2.0
"""The page of a snapshot: one file of HTML that needs nothing else, for a browser of 2023 or later.

The data are columns, compressed and as base64: no text of the snapshot is HTML or script. The page's policy allows its
one script and its style, which it knows by their hashes, and no address. The script sets texts only as texts.
"""

import base64
import hashlib
import json
import os
import struct
import tempfile
import zlib
from pathlib import Path
from string import Template

import numpy as np

import l0rt
from l0rt.cli.memory.stacks import printable

SCRIPTS = ("format", "data", "groups", "timeline", "segments", "flame", "details", "main")
KINDS = {"u1": "u1", "u4": "u4", "i4": "i4", "f8": "f8"}  # what the script makes typed arrays of


def packed(header, columns):
    """Return JSON and columns as one text: zlib of both, as base64."""
    places, parts, offset = {}, [], 0
    for name, column in columns.items():
        raw = np.ascontiguousarray(column)
        kind = raw.dtype.str[1:]
        assert kind in KINDS, kind
        places[name] = [kind, len(raw), offset]
        data = raw.astype(raw.dtype.newbyteorder("<")).tobytes()
        data += bytes(-len(data) % 8)
        parts.append(data)
        offset += len(data)
    head = json.dumps({**header, "columns": places}, allow_nan=False).encode("ascii")
    head += b" " * (-(len(head) + 8) % 8)
    packer = zlib.compressobj(6)
    pieces = [packer.compress(part) for part in (struct.pack("<II", len(head), 0), head, *parts)]
    return base64.b64encode(b"".join([*pieces, packer.flush()])).decode("ascii")


def steps(column):
    """Return each value as its distance from the one before, if these fit into 32 bits; else the values."""
    distances = np.diff(column, prepend=column[:1])
    if len(column) and (distances.min() < 0 or distances.max() >= 1 << 32):
        return column - column[0]
    return distances.astype(np.uint32)


def common(name, stacks, histories):
    """Return what all devices share."""
    frames = np.array(stacks.frames(), np.int64).reshape(-1, 3)
    header = {"name": printable(name), "version": l0rt.__version__, "texts": stacks.texts.texts()}
    header["devices"] = [history.name for history in histories]
    columns = {
        "file": frames[:, 0].astype(np.uint32),
        "line": frames[:, 1].astype(np.int32),
        "function": frames[:, 2].astype(np.uint32),
        "parent": np.array(stacks.parents, np.uint32),
        "call": np.array(stacks.of_node, np.uint32),
    }
    return packed(header, columns)


def device(history):
    """Return the columns of one device."""
    allocations, ranges = history.columns, history.ranges.columns
    header = {
        "name": history.name,
        "entries": history.entries,
        "peak": history.peak,
        "start": float(history.time[0]) if history.entries else 0,
        "tags": history.tags.texts(),
        "streams": history.streams.texts(),
        "actions": history.actions.texts(),
        "failures": history.failures,
        "annotations": history.annotations,
        "unmatched": history.unmatched,
        "lost": history.lost,
    }
    rest = history.rest
    columns = {
        "kind": history.kind,
        "ref": history.ref,
        "time": steps(history.time),
        "born": steps(allocations["born"].astype(np.int64)),
        "life": allocations["freed"] - allocations["born"],
        "wait": allocations["done"] - allocations["freed"],
        "first": allocations["born"][:1],
        "size": allocations["size"],
        **halves("address", allocations["address"]),
        "node": allocations["node"],
        "free_node": allocations["free_node"],
        "tag": allocations["tag"],
        "stream": allocations["stream"],
        "by_address": history.by_address,
        "range_born": ranges["born"],
        "range_freed": ranges["freed"],
        "range_size": ranges["size"],
        **halves("range_address", ranges["address"]),
        **halves("rest_address", history.address[rest]),
        "rest_size": history.size[rest].astype(np.float64),
        "rest_text": history.rest_text,
    }
    return packed(header, columns)


def halves(name, column):
    """Return a column of 64 bits as two of 32."""
    return {f"{name}_low": (column & 0xFFFFFFFF).astype(np.uint32), f"{name}_high": (column >> 32).astype(np.uint32)}


def parts():
    """Return the template, the style and the script."""
    here = Path(__file__).parent
    script = "".join((here / f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'\n"use strict";\n(() => {{\n{script}}})();\n'
    style = (here / "page.css").read_text(encoding="utf-8")
    return Template((here / "page.html").read_text(encoding="utf-8")), f"\n{style}", script


def page(name, stacks, histories):
    """Return the page of a snapshot whose file is called ``name``."""
    template, style, script = parts()
    data = [common(name, stacks, histories), *map(device, histories)]
    return template.substitute(
        style=style,
        script=script,
        style_hash=digest(style),
        script_hash=digest(script),
        data="\n".join(
            f'<script type="application/octet-stream" id="data-{number}">{text}</script>'
            for number, text in enumerate(data)
        ),
    )


def digest(text):
    """Return what a page's policy knows a script by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def write(path, text):
    """Write a page whole or not at all."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=".l0rt-", suffix=".html", dir=folder)
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask():
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
