# SPDX-License-Identifier: Apache-2.0
"""A module imports from its own package or from packages before it; the order is docs/architecture.md's."""

import re
from graphlib import CycleError, TopologicalSorter

import pytest

from helpers.source import PYTHON, ROOT, files, imports, lines, module_of, none_of, not_yet, plant

FREE = ("l0rt.cpu_driver",)  # beside the package: not a module of it
LAZY = ("l0rt", "l0rt.interop", "l0rt.interop.torch_device", "l0rt.kernels")  # may resolve their submodules by name


def order(root):
    """Return the list of docs/architecture.md: package or module -> its place."""
    text = (root / "docs/architecture.md").read_text().partition("## Order of imports")[2].partition("\n## ")[0]
    table = {}
    for row in re.finditer(r"^(\d+)\. ((?:.|\n )*)$", text, re.MULTILINE):
        for name in re.findall(r"`([\w.]+)`", row.group(2)):
            assert name not in table, f"{name} is listed twice in docs/architecture.md"
            table[name] = int(row.group(1))
    return table


def listed(module, table):
    """Return what the list has for a module: itself or the package that it is in. None: nothing."""
    name = module
    while name and name not in table:
        name = name.rpartition(".")[0]
    return name if name == module or name != "l0rt" else None


def modules(root):
    """Return module -> its files. A package's empty __init__ is none."""
    found = {}
    for path in files(root, *PYTHON):
        module = module_of(path, root)
        if not module.startswith(FREE) and (path.stem != "__init__" or lines(path.read_text())):
            found.setdefault(module, []).append(path)
    return found


def targets(found, known):
    """Return the modules of l0rt that an import loads."""
    if found.module.partition(".")[0] != "l0rt":
        return set()
    if not found.names:
        return {found.module}
    inner = {f"{found.module}.{name}" for name in found.names}
    return {name for name in inner if name in known} | ({found.module} if inner - known else set())


def violations(root):
    table, complaints, graph = order(root), [], {}
    known = modules(root)
    for module, paths in known.items():
        here = table.get(listed(module, table))
        if here is None:
            complaints.append(f"{module} is in no package of docs/architecture.md")
            continue
        for path in paths:
            where = path.relative_to(root)
            for found in imports(path, root):
                for aim in sorted(targets(found, set(known)) - {module}):
                    there = table.get(listed(aim, table)) if aim in known else None
                    if found.line.function():
                        complaints.append(f"{where}:{found.line.number}: import inside a function")
                    if there is None:
                        complaints.append(f"{where}:{found.line.number}: {module} imports {aim}, which is not there")
                    elif there > here:
                        complaints.append(f"{where}:{found.line.number}: {module} ({here}) imports {aim} ({there})")
                    elif there == here:
                        graph.setdefault(module, set()).add(aim)
            if module not in LAZY:
                complaints += [
                    f"{where}:{line.number}: imports by name"
                    for line in lines(path.read_text())
                    if re.search(r"\b(import_module|__import__)\s*\(", line.text)
                ]
    return complaints + cycle(graph)


def cycle(graph):
    """Return a complaint about a cycle of imports inside a package, if there is one."""
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return [f"a cycle of imports: {' -> '.join(reversed(error.args[1]))}"]
    return []


def test_every_import_goes_to_its_own_package_or_before():
    none_of(violations(ROOT))


def test_every_package_has_a_module():
    table = order(ROOT)
    not_yet("packages without a file", set(table) - {listed(module, table) for module in modules(ROOT)})


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("l0rt/stray.py", "x = 1\n", "l0rt.stray is in no package"),
        ("l0rt/runtime/stray.py", "x = 1\n", "l0rt.runtime.stray is in no package"),
        ("l0rt/ze/status.pyx", "from l0rt.core.driver cimport Driver\n", "status (3) imports l0rt.core.driver (4)"),
        ("l0rt/ze/status.pyx", "from l0rt.core cimport driver\n", "status (3) imports l0rt.core.driver"),
        ("l0rt/ze/status.pxd", "cimport l0rt.core.driver\n", "status (3) imports l0rt.core.driver"),
        ("l0rt/core/memory.pyx", "from ..runtime import lazy\n", "memory (4) imports l0rt.runtime.lazy (5)"),
        ("l0rt/ze/status.pyx", "from l0rt.core cimport (\n    driver,\n    event,  # a\n)\n", "l0rt.core.event"),
        ("l0rt/core/memory.pyx", "import os, l0rt.runtime.lazy as lazy\n", "imports l0rt.runtime.lazy"),
        ("l0rt/core/memory.pyx", "try:\n    from l0rt import xpu\nexcept ImportError: pass\n", "imports l0rt.xpu"),
        ("l0rt/core/memory.pyx", "try: import l0rt.xpu\nfinally: pass\n", "imports l0rt.xpu"),
        ("l0rt/core/memory.pyx", "from l0rt import device\n", "imports l0rt ("),
        ("l0rt/core/memory.pyx", "from l0rt.core.stray cimport x\n", "l0rt.core.stray, which is not there"),
        ("l0rt/core/memory.pyx", "def f():\n    from l0rt import errors\n", "memory.pyx:2: import inside a function"),
        ("l0rt/core/memory.pyx", "cdef int f(\n    int a,\n):\n    if a:\n        import l0rt.errors\n", "inside"),
        ("l0rt/core/memory.pyx", "m = importlib.import_module('l0rt.xpu')\n", "imports by name"),
        ("l0rt/core/driver.pyx", "from l0rt.core.device cimport Device\n", "a cycle of imports: l0rt.core."),
    ],
)
def test_it_bites(tree, path, text, complaint):
    plant(tree, path, text)
    assert any(complaint in found for found in violations(tree)), violations(tree)


def test_what_comes_before_may_be_imported(tree):
    plant(
        tree,
        "l0rt/core/memory.pyx",
        '"""from l0rt import xpu: only a docstring"""\nfrom l0rt.core.driver cimport Context\n'
        "from l0rt import errors\n# import l0rt.xpu\ndef f():\n    import sys\n"
        "if TYPE_CHECKING:\n    from l0rt import xpu\n",
    )
    plant(tree, "l0rt/core/memory.pxd", "from l0rt.core.memory cimport x\n")
    assert violations(tree) == violations(ROOT) == []


def test_a_package_is_listed_once(tree):
    text = (tree / "docs/architecture.md").read_text().replace("25. `l0rt.__main__`", "25. `l0rt.__main__` `l0rt.ze`")
    (tree / "docs/architecture.md").write_text(text)
    with pytest.raises(AssertionError, match="listed twice"):
        order(tree)
