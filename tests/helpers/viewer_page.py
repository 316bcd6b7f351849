# SPDX-License-Identifier: Apache-2.0
"""What docs/viewer.md shows: `python tests/helpers/viewer_page.py FOLDER` writes the snapshots, page and pictures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers import browser
from helpers.cli import l0rt
from helpers.snapshots import documented, write


def files(folder):
    """Write the snapshots of the documentation."""
    write(folder / "leak.pickle", documented())
    write(folder / "fixed.pickle", documented(leak=False))


def main(folder):
    """Write the page and its picture too."""
    files(folder)
    print(l0rt("memory", "view", "leak.pickle", cwd=folder).stdout, end="")
    with browser.opened(1280, 1200) as opened:
        browser.show(opened, folder / "leak.html")
        browser.picture(opened, folder / "viewer.png", 1280)
        browser.scheme(opened, "dark")
        browser.picture(opened, folder / "dark.png", 1280)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
