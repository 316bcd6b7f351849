# SPDX-License-Identifier: Apache-2.0
"""What all processes of a test run share, and one of them makes: pytest's workers, and the pytests of the rings."""

import fcntl
import os
from pathlib import Path

VARIABLE = "TESTS_SHARED_FOLDER"  # the first process of the run names and removes it: conftest.py


def shared(name, make):
    """Return the folder of that name, in which ``make(folder)`` was called once. Who comes meanwhile waits."""
    folder = Path(os.environ[VARIABLE], name)
    with open(f"{folder}.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not lock.read():
            folder.mkdir(exist_ok=True)
            make(folder)
            lock.write("made")
    return folder
