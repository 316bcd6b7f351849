"""A module imports strictly lower ranks only, at module level; the ranks are docs/house.md's."""

import re

import pytest

from helpers.source import PYTHON, ROOT, files, imports, lines, module_of, none_of, not_yet, plant

FREE = ("l0rt.cpu_driver",)  # next door: no module of the package
LAZY = ("l0rt", "l0rt.interop")  # may resolve their submodules by name


def ranks(root):
    """Return the rank table of docs/house.md: module -> rank."""
    table = {}
    for row in re.finditer(r"^\|\s*(\d+)\s*\|(.*)\|$", (root / "docs/house.md").read_text(), re.MULTILINE):
        for module in re.findall(r"`([\w.]+)`", row.group(2)):
            assert module not in table, f"{module} has two ranks in docs/house.md"
            table[module] = int(row.group(1))
    return table


def rooms(root):
    """Return module -> files. A package's empty __init__ needs no rank."""
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
    table, complaints = ranks(root), []
    houses_modules = rooms(root)
    known = set(table) | set(houses_modules)
    for module, paths in houses_modules.items():
        if module not in table:
            complaints.append(f"{module} has no rank in docs/house.md")
            continue
        for path in paths:
            where = path.relative_to(root)
            for found in imports(path, root):
                aims = targets(found, known) - {module}
                if aims and found.line.function():
                    complaints.append(f"{where}:{found.line.number}: import inside a function")
                complaints += [
                    f"{where}:{found.line.number}: {module} ({table[module]}) imports {aim} ({table.get(aim, '?')})"
                    for aim in sorted(aims)
                    if table.get(aim, 1000) >= table[module]
                ]
            if module not in LAZY:
                complaints += [
                    f"{where}:{line.number}: imports by name"
                    for line in lines(path.read_text())
                    if re.search(r"\b(import_module|__import__)\s*\(", line.text)
                ]
    return complaints


def test_every_import_goes_down():
    none_of(violations(ROOT))


def test_every_rank_has_its_module():
    not_yet("ranks without a file", set(ranks(ROOT)) - set(rooms(ROOT)))


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("l0rt/stray.py", "x = 1\n", "l0rt.stray has no rank"),
        ("l0rt/xpu/extra.py", "x = 1\n", "l0rt.xpu.extra has no rank"),
        ("l0rt/core/__init__.py", "x = 1\n", "l0rt.core has no rank"),
        ("l0rt/ze/status.pyx", "from l0rt.core.driver cimport Driver\n", "status (2) imports l0rt.core.driver"),
        ("l0rt/ze/status.pyx", "from l0rt.core cimport driver\n", "status (2) imports l0rt.core.driver"),
        ("l0rt/ze/status.pxd", "cimport l0rt.core.driver\n", "status (2) imports l0rt.core.driver"),
        ("l0rt/core/memory.pyx", "from .event cimport Event\n", "memory (7) imports l0rt.core.event (7)"),
        ("l0rt/core/memory.pyx", "from ..runtime import lazy\n", "memory (7) imports l0rt.runtime.lazy (8)"),
        (
            "l0rt/core/memory.pyx",
            "from l0rt.core cimport (\n    driver,\n    event,  # a\n)\n",
            "imports l0rt.core.event",
        ),
        ("l0rt/core/memory.pyx", "import os, l0rt.runtime.lazy as lazy\n", "imports l0rt.runtime.lazy"),
        ("l0rt/core/memory.pyx", "try:\n    from l0rt import xpu\nexcept ImportError: pass\n", "imports l0rt.xpu"),
        ("l0rt/core/memory.pyx", "try: import l0rt.xpu\nfinally: pass\n", "imports l0rt.xpu"),
        ("l0rt/core/memory.pyx", "from l0rt import device\n", "imports l0rt ("),
        ("l0rt/core/memory.pyx", "from l0rt.core.stray cimport x\n", "imports l0rt.core.stray (?)"),
        ("l0rt/core/memory.pyx", "def f():\n    from l0rt import errors\n", "memory.pyx:2: import inside a function"),
        ("l0rt/core/memory.pyx", "cdef int f(\n    int a,\n):\n    if a:\n        import l0rt.errors\n", "inside"),
        ("l0rt/core/memory.pyx", "m = importlib.import_module('l0rt.xpu')\n", "imports by name"),
    ],
)
def test_it_bites(house, path, text, complaint):
    plant(house, path, text)
    assert any(complaint in found for found in violations(house)), violations(house)


def test_what_goes_down_may_stay(house):
    plant(
        house,
        "l0rt/core/memory.pyx",
        '"""from l0rt import xpu: only a docstring"""\nfrom l0rt.core.context cimport Context\n'
        "from l0rt import errors\n# import l0rt.xpu\ndef f():\n    import sys\n",
    )
    plant(house, "l0rt/core/memory.pxd", "from l0rt.core.memory cimport x\n")
    assert not [found for found in violations(house) if found.startswith("l0rt/core/memory")]


def test_a_module_has_one_rank(house):
    with (house / "docs/house.md").open("a") as file:
        file.write("| 99 | `l0rt.errors` |\n")
    with pytest.raises(AssertionError, match="two ranks"):
        ranks(house)
