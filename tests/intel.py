# SPDX-License-Identifier: Apache-2.0
"""The tests on the interface, on Intel's driver of today and devices that tests/xe_device simulates. Needs root."""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import l0rt

from helpers import covering, roots, xe_device
from helpers.rings import FOLDERS, RINGS, SIMULATED, TESTS, verdict

LIMIT = 3600  # seconds of a ring


def chosen():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [ring.name for ring in xe_device.RINGS]
    parser.add_argument("--rings", nargs="+", choices=names, default=names)
    parser.add_argument("--covering", action="store_true", help="the covering set and a twentieth of the files")
    parser.add_argument("--two", action="store_true", help="those of bmg, and another that turns with the commit")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="that share a ring's tests")
    parser.add_argument("tests", nargs="*", help="files or tests instead of all", type=Path)
    options = parser.parse_args()
    rings = [ring for ring in xe_device.RINGS if ring.name in options.rings]
    if options.two:
        first, others = ([r for r in rings if (r.devices == "bmg") is first] for first in (True, False))
        rings = [*first, others[covering.turn() % len(others)]]
    return rings, options


def run(ring, library, options):
    """Run the tests on a ring; return its rows of the table."""
    paths = [path.resolve() for path in options.tests] or [TESTS / name for name in FOLDERS]
    parts = [(paths, {})]
    if options.covering:
        part = covering.part_of(len(RINGS) + len(SIMULATED) + xe_device.RINGS.index(ring))
        parts = [(covering.paths(part), {"L0RT_TEST_PART": part})]
    if not options.tests:
        whole = {} if options.covering else {"L0RT_TEST_ALL": 1}
        parts.append(([TESTS / "xe_device" / "test"], whole))  # of the simulated devices themselves
    return [again(ring, library, options.processes, *part) for part in parts]


def again(ring, library, processes, paths, env):
    """Run some tests; return the ring's name, the seconds, what pytest says if all passed, and what was not checked."""
    with tempfile.TemporaryDirectory(dir=roots.CACHE) as folder:
        shutil.copy(library, folder)
        # A driver that ends the process fails the test that it was in, and the others go on in a new one.
        shared = ["-n", str(processes), "--dist", "worksteal"]
        print(f"--- {ring.name}: {len(paths)} files or folders", flush=True)
        start = time.monotonic()
        env = {"L0RT_TEST_TURN": covering.turn(), **env}
        result = ring.run(l0rt.cpu_driver_path(), folder, [*shared, *paths], LIMIT, env)
        seconds = time.monotonic() - start
    print(f"=== {ring.name}\n{result}", flush=True)
    return ring.name, seconds, verdict(result), xe_device.unchecked(result.stdout)


def main():
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # an end that leaves nothing behind
    rings, options = chosen()
    root = xe_device.root()
    with tempfile.TemporaryDirectory(dir=roots.CACHE) as folder:
        xe_device.build(root, folder)
        rows = [row for ring in rings for row in run(ring, Path(folder, xe_device.LIBRARY), options)]
    print("\nseconds  ring")
    for name, seconds, passed, unchecked in rows:
        print(f"{seconds:7.0f}  {name}: {passed or 'FAILED'}")
        for reason, number in unchecked.most_common():
            print(f"{number:15d} not checked: {reason}")
    sys.exit(not all(passed for _, _, passed, _ in rows))


if __name__ == "__main__":
    main()
