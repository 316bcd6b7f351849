# SPDX-License-Identifier: Apache-2.0
"""What a module says of itself, and that none that is damaged gets past the reader."""

import random
import re
import struct
from pathlib import Path

import pytest
from l0rt.errors import ModuleBuildError
from l0rt.launch import spirv

BASIC = Path(__file__).with_name("basic.spv").read_bytes()
ADD = Path(__file__).with_name("add.spv").read_bytes()


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


def changed(code, *words):
    """Return a module with other words, given as (number, value)."""
    changed = bytearray(code)
    for at, value in words:
        struct.pack_into("<I", changed, 4 * at, value)
    return bytes(changed)


def instructions(code):
    """Yield the place of each instruction and its opcode."""
    words = struct.unpack(f"<{len(code) // 4}I", code)
    at = 5
    while at < len(words):
        yield at, words[at] & 0xFFFF
        at += words[at] >> 16


def place_of(code, opcode):
    return next(at for at, op in instructions(code) if op == opcode)


def test_a_module_says_its_version_and_capabilities():
    found = spirv.Spirv(BASIC)
    assert found.version == tuple(BASIC[6:4:-1])
    assert {4, 6, 11} <= set(found.capabilities), "Addresses, Kernel and Int64"
    assert found.imports == ()


def test_the_layout_of_vectors_and_structures_is_told():
    layouts = [a.layout for a in spirv.Spirv(BASIC).kernels["values"].arguments]
    assert layouts == [*[""] * 6, "f..." * 4, "i...xxxxq......."]


REFUSED = Path(__file__).with_name("refused.spv").read_bytes()


def test_images_pipes_and_queues_are_read():
    kernels = spirv.Spirv(REFUSED).kernels
    kinds = {name: [a.kind for a in kernel.arguments] for name, kernel in kernels.items()}
    assert kinds["plain"] == ["pointer", "value"]
    assert kinds["blur"] == ["pointer", "image", "sampler"]
    assert kinds["drain"] == ["pointer", "pipe"]
    assert kinds["onto"] == ["pointer", "queue"]
    assert kinds["spread"] == ["pointer", "value"]
    lines = [line.strip() for line in Path(__file__).with_name("refused.cl").read_text().splitlines()]
    for name in ("blur", "drain", "onto"):
        source = kernels[name].arguments[-1].source
        assert source.startswith("refused.cl:")
        assert lines[int(source.removeprefix("refused.cl:")) - 2].startswith(f"kernel void {name}("), source


def test_what_the_public_grammar_lacks_is_refused_unless_it_is_trusted():
    at = place_of(ADD, 17)
    with pytest.raises(ModuleBuildError, match=r"not valid: SPIR-V, word \d+ .*there is no capability 16$"):
        spirv.Spirv(changed(ADD, (at + 1, 16)))
    assert 16 in spirv.Spirv(changed(ADD, (at + 1, 16)), trusted=True).capabilities
    label = place_of(ADD, 248) + 2
    for opcode in (4101, 13, 65535):
        code = ADD[: 4 * label] + struct.pack("<I", 1 << 16 | opcode) + ADD[4 * label :]
        with pytest.raises(ModuleBuildError, match=f"not valid: .*there is no instruction {opcode}$"):
            spirv.Spirv(code)
        assert spirv.Spirv(code, trusted=True).kernels == spirv.Spirv(ADD).kernels


def test_what_is_valid_but_not_for_kernels_is_not_supported():
    label = place_of(ADD, 248) + 2
    model = place_of(ADD, 14)
    discards = ADD[: 4 * label] + struct.pack("<I", 1 << 16 | 252) + ADD[4 * label :]
    for code, why in (
        (discards, "OpKill is for shaders"),
        (changed(ADD, (model + 1, 0), (model + 2, 1)), "with physical addresses"),
        (changed(ADD, (place_of(ADD, 15) + 1, 5)), "entry points must be kernels"),
    ):
        with pytest.raises(ModuleBuildError, match=f"the module is not supported: SPIR-V, word .*{why}"):
            spirv.Spirv(code)


def test_a_refusal_names_the_line_of_the_source():
    at = next(at for at, op in instructions(REFUSED) if op == 62)
    with pytest.raises(ModuleBuildError, match=r"no pointer to what is stored \(refused\.cl:3\)$"):
        spirv.Spirv(changed(REFUSED, (at + 2, struct.unpack_from("<I", REFUSED, 4 * at + 4)[0])))


def many_groups():
    """Each of many groups of decorations would be looked for in all of the module."""
    return struct.pack("<3I", 3 << 16 | 74, 1, 1) * 300_000


def many_members():
    """Each of many constants is the last member of a large structure."""
    last, kind, whole = 1000, 100, 102
    head = struct.pack("<4I", 4 << 16 | 21, kind, 32, 0)
    head += struct.pack(f"<{2 + last}I", 2 + last << 16 | 30, 101, *[kind] * last)
    head += struct.pack("<3I", 3 << 16 | 46, 101, whole)
    parts = (struct.pack("<6I", 6 << 16 | 52, kind, number, 81, whole, last - 1) for number in range(103, 350_000))
    return head + b"".join(parts)


@pytest.mark.parametrize("body", [many_groups, many_members])
def test_modules_that_would_take_very_long_are_not_supported(body):
    code = ADD[: 4 * place_of(ADD, 14)] + body()
    with pytest.raises(ModuleBuildError, match="not supported: .*takes too long"):
        spirv.Spirv(changed(code, (3, min(1 << 22, len(code) // 4))))


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
    with pytest.raises(ModuleBuildError, match=why) as refused:
        spirv.Spirv(changed(BASIC, (word, value)))
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


@pytest.mark.parametrize(("word", "value", "why"), ENDED)
def test_a_word_that_ends_a_driver_is_refused(word, value, why):
    with pytest.raises(ModuleBuildError, match=why):
        spirv.Spirv(changed(ADD, (word, value)))


def test_const_of_the_source_is_read_from_what_the_compiler_tells():
    kernels = spirv.Spirv(BASIC).kernels
    told = [(a.name, a.reads, a.writes) for a in kernels["vector_add"].arguments if a.kind == "pointer"]
    assert told == [("to", True, True), ("x", True, False), ("y", True, False)]
    assert [a.writes for a in kernels["store"].arguments if a.kind == "pointer"] == [True]


@pytest.mark.parametrize("whole", [BASIC, REFUSED], ids=["basic", "refused"])
def test_damage_at_random_is_refused_or_read(whole, extent):
    """Words are changed, lost and doubled, modules are cut off: the reader reads them, or says what it found."""
    rng = random.Random(7)
    refused, logs = 0, []
    count = extent(2_000, 20_000, 1_000_000)
    for _ in range(count):
        damaged = bytearray(whole[: rng.randrange(80, len(whole))] if rng.random() < 0.2 else whole)
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
        for trusted in (True, False):
            try:
                spirv.Spirv(bytes(damaged), trusted)
            except ModuleBuildError as error:
                logs.append(error.log)
                refused += not trusted
    assert all(re.match(r"SPIR-V, word \d+ \(byte \d+\): .", log) for log in logs)
    assert refused > count // 3
