# SPDX-License-Identifier: Apache-2.0
"""What every package may use: integers, arguments, callers, interrupts, threads, paths."""
