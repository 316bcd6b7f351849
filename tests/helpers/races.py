"""l0rt under the thread sanitizer: a build of its own, and a program whose threads share streams and events."""

import subprocess
import sys

from helpers.process import run
from helpers.rings import TESTS

# What is a race on purpose, with the place that says why.
SUPPRESSED = """
race:virtual_reserve
"""
PROGRAM = f"""
import sys, threading
sys.path.insert(0, {str(TESTS)!r})
sys.setswitchinterval(1e-4)
import l0rt, l0rt.accelerator as acc
from helpers.programs import wrong_in_threads

def in_threads(work, n=5):
    gate, failed = threading.Barrier(n), []
    def run(i):
        gate.wait()
        try:
            work(i)
        except BaseException as failure:
            failed.append(failure)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not failed, failed

in_threads(lambda i: l0rt.Event().record())             # all at once open the driver, a list, a pool of events
for seed in range(3):
    wrong = wrong_in_threads(seed, devices=2)
    assert not wrong, wrong

dropped, streams = [], [acc.Stream(i % 2) for i in range(6)]
shared = [l0rt.Event() for _ in range(4)]               # of device 0: recorded by one thread, asked by another
def events(seed):
    own = [l0rt.Event(enable_timing=i % 2 == 0) for i in range(4)]
    for i in range(300):
        a, b = streams[(i + seed) % 6], streams[(i * 5 + seed + 1) % 6]
        e = own[i % 4] if a.device_index == 0 else l0rt.Event()
        e.record(a)
        b.wait_event(e)
        dropped.append(a.record_event())
        if a.device_index == 0:
            shared[i % 4].record(a)
        b.wait_event(shared[(i + seed) % 4])
        shared[i % 4].query()
        with b:
            acc.current_stream().query()
        a.wait_stream(b)
        if i % 50 == 0:
            b.synchronize()
            dropped.clear()
        if i % 60 == 0:
            acc.wait_any(a, b)
            acc.wait_all(e, a, stream=b)
            acc.stuck_report()
            b.add_callback(lambda: None)
            with acc.stream_pool.lease(seed % 2) as leased:
                leased.wait_stream(a)
                leased.record_event()
            acc.synchronize(seed % 2)
in_threads(events)
dropped.clear()
acc.synchronize(0); acc.synchronize(1)
print("done")
"""


def build(folder):
    """Build l0rt, its modules and the CPU driver, under the thread sanitizer."""
    made = run([sys.executable, "setup.py", "-q", "build", "--build-lib", folder],
               {"L0RT_BUILD": "tsan"}, TESTS.parent, timeout=3600)
    assert made.returncode == 0, made
    return folder


def check(folder, env):
    """Run the program with a build; return its `Result`. The sanitizer's reports are on stderr, and fail it."""
    suppressed = folder / "suppressed"
    suppressed.write_text(SUPPRESSED)
    library = subprocess.check_output(["cc", "-print-file-name=libtsan.so"], text=True).strip()
    sanitizer = {
        "PYTHONPATH": folder,
        "LD_PRELOAD": library,      # Python itself is not built for it: the sanitizer has to be there before
        "TSAN_OPTIONS": f"exitcode=66 history_size=4 suppressions={suppressed} print_suppressions=0",
    }
    return run([sys.executable, "-c", PROGRAM], {**sanitizer, **env}, timeout=1200)
