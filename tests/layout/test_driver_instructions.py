# SPDX-License-Identifier: Apache-2.0
"""The engine's source numbers SPIR-V's instructions as the specification does, and the page has each."""

import re

from pages.driver_instructions import DONE, DRIVER, REFUSED, SKIPPED, grammar, page, specified, states

from helpers.source import ROOT, plant


def test_the_page_has_every_instruction():
    shown = re.findall(r"`Op(\w+)`", page())
    assert sorted(shown) == sorted(specified())


def test_what_is_decoded_is_numbered_as_the_specification_does():
    decoded, functions = grammar()
    numbers = specified()
    assert decoded == {name: numbers.get(name) for name in decoded}
    assert len(numbers) == len(set(numbers.values()))
    assert len(functions) == 162, "OpenCL.std has as many"


def test_each_function_of_opencl_is_computed_by_a_test():
    folder = ROOT / "tests/cpu_driver"
    tables = "".join((folder / f"test_spirv_{name}.c").read_text() for name in ("accuracy", "integers"))
    sources = "".join(path.read_text() for path in (folder / "kernels").glob("*.cl"))
    _, functions = grammar()
    # In OpenCL C some have another name, or none that ends like theirs.
    plain = {
        name: name.removeprefix("s_").removeprefix("u_").removesuffix("_common").removesuffix("_r")
        for name in functions
    }
    spelled = {"fmax_common": "max", "fmin_common": "min", "vloadn": "vload3", "vstoren": "vstore3"}
    spelled |= {"vload_halfn": "vload_half2", "vstore_halfn": "vstore_half2", "vstore_halfn_r": "vstore_half4_rtz"}
    spelled |= {
        "vloada_halfn": "vloada_half4",
        "vstorea_halfn": "vstorea_half4",
        "vstorea_halfn_r": "vstorea_half2_rtp",
    }
    called = {
        name for name in functions if f"X({name}," in tables or f"CL_{name}," in tables or f"CL_{name})" in tables
    }
    called |= {name for name in functions if f"{spelled.get(name, plain[name])}(" in sources}
    assert sorted(set(functions) - called) == []


def test_it_bites(tree):
    before = states(tree)
    header = (tree / DRIVER / "spirv/decode/grammar.h").read_text()
    plant(tree, f"{DRIVER}/spirv/decode/grammar.h", header.replace('X(FMod, 141, "TRii")', 'X(Kill, 252, "")'))
    plant(tree, f"{DRIVER}/spirv/run/planted.c", 'case OpKill: break; "OpFAdd is not supported";\n')
    after = states(tree)
    assert (before["FMod"], after["FMod"]) == (DONE, REFUSED)
    assert (before["Kill"], after["Kill"]) == (REFUSED, DONE)
    assert (before["FAdd"], after["FAdd"]) == (DONE, REFUSED)
    assert before["Source"] == SKIPPED
    assert page(tree) != page()
