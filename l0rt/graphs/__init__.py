# SPDX-License-Identifier: Apache-2.0
"""Graphs: what streams were given during a capture, to be replayed as often as one likes."""

from l0rt._base.libraries import share

share(__path__, __name__)
