# SPDX-License-Identifier: Apache-2.0
"""Learn with MPI, a rank for each device. With --kill a rank is killed in the middle of the first run.

Each step is kept in the file that is named, so that the next run goes on from there.
"""

import os
import signal
import sys
from pathlib import Path

import model
import numpy as np
from l0rt.interop import mpi
from mpi4py import MPI


def resume(path):
    """Return the step to begin with, and the weights."""
    if not path.exists():
        return 0, model.start()
    with np.load(path) as kept:
        return int(kept["step"]), kept["weights"]


def keep(path, step, weights):
    """Replace the file as a whole, whenever the process ends."""
    with open(f"{path}.new", "wb") as file:
        np.savez(file, step=step, weights=weights)
    os.replace(f"{path}.new", path)


def main(path):
    comm = MPI.COMM_WORLD
    mpi.setup(comm)
    parts = [model.load(part) for part in range(comm.rank, model.PARTS, comm.size)]
    first, weights = comm.bcast(resume(path) if comm.rank == 0 else None)
    for step in range(first, model.STEPS):
        total = np.zeros(model.FEATURES, "f4")
        for data in parts:
            with mpi.staged(model.gradient(weights, data), "f4", mode="r") as found:
                total += found
        if "--kill" in sys.argv and first == 0 and step == model.STEPS // 2 and comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.Allreduce(MPI.IN_PLACE, total)  # MPI's sum, in the host's memory
        weights = model.descend(weights, total)
        if comm.rank == 0:
            keep(path, step + 1, weights)
    same = all(np.array_equal(weights, other) for other in comm.allgather(weights))
    if comm.rank == 0:
        print(f"{model.STEPS - first} steps on {comm.size} devices; the ranks agree: {same}")
        print("equal to one process:", np.allclose(weights, model.alone(), rtol=1e-5, atol=1e-6))
        path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
