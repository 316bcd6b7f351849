# SPDX-License-Identifier: Apache-2.0
"""Signatures as a reader of torch's documentation compares them."""

import inspect


def bare(taken):
    """Return a signature without annotations."""
    empty = inspect.Signature.empty
    return taken.replace(
        parameters=[p.replace(annotation=empty) for p in taken.parameters.values()], return_annotation=empty
    )
