# SPDX-License-Identifier: Apache-2.0
"""The version of tinygrad: its devices use functions of it that change with every release."""

from importlib import metadata

NEEDED = "0.14.0"
HINT = "pip install 'l0rt[partners]' installs it, with Python 3.11 or later"

try:
    found = metadata.version("tinygrad")
except metadata.PackageNotFoundError as error:
    told = f"l0rt.interop.tinygrad needs tinygrad {NEEDED}, which is not installed: {HINT}"
    raise ModuleNotFoundError(told, name="tinygrad") from error
if found != NEEDED:
    raise ImportError(f"l0rt.interop.tinygrad needs tinygrad {NEEDED}, and {found} is installed: {HINT}")
