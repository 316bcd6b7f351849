# SPDX-License-Identifier: Apache-2.0
"""The version of tinygrad: its devices use functions of it that change with every release."""

from importlib import metadata

NEEDED = "0.14.0"
HINT = "pip install 'l0rt[partners]' installs it, with Python 3.11 or later"

try:
    version = metadata.version("tinygrad")
except metadata.PackageNotFoundError as error:
    message = f"l0rt.interop.tinygrad needs tinygrad {NEEDED}, which is not installed: {HINT}"
    raise ModuleNotFoundError(message, name="tinygrad") from error
if version != NEEDED:
    raise ImportError(f"l0rt.interop.tinygrad needs tinygrad {NEEDED}, and {version} is installed: {HINT}")
