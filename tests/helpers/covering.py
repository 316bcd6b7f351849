# SPDX-License-Identifier: Apache-2.0
"""The covering set: tests that together ask of the driver all that the tests on the interface ask of it.

tests/rings.txt has the tests, and below each what it is counted for; driver_notes.py says what is noted. `make rings`
writes it. Each other driver runs these tests, and a twentieth of the files, which turns with the commit.

What some drivers skip is covered apart: it checks more, and the other tests are all that these drivers run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from helpers.rings import FOLDERS, TESTS

FILE = TESTS / "rings.txt"
TIMES = 3  # each thing is asked by tests of so many files, where so many ask it: one test need not see what is wrong
PARTS = 20  # of the files
CONDITIONS = ("checks_data", "needs_two_devices", "shares_events")  # marks of tests that some drivers skip
ALWAYS = "every pytest"  # what it asks before the first test, and for its fixtures
START = 0.03  # seconds of a test that does nothing: many tests are no better than a long one
HEAD = "# Tests, and what each is counted for: tests/helpers/covering.py. `make rings` writes this file."


@cache
def blocks():
    """Return what tests/rings.txt has: test, or `ALWAYS` -> what it is counted for."""
    found = (block.splitlines() for block in re.split(r"\n(?=\S)", FILE.read_text())[1:])
    return {test: [what.strip() for what in counted] for test, *counted in found}


def listed():
    """Return test -> what it is counted for."""
    return {test: counted for test, counted in blocks().items() if test != ALWAYS}


def asked():
    """Return all that is asked of the driver."""
    return {what for counted in blocks().values() for what in counted}


def steady(asked):
    """Return what is no matter of time: whether a call, such as one without a time to wait, comes before an end."""
    return {what for what in asked if not what.endswith(" = NOT_READY") and "(timeout=0x0) = " not in what}


def cover(asked, seconds, before=()):
    """Choose tests that ask everything, each thing by tests of `TIMES` files: first among those chosen ``before``.

    ``asked`` is test -> what it asks; the result is test -> what it is counted for.
    """
    files = Counter(what for _, what in {(file_of(test), what) for test, whole in asked.items() for what in whole})
    missing = {what: min(TIMES, count) for what, count in files.items()}
    chosen, counted = {}, set()

    def gain(test):
        return [what for what in asked[test] if missing[what] and (file_of(test), what) not in counted]

    for candidates in ([test for test in before if test in asked], sorted(asked)):
        while candidates:
            candidates = [test for test in candidates if gain(test)]
            best = max(candidates, key=lambda test: len(gain(test)) / (START + seconds[test]), default=None)
            if best is None:
                break
            chosen[best] = gain(best)
            for what in chosen[best]:
                missing[what] -= 1
                counted.add((file_of(best), what))
    return {test: sorted(chosen[test]) for test in sorted(chosen)}


def file_of(test):
    return test.partition("::")[0]


@cache
def turn():
    """Return the number that the commit gives, or that L0RT_TEST_TURN repeats."""
    if text := os.environ.get("L0RT_TEST_TURN"):
        return int(text)
    if not (git := shutil.which("git")):
        return 0
    commit = subprocess.run([git, "rev-parse", "HEAD"], cwd=TESTS, capture_output=True, text=True)
    return int(commit.stdout[:8], 16) % PARTS if commit.returncode == 0 else 0


def part_of(number):
    """Return the part that the ring of this number runs besides the set, from 1."""
    return (turn() + number) % PARTS + 1


def files(part):
    """Return the files of which all tests run in a part; 0 has none."""
    found = sorted(path for name in FOLDERS for path in (TESTS / name).rglob("test_*.py"))
    return {str(path.relative_to(TESTS.parent)) for path in found[part - 1 :: PARTS]} if part else set()


def paths(part):
    """Return the files in which `select` finds something."""
    return [TESTS.parent / file for file in sorted(files(part) | {file_of(test) for test in listed()})]


def select(part, config, items):
    """Leave what a ring runs: the set, and its part of the files."""
    whole = files(part)

    def runs(item):
        return item.nodeid in blocks() or file_of(item.nodeid) in whole

    config.hook.pytest_deselected(items=[item for item in items if not runs(item)])
    items[:] = filter(runs, items)


def main(notes):
    """Write tests/rings.txt from the notes of a whole run."""
    told = json.loads(Path(notes).read_text())
    always = told.pop(ALWAYS)[1]
    seconds = {test: row[0] for test, row in told.items()}
    asked = {test: [(what, conditional) for what in whole] for test, (_, whole, conditional) in told.items()}
    chosen = cover(asked, seconds, listed() if FILE.exists() else ())
    counts = {ALWAYS: always, **{test: [what for what, _ in counted] for test, counted in chosen.items()}}
    found = (test + "".join(f"\n    {what}" for what in counted) for test, counted in counts.items())
    FILE.write_text("\n".join([HEAD, *found, ""]))
    total = sum(seconds[test] for test in chosen)
    print(f"{len(chosen)} of {len(told)} tests ask everything, in {total:.1f} seconds")


if __name__ == "__main__":
    main(sys.argv[1])
