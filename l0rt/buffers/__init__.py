# SPDX-License-Identifier: Apache-2.0
"""What an allocation is in Python, and how other software sees it."""

from l0rt._base.libraries import share

share(__path__, __name__)
