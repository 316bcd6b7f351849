"""The environment variables of l0rt, its CPU driver, its build and its tests; docs/environment.md says what each does."""

import difflib
import os
import warnings

KNOWN = (
    "L0RT_DRIVER",
    "L0RT_DISABLE",
    "L0RT_ALLOC_CONF",
    "L0RT_NO_MEMORY_CACHING",
    "L0RT_EVENTS",
    "L0RT_LAZY_INIT",
    "L0RT_LOGS",
    "L0RT_SANITIZE",
    "L0RT_STREAM_POOL_SIZE",
    "L0RT_CPU_DEVICES",
    "L0RT_CPU_MEMORY",
    "L0RT_CPU_CHAOS",
    "L0RT_CPU_STRICT",
    "L0RT_CPU_FAIL",
    "L0RT_CPU_TIMESTAMP_BITS",
    "L0RT_CPU_TIMESTAMP_HZ",
    "L0RT_CPU_PROFILE",
    "L0RT_BUILD",
    "L0RT_TEST_SOAK",
    "L0RT_TEST_NO_DATA",
    "L0RT_TEST_RING",
    "L0RT_TEST_TORCH",
    "L0RT_TEST_HANG_LIMIT",
)


def warn_of_unknown():
    """Warn of each variable whose name looks like one of these and is none: nothing reads it."""
    for name in sorted(os.environ):
        if name.startswith("L0RT_") and name not in KNOWN:
            near = difflib.get_close_matches(name, KNOWN, 3)
            meant = f"; did you mean {' or '.join(near)}?" if near else "; docs/environment.md lists those that there are"
            warnings.warn(f"{name} is no environment variable of l0rt, and has no effect{meant}", UserWarning, stacklevel=2)
