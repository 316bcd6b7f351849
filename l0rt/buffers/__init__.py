# SPDX-License-Identifier: Apache-2.0
"""What an allocation is in Python, and how other software sees it."""

from l0rt._base.libraries import share

share(__path__, __name__)

from l0rt.buffers import empty, interchange  # noqa: E402, F401 - what Buffer needs of them: an import of a part
