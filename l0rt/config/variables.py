# SPDX-License-Identifier: Apache-2.0
"""The environment variables of l0rt, its CPU driver, its build and its tests; docs/environment.md has the values."""

import difflib
import os

from l0rt._base import callers

KNOWN = (
    "L0RT_DRIVER",
    "L0RT_DISABLE",
    "L0RT_QUIRKS",
    "L0RT_TUNING",
    "L0RT_ALLOC_CONF",
    "L0RT_NO_MEMORY_CACHING",
    "L0RT_INTEGRATED",
    "L0RT_EVENTS",
    "L0RT_LAZY_INIT",
    "L0RT_LOGS",
    "L0RT_SANITIZE",
    "L0RT_ITT",
    "L0RT_OOM_SNAPSHOT",
    "L0RT_LEAK_REPORT",
    "L0RT_MONITOR",
    "L0RT_COPY_THREADS",
    "L0RT_STREAM_POOL_SIZE",
    "L0RT_COMPILER",
    "L0RT_CACHE_DIR",
    "L0RT_CACHE_SIZE",
    "L0RT_CPU_DEVICES",
    "L0RT_CPU_MEMORY",
    "L0RT_CPU_CHAOS",
    "L0RT_CPU_STRICT",
    "L0RT_CPU_FAIL",
    "L0RT_CPU_TIMESTAMP_BITS",
    "L0RT_CPU_TIMESTAMP_HZ",
    "L0RT_CPU_PROFILE",
    "L0RT_CPU_QUIRKS",
    "L0RT_CPU_LATENCY",
    "L0RT_CPU_BUILD_MEMORY",
    "L0RT_CPU_THREADS",
    "L0RT_CPU_FUEL",
    "L0RT_CPU_FAULT",
    "L0RT_CPU_TRACE",
    "L0RT_CPU_RACES",
    "L0RT_CPU_BOUNDS",
    "L0RT_CPU_LENIENT",
    "L0RT_CPU_QUIET",
    "L0RT_CPU_RUNNING_LISTS",
)

# Of the build and the tests: the installed package reads none of them.
DEVELOPMENT = (
    "BUILD",
    "TEST_SOAK",
    "TEST_NO_DATA",
    "TEST_PART",
    "TEST_TURN",
    "TEST_NOTES",
    "TEST_RING",
    "TEST_TORCH",
    "TEST_PARTNERS",
    "TEST_SYCL",
    "TEST_BROWSER",
    "TEST_ALL",
    "TEST_HANG_LIMIT",
)


def warn_of_unknown():
    """Warn of each variable that has the prefix of l0rt and that nothing reads."""
    names = {*KNOWN, *(f"L0RT_{name}" for name in DEVELOPMENT)}
    for name in sorted(os.environ):
        if name.startswith("L0RT_") and name not in names:
            near = difflib.get_close_matches(name, KNOWN, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else "docs/environment.md lists those that there are"
            message = f"{name} is no environment variable of l0rt, and has no effect; {hint}"
            callers.warn(message)
