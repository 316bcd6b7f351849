# SPDX-License-Identifier: Apache-2.0
"""Running a script of tinygrad on l0rt: ``DEV=L0RT python -m l0rt.interop.tinygrad SCRIPT [ARGS]``."""

import os
import runpy
import sys

from tinygrad.helpers import DEV

from l0rt.interop.tinygrad import NAME, register

USAGE = "usage: DEV=L0RT python -m l0rt.interop.tinygrad SCRIPT [ARGS]"


def main(args):
    """Run the script as Python would, with the device registered. Without ``DEV`` the device is L0RT."""
    if not args or args[0].startswith("-"):
        sys.exit(USAGE)
    if not os.path.exists(args[0]):
        sys.exit(f"{args[0]}: there is no such file\n{USAGE}")
    register()
    if not os.environ.get("DEV"):
        os.environ["DEV"] = DEV.value = NAME
    sys.argv[:] = args
    sys.path[0] = os.path.dirname(os.path.abspath(args[0]))
    runpy.run_path(args[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
