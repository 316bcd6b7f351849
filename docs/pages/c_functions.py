# SPDX-License-Identifier: Apache-2.0
"""The page of the C functions, from the headers' comments."""

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEAD = """# C functions

Every C function of l0rt, header by header, as the headers' comments describe it. [embedding.md](embedding.md) shows how
to use them. In Cython, `from l0rt.capi cimport *` gives the functions of the first table under the prefix `l0rt_`.
"""
# header -> (its title, the table in it)
HEADERS = {
    "l0rt.h": ("the C API", "l0rt_api"),
    "guard_impl.h": ("guard tables and guards", "l0rt_guard_impl"),
    "memory_ops.h": ("the memory operations of a device type", "l0rt_memory_ops"),
}
COMMENT = r"/\*((?:[^*]|\*(?!/))*)\*/\n"
MEMBER = re.compile(rf"^(?:  {COMMENT})?  ([\w ]+?\*?)\(\*(\w+)\)\(([^)]*)\);", re.MULTILINE)
STRUCT = re.compile(rf"^(?:{COMMENT})?typedef struct(?: \w+)? \{{\n(.*?)^\}} (\w+);", re.MULTILINE | re.DOTALL)
INLINE = re.compile(rf"^(?:{COMMENT})?static inline ([\w ]+?\*?)(\w+)\(([^)]*)\) \{{", re.MULTILINE)


def text_of(header):
    """Return a header's text."""
    return (ROOT / "include/l0rt" / header).read_text()


def words(comment):
    """Return a comment's text on one line; an empty one for no comment."""
    lines = [re.sub(r"^\s*\* ?", "", line).strip() for line in (comment or "").splitlines()]
    return " ".join(filter(None, lines))


def functions(text):
    """Return (signature, name, comment) of a header's functions: those of its table, then the inline ones."""
    found = []
    for pattern in (MEMBER, INLINE):
        for comment, kind, name, parameters in pattern.findall(text):
            shown = f"{kind.strip()} {name}({' '.join(parameters.split())})".replace("* ", "*")
            found.append((shown, name, words(comment)))
    return found


def structures(text):
    """Return (name, comment, lines of its fields) of a header's structures but for its table."""
    found = [(name, words(comment), textwrap.dedent(body)) for comment, body, name in STRUCT.findall(text)]
    return [structure for structure in found if "(*" not in structure[2]]


def head(text):
    """Return the paragraphs and lists of a header's first comment but for its name and the last line."""
    comment = re.search(r"/\* \w+\.h: (.*?)\*/", text, re.DOTALL).group(1)
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.splitlines()]
    kept = "\n".join(lines).partition("docs/c-api.md is made")[0].strip()
    return kept[0].upper() + kept[1:]


def page():
    """Return the whole page."""
    parts = [HEAD]
    for header, (title, _) in HEADERS.items():
        text = text_of(header)
        parts += [f"## `l0rt/{header}`: {title}\n", head(text) + "\n", "| function | what it does |", "|---|---|"]
        parts += [f"| `{signature}` | {comment} |" for signature, _, comment in functions(text)]
        parts += [""]
        for name, comment, body in structures(text):
            parts += [f"### `{name}`\n", comment, "", textwrap.indent(body, "    ")]
    return "\n".join(parts).rstrip() + "\n"
