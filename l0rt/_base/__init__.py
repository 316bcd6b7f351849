# SPDX-License-Identifier: Apache-2.0
"""What every package may use: integers, arguments, callers, interrupts, threads, paths."""

from l0rt._base.libraries import share

share(__path__, __name__)
