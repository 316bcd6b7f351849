# SPDX-License-Identifier: Apache-2.0
"""A program that needs a way around every optional driver function; it leaves the timed events ``e`` and ``f``."""

USES = """
import l0rt, l0rt.accelerator as acc
x, y, out = l0rt.empty(4096), l0rt.empty(4096), bytearray(4096)
s, e, f = acc.Stream(), l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
e.record(s)
x.fill(7, stream=s)
f.record(s)
acc.current_stream().wait_event(f)
y.copy_from(x)
assert bytes(y.copy_to(out)) == bytes([7]) * 4096
assert e.elapsed_time(f) >= 0
s.synchronize(); acc.synchronize(); assert s.query()
l0rt.empty(64, kind="shared").free()
l0rt.xpu.get_device_properties()
acc.get_memory_info()
"""
