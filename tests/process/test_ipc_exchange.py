# SPDX-License-Identifier: Apache-2.0
"""Four processes exchange Buffers and events, all at once, while any of them may be killed at any moment."""

import os
import time
import uuid

import pytest

from helpers.ipc_exchange import exchange

pytestmark = [pytest.mark.checks_data, pytest.mark.shares_events]


def test_processes_exchange_buffers_while_any_is_killed(extent, capsys):
    """No byte is wrong, and nothing is left: neither memory nor files nor names."""
    exchanges, seed = extent(60, 500, 10000), int(os.environ.get("L0RT_TEST_SEED", "1"))
    shm, start = set(os.listdir("/dev/shm")), time.monotonic()
    done, kills, left = exchange(exchanges, max(exchanges // 100, 20), seed, uuid.uuid4().hex)
    with capsys.disabled():
        if exchanges > 1000:
            print(f"\n{done} Buffers in {time.monotonic() - start:.0f} s, {kills} processes killed; {left}")
    for one in left:
        assert (one["counts"]["exported"], one["counts"]["imported"]) == (0, 0), left
        assert one["counts"] == one["begun"], left
    assert done >= exchanges
    assert kills > 0
    assert set(os.listdir("/dev/shm")) <= shm
