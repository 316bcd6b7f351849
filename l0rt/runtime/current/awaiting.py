# SPDX-License-Identifier: Apache-2.0
"""Waits of coroutines: ``await event`` and ``await stream``. The event loop asks; no thread waits."""

import sys

# A short wait is asked for again whenever the loop comes round, which other tasks use meanwhile. A long one sleeps: the
# loop's clock has steps of a millisecond.
EAGER = 64
LONGEST = 0.004  # seconds


def _loop():
    """Return asyncio; RuntimeError outside of its loops. It is expensive to import, and its users have done so."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        raise RuntimeError("no running event loop: await works under asyncio")
    asyncio.get_running_loop()
    return asyncio


async def _complete(event):
    asyncio = _loop()
    asked, pause = 0, 0.0
    while not event.query():
        await asyncio.sleep(pause)
        asked += 1
        if asked >= EAGER:
            pause = min(pause + 0.0005, LONGEST)


def wait(event):
    """Return the iterator of a wait for an event."""
    return _complete(event).__await__()
