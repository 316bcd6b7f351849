# SPDX-License-Identifier: Apache-2.0
"""How long the device works on what a stream is given."""

from l0rt.xpu import Event


def timed(stream, function, *args):
    """Call ``function``, wait for what it gave the stream, and return the seconds by the device's clock."""
    begin, end = Event(enable_timing=True), Event(enable_timing=True)
    begin.record(stream)
    function(*args)
    end.record(stream)
    end.synchronize()
    return begin.elapsed_time(end) * 1e-3
