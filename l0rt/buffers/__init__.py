# SPDX-License-Identifier: Apache-2.0
"""What an allocation is in Python, and how other software sees it."""
