# SPDX-License-Identifier: Apache-2.0
"""Running the commands of docs/scale-out.md: what they need, and what the page says that they print."""

import importlib.util
import os
import re
import sys

import pytest

from helpers.process import run
from helpers.source import ROOT

DEVICES = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "4"}
PAGE = ROOT / "docs/scale-out.md"


def need(package, extra):
    """Skip without a package; where CI has installed it, fail."""
    if importlib.util.find_spec(package) is None:
        lacks(f"needs {package} beside l0rt: the extra `{extra}`")


def lacks(told):
    """Skip with this reason; where CI has installed all of it, fail."""
    (pytest.fail if os.environ.get("L0RT_TEST_PARTNERS") == "1" else pytest.skip)(told)


def commands(word):
    """Return the (command, output) pairs of the page whose command has this word."""
    shown = re.findall(r"^```\n\$ ((?:.*\\\n)*.*)\n((?:(?!```).*\n)*)```$", PAGE.read_text(), re.MULTILINE)
    found = [(command, output) for command, output in shown if word in command]
    assert found, f"{PAGE} has no command with {word}"
    return found


def follow(command, folder, timeout=180, **env):
    """Run a command of the page as the shell in which l0rt is installed would, in another folder."""
    for name in ("with_dask.py", "with_mpi.py", "with_ray.py"):
        command = command.replace(f"examples/scale_out/{name}", str(ROOT / "examples/scale_out" / name))
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    unset = dict.fromkeys(DEVICES)
    return run(["bash", "-c", command], {**unset, "PATH": path, "TMPDIR": folder, **env}, folder, timeout)
