# SPDX-License-Identifier: Apache-2.0
"""Let a frozen program be the process that libocloc runs in: for `l0rt.compile` it starts itself once more."""

from l0rt.kernels import ocloc_child

ocloc_child.begin_frozen()
