"""An extension module is listed once, in setup.py, and has its .pyx."""

import ast

from helpers.source import ROOT, files, module_of, none_of, not_yet, plant


def listed(root):
    """Return what setup.py's MODULES names, without running it."""
    for node in ast.parse((root / "setup.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "MODULES":
            return [f"l0rt.{name}" for name in node.value.func.value.value.split()]
    raise AssertionError("setup.py has no MODULES")


def written(root):
    return {module_of(path, root) for path in files(root, ".pyx")}


def violations(root):
    names = listed(root)
    twice = {name for name in names if names.count(name) > 1}
    return [f"{name} is listed twice" for name in sorted(twice)] + [
        f"{name} is not listed in setup.py" for name in sorted(written(root) - set(names))
    ]


def test_every_extension_module_is_listed_once():
    none_of(violations(ROOT))


def test_every_listed_module_is_written():
    not_yet("listed in setup.py, without a .pyx", set(listed(ROOT)) - written(ROOT))


def test_it_bites(house):
    plant(house, "l0rt/core/planted.pyx", "")
    setup = (house / "setup.py").read_text()
    plant(house, "setup.py", setup.replace("ze.table ", "ze.table ze.table ", 1))
    assert {"l0rt.core.planted is not listed in setup.py", "l0rt.ze.table is listed twice"} <= set(violations(house))
    assert "l0rt.core.planted" in written(house) - set(listed(house))
