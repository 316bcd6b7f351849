# SPDX-License-Identifier: Apache-2.0
"""l0rt under the thread sanitizer: a build of its own, and a program whose threads share what threads may share."""

import subprocess
import sys

from helpers.process import run
from helpers.rings import TESTS

# Two devices, and so little memory that limits are reached.
ENVIRONMENT = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CPU_MEMORY": "256MiB"}


def build(folder, tree=TESTS.parent):
    """Build l0rt, its modules and the CPU driver, under the thread sanitizer, from a source tree."""
    made = run(
        [sys.executable, "setup.py", "-q", "build", "--build-lib", folder], {"L0RT_BUILD": "tsan"}, tree, timeout=3600
    )
    assert made.returncode == 0, made
    return folder


def check(folder, program, env=None):
    """Run a program of `race_programs` with a build; return its `Result`. The sanitizer's reports are on stderr, and
    fail it."""
    library = subprocess.check_output(["cc", "-print-file-name=libtsan.so"], text=True).strip()
    sanitizer = {
        "PYTHONPATH": f"{folder}:{TESTS}",
        "LD_PRELOAD": library,  # Python itself is not built for it: the sanitizer has to be there before
        "TSAN_OPTIONS": "exitcode=66 history_size=4",
    }
    env = {**sanitizer, **ENVIRONMENT, **(env or {})}
    return run([sys.executable, "-m", "helpers.race_programs", program], env, timeout=1200)
