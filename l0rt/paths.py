# SPDX-License-Identifier: Apache-2.0
"""Paths of files, as users give them."""

import os


def plain_path(path):
    """Return the path as a str.

    open() takes an object with ``__index__`` for a descriptor, also one of a subclass of str or bytes, and closes the
    descriptor in the end: it could be that of the standard output.
    """
    return str.__str__(os.fsdecode(path))
