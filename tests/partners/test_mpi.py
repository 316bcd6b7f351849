# SPDX-License-Identifier: Apache-2.0
"""MPI with four ranks on four devices: messages, memory that the ranks of a host share, and a rank that is killed."""

import shutil
import sys

import pytest

from helpers import scaled
from helpers.process import run

ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.fixture(autouse=True)
def _mpi():
    scaled.need("mpi4py", "mpi")
    if shutil.which("mpiexec") is None:
        scaled.lacks("needs mpiexec: Debian's openmpi-bin")


@pytest.fixture
def ranks(tmp_path):
    """Run a program with so many ranks."""

    def ranks(code, count=4, **env):
        script = tmp_path / "ranks.py"
        script.write_text(code)
        command = ["mpiexec", "--oversubscribe", "-n", str(count), sys.executable, script]
        return run(command, {**scaled.DEVICES, **ROOT_MAY, "TMPDIR": tmp_path, **env}, tmp_path, timeout=120)

    return ranks


@pytest.mark.parametrize("number", [0, 1], ids=["plain", "a-killed-rank"])
def test_a_command_of_the_page_learns_what_one_process_learns(number, tmp_path):
    command, output = scaled.commands("with_mpi.py")[number]
    assert ("--kill" in command) == bool(number)
    result = scaled.follow(command, tmp_path, **ROOT_MAY)
    assert (result.returncode, result.stdout) == (0, output), result
    assert ("exited on signal 9" in result.stderr) == bool(number), result
    assert not list(tmp_path.glob("*.npz*"))


MESSAGES = """
import random
import numpy as np
from mpi4py import MPI
import l0rt, l0rt.accelerator as acc
from l0rt.interop import mpi

comm, rng = MPI.COMM_WORLD, random.Random(3)
rank, size = comm.rank, comm.size
device = mpi.setup(memory_limit="1GiB", pool_size="4MiB")
assert device == rank == acc.get_device_index() and l0rt.memory.get_memory_limit() == 1 << 30
assert comm.allgather(device) == [0, 1, 2, 3]

def made(kind, nbytes, seed):
    data = np.random.default_rng(seed).integers(0, 256, nbytes, "u1")
    buffer = l0rt.empty(nbytes, device="cpu") if kind == "cpu" else l0rt.empty(nbytes, kind=kind)
    if nbytes:
        buffer.copy_from(data)
    return buffer, data

# Every rank draws the same program; whoever sends, whoever receives, any kinds of memory on both sides.
for step in range(60):
    nbytes = rng.choice([0, 1, 1000, 1 << 16, rng.randrange(1 << 20)])
    source, dest = rng.sample(range(size), 2)
    kinds = rng.choices(["device", "host", "shared", "cpu"], k=size)
    mine, data = made(kinds[rank], nbytes, step * size + rank)
    wanted = made("cpu", nbytes, step * size + source)[1]
    if rng.random() < 0.4:
        assert mpi.bcast(mine, source) is mine
        assert (mine.numpy() == wanted).all()
    elif rank == source:
        mpi.send(mine, dest, tag=step)
        assert (mine.numpy() == data).all()
    elif rank == dest:
        assert mpi.recv(mine, source, tag=step) is mine
        assert (mine.numpy() == wanted).all()

# A part of a Buffer; host and shared memory as MPI itself takes them; a device's it refuses.
whole = l0rt.empty(3000).fill(9)
if rank == 0:
    mpi.send(l0rt.empty(1000).fill(4), 1)
elif rank == 1:
    mpi.recv(whole[1000:2000], 0)
    assert whole.numpy().tolist() == [9] * 1000 + [4] * 1000 + [9] * 1000
for kind in "host", "shared":
    direct = l0rt.empty(4096, kind=kind).fill(rank)
    acc.synchronize()
    comm.Bcast(direct, 2)
    assert set(direct.numpy()) == {2}

# MPI's sum of what is on four devices.
numbers = l0rt.from_numpy(np.arange(1000, dtype="f4") * (rank + 1))
with mpi.staged(numbers, "f4") as host:
    comm.Allreduce(MPI.IN_PLACE, host)
assert (numbers.numpy("f4") == np.arange(1000, dtype="f4") * 10).all()
with mpi.staged(numbers, "f4", mode="r") as host:
    assert not host.flags.writeable
with mpi.staged(numbers, "f4", mode="w") as host:
    host[:] = 5
assert set(numbers.numpy("f4")) == {5}
try:
    with mpi.staged(numbers, "f4") as host:
        host[:] = 6
        raise KeyError                      # nothing is copied back
except KeyError:
    assert set(numbers.numpy("f4")) == {5}

refused = 0
for wrong in (lambda: mpi.send(b"x", 0), lambda: mpi.send(None, 0), lambda: mpi.setup(7),
              lambda: mpi.bcast(whole, comm=0), lambda: mpi.share(b"x"),
              lambda: mpi.staged(whole, "f8", mode="x").__enter__(), lambda: mpi.staged(whole[:7], "f8").__enter__(),
              lambda: mpi.staged(whole, "V0").__enter__()):
    try:
        wrong()
    except (TypeError, ValueError):
        refused += 1
assert refused == 8, refused
if rank == 0:
    mpi.send(l0rt.empty(10).fill(0), 1)
elif rank == 1:
    try:
        mpi.recv(l0rt.empty(11), 0)
    except ValueError as short:
        assert "10 bytes, and the Buffer 11" in str(short)
    else:
        raise AssertionError
if done := comm.gather("ok"):
    print(*done)
"""


def test_messages_have_every_byte_of_every_kind_of_memory(ranks):
    result = ranks(MESSAGES)
    assert (result.returncode, result.stdout) == (0, "ok ok ok ok\n"), result


SHARED = """
import numpy as np
from mpi4py import MPI
import l0rt, l0rt.accelerator as acc, l0rt.ipc
from l0rt.interop import mpi

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
mpi.setup(comm)
pool = l0rt.memory.MemPool(interprocess=True)
with l0rt.memory.use_mem_pool(pool):
    mine = l0rt.empty(4000)
for turn in range(3):
    mine.copy_from(np.full(1000, 10 * turn + rank, "f4"))
    comm.Barrier()
    part = mine[400:800] if turn == 1 else mine
    found = mpi.share(None if turn == 2 and rank == 3 else part)
    assert (found[3] is None) == (turn == 2) and (found[rank] is part or (turn, rank) == (2, 3))
    assert [x.device.index for x in found if x is not None] == list(range(size))[: len(found) - (turn == 2)]
    for other, x in enumerate(found):
        if x is not None:
            assert set(x.numpy("f4")) == {10 * turn + other} and x.nbytes == part.nbytes
    comm.Barrier()
    found[(rank + 1) % 3].fill(77) if rank < 3 and turn == 0 else None   # what a rank writes, the owner reads
    acc.synchronize(); [acc.synchronize(i) for i in range(size)]
    comm.Barrier()
    if rank < 3 and turn == 0:
        assert set(mine.numpy()) == {77}
    comm.Barrier()
    del found
refused = None
try:                                    # memory that cannot be shared: all ranks are told, and none waits for ever
    mpi.share(l0rt.empty(64, kind="host") if rank == 2 else mine)
except RuntimeError as error:
    refused = str(error)
assert "rank 2: UnsupportedError" in refused and "rank 0" not in refused, refused
comm.Barrier()
l0rt.ipc.collect()
assert l0rt.ipc.imported_count() == 0
comm.Barrier()
l0rt.ipc.collect()
del mine, part, x
l0rt.ipc.collect()
assert l0rt.ipc.exported_count() == 0, l0rt.ipc.exported_count()
if done := comm.gather("ok"):
    print(*done)
"""


def test_ranks_of_a_host_read_and_write_each_others_memory(ranks):
    result = ranks(SHARED)
    assert (result.returncode, result.stdout) == (0, "ok ok ok ok\n"), result


def test_more_ranks_than_devices_are_refused_on_all_ranks_unless_they_share(ranks):
    result = ranks(
        """
from mpi4py import MPI
from l0rt.interop import mpi
try:
    told = mpi.setup()
except RuntimeError as few:
    told = str(few)
found = MPI.COMM_WORLD.gather([told, mpi.setup(oversubscribe=True)])
if found:       # one rank prints: mpiexec may mix the lines of several
    print(*sum(found, []), sep="\\n")
""",
        count=3,
        L0RT_CPU_DEVICES=2,
    )
    told = (
        "a host has fewer devices than ranks: this one has 3 ranks and 2 devices; start fewer ranks, or say "
        "oversubscribe=True"
    )
    assert (result.returncode, result.stdout.splitlines()) == (0, [told, "0", told, "1", told, "0"]), result
