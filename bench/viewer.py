# SPDX-License-Identifier: Apache-2.0
"""How quick the page of `l0rt memory view` is with a million entries: `python bench/viewer.py [ENTRIES]`.

It needs Debian's chromium and chromium-driver, and selenium: `pip install '.[browser]'`. Exit status 1 if a budget is
missed.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from l0rt.cli.memory import page, snapshot
from l0rt.cli.memory.history import histories

from helpers import browser, snapshots

OPENS, STEP = 3000.0, 100.0  # the budgets in ms
# A step, until it is on the screen: the frame that draws it, and the next task after that frame.
STEPS = """
const done = arguments[0];
(async () => {
  const found = [], count = l0rt.device.entries;
  for (let k = 1; k <= 50; k++) {
    const start = performance.now();
    CALL
    await new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
    found.push(performance.now() - start);
  }
  done(found);
})();
"""
CALLS = {
    "a step of the scrubber, anywhere": "l0rt.go(Math.floor(count * ((k * 0.618034) % 1)));",
    "a step of the scrubber, to the next entry": "l0rt.go(Math.floor(count * 0.7) + k);",
    "a step with a search": "l0rt.go(Math.floor(count * ((k * 0.618034) % 1)));",
    "a zoom of the timeline": "l0rt.timeline.zoom(k % 2 ? 0.5 : 2);",
}


def main(entries):
    """Print the figures; return whether the budgets are met."""
    machine = snapshots.trained(entries)
    with tempfile.TemporaryDirectory() as folder:
        path = snapshots.write(Path(folder, "x.pickle"), snapshots.snapshot(machine))
        start = time.perf_counter()
        stacks, found = histories(snapshot.load(path))
        read = time.perf_counter()
        target = Path(folder, "x.html")
        target.write_text(page.page("x.pickle", stacks, found))
        print(f"{found[0].entries:,} entries, {path.stat().st_size:,} bytes; load {os.getloadavg()[0]:.1f}")
        print(f"read {read - start:.2f} s, page {time.perf_counter() - read:.2f} s, {target.stat().st_size:,} bytes")
        with browser.opened() as opened:
            times = [browser.show(opened, target) for _ in range(5)]
            middle = statistics.median(times)
            print(f"opens: median {middle:,.0f} ms of 5, most {max(times):,.0f} (budget {OPENS:.0f})")
            good = middle <= OPENS
            peak = opened.execute_script("return l0rt.device.allocated[l0rt.device.peakMoment]")
            print(f"peak {peak:,} bytes, as the allocator counted: {machine.peak:,}")
            good &= peak == machine.peak
            for name, call in CALLS.items():
                if "search" in name:
                    word = "document.getElementById('search').value = 'layer_1'; l0rt.find();"
                    opened.execute_script(word)
                steps = opened.execute_async_script(STEPS.replace("CALL", call))
                middle = statistics.median(steps)
                print(f"{name}: median {middle:.1f} ms of 50, most {max(steps):.1f} (budget {STEP:.0f})")
                good &= middle <= STEP
    return good


if __name__ == "__main__":
    sys.exit(0 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000) else 1)
