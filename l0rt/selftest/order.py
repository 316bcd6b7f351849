# SPDX-License-Identifier: Apache-2.0
"""Random programs on several streams, compared with a model that runs them in order, as long as there is time."""

import l0rt.accelerator as acc
from l0rt.selftest.ground import fails, works
from l0rt.selftest.programs import wrong_buffers, wrong_in_threads


def programs(ground):
    """C13: one program after another."""
    return until_the_end(ground, lambda seed: wrong_buffers(seed, first=ground.index))


def programs_in_threads(ground):
    """C14: four at once on the same streams."""
    return until_the_end(ground, lambda seed: wrong_in_threads(seed, first=ground.index), programs_each=4)


def until_the_end(ground, run, programs_each=1):
    """Run programs until the time is up, one at least."""
    seed = 0
    while seed == 0 or ground.remaining() > 0:
        if wrong := run(seed):
            return fails(f"seed {seed}: {wrong}")
        seed += 1
    acc.synchronize(ground.index)
    return works(f"{seed * programs_each:,} programs of 60 steps on 8 streams", programs=seed * programs_each)


ASK = {"C13": programs, "C14": programs_in_threads}
