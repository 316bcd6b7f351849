# SPDX-License-Identifier: Apache-2.0
"""Three calls cross few files on their way to the driver, as docs/internals.md lists; docs/architecture.md names the
functions and classes of its files; few modules are compiled."""

import re

import pytest

from helpers.source import ROOT, files, imports, none_of

MOST = {"`l0rt.empty`": 12, "`Buffer.copy_from`": 10, "`event.record`": 6}
MODULES = 100  # with what came after the runtime: copies; kernels and random numbers; the timeline; graphs; DLPack;
# the history of memory; a Buffer in others' hands, the C API's objects; memory of other processes; adaptors and scopes;
# waits of coroutines; ledgers, events of other processes, and those whose process has ended; the reader of SPIR-V;
# the last failure of a thread; images


def paths(text):
    """Return the call that a list is about -> the files in it."""
    section = text.partition("## Three paths to the driver\n")[2].partition("\n## ")[0]
    found = {}
    for call, body in re.findall(r"^(`[\w.]+`).*:\n\n((?:[ \d].*\n)+)", section, re.MULTILINE):
        found[call] = re.findall(r"^ *\d+\. `([\w/]+)`", body, re.MULTILINE)
    return found


def imported(root, name):
    """Return the modules that a file of the list imports, or its .pxd."""
    found = set()
    for suffix in (".pyx", ".pxd"):
        if (path := root / f"l0rt/{name}{suffix}").exists():
            found |= {entry.module for entry in imports(path, root)}
    return found


def violations(root, text):
    complaints = []
    for call, names in paths(text).items():
        if len(names) > MOST[call]:
            complaints.append(f"{call} crosses {len(names)} files, more than {MOST[call]}")
        reached = set()
        for at, name in enumerate(names):
            module = f"l0rt.{name.replace('/', '.')}"
            if not (root / f"l0rt/{name}.pyx").exists():
                complaints.append(f"{call}: there is no file {name}")
            elif at and module not in reached:
                complaints.append(f"{call}: no file before {name} imports it")
            reached |= imported(root, name)
    return complaints


def test_the_paths_are_as_short_as_listed():
    text = (ROOT / "docs/internals.md").read_text()
    assert paths(text).keys() == MOST.keys()
    none_of(violations(ROOT, text))


DEFINED = {  # what defines a name in a file with this suffix, the name in the place of %s
    ".py": r"^(?:\s*(?:async def|def|class)|(?:cdef|cpdef|ctypedef)\b[^=#]*?) %s\b|^%s\b.* = |^cdef\b[^=#]*\*?\b%s\(",
    ".js": r"^(?:function|class|const) %s\b",
    ".c": r"^(?![\s/*]).*\b%s\b[^;]*$|^(?:#define|\}) %s\b|^.*\b%s\(.*;$|^ *class %s\b",
}
DEFINED |= {".pyx": DEFINED[".py"] + r"|^ +.*\b%s\(.*(?:noexcept|except|nogil)"}
DEFINED |= {".h": DEFINED[".c"], ".hpp": DEFINED[".c"]}
DEFINED[".pxd"] = DEFINED[".pyx"]


def table(text):
    """Return [(file, names)] of "Where to change what"."""
    section = text.partition("## Where to change what\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\|[^|]+\| (.+) \|$", section, re.MULTILINE)
    entries = [entry.partition("`: ") for cell in cells for entry in cell.split("; ") if entry.startswith("`")]
    return [(name.strip("`"), re.findall(r"`(\w+)`", names)) for name, _, names in entries]


def lost(root, text):
    """Return the files of "Where to change what" that are not there, and those that do not define a name of theirs."""
    complaints = []
    for name, names in table(text):
        path = next((p for p in (root / "l0rt" / name, root / name) if p.is_file()), None)
        if path is None or not names:
            complaints.append(f"{name} is not there, or without a name to begin at")
            continue
        source, pattern = path.read_text(), DEFINED[path.suffix]
        complaints += [f"{name} does not define {n}" for n in names
                       if not re.search(pattern.replace("%s", n), source, re.MULTILINE)]  # fmt: skip
    return complaints


def test_what_is_changed_is_where_the_table_says():
    text = (ROOT / "docs/architecture.md").read_text()
    assert len(table(text)) > 150
    none_of(lost(ROOT, text))
    for old, new, complaint in (
        ("`runtime/streams/wait.pyx`", "`runtime/streams/waits.pyx`", "runtime/streams/waits.pyx is not there"),
        ("`size_round`", "`size_rounded`", "runtime/alloc/arena.pxd does not define size_rounded"),
        ("`cpu_list_append`", "`cpu_list_appends`", "cpu_driver/lists/append.c does not define cpu_list_appends"),
    ):
        assert old in text
        assert any(found.startswith(complaint) for found in lost(ROOT, text.replace(old, new)))


@pytest.mark.parametrize(
    ("what", "under", "pattern", "least"),
    [
        ("what a fork does", "l0rt", r"^ *(?:os|_os)\.register_at_fork\(|^on_fork_child\(|^ *pthread_atfork\(", 16),
        ("how a peak is counted", "l0rt/runtime", r"\.peak = ", 7),
    ],
)
def test_a_row_that_spans_the_tree_has_every_file(what, under, pattern, least):
    text = (ROOT / "docs/architecture.md").read_text()
    row = re.search(rf"^\| {what}.*$", text, re.MULTILINE).group()
    places = [str(p.relative_to(ROOT / "l0rt")) for p in files(ROOT, ".py", ".pyx", ".pxd", ".c", under=(under,))
              if re.search(pattern, p.read_text(), re.MULTILINE)]  # fmt: skip
    assert len(places) >= least
    assert [name for name in places if f"`{name}`" not in row] == []


def test_few_modules_are_compiled():
    assert len(list((ROOT / "l0rt").rglob("*.pyx"))) <= MODULES
    assert f"at most {MODULES} modules are compiled" in (ROOT / "docs/internals.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("1. `runtime/current/event`", "1. `capi`\n1. `runtime/current/event`", "before runtime/current/event imp"),
        ("5. `core/cmdlist`: calls zeCommandListAppendSignal", "5. `core/lists`", "there is no file core/lists"),
        ("1. `buffers/buffer`: keeps", "1. `capi`\n1. `buffers/buffer`: keeps", "`Buffer.copy_from` crosses 11 files"),
    ],
)
def test_it_bites(old, new, complaint):
    text = (ROOT / "docs/internals.md").read_text()
    assert old in text
    assert any(complaint in found for found in violations(ROOT, text.replace(old, new)))
