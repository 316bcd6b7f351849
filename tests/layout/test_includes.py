# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's files include without a circle; a .c and the .h of its name are one. What knows SPIR-V is read,
turned into the intermediate form and run, in this order, and knows nothing of the driver."""

import re
from graphlib import CycleError, TopologicalSorter

import pytest

from helpers.source import ROOT, files, none_of, plant

DRIVER = "l0rt/cpu_driver"
ENGINE = ("spirv", "spirv/decode", "spirv/ir", "spirv/run")  # a folder includes from itself and from those before it
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)


def graph(root):
    """Return each file of the driver, without its suffix -> what it includes of the driver, and what is not there."""
    driver, unknown, found = root / DRIVER, [], {}
    for path in files(root, ".c", ".h", under=(DRIVER,)):
        name = path.relative_to(driver)
        inner = found.setdefault(str(name.with_suffix("")), set())
        for target in INCLUDE.findall(path.read_text()):
            if (driver / target).is_file():
                inner.add(target.rpartition(".")[0])
            elif not (root / "include" / target).is_file():
                unknown.append(f"{name} includes {target}: write its path from {DRIVER} or include/")
        inner.discard(str(name.with_suffix("")))
    return found, unknown


def violations(root):
    found, complaints = graph(root)
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        complaints.append(f"a circle of includes: {' <- '.join(error.args[1])}")
    for name, targets in found.items():
        folder = name.rpartition("/")[0]
        if folder in ENGINE:
            allowed = ENGINE[: ENGINE.index(folder) + 1]
            wrong = sorted(target for target in targets if target.rpartition("/")[0] not in allowed)
            complaints += [f"{name} includes {target}, which comes after it" for target in wrong]
    return complaints


def test_no_file_of_the_driver_includes_in_a_circle():
    assert len(graph(ROOT)[0]) > 100
    none_of(violations(ROOT))


@pytest.mark.parametrize(
    ("path", "line", "complaint"),
    [
        ("base/context.c", '#include "start.h"', "context.c includes start.h: write its path"),
        ("base/object.h", '#include "base/gate.h"', "a circle of includes: "),
        ("memory/reservation.c", '#include "lists/engine.h"', "a circle of includes: "),
        ("spirv/decode/type.c", '#include "spirv/ir/ir.h"', "spirv/decode/type includes spirv/ir/ir, which comes"),
        ("spirv/ir/flow.c", '#include "base/knobs.h"', "spirv/ir/flow includes base/knobs, which comes after it"),
    ],
)
def test_it_bites(tree, path, line, complaint):
    plant(tree, f"{DRIVER}/{path}", f"{line}\n{(tree / DRIVER / path).read_text()}")
    assert any(complaint in found for found in violations(tree))
