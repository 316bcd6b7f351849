# SPDX-License-Identifier: Apache-2.0
"""A method of a compiled class checks ``self``: with Cython's binding, which is on for functions, it would not."""

from helpers.source import ROOT, classes, files, none_of, plant


def violations(root):
    return [
        f"{path.relative_to(root)}:{header.number}: {name} lacks @cython.binding(False): its methods take any self"
        for path in files(root, ".pyx", under=("l0rt",))
        for name, (header, decorators, _) in classes(path).items()
        if "@cython.binding(False)" not in decorators
    ]


def test_methods_of_compiled_classes_check_self():
    none_of(violations(ROOT))


def test_it_bites(tree):
    plant(tree, "l0rt/core/planted.pyx", "@cython.binding(False)\ncdef class Held:\n    pass\n")
    assert not violations(tree)
    plant(tree, "l0rt/core/planted.pyx", "@cython.final\ncdef class Loose:\n    pass\n")
    assert [found for found in violations(tree) if "Loose lacks" in found]
