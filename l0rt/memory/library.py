# SPDX-License-Identifier: Apache-2.0
"""Allocators whose functions are those of a shared library."""

from __future__ import annotations

import ctypes as _ctypes

from l0rt.runtime.memory.pluggable import PluggableAllocator

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing_extensions import Self


class XPUPluggableAllocator(PluggableAllocator):
    """A `PluggableAllocator` that calls two C functions of a shared library.

    Parameters
    ----------
    path_to_lib_file : str
        The path of the shared library, which stays loaded.
    alloc_fn_name : str
        The name of ``void *alloc(size_t nbytes, int device, void *stream)``.
    free_fn_name : str
        The name of ``void free(void *, size_t nbytes, int device, void *stream)``.

    Raises
    ------
    OSError
        The library cannot be loaded.
    AttributeError
        The library lacks one of the functions.
    """

    def __new__(cls, path_to_lib_file: str, alloc_fn_name: str, free_fn_name: str) -> Self:
        for text in (path_to_lib_file, alloc_fn_name, free_fn_name):
            if not isinstance(text, str):  # CDLL(None) is the process itself
                raise TypeError(f"the path and both names must be str, got {type(text).__name__}")
        library = _ctypes.CDLL(path_to_lib_file)
        return super().__new__(cls, getattr(library, alloc_fn_name), getattr(library, free_fn_name))


XPUPluggableAllocator.__module__ = "l0rt.memory"
