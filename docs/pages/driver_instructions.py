# SPDX-License-Identifier: Apache-2.0
"""What the CPU driver's engine does with each instruction of SPIR-V and each function of OpenCL.std, read from its
source."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = "l0rt/cpu_driver"
INSTRUCTIONS = "tests/cpu_driver/instructions.txt"
DONE, SKIPPED, REFUSED = "done", "skipped", "refused"
CHECKS = ("check.c", "describe.c")  # they name instructions that have no result
HEAD = """# The CPU driver's SPIR-V, instruction by instruction

Every instruction of SPIR-V 1.6, and of its extensions those that kernels use. **Done**: it does what the specification
says, within the limits that [the CPU driver's page](cpu-driver.md) names. **Skipped**: it is checked for its form and
says nothing that a kernel's result depends on. **Refused**: a module or a kernel with it is, and the build log or the
kernel's error says at which byte. The functions of OpenCL.std are done for every type that they have; their accuracy
is that of the OpenCL C specification, 7.4.

"""


def specified(root=ROOT):
    """Return {name: number} of the specification's instructions."""
    lines = (root / INSTRUCTIONS).read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return {name: int(number) for number, name in rows}


def grammar(root=ROOT):
    """Return {name: number} of the instructions that the engine decodes, and of the functions of OpenCL.std."""
    text = (root / DRIVER / "spirv/decode/grammar.h").read_text()
    instructions, functions = text.split("#define SPIRV_OPENCL(X)")
    return (
        {name: int(number) for name, number in re.findall(r'X\((\w+), (\d+), "', instructions)},
        {name: int(number) for name, number in re.findall(r"X\((\w+), (\d+)\)", functions)},
    )


def states(root=ROOT):
    """Return name -> what becomes of an instruction."""
    files = sorted((root / DRIVER / "spirv").rglob("*.c"))
    text = "\n".join(path.read_text() for path in files if path.name not in CHECKS)
    refused = set(re.findall(r"Op(\w+) is not supported", text))
    named = set(re.findall(r"\bOp(\w+)\b", text))
    decoded, _ = grammar(root)

    def state(name):
        if name not in decoded or name in refused:
            return REFUSED
        return DONE if name in named else SKIPPED

    return {name: state(name) for name in specified(root)}


def page(root=ROOT):
    """Return the text of the page."""
    state, (_, functions) = states(root), grammar(root)
    out = []
    for kind in (DONE, SKIPPED, REFUSED):
        names = [f"`Op{name}`" for name in state if state[name] == kind]
        out += [f"## {kind.capitalize()}: {len(names)}", "", ", ".join(names), ""]
    out += [f"## Functions of OpenCL.std, done: {len(functions)}", "", ", ".join(f"`{name}`" for name in functions)]
    return HEAD + "\n".join(out) + "\n"
