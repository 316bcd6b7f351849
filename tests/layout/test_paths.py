# SPDX-License-Identifier: Apache-2.0
"""Three calls cross few files on their way to the driver, as docs/architecture.md lists; its other files exist; few
modules are compiled."""

import re

import pytest

from helpers.source import ROOT, imports, none_of

MOST = {"`l0rt.empty`": 12, "`Buffer.copy_from`": 10, "`event.record`": 6}
MODULES = 98  # with what came after the runtime: copies; kernels and random numbers; the timeline; graphs; DLPack;
# the history of memory; a Buffer in others' hands, the C API's objects; memory of other processes; adaptors and scopes;
# waits of coroutines; ledgers, events of other processes, and those whose process has ended; the reader of SPIR-V;
# the last failure of a thread


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
    for call, files in paths(text).items():
        if len(files) > MOST[call]:
            complaints.append(f"{call} crosses {len(files)} files, more than {MOST[call]}")
        reached = set()
        for at, name in enumerate(files):
            module = f"l0rt.{name.replace('/', '.')}"
            if not (root / f"l0rt/{name}.pyx").exists():
                complaints.append(f"{call}: there is no file {name}")
            elif at and module not in reached:
                complaints.append(f"{call}: no file before {name} imports it")
            reached |= imported(root, name)
    return complaints


def test_the_paths_are_as_short_as_listed():
    text = (ROOT / "docs/architecture.md").read_text()
    assert paths(text).keys() == MOST.keys()
    none_of(violations(ROOT, text))


def lost(root, text):
    """Return the files of "Where to change what" that are not there."""
    section = text.partition("## Where to change what\n")[2].partition("\n## ")[0]
    named = re.findall(r"`([\w/]+\.(?:pyx|pxd|py|h|c))`", section)
    assert len(named) > 60
    return [name for name in named if not any((root / place / name).exists() for place in ("l0rt", "."))]


def test_what_is_changed_is_where_the_table_says():
    text = (ROOT / "docs/architecture.md").read_text()
    none_of(lost(ROOT, text))
    assert lost(ROOT, text.replace("`runtime/streams/wait.pyx`", "`runtime/streams/waits.pyx`")) == [
        "runtime/streams/waits.pyx"
    ]


def test_few_modules_are_compiled():
    assert len(list((ROOT / "l0rt").rglob("*.pyx"))) <= MODULES
    assert f"at most {MODULES} modules are compiled" in (ROOT / "docs/architecture.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("1. `runtime/current/event`", "1. `capi`\n1. `runtime/current/event`", "before runtime/current/event imp"),
        ("5. `core/cmdlist`: calls zeCommandListAppendSignal", "5. `core/lists`", "there is no file core/lists"),
        ("1. `buffers/buffer`: keeps", "1. `capi`\n1. `buffers/buffer`: keeps", "`Buffer.copy_from` crosses 11 files"),
    ],
)
def test_it_bites(old, new, complaint):
    text = (ROOT / "docs/architecture.md").read_text()
    assert old in text
    assert any(complaint in found for found in violations(ROOT, text.replace(old, new)))
