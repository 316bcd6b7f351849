# SPDX-License-Identifier: Apache-2.0
"""Pickles of Buffers: what multiprocessing shares, what it copies, in whichever order the modules are imported."""

import sys

import pytest

from helpers.process import run
from helpers.rings import TESTS

pytestmark = pytest.mark.checks_data


def check(tmp_path, code, disable=None):
    """Run a program that a spawned child can import."""
    program = tmp_path / "program.py"
    program.write_text(f"import sys; sys.path.insert(0, {str(TESTS)!r})\n{code}")
    result = run([sys.executable, program], {"L0RT_DRIVER": "cpu", "L0RT_DISABLE": disable})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result


def test_multiprocessing_shares_and_sharing_makes_any_pickle_share(tmp_path):
    check(
        tmp_path,
        """
import multiprocessing, pickle
import numpy as np, l0rt, l0rt.accelerator as acc, l0rt.ipc
from helpers.ipc_worker import pattern

def child(queue, back):
    x = queue.get()
    assert "another process" in repr(x), x
    assert (x.numpy() == pattern(1, 1000)).all()
    x.fill(5)
    acc.synchronize()
    back.put("filled")

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
        x = l0rt.empty(1000).copy_from(pattern(1, 1000))
    acc.synchronize()
    queue, back = context.Queue(), context.Queue()
    process = context.Process(target=child, args=(queue, back))
    process.start()
    queue.put(x)
    assert back.get(timeout=50) == "filled"
    process.join()
    assert (x.numpy() == 5).all()
    with l0rt.ipc.sharing():
        words = pickle.dumps([x, x[10:20]])
    y, z = pickle.loads(words)
    assert (y.ptr, z.ptr, len(z)) == (x.ptr, x.ptr + 10, 10)
    buffers = []
    words = pickle.dumps(l0rt.empty(9).fill(3), 5, buffer_callback=buffers.append)      # nothing is left of the block
    assert (len(buffers), len(words) < 300) == (1, True)
    assert bytes(pickle.loads(words, buffers=buffers).numpy()) == bytes([3] * 9)
    del x, y, z
    assert l0rt.ipc.exported_count() == 0
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)), l0rt.ipc.sharing():
        words = pickle.dumps(l0rt.empty(10).fill(8))      # nobody else has it: the pickle keeps it
    assert l0rt.ipc.exported_count() == 1
    assert bytes(pickle.loads(words).numpy()) == bytes([8] * 10)
    x = l0rt.from_numpy(np.arange(6, dtype="i2").reshape(2, 3))
    with l0rt.ipc.sharing():
        pickle.loads(pickle.dumps(x)).fill(0)
    assert x.numpy().shape == (2, 3)
    assert not x.numpy().any()
    del x
    assert l0rt.ipc.exported_count() == 0
""",
    )


IMPORTS = {
    "first": "import multiprocessing\nimport l0rt",
    "last": "import l0rt\nl0rt.empty\nimport multiprocessing",
    "late": "import l0rt\nx = l0rt.empty(1)\nimport multiprocessing",
}


@pytest.mark.parametrize(
    ("imports", "first"), [("first", "dumps"), ("last", "dumps"), ("last", "dump"), ("late", "pickler")]
)
def test_the_order_of_imports_does_not_matter(tmp_path, imports, first):
    """Not for the very first pickle either, by any of the ways in which a ForkingPickler is called."""
    check(
        tmp_path,
        IMPORTS[imports]
        + f"""
import io, pickle
from multiprocessing import reduction
with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
    x = l0rt.empty(1000).fill(1)
def words(what):
    file = io.BytesIO()
    if {first!r} == "dumps":
        return bytes(reduction.ForkingPickler.dumps(what))
    if {first!r} == "dump":
        reduction.dump(what, file)
    else:
        reduction.ForkingPickler(file, 5).dump(what)
    return file.getvalue()
for y, z in (pickle.loads(words([x, x])), pickle.loads(words((x, x[:])))):
    assert (y.ptr, z.ptr) == (x.ptr, x.ptr)
y = pickle.loads(pickle.dumps(x))
assert y.ptr != x.ptr and bytes(y.numpy()) == bytes(x.numpy())
""",
    )


def test_a_plain_pickle_that_comes_first_copies(tmp_path):
    check(
        tmp_path,
        """
import l0rt
with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
    x = l0rt.empty(1000).fill(1)
import multiprocessing.reduction, pickle, copy
for protocol in range(6):
    y, z = pickle.loads(pickle.dumps([x, x], protocol))
    assert y is z and y.ptr != x.ptr and bytes(y.numpy()) == bytes(x.numpy())
y = copy.deepcopy(x)
assert y.ptr != x.ptr
z = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(x))
assert z.ptr == x.ptr
""",
    )


@pytest.mark.parametrize(("method", "imports"), [("spawn", "last"), ("forkserver", "first")])
def test_a_queue_and_a_pipe_take_any_buffer(tmp_path, method, imports):
    """What cannot be shared arrives as a copy, with one warning for device memory: that of a range, on many drivers."""
    check(
        tmp_path,
        IMPORTS[imports]
        + f"""
import warnings
import l0rt.accelerator as acc
def buffers():
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
        made = [l0rt.empty(1000)]
    made += [l0rt.empty(1000, kind=kind) for kind in ("device", "host", "shared")]
    return [*made, l0rt.empty(1000, device="cpu"), made[1][5:], l0rt.empty(0)]
def child(queue, pipe, given, back):
    found = []
    for x in [*(queue.get(timeout=50) for _ in range(7)), *(pipe.recv() for _ in range(7)), *given]:
        found.append((x.kind, str(x.device), len(x), bytes(x[:1].numpy())))
        x.fill(9)
    acc.synchronize()
    back.put(found)
if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    mine = buffers()
    for i, x in enumerate(mine):
        x.fill(i)
    acc.synchronize()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        queue, back, (here, there) = context.Queue(), context.Queue(), context.Pipe()
        process = context.Process(target=child, args=(queue, there, mine, back))
        process.start()
        for x in mine:
            queue.put(x)
            here.send(x)
        expected = [(x.kind, str(x.device), len(x), bytes([i])[:len(x)]) for i, x in enumerate(mine)]
        assert expected[5][3] == bytes([5])
        # the child fills the Buffer that is shared, before the second time that it looks at it
        found = back.get(timeout=50)
        again = [(*expected[0][:3], bytes([9])), *expected[1:]]
        assert found == [*expected, *again, *again], found
        process.join()
    assert ["sent to another process as a copy" in str(one.message) for one in told] == [True], told
    assert "interprocess=True" in str(told[0].message)
    mine[5].fill(5)
    assert [bytes(x[:1].numpy()) for x in mine] == [bytes([i])[:len(x)] for i, x in zip((9, 1, 2, 3, 4, 5, 6), mine)]
""",
        "range_ipc",
    )
