# SPDX-License-Identifier: Apache-2.0
"""CI runs what the README tells people to run, word for word; links lead somewhere."""

import re

import pytest
from pages import WRITERS

from helpers.source import ROOT

COMMAND = re.compile(r"^    (python3 -m venv .*)$", re.MULTILINE)


def commands(readme):
    return COMMAND.findall(readme)


def obeys(readme, script):
    """Is the README's second command a line of the CI script, which stops at the first failure and knows it is CI?"""
    lines = script.splitlines()
    found = commands(readme)
    if len(found) != 2 or found[1] not in lines or "set -euo pipefail" not in lines:
        return False
    return "export CI=true" in lines[: lines.index(found[1])]


def test_ci_runs_the_second_command():
    assert obeys((ROOT / "README.md").read_text(), (ROOT / ".ci/run").read_text())
    assert (ROOT / ".ci/run").stat().st_mode & 0o111 == 0o111


@pytest.mark.parametrize("change", ["/pytest", "export CI=true", "set -euo pipefail", "'.[test]'"])
def test_it_bites(change):
    script = (ROOT / ".ci/run").read_text()
    assert change in script
    assert not obeys((ROOT / "README.md").read_text(), script.replace(change, "true"))


def box(readme):
    """Return the bold words of the quotation that stands before the first chapter, and what follows each."""
    quoted = re.findall(r"^>(.*)$", readme.partition("\n## ")[0], re.MULTILINE)
    return dict(re.findall(r"\*\*(What [^*]*):\*\*(.*?)(?=\*\*What |$)", " ".join(quoted), re.DOTALL))


def durations(readme):
    """Return what the paragraph before each of the two commands says of how long it takes."""
    paragraphs = readme.split("\n\n")
    before = [paragraphs[place - 1] for place, text in enumerate(paragraphs) if COMMAND.match(text)]
    return [re.findall(r"(?:about|some)\s\w+\sminutes", text) for text in before]


def tells(readme):
    """Does it say what a newcomer must know: what this is and is not, what it ran on, how long the commands take?

    And does pip show meanwhile what it builds?
    """
    said = box(readme)
    return (
        list(said) == ["What l0rt is", "What l0rt is not", "What it ran on"]
        and all(len(text) > 60 for text in said.values())
        and "the CPU driver" in said["What it ran on"]
        and "real Intel GPU" in said["What it ran on"]
        and [len(found) for found in durations(readme)] == [1, 1]
        and all("pip install -v" in command for command in commands(readme))
    )


def test_a_newcomer_is_told_what_this_is_and_how_long_it_takes():
    assert tells((ROOT / "README.md").read_text())


@pytest.mark.parametrize(
    "change",
    [
        "> **What l0rt is:**",
        "> **What l0rt is not:**",
        "**It has not run on a real Intel GPU yet.**",
        "about two\nminutes",
        "about seven minutes",
        "-v '.[test]'",
    ],
)
def test_nothing_of_this_may_be_missing(change):
    readme = (ROOT / "README.md").read_text()
    assert readme.count(change) == 1
    assert not tells(readme.replace(change, ""))


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_lead_to_files(page):
    code = r"^```.*?^```$|``?[^`\n]*``?"  # which has brackets too
    text = re.sub(code, "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    assert [target for target in targets if not (page.parent / target).exists() and target not in WRITERS] == []


def test_every_word_of_the_guide_is_in_the_makefile():
    words = set(re.findall(r"`make (\w[\w-]*)`", (ROOT / "CONTRIBUTING.md").read_text()))
    rules = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(words) > 8
    assert words <= rules


def checks(makefile):
    """Return the programs of .venv that `make lint` runs."""
    recipes = re.findall(r"^(?:lint|style):.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    return re.findall(r"\$\(BIN\)/([\w-]+)", "".join(recipes).replace("$(BIN):", ""))


def test_a_commit_is_checked_by_what_make_lint_runs():
    entries = re.findall(r"entry: (?:env \S+ )?\.venv/bin/([\w-]+)", (ROOT / ".pre-commit-config.yaml").read_text())
    assert sorted(entries) == sorted(checks((ROOT / "Makefile").read_text()))
    assert len(entries) == 8
