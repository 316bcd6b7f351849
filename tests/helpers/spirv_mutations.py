# SPDX-License-Identifier: Apache-2.0
"""SPIR-V with one word changed: what the reader lets through a driver builds or refuses, and goes on."""

import random
import struct
import sys

from helpers.process import run_python
from helpers.rings import TESTS

DONE = "all were tried"
CHILD = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.spirv_mutations import try_all
try_all(*sys.argv[1:])
"""


def mutations(code, seed, count):
    """Yield (a word's number, its value, the code with it), the same ones for the same seed."""
    rng = random.Random(seed)
    words = struct.unpack(f"<{len(code) // 4}I", code)
    for _ in range(count):
        at = rng.randrange(5, len(words))
        word = words[at]
        value = rng.choice((0, 1, words[3] - 1, rng.randrange(1, words[3]), word + 1, word ^ 1 << rng.randrange(32)))
        if value != words[at]:
            yield at, value & 0xFFFFFFFF, code[: 4 * at] + struct.pack("<I", value & 0xFFFFFFFF) + code[4 * at + 4 :]


def try_all(path, seed, count, first):
    """In a process of its own: give those that the reader lets through to the driver. Each is told of before."""
    from pathlib import Path

    import l0rt
    from l0rt.launch.spirv import Spirv

    refused = built = 0
    for number, (at, value, code) in enumerate(mutations(Path(path).read_bytes(), int(seed), int(count))):
        if number < int(first):
            continue
        try:
            Spirv(code)
        except l0rt.ModuleBuildError:
            continue
        print(number, at, hex(value), flush=True)
        try:
            with l0rt.Module(code) as module:
                for name in module:
                    module[name]
            built += 1
        except (l0rt.L0Error, KeyError):
            refused += 1
    print(f"built {built}, refused {refused}", file=sys.stderr)
    print(DONE, flush=True)


def fatal(path, seed, count, environment, timeout=600):
    """Return the mutations that ended the process, as (word, value, status), and how many were given to the driver."""
    first, found, tried = 0, [], 0
    while True:
        code = CHILD.replace("*sys.argv[1:]", f"{str(path)!r}, {seed}, {count}, {first}")
        result = run_python(code, environment, timeout=timeout)
        lines = [line for line in result.stdout.splitlines() if line == DONE or line[:1].isdigit()]
        if lines and lines[-1] == DONE:
            return found, tried + len(lines) - 1
        if not lines:
            raise AssertionError(str(result))
        tried += len(lines)
        number, at, value = lines[-1].split()
        found.append((int(at), int(value, 16), result.returncode))
        first = int(number) + 1
