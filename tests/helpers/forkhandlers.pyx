# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Handlers that run in a forked child, as modules of the runtime register them: as many as a test wants."""

from l0rt.runtime.lazy cimport on_fork_child

cdef int calls = 0


cdef void forget() noexcept nogil:
    global calls
    calls += 1


def register(count):
    for _ in range(count):
        on_fork_child(forget)


def called():
    """How many handlers have run in this process."""
    return calls
