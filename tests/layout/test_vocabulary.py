# SPDX-License-Identifier: Apache-2.0
"""Names and prose use the field's words: docs/architecture.md has the glossary, here are the words that it replaces."""

import re

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
