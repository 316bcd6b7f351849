# SPDX-License-Identifier: Apache-2.0
"""The suites of dpnp and dpctl on the CPU driver: what passes, what fails, and why. The extra `sycl` has both."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from l0rt.cli import cpu_driver

HELPERS = Path(__file__).resolve().parent / "helpers"


def chosen():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", choices=["dpnp", "dpctl"])
    parser.add_argument("files", nargs="*", help="parts of the names of test files, instead of all")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the program")
    parser.add_argument("--together", action="store_true", help="one process for all files")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=300, help="seconds of a test")
    parser.add_argument("--file-limit", type=float, default=3600, help="seconds of a process")
    parser.add_argument("--notes", type=Path, help="a folder for the outcomes; tests that have one there are not run")
    return parser.parse_intermixed_args()


def tests(options):
    """Return the folder that the program's package is in, and its test files."""
    find = f"import importlib.util as u; print(*u.find_spec({options.program!r}).submodule_search_locations)"
    package = Path(subprocess.check_output([options.python, "-c", find], text=True, cwd="/").strip())
    paths = sorted((package / "tests").rglob("test_*.py"))
    if not options.files:
        return package.parent, paths
    return package.parent, list(dict.fromkeys(path for part in options.files for path in paths if part in str(path)))


def read(notes):
    """Return the last note of each test, by name; it has no outcome if a process ended during the test."""
    last = {}
    for line in notes.read_text().splitlines():
        found = json.loads(line)
        if last.get(found["test"], {}).get("outcome") not in ("failed", "skipped"):  # its last phase always passes
            last[found["test"]] = found
    return last


def run(options, folder, paths, notes):
    """Run some files until each test has an outcome; a process that ends or hangs in a test is followed by another."""
    name = notes.stem
    env = {**os.environ, **cpu_driver.environment(), "SUITE_NOTES": notes, "SUITE_PROGRAM": options.program}
    env["PYTHONPATH"] = HELPERS
    pytest = ["-m", "pytest", "-q", "-p", "suite_notes", "-p", "no:cacheprovider", "--tb=no", "--rootdir", folder]
    command = [options.python, *pytest, *paths]
    begin = time.monotonic()
    while True:
        notes.touch()  # the silence of the process begins here
        before = notes.stat().st_size
        with notes.with_suffix(".log").open("ab") as log:
            child = subprocess.Popen(command, env=env, cwd=notes.parent, stdout=log, stderr=log, start_new_session=True)
            ended = watch(child, notes, begin, options)
        for test in [test for test, found in read(notes).items() if "outcome" not in found]:
            with notes.open("a") as file:
                file.write(json.dumps({"test": test, "outcome": "aborted", "reason": ended}) + "\n")
        late = time.monotonic() - begin > options.file_limit
        if not ended or notes.stat().st_size == before or late:
            break
    with notes.with_suffix(".log").open() as log:
        last = log.read().splitlines()[-1:]
    print(f"{time.monotonic() - begin:6.0f} s  {name}: {' '.join(last)}{', stopped' if late else ''}", flush=True)


def watch(child, notes, begin, options):
    """Wait for the process; return why it ended early, or None."""
    while True:
        try:
            status = child.wait(1)
        except subprocess.TimeoutExpired:
            now = time.time()
            silent = now - notes.stat().st_mtime > options.limit
            if silent or time.monotonic() - begin > options.file_limit:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
                return f"takes longer than {options.limit:.0f} s" if silent else "the file's time was over"
            continue
        if status < 0:
            return signal.Signals(-status).name
        return None if status in (0, 1, 5) else f"exit status {status}"


def plain(reason):
    """Return what an error says first, without what differs from test to test."""
    lines = [line.strip() for line in reason.splitlines() if line.strip()] or [""]
    first = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return re.sub(r"0x[0-9a-f]+|\d+(\.\d+)?", "N", first)[:160]


def call(statement):
    """Return the function that a statement calls."""
    return re.sub(r"^[\w, ]+= ", "", statement or "").partition("(")[0]


def table(outcomes):
    """Print how many tests passed, failed and aborted, and why, as Markdown."""
    counts = Counter(found["outcome"] for found in outcomes.values())
    print("\n" + ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "aborted", "skipped")))
    groups, faults = defaultdict(list), defaultdict(list)
    for test, found in sorted(outcomes.items()):
        if found["outcome"] in ("failed", "aborted"):
            key = found["outcome"], plain(found["reason"]), call(found.get("statement"))
            groups[key].append((found.get("function") or "", test))
        for fault in found.get("faults", ()):
            faults[plain(fault)].append(test)
    print("\n| tests | outcome | reason | last call of the program | asked by | first test |")
    print("|---" * 6 + "|")
    for key, tests_of in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
        asked = ", ".join(sorted({function for function, _ in tests_of}))
        words = (str(word).replace("|", "\\|") for word in (*key, asked, tests_of[0][1]))
        print(f"| {len(tests_of)} | {' | '.join(words)} |")
    for fault, names in faults.items():
        print(f"\nThe driver printed in {len(names)} tests, such as {names[0]}: {fault}")
    return not counts["failed"] + counts["aborted"]


def main():
    options = chosen()
    folder, paths = tests(options)
    with tempfile.TemporaryDirectory() as temporary:
        notes = options.notes or Path(temporary)
        notes.mkdir(exist_ok=True)
        parts = [(notes / "all.notes", paths)]
        if not options.together:
            root = folder / options.program / "tests"
            names = [str(path.relative_to(root).with_suffix("")).replace("/", ".") for path in paths]
            parts = [(notes / f"{name}.notes", [path]) for name, path in zip(names, paths, strict=True)]
        with ThreadPoolExecutor(options.processes) as pool:
            for end in [pool.submit(run, options, folder, files, file) for file, files in parts]:
                end.result()
        outcomes = {}
        for file in notes.glob("*.notes"):
            outcomes |= read(file)
    sys.exit(not table(outcomes))


if __name__ == "__main__":
    main()
