# SPDX-License-Identifier: Apache-2.0
"""Kernels of some hundred to two thousand inlined calls, as password crackers and miners have them, against hashlib."""

import hashlib
import math
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config
from l0rt.kernels import compiler

from helpers import compilers

SOURCE = Path(__file__).with_name("hashes.cl")
SINES = ", ".join(str(int(abs(math.sin(i + 1)) * 2**32)) for i in range(64))
ITEMS, ROUNDS = 96, 3


@pytest.fixture(scope="module", params=["ocloc", "zig"])
def module(request):
    if request.param not in compilers.INSTALLED:
        pytest.skip(f"{request.param} is not installed: {compiler.COMPILERS[request.param].PACKAGE}")
    with config.patch({"compiler": request.param}):
        made = l0rt.compile(f"constant uint SINES[64] = {{{SINES}}};\n{SOURCE.read_text()}", "-cl-std=CL1.2")
    kept = [made[name] for name in made]
    yield made
    del kept
    made.close()


def filled(data):
    return l0rt.empty(max(len(data), 1)).copy_from(np.frombuffer(data or b"\0", np.uint8))


def digests(out, size):
    data = out.numpy().tobytes()
    return [data[i : i + size] for i in range(0, len(data), size)]


@pytest.mark.checks_data
@pytest.mark.parametrize("size", [0, 1, 31, 55])
@pytest.mark.parametrize("name", ["sha256", "md5", "blake2b"])
def test_a_hash_is_hashlibs(module, name, size):
    messages = [bytes((i * 7 + k * 13) & 255 for k in range(size)) for i in range(ITEMS)]
    expected = [hashlib.new(name, message).digest() for message in messages]
    out = l0rt.empty(ITEMS * len(expected[0]))
    module[name][ITEMS // 32, 32](filled(b"".join(messages)), size, out)
    acc.synchronize()
    assert digests(out, len(expected[0])) == expected


@pytest.mark.checks_data
def test_a_derived_key_is_hashlibs(module):
    passwords = [bytes((i * 5 + k * 11) & 255 for k in range(32)) for i in range(ITEMS)]
    salts = [bytes((i + k) & 255 for k in range(20)) for i in range(ITEMS)]
    expected = [hashlib.pbkdf2_hmac("sha256", passwords[i], salts[i], ROUNDS) for i in range(ITEMS)]
    out = l0rt.empty(ITEMS * 32)
    numbered = b"".join(salt + b"\0\0\0\1" for salt in salts)
    module["pbkdf2"][ITEMS // 32, 32](filled(b"".join(passwords)), filled(numbered), 24, ROUNDS, out)
    acc.synchronize()
    assert digests(out, 32) == expected
