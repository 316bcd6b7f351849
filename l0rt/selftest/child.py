# SPDX-License-Identifier: Apache-2.0
"""A child process of the self-test: it answers questions, one after another, and sends each answer at once.

What ends this process ends one question only: the parent knows which one was asked, and starts another child for the
rest.
"""

import ctypes
import json
import os
import signal
import sys
import time
from dataclasses import asdict

from l0rt import config
from l0rt.errors import L0Error, UnsupportedError
from l0rt.selftest import (
    capabilities,
    launches,
    measurements,
    order,
    quirk_tests,
    trap_tests,
    traps_of_memory,
)
from l0rt.selftest.driver import Missing, Refused
from l0rt.selftest.ground import Ground, Untestable
from l0rt.selftest.questions import BY_ID, MARK, Answer
from l0rt.ze import quirks

ASK = {
    **capabilities.ASK,
    **order.ASK,
    **launches.ASK,
    **quirk_tests.ASK,
    **trap_tests.ASK,
    **traps_of_memory.ASK,
    **measurements.ASK,
}
MOST = 10.0  # seconds for a question that is no random program
PR_SET_PDEATHSIG = 1


def main(text):
    """Answer the questions that the parent wants answered."""
    orders = json.loads(text)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # this process does not outlive its parent
    if os.getppid() != orders["parent"]:
        return
    config.set("driver", orders["driver"] or None)
    try:
        ground = Ground(orders["device"], orders["provoke"])
    except (L0Error, ValueError, IndexError, RuntimeError) as e:
        tell(error=f"{e}")
        return
    ends = min(time.monotonic() + orders["seconds"], orders["end"])
    tell(facts=ground.facts(), ends=ends)
    for place, id in enumerate(orders["questions"]):
        share = max(0.3, (ends - time.monotonic()) / (len(orders["questions"]) - place))
        seconds = share if BY_ID[id].group == "programs" else min(3 * share, MOST)
        tell(asked=id, seconds=seconds)
        ground.ends = time.monotonic() + seconds
        tell(id=id, **asdict(answer(ground, BY_ID[id])))
    ground.driver.close()
    tell(done=True)


def tell(**what):
    """Write one line to the parent."""
    sys.stdout.write("\n" + MARK + json.dumps(what) + "\n")
    sys.stdout.flush()


def answer(ground, question):
    """Return the answer to a question; whatever goes wrong in it is one too."""
    if question.untestable:
        return Answer("untestable", question.untestable)
    if question.executes and not ground.executes:
        return ruled(ground, question) or Answer("untestable", "this driver executes nothing")
    if question.dangerous and not ground.provoke:
        return ruled(ground, question) or Answer("untestable", "may crash or exhaust a GPU: --provoke tries it")
    bad = "fails" if question.id[0] in "CM" else "present"
    try:
        with ground.driver.scope():
            return ASK[question.id](ground)
    except Untestable as why:
        return ruled(ground, question) or Answer("untestable", str(why))
    except Missing as why:
        return ruled(ground, question) or Answer("untestable", str(why))
    except UnsupportedError as why:
        return Answer("lacking" if question.id[0] == "C" else "untestable", first_line(why))
    except (Refused, L0Error, RuntimeError, ValueError, AssertionError, MemoryError, OSError) as why:
        return Answer(bad, f"{type(why).__name__}: {first_line(why)}")


def first_line(error):
    """Return the beginning of an error's text."""
    return str(error).partition("\n")[0][:300]


def ruled(ground, question):
    """Return what the table of quirks says of this device, None if it says nothing."""
    row = next((quirk for quirk in quirks.QUIRKS if quirk.name == question.name), None)
    if row is None or ground.identity["vendor_id"] != quirks.INTEL:
        return None
    api = ground.properties["api_version"]
    facts = quirks.Facts(
        ground.architecture, ground.identity["build"], ground.identity["kernel_driver"], api[0] << 16 | api[1]
    )
    return Answer("present" if row.applies(facts) else "absent", row.source, by="rule")
