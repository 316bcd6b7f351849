# SPDX-License-Identifier: Apache-2.0
"""Python reads this when it starts with tests/ on PYTHONPATH: a broken driver is broken before l0rt opens it."""

import os

if "BREAK_DRIVER" in os.environ:
    from helpers import broken

    broken.begin(os.environ["BREAK_DRIVER_LIBRARY"])
