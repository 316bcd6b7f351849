# SPDX-License-Identifier: Apache-2.0
"""Running the command line as a user does: in a process and a folder of its own."""

import sys

from helpers.process import run


def l0rt(*words, env=None, cwd=None, timeout=120.0):
    """Run ``l0rt`` with these words; see `helpers.process.run`."""
    return run([sys.executable, "-m", "l0rt", *words], env, cwd, timeout)


def complaint(result):
    """Return the one line that a refused command wrote; fail if it did anything else."""
    assert result.returncode == 2, result
    assert result.stdout == "", result
    assert result.stderr.count("\n") == 1, result
    return result.stderr
