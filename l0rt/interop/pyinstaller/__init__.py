# SPDX-License-Identifier: Apache-2.0
"""PyInstaller: which files and modules a frozen program needs of l0rt, and what such a program does first.

PyInstaller finds this folder by the entry point ``pyinstaller40`` of pyproject.toml, and in it its hook,
``hook-l0rt.py``, and by ``rthooks.dat`` what runs in the program before the program itself.
"""

import os

__all__: list[str] = []


def hook_dirs():
    """Return the folders of hooks, for PyInstaller."""
    return [os.path.dirname(__file__)]
