# SPDX-License-Identifier: Apache-2.0
"""The reference rows: what the machine itself costs. Other rows' budgets scale with them."""

import subprocess

import l0rt.bench.reference as reference
from l0rt._base.paths import known_interpreter
from l0rt.bench.rows import Work, python, suite

row = suite("reference")

# What these rows took on the machine that the budgets are written for.
GLIBC_NS, CALL_NS = 16.0, 17.0

# A process that never had a second thread, loading nothing but the compiled file.
_ALONE = """
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
name, path = "reference", sys.argv[1]
reference = module_from_spec(spec_from_file_location(name, path, loader=ExtensionFileLoader(name, path)))
reference.__spec__.loader.exec_module(reference)
print("ready", flush=True)
for line in sys.stdin:
    print(reference.malloc_free(4096, int(line)), flush=True)
"""


@row("reference.glibc.c", "glibc's malloc + free of 4 KiB, in a process without threads")
def glibc(lab):
    ask = [known_interpreter(), "-I", "-S", "-c", _ALONE, reference.__file__]
    # In a session of its own, and silent: Ctrl-C ends the bench, and the bench ends this child.
    with subprocess.Popen(
        ask,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as child:
        questions, answers = child.stdin, child.stdout
        assert questions is not None
        assert answers is not None

        def loop(n):
            questions.write(f"{n}\n")
            questions.flush()
            return int(answers.readline())

        answers.readline()
        yield Work(loop)
        questions.close()


@row("reference.call.python", "(1).bit_length()")
def call(lab):
    yield Work(python("(1).bit_length()"))


@row("reference.loop.c", "an empty loop; every C row includes it")
def loop_c(lab):
    yield Work(reference.empty)


@row("reference.loop.python", "an empty loop; every Python row includes it")
def loop_python(lab):
    yield Work(python("pass"))


def scales(figures):
    """Return how much slower this machine is than the budgets' by language, 1 where that was not measured."""
    return {
        "c": (figures.get("reference.glibc.c") or GLIBC_NS) / GLIBC_NS,
        "python": (figures.get("reference.call.python") or CALL_NS) / CALL_NS,
    }
