# SPDX-License-Identifier: Apache-2.0
"""Arguments and launch are one step: threads share a kernel object, and each gets the results of its own arguments."""

import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

PATH = Path(__file__).with_name("basic.spv")
THREADS, ITEMS = 8, 64


@pytest.mark.checks_data
def test_threads_launch_one_kernel_with_arguments_of_their_own(extent, hasty):
    """Each thread stores growing numbers at growing places; what it finds there is its own."""
    rounds = extent(300, 3_000, 12_500)
    wrong = []
    with l0rt.Module(PATH) as module:
        kernel = module["store"]

        def work(me):
            stream = acc.Stream()
            x = l0rt.empty(4 * ITEMS)
            x.record_stream(stream)
            stream.wait_stream(acc.current_stream())
            out = np.empty(ITEMS, np.int32)
            for first in range(0, rounds, ITEMS):
                for i in range(ITEMS):
                    kernel.launch(x[4 * i : 4 * i + 4], 1000 * me + first + i, groups=1, group_size=1, stream=stream)
                x.copy_to(out, stream=stream)
                if (out != 1000 * me + first + np.arange(ITEMS)).any():
                    wrong.append((me, first, out.tolist()))
            x.record_stream(stream)

        threads = [threading.Thread(target=work, args=(me,)) for me in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong, wrong[:3]


def test_threads_ask_for_one_kernel_at_once(hasty):
    """It is made once, whoever comes first."""
    for _ in range(20):
        with l0rt.Module(PATH) as module:
            found, barrier = [], threading.Barrier(THREADS)

            def ask(module=module, found=found, barrier=barrier):
                barrier.wait(30)
                found.append(module["store"])

            threads = [threading.Thread(target=ask) for _ in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == THREADS
            assert len(set(map(id, found))) == 1


def test_a_module_is_closed_while_threads_launch_it(hasty):
    """A launch works or says that the module was closed; nothing else happens."""
    for _ in range(10):
        module = l0rt.Module(PATH)
        kernel = module["store"]
        x = l0rt.empty(4)
        raised, barrier = [], threading.Barrier(5)

        def work(kernel=kernel, x=x, raised=raised, barrier=barrier):
            barrier.wait(30)
            try:
                while True:
                    kernel[1, 1](x, 1)
            except ValueError as error:
                raised.append(str(error))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        barrier.wait(30)
        module.close()
        for thread in threads:
            thread.join()
        assert raised == ["the module was closed"] * 4
    acc.synchronize()
