# SPDX-License-Identifier: Apache-2.0
"""``python -m l0rt`` is the command ``l0rt``."""

import sys

from l0rt.cli import main

sys.exit(main())
