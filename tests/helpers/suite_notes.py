# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest in the suites of other programs: each test's outcome is a line of JSON in the file SUITE_NOTES.

A process that ends in a test leaves that test without an outcome. Started again, it runs the tests that have no line.
"""

import json
import os
import re
from pathlib import Path

import pytest

NOTES = Path(os.environ["SUITE_NOTES"])
PROGRAM = os.environ["SUITE_PROGRAM"]  # the package whose functions failures are grouped by


def note(**fields):
    with NOTES.open("a") as file:
        file.write(json.dumps(fields) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    seen = {json.loads(line)["test"] for line in NOTES.read_text().splitlines()}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in seen])
    items[:] = [item for item in items if item.nodeid not in seen]


def pytest_collectreport(report):
    if report.failed:
        note(test=report.nodeid, outcome="failed", reason=str(report.longrepr).splitlines()[-1])


def pytest_runtest_logstart(nodeid):
    note(test=nodeid)


def function(trace):
    """Return the function of the program that a test called when it failed, and the last line that the program ran."""
    frames = [entry for entry in trace if f"/{PROGRAM}/" in str(entry.path) and "/tests/" not in str(entry.path)]
    return (frames[0].name, str(frames[-1].statement).strip()) if frames else (None, None)


def described(error):
    """Return an error in words: what it says, and the error that it came of."""
    words = f"{type(error).__name__}: {error}"
    return f"{words.partition(chr(10))[0]}, after {described(error.__context__)}" if error.__context__ else words


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    faults = re.findall(r"^l0rt.*$", report.capstderr, re.MULTILINE)
    if report.failed:
        called, statement = function(call.excinfo.traceback) if call.excinfo else (None, None)
        error = described(call.excinfo.value) if call.excinfo else str(report.longrepr)
        note(test=item.nodeid, outcome="failed", reason=error, function=called, statement=statement, faults=faults)
    elif report.skipped or call.when == "teardown":
        note(test=item.nodeid, outcome="skipped" if report.skipped else "passed", faults=faults)
    return report
