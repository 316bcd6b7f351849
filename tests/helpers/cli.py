# SPDX-License-Identifier: Apache-2.0
"""Running the command line as a user does: in a process and a folder of its own."""

import os

from helpers.process import run_python

# As `python -m l0rt` does.
PROGRAM = "import runpy, sys; sys.argv[1:] = {!r}; runpy.run_module('l0rt', run_name='__main__', alter_sys=True)"


def l0rt(*words, env=None, cwd=None, timeout=120.0):
    """Run ``l0rt`` with these words; see `helpers.process.run_python`."""
    return run_python(PROGRAM.format(list(map(os.fspath, words))), env, cwd, timeout, modules=("l0rt.cli",))


def complaint(result):
    """Return the one line that a refused command wrote; fail if it did anything else."""
    assert result.returncode == 2, result
    assert result.stdout == "", result
    assert result.stderr.count("\n") == 1, result
    return result.stderr
