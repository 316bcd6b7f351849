# SPDX-License-Identifier: Apache-2.0
"""What a module says of itself, and that none that is damaged gets past the reader."""

import random
import struct
from pathlib import Path

import pytest
from l0rt.errors import ModuleBuildError
from l0rt.launch import spirv

BASIC = Path(__file__).with_name("basic.spv").read_bytes()


def test_kernels_and_their_arguments():
    found = spirv.Spirv(BASIC)
    assert [argument.name for argument in found.kernels["vector_add"].arguments] == ["to", "x", "y", "n"]
    values = found.kernels["values"].arguments
    assert [(a.kind, a.size, a.number) for a in values] == [
        ("pointer", 8, ""), ("value", 1, "int"), ("value", 2, "int"), ("value", 4, "int"), ("value", 8, "int"),
        ("value", 4, "float"), ("value", 16, ""), ("value", 16, ""),
    ]  # fmt: skip
    kinds = [(a.kind, a.address_space) for a in found.kernels["reduce"].arguments]
    assert kinds == [("pointer", "global"), ("pointer", "global"), ("value", ""), ("local", "local")]
    assert found.kernels["matmul"].required_group_size == (8, 8, 1)
    assert found.kernels["store"].required_group_size is None


def test_specialisation_constants():
    assert spirv.Spirv(BASIC).constants == {1: ("int", 4), 2: ("float", 4)}


def test_the_other_byte_order_is_read():
    swapped = struct.pack(f">{len(BASIC) // 4}I", *struct.unpack(f"<{len(BASIC) // 4}I", BASIC))
    assert spirv.is_spirv(swapped)
    assert spirv.Spirv(swapped).constants == spirv.Spirv(BASIC).constants


@pytest.mark.parametrize(
    ("word", "value", "why"),
    [
        (0, 0x12345678, "word 0 .*first word must be 0x7230203"),
        (1, 0x00020000, "word 1 .*version must be 1.0 to 1.6"),
        (1, 0x00010700, "word 1 .*version must be 1.0 to 1.6"),
        (3, 0, "word 3 .*bound"),
        (3, 1 << 30, "word 3 .*bound"),
        (3, 2, "not below the bound"),
        (4, 1, "word 4 .*reserved"),
        (5, 0x00000011, "word 5 .*instruction of 0 words"),
        (5, 0xFFFF0011, "word 5 .*instruction of 65535 words"),
        (5, 0x00010011, "word 5 .*has 1 words, at least 2"),
    ],
)
def test_a_damaged_word_is_named(word, value, why):
    damaged = bytearray(BASIC)
    struct.pack_into("<I", damaged, 4 * word, value)
    with pytest.raises(ModuleBuildError, match=why) as refused:
        spirv.Spirv(bytes(damaged))
    assert refused.value.log.startswith("SPIR-V, word ")


@pytest.mark.parametrize("size", [0, 3, 4, 16, 19, 20, 24, 400, len(BASIC) - 4])
def test_what_is_cut_off_is_refused(size):
    with pytest.raises(ModuleBuildError, match="the module is not valid"):
        spirv.Spirv(BASIC[:size])


# Single words of add.spv, each of which ended the process of Intel's driver of 2022.
ENDED = [
    (14, 0x1E, "made twice"), (15, 0, "extended instructions|string"), (19, 3, "physical addresses"),
    (27, 1, "no entry point"), (42, 1, "other arguments than"), (54, 1, "other arguments than"),
    (149, 1 << 24 | 1, "linkage"), (156, 38, "built-in 38"), (164, 0, "a number of 0 bits"), (186, 0, "no type"),
    (213, 0x23, "made twice|no value"), (233, 0, "no value"), (236, 1, "made twice"), (248, 5, "no pointer"),
    (253, 25, "no value"), (256, 5 << 16 | 66, "no part|lead to"), (256, 5 << 16 | 68, "no instruction 68"),
    (271, 21, "is of type"), (286, 1 << 16 | 252, "no instruction 252"),
]  # fmt: skip
ADD = Path(__file__).with_name("add.spv").read_bytes()


@pytest.mark.parametrize(("word", "value", "why"), ENDED)
def test_a_word_that_ends_a_driver_is_refused(word, value, why):
    changed = ADD[: 4 * word] + struct.pack("<I", value) + ADD[4 * word + 4 :]
    with pytest.raises(ModuleBuildError, match=why):
        spirv.Spirv(changed)


def test_const_of_the_source_is_read_from_what_the_compiler_tells():
    kernels = spirv.Spirv(BASIC).kernels
    told = [(a.name, a.reads, a.writes) for a in kernels["vector_add"].arguments if a.kind == "pointer"]
    assert told == [("to", True, True), ("x", True, False), ("y", True, False)]
    assert [a.writes for a in kernels["store"].arguments if a.kind == "pointer"] == [True]


def test_damage_at_random_is_refused_or_read(extent):
    """Words are changed, lost and doubled, modules are cut off: the reader reads them, or says what it found."""
    rng = random.Random(7)
    refused = 0
    count = extent(500, 2_000, 100_000)
    for _ in range(count):
        damaged = bytearray(BASIC[: rng.randrange(80, len(BASIC))] if rng.random() < 0.2 else BASIC)
        for _ in range(rng.randint(1, 4)):
            at = 4 * rng.randrange(len(damaged) // 4)
            act = rng.random()
            if act < 0.6:
                struct.pack_into(
                    "<I",
                    damaged,
                    min(at, len(damaged) - 4),
                    rng.choice(
                        (
                            0,
                            1,
                            0xFFFFFFFF,
                            0x80000000,
                            rng.getrandbits(32),
                            rng.getrandbits(8) << 16 | rng.randrange(400),
                        )
                    ),
                )
            elif act < 0.8:
                del damaged[at : at + 4]
            else:
                damaged[at:at] = damaged[:4]
        try:
            spirv.Spirv(bytes(damaged))
        except ModuleBuildError:
            refused += 1
    assert refused > count // 3
