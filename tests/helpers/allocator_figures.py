# SPDX-License-Identifier: Apache-2.0
"""What the allocator's core costs, in ns: `python tests/helpers/allocator_figures.py [traces.npz ...]`.

With a first argument `--count WHAT N` it only repeats one loop, for counting instructions with
`valgrind --tool=callgrind`: the difference between two N is the loop's own.
"""

import math
import sys
import threading
import time
from pathlib import Path

import build_loops
import numpy as np

COLUMNS = (("op", np.int8), ("id", np.int64), ("size", np.int64))


def best(call, rounds=5):
    return min(call() for _ in range(rounds))


def together(*calls):
    threads = [threading.Thread(target=call) for call in calls]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - start) * 1e9


def traces(loops, paths):
    ratios = []
    for path in paths:
        trace = np.load(path)["trace"]
        trace = [np.ascontiguousarray(trace[key].astype(kind)) for key, kind in COLUMNS]
        for scale in (1, 8):
            times = []
            for _ in range(5):
                bench = loops.Loops()
                times.append(bench.replay(*trace, scale))
            reserved, requested = bench.peak()
            ratios.append(reserved / requested)
            calls = bench.calls / len(trace[0]) * 200
            print(f"{Path(path).stem} x{scale}: {min(times):.1f} an operation, reserved / requested "
                  f"{ratios[-1]:.3f}, {calls:.2f} calls per 100 pairs")
    print(f"geometric mean {math.exp(np.mean(np.log(ratios))):.4f}")


def figures(loops, paths):
    for nbytes in (4096, 1 << 20, 20 << 20):
        bench = loops.Loops()
        print(f"pair of {nbytes}: {best(lambda: bench.pairs(nbytes, 1_000_000)):.1f}")    # noqa: B023
    for low, high in ((512, 64 << 20), (512, 1 << 20)):
        ns, ratio = min(loops.Loops().shuffled(low, high, 1000, 1_000_000) for _ in range(5))
        print(f"random {low}-{high}, 1000 live: {ns:.1f} a pair, reserved / live {ratio:.2f}")
    for cached in (100, 1_000_000):
        bench = loops.Loops()
        bench.cached(cached, 1)
        print(f"pair with {cached} cached: {best(lambda: bench.cached(cached, 1_000_000), 3):.1f}")  # noqa: B023
    count = 3_000_000
    bench = loops.Loops()
    print(f"one thread: {together(lambda: bench.pairs(4096, count)) / count:.1f}")
    print(f"two threads, own streams: "
          f"{together(*[lambda s=s: bench.pairs(4096, count, s) for s in (1, 2)]) / (2 * count):.1f}")
    ring = np.zeros(4096, np.uintp)
    print(f"freed by another thread: "
          f"{together(*[lambda t=t: bench.remote(4096, ring, count, t) for t in (False, True)]) / count:.1f}")
    if paths:
        traces(loops, paths)


def main(arguments):
    loops = build_loops.load("allocator_loops")
    if arguments[:1] == ["--count"]:
        what, count = arguments[1], int(arguments[2])
        bench = loops.Loops()
        if what == "random":
            bench.shuffled(512, 64 << 20, 1000, count)
        else:
            bench.pairs(int(what), count)
        return
    figures(loops, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
