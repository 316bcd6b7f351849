# SPDX-License-Identifier: Apache-2.0
"""A process that exports and imports Buffers as it is told, a line of JSON for each call; and the test's end of it."""

import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile

from helpers.process import WITH_PARENT, python_path
from helpers.rings import TESTS

CODE = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.ipc_worker import serve
serve()
"""
# For Server.run: go on as no root, to whom root's home may be closed. So the driver is opened before, and what comes
# late is imported.
NOBODY = """
import ctypes, os
l0rt.Event(interprocess=True).record()
if os.getuid() == 0:
    os.setuid(65534)
"""


def pattern(seed, nbytes):
    """Return bytes that tell one Buffer, and one place in it, from another."""
    import numpy as np

    return ((np.arange(nbytes, dtype=np.uint32) * 2654435761 + seed * 40503) >> 13).astype(np.uint8)


class Server:
    """What a worker can be told to do. A name stands for a Buffer."""

    def __init__(self):
        import l0rt
        import l0rt.ipc
        import numpy  # noqa: F401  for pattern(), before a test takes this process's rights to read files

        from helpers import ledger

        self.l0rt, self.acc, self.ledger = l0rt, l0rt.accelerator, ledger
        self.pool = l0rt.memory.MemPool(interprocess=True)
        self.buffers = {}

    def export(self, name, nbytes, seed, device=0, first=0, last=None):
        """Make a Buffer and return the handle of a part of it."""
        with self.l0rt.memory.use_mem_pool(self.pool):
            buffer = self.l0rt.empty(nbytes, device=device)
        buffer.copy_from(pattern(seed, nbytes))
        self.acc.synchronize(device)
        self.buffers[name] = buffer
        return buffer[first:last].ipc_handle().hex()

    def open(self, name, handle):
        self.buffers[name] = self.l0rt.Buffer.from_ipc_handle(bytes.fromhex(handle))
        return repr(self.buffers[name])

    def wrong(self, name, seed, nbytes, first=0):
        """Return how many bytes of a Buffer are not those of the pattern."""
        buffer = self.buffers[name]
        expected = pattern(seed, first + nbytes)[first:]
        return int((buffer.numpy() != expected).sum()) if len(buffer) == nbytes else -1

    def fill(self, name, byte):
        self.buffers[name].fill(byte)
        self.acc.synchronize()

    def busy(self, name, copies):
        """Give a stream copies out of a Buffer that last, and drop the Buffer at once; return the last copy's sum."""
        target = self.l0rt.empty(len(self.buffers[name]))
        for _ in range(copies):
            target.copy_from(self.buffers[name])
        self.drop(name)
        return int(target.numpy().astype("u8").sum())

    def drop(self, name):
        del self.buffers[name]

    def free(self, name):
        self.buffers.pop(name).free()

    def scribble(self, nbytes, count=4):
        """Use all memory of the pool that is free for something else."""
        with self.l0rt.memory.use_mem_pool(self.pool):
            others = [self.l0rt.empty(nbytes).fill(0xEE) for _ in range(count)]
        self.acc.synchronize()
        del others

    def counts(self):
        """Return what is exported and imported, open files, and the driver's live objects once all caches are empty."""
        gc.collect()
        self.l0rt.ipc.collect()
        for device in range(self.acc.device_count()):
            self.acc.synchronize(device)
        self.pool.empty_cache()
        self.acc.empty_cache()
        counts = self.ledger.live() or {}
        return {
            "exported": self.l0rt.ipc.exported_count(),
            "imported": self.l0rt.ipc.imported_count(),
            "files": len(os.listdir("/proc/self/fd")),
            "usm": counts.get("usm", 0),
        }

    def run(self, code):
        """Run code in which ``self`` is this object; return what it leaves as ``found``."""
        names = {"self": self, "l0rt": self.l0rt, "acc": self.acc}
        exec(code, names)
        return names.get("found")


def serve():
    """Do what lines ask for, until there are no more."""
    server = Server()
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = ["done", getattr(server, name)(*arguments)]
        except Exception as error:
            answer = ["failed", type(error).__name__, str(error)]
        print(json.dumps(answer), flush=True)


class Failed(Exception):
    """A worker's call raised; ``kind`` is the class."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Worker:
    """A worker process. Its methods are the server's."""

    def __init__(self, env=None):
        self.errors, self.is_killed = tempfile.TemporaryFile("w+"), False  # noqa: SIM115 - close() closes it
        changed = {
            **os.environ,
            "PYTHONPATH": python_path(),
            "L0RT_DRIVER": "cpu",
            "L0RT_CPU_DEVICES": "2",
            **(env or {}),
        }
        self.child = subprocess.Popen(
            [*WITH_PARENT, sys.executable, "-c", CODE],
            cwd="/",
            env={name: value for name, value in changed.items() if value is not None},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def __getattr__(self, name):
        def call(*arguments):
            self.child.stdin.write(json.dumps([name, arguments]) + "\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
            if not line:
                raise AssertionError(f"a worker ended with {self.child.wait()}: {self.complaints()}")
            kind, *answer = json.loads(line)
            if kind == "failed":
                raise Failed(*answer)
            return answer[0]

        return call

    def complaints(self):
        self.errors.seek(0)
        return self.errors.read()

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.close()
        self.is_killed = True

    def end(self):
        """Let the worker leave by itself, and demand that it does so silently."""
        if self.child.poll() is None:
            self.child.stdin.close()
            assert (self.child.wait(60), self.complaints()) == (0, "")
            self.close()

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait(60)
        self.errors.close()


@contextlib.contextmanager
def workers(count, env=None):
    """Run so many workers; at the end they leave, silently."""
    running = [Worker(env) for _ in range(count)]
    try:
        yield running
        for worker in running:
            worker.end()
    finally:
        for worker in running:
            if worker.child.poll() is None:
                worker.kill()


@contextlib.contextmanager
def settled_worker():
    """Run a worker for all tests that leave it as they found it."""
    with workers(1) as (worker,):
        worker.export("warm", 10, 1)
        worker.drop("warm")
        yield worker
        gc.collect()
        counts = worker.counts()
        assert (counts["exported"], counts["imported"]) == (0, 0)
