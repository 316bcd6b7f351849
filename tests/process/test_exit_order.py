# SPDX-License-Identifier: Apache-2.0
"""Exit beside other software: what still holds memory of l0rt, and threads that l0rt itself has started."""

import json

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
MAKES = {
    "host": 'l0rt.empty(5 << 20, kind="host").fill(1)',
    "shared": 'l0rt.empty(5 << 20, kind="shared").fill(1)',
    "small": 'l0rt.empty(4096, kind="host").fill(1)',
    "pinned": 'l0rt.pinned(5 << 20, "u1")',
}
HOLDS = {
    "view": "np.frombuffer(x, 'u1')",
    "slice": "memoryview(x)[1:]",
    "dlpack": "np.from_dlpack(x)",
    "address": "(ctypes.c_ubyte * len(x)).from_address(x.ctypes.data if isinstance(x, np.ndarray) else x.ptr)",
}


def test_host_memory_in_use_can_be_read_after_l0rts_own_end():
    """By views of NumPy's and DLPack's, and by the address while the object lives: `atexit` calls the function after
    l0rt's own."""
    uses = [(make, hold) for make in MAKES for hold in HOLDS]
    code = f"""
import atexit, ctypes
import numpy as np
held = []
def late():
    for x, v in held:
        print(sum(map(int, v[-4000:])))
atexit.register(late)            # registered before l0rt's own: runs after it
import l0rt
for make, hold in {[(MAKES[make], HOLDS[hold]) for make, hold in uses]!r}:
    x = eval(make)
    if isinstance(x, np.ndarray):
        x[:] = 1
    gone = l0rt.empty(3 << 20, kind="host")
    del gone                     # what nobody holds is given back all the same
    v = eval(hold)
    held.append((x if hold.startswith("(") else None, v))
del x, v
"""
    result = run_python(code, CPU, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert dict(zip(uses, result.stdout.split(), strict=True)) == dict.fromkeys(uses, "4000")


LEFT = """
import atexit, ctypes, json
def late():
    driver = ctypes.CDLL(l0rt.cpu_driver_path())
    driver.l0rt_cpu_live.restype = ctypes.c_uint64
    driver.l0rt_cpu_kind_name.restype = ctypes.c_char_p
    counts, kind = {}, 0
    while name := driver.l0rt_cpu_kind_name(kind):
        counts[name.decode()] = driver.l0rt_cpu_live(kind)
        kind += 1
    del counts["driver"], counts["device"]      # which stay as long as the library does
    print(json.dumps({name: count for name, count in counts.items() if count}))
atexit.register(late)
import l0rt
x = l0rt.empty(1 << 20).fill(1)
"""


def test_exit_gives_everything_back_where_the_host_holds_nothing():
    freed = "l0rt.empty(5 << 20, kind='host').free(); l0rt.empty(64, kind='shared').free()"
    result = run_python(LEFT + freed, CPU, fresh=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", ""), result


def test_of_what_is_held_only_the_segments_stay():
    held = "h = l0rt.empty(5 << 20, kind='host'); l0rt.empty(30 << 20, kind='host').free()"
    result = run_python(LEFT + held, CPU, fresh=True)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert json.loads(result.stdout) == {"context": 1, "usm": 1}


PHASES = """
import threading
from l0rt.runtime import lazy
for phase in ("CONTEXTS", "MEMORY", "EVENTS", "LISTS"):
    lazy.on_exit(getattr(lazy, phase), lambda phase=phase: print(phase))
import l0rt
x = l0rt.empty(64)
"""


def test_a_watched_process_destroys_what_it_made_too(tmp_path):
    environment = {**CPU, "L0RT_MONITOR": "1", "XDG_RUNTIME_DIR": tmp_path}
    result = run_python(PHASES, environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, "LISTS\nEVENTS\nMEMORY\nCONTEXTS\n", "")
    assert not list(tmp_path.glob("l0rt/*"))
