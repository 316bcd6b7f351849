# SPDX-License-Identifier: Apache-2.0
"""These tests are of simulated devices, which are there in the rings of `make test-intel` only."""

import os

collect_ignore_glob = [] if "XE_DEVICE" in os.environ else ["test_*.py"]
