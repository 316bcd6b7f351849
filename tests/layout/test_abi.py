# SPDX-License-Identifier: Apache-2.0
"""The binary interface of the C API. Extensions that were built with an older l0rt have its layout compiled in."""

import re
import shutil
from pathlib import Path

import pytest

from helpers.source import ROOT, blank

RULE = (
    "ABI rule: a table or a structure of the C API keeps what it has. No field is removed, moved or given another "
    "type; functions are only appended to a table. Otherwise L0RT_API_VERSION or L0RT_GUARD_IMPL_VERSION goes up, and "
    "tests/layout/abi.txt is written anew: PYTHONPATH=tests python tests/layout/test_abi.py > tests/layout/abi.txt"
)
RECORD = Path(__file__).with_name("abi.txt")
HEADERS = ("l0rt.h", "guard_impl.h", "memory_ops.h")
TABLES = {"l0rt_api", "l0rt_guard_impl", "l0rt_memory_ops"}  # whose readers look at the size


def fields(text):
    """Return structure -> its fields, in order, as one line each; and the versions and other numbers."""
    text = blank(text, c=True).replace("\\\n", " ")
    found = {}
    for body, name in re.findall(r"typedef struct(?: \w+)? \{(.*?)\} (\w+);", text, re.DOTALL):
        found[name] = [" ".join(field.split()) for field in body.split(";") if field.strip()]
    for name, value in re.findall(r"^#define (L0RT_\w+) +(\S+)$", text, re.MULTILINE):
        found[name] = [value]
    for body in re.findall(r"\benum \{(.*?)\}", text, re.DOTALL):
        for name, value in re.findall(r"(L0RT_\w+) *= *([^,]+)", body):
            found[name] = [" ".join(value.split())]
    return found


def layout(root):
    found = {}
    for header in HEADERS:
        found |= fields((root / "include/l0rt" / header).read_text())
    return found


def written(found):
    return "".join(f"{name}\n{''.join(f'    {field}' + chr(10) for field in rows)}" for name, rows in found.items())


def read(text):
    found = {}
    for line in text.splitlines():
        if line.startswith("    "):
            found[name].append(line.strip())  # noqa: F821 - the line before named it
        else:
            name = line
            found[name] = []
    return found


def broken(old, new):
    """Return what an extension that was built with ``old`` would find elsewhere in ``new``."""
    found = []
    for name, rows in old.items():
        now = new.get(name, [])
        if now != rows and not (name in TABLES and now[: len(rows)] == rows):
            pairs = zip(rows, now, strict=False)
            changed = [f"{a!r} is {b!r} now" for a, b in pairs if a != b] + rows[len(now) :]
            found.append(f"{name}: {'; '.join(changed) or 'it has grown'}")
    return found


def test_what_extensions_were_built_with_stays():
    assert not (found := broken(read(RECORD.read_text()), layout(ROOT))), f"{RULE}\n{found}"


def test_what_was_appended_is_recorded():
    """What is not in the record yet could still be changed unseen."""
    assert read(RECORD.read_text()) == layout(ROOT), RULE


@pytest.mark.parametrize(
    ("old", "new", "breaks"),
    [
        ("  int (*stream_query)(l0rt_stream *stream);\n", "", True),  # a field is removed,
        ("(*stream_query)(l0rt_stream *stream)", "(*stream_query)(l0rt_stream *stream, int more)", True),
        ("  int (*free)(void *ptr);", "  long (*free)(void *ptr);", True),  # its type is changed,
        ("  int device;\n", "  int more;\n  int device;\n", True),  # or its place
        ("#define L0RT_MEMORY_HOST 1", "#define L0RT_MEMORY_HOST 5", True),
        ("} l0rt_api;", "  int (*more)(void);\n} l0rt_api;", False),  # a table may grow,
        ("} l0rt_pointer_info;", "  int more;\n} l0rt_pointer_info;", True),  # another structure may not
        ("  /* Opens the driver now.", "  /* Opens the driver at once.", False),
    ],
)
def test_it_bites(old, new, breaks):
    text = (ROOT / "include/l0rt/l0rt.h").read_text()
    assert old in text
    changed = layout(ROOT) | fields(text.replace(old, new))
    assert bool(broken(layout(ROOT), changed)) == breaks


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [
        ("guard_impl.h", "L0RT_EVENT_TIMING = 1", "L0RT_EVENT_TIMING = 2"),
        ("guard_impl.h", "L0RT_DTYPE_BOOL = 1 << 0", "L0RT_DTYPE_BOOL = 1 << 9"),
        ("memory_ops.h", "L0RT_OWNED = -9", "L0RT_OWNED = -99"),
    ],
)
def test_it_bites_for_enumerations(header, old, new):
    text = (ROOT / "include/l0rt" / header).read_text()
    assert old in text
    assert broken(layout(ROOT), layout(ROOT) | fields(text.replace(old, new)))


def test_every_enumerator_has_a_value_that_is_written():
    for header in HEADERS:
        text = blank((ROOT / "include/l0rt" / header).read_text(), c=True)
        for body in re.findall(r"\benum \{(.*?)\}", text, re.DOTALL):
            assert all("=" in one for one in body.split(",") if one.strip()), header


@pytest.mark.parametrize(
    ("header", "old", "new"),
    [
        ("l0rt.h", "  int (*stream_query)(l0rt_stream *stream);\n", ""),
        ("l0rt.h", "(*stream_query)(l0rt_stream *stream)", "(*stream_query)(l0rt_stream *stream, int more)"),
        ("guard_impl.h", "  uint32_t size;", "  uint64_t size;"),
        ("memory_ops.h", "L0RT_OWNED = -9", "L0RT_OWNED = -99"),
    ],
)
def test_the_rule_is_named_if_a_header_breaks_it(header, old, new, tmp_path, monkeypatch):
    """The same test, on a copy of the headers with one change."""
    shutil.copytree(ROOT / "include", tmp_path / "include")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    test_what_extensions_were_built_with_stays()
    copy = tmp_path / "include/l0rt" / header
    assert old in copy.read_text()
    copy.write_text(copy.read_text().replace(old, new, 1))
    with pytest.raises(AssertionError, match="ABI rule: a table or a structure of the C API keeps what it has"):
        test_what_extensions_were_built_with_stays()


def test_cython_knows_the_same_table():
    """The names in l0rt/capi.pyx, which fills the table, are those of the header, in order."""
    text = (ROOT / "l0rt/capi.pyx").read_text()
    body = re.search(r"ctypedef struct l0rt_api:\n((?:        .*\n)+)", text).group(1)
    names = [re.search(r"(\w+)\)?(?:\(|$)", row.replace("(*", "")).group(1) for row in layout(ROOT)["l0rt_api"]]
    assert re.findall(r"(\w+)$", body, re.MULTILINE) == names
    assert re.findall(r"^_api\.(\w+) = ", text, re.MULTILINE) == names


if __name__ == "__main__":
    print(written(layout(ROOT)), end="")
