# SPDX-License-Identifier: Apache-2.0
"""Instruction counts: rows that run under valgrind, in a process of their own. Counts repeat where times do not."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import l0rt.bench.loops as loops
from l0rt._base.paths import known_interpreter
from l0rt.bench import history_rows, rows  # noqa: F401 - the first defines rows, as what it imports does
from l0rt.bench.lab import Lab
from l0rt.bench.replays import environment, program

MISSING = "no instruction counts: valgrind is not installed (apt-get install valgrind)"
FEW, MANY = 2000, 6000  # what the second has more than the first is the operations' own


class Missing(Exception):
    """Instructions cannot be counted here; the text says why."""


def counted(ids, progress=lambda id: None):
    """Return id -> instructions an operation, for those of the rows that could be measured; ``progress`` is called with
    each of them."""
    if shutil.which("valgrind") is None:
        raise Missing(MISSING)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            "--instr-atstart=no",
            f"--callgrind-out-file={folder}/out",
            f"--log-file={folder}/log",
            known_interpreter(),
            "-c",
            program("counts"),
            *ids,
        ]
        with (
            open(f"{folder}/errors", "w+") as errors,
            subprocess.Popen(
                command,
                env=environment({"OPENBLAS_NUM_THREADS": "1"}),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            ) as child,
        ):
            assert child.stdout is not None
            for line in child.stdout:
                progress(line.strip())
            status = child.wait()
            errors.seek(0)
            complaint = errors.read().strip().rpartition("\n")[2]
        totals = totals_in(Path(folder))
    if status != 0 or not totals:
        reason = complaint or f"exit status {status}"
        raise Missing(f"no instruction counts: valgrind's process ended: {reason}")
    return {
        id: (totals[id, MANY] - totals[id, FEW]) / (MANY - FEW)
        for id in ids
        if (id, MANY) in totals and (id, FEW) in totals
    }


def totals_in(folder):
    """Return (id, operations) -> instructions from callgrind's files."""
    totals = {}
    for path in folder.glob("out.*"):
        text = path.read_text(errors="replace")
        name = re.search(r"^desc: Trigger: Client Request: (\S+)@(\d+)$", text, re.MULTILINE)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if name and total:
            totals[name[1], int(name[2])] = int(total[1])
    return totals


def serve():
    """Run rows, a few operations and many, and have valgrind write down what each took."""
    lab = Lab()
    for id in sys.argv[1:]:
        print(id, flush=True)
        try:
            with rows.ROWS[id].open(lab) as work:
                rows.run(work, work.loop, MANY)  # to warm up
                loops.count(True)
                for n in (FEW, MANY):
                    loops.count_zero()
                    rows.run(work, work.loop, n)
                    loops.count_dump(f"{id}@{n}")
                loops.count(False)
        except rows.Skip:
            pass
    lab.close()
