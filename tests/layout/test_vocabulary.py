# SPDX-License-Identifier: Apache-2.0
"""Names and prose use the field's words: docs/architecture.md has the glossary, here are the words that it replaces."""

import re
import tokenize

from helpers.source import PYTHON, ROOT, files, none_of, plant

REPLACED = {
    "house": "package", "roof": "facade", "cellar": "driver", "landing": "package", "hall": "package",
    "room": "headroom, or what is free", "rooms": "modules",
    "lane": "queue", "lanes": "queues", "bell": "wake-up", "ticket": "event, or pending use", "tickets": "events",
    "census": "recount", "tally": "sums", "handover": "cross-stream reuse",
    "settling": "recounting", "oddly": "slow path", "asker": "requester", "confined": "pool limit hit",
    "loosened": "granule epoch", "eventcache": "event pool", "reaper": "background thread",
    "blockmap": "page map", "hole": "unmapped span", "holes": "unmapped spans",
}
# Other software's own names.
ALLOWED = {
    "hole": ("PUNCH_HOLE", "is a hole, which costs"),     # Linux's sparse files
    "holes": ("as holes cost",),
    "lanes": ("max_lanes_per_hw_thread",),     # of SIMD
}
PARTS = re.compile(r"[A-Z]{2,}|[A-Z]?[a-z]+|[A-Z]")


def replaced_words(path):
    """Yield (line number, word) of every replaced word, also as a part of a name."""
    text = path.read_text()
    for number, line in enumerate(text.splitlines(), 1):
        for part in PARTS.findall(line):
            word = part.lower()
            if word in ("lane", "lanes") and ("spirv" in str(path) or path.name == "cpu-driver.md"):
                continue            # of SIMD
            if word in REPLACED and not any(allowed in line for allowed in ALLOWED.get(word, ())):
                yield number, word


def violations(root):
    files_of = files(root, *PYTHON, ".c", ".h", ".hpp", ".md", under=("l0rt", "include", "bench", "docs", "tests"))
    return [
        f"{path.relative_to(root)}:{number}: {word}: say {REPLACED[word]}"
        for path in [*files_of, *root.glob("*.py"), *root.glob("README.md"), *root.glob("CONTRIBUTING.md")]
        if path.name != "test_vocabulary.py"
        for number, word in replaced_words(path)
    ]


def test_names_and_prose_use_the_words_of_the_glossary():
    none_of(violations(ROOT))


def test_a_replaced_word_is_found_in_names_and_in_prose(tree):
    plant(tree, "docs/memory.md", "the cellar\nint stack_room;\nCpuLane queue;\nbedroom, holesaw\n")
    assert [line.split(": ")[1] for line in violations(tree) if "memory.md" in line] == ["cellar", "room", "lane"]


# What a value is named after is what it holds, and not what was done to get it.
PARTICIPLES = set(
    "asked begun chosen found given gone got held kept known made meant needed said seen shown taken told wanted "
    "who whole".split()
)
# By folder, how many uses of such names are left. A number may fall and not rise; a folder without one has none.
MOST = {".": 10, "core": 111, "kernels": 252, "launch": 98, "runtime": 906, "ze": 103}


def plain(tokens):
    """Yield the tokens outside of f-strings, which are single tokens before Python 3.12."""
    level = 0
    for token in tokens:
        kind = tokenize.tok_name[token.type]
        level += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if level == 0:
            yield token


def named_after_deeds(path):
    """Yield (line number, name) of every use of a value with such a name, but calls, attributes and keywords."""
    with tokenize.open(path) as file:
        tokens = [t for t in plain(tokenize.generate_tokens(file.readline)) if t.type in (tokenize.NAME, tokenize.OP)]
    depth = 0
    for before, token, behind in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        depth += (token.string in "([{") - (token.string in ")]}")
        is_keyword = depth and getattr(before, "string", "") in "(," and getattr(behind, "string", "") == "="
        is_value = getattr(before, "string", "") != "." and getattr(behind, "string", "") not in ("(", "as")
        is_imported = re.match(r"from|cimport|import", token.line)
        if token.string in PARTICIPLES and is_value and not is_keyword and not is_imported:
            yield token.start[0], token.string


def uses_by_folder(root):
    uses = {}
    for path in files(root, *PYTHON, under=("l0rt",)):
        place = path.relative_to(root / "l0rt")
        folder = place.parts[0] if len(place.parts) > 1 else "."
        uses.setdefault(folder, []).extend(f"l0rt/{place}:{n}: {name}" for n, name in named_after_deeds(path))
    return uses


def test_values_are_named_after_what_they_hold():
    uses = uses_by_folder(ROOT)
    none_of([use for folder, all in uses.items() if len(all) > MOST.get(folder, 0) for use in all])


def test_a_value_named_after_a_deed_is_found(tree):
    plant(tree, "l0rt/cli/planted.py", "def f(found, key):\n    g(told=1)\n    key.made()\n    return known(found)\n")
    assert [use.rpartition("/")[2] for use in uses_by_folder(tree)["cli"] if "planted" in use] == [
        "planted.py:1: found", "planted.py:4: found"]
