# SPDX-License-Identifier: Apache-2.0
"""Reading the source tree as text: files, logical lines with the blocks around them, imports, module names."""

import os
import re
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from helpers.ci import skip_unless_ci

ROOT = Path(__file__).resolve().parents[2]
PYTHON = (".py", ".pyx", ".pxd")
DRIVER_CALL = r"ze[lstx]?[A-Z]\w*"
FUNCTION = re.compile(r"(async\s+)?(def|cpdef|cdef)\b(?!\s+(extern|class|struct|enum|union|packed)\b)[^=]*\(")

_TOKEN = re.compile(
    r"""(?P<long>\"\"\"|''')(?:\\.|(?!(?P=long)).)*(?P=long)"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\#[^\n]*""",
    re.DOTALL,
)
_C_TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """A logical line: brackets and backslashes joined, strings and comments blank."""

    number: int
    indent: int
    text: str
    parents: tuple  # the lines that open the blocks around it, outermost first

    def function(self):
        """Return the line that opens the innermost function around this one, None at module level."""
        return next((p for p in reversed(self.parents) if FUNCTION.match(p.text)), None)


@dataclass(frozen=True)
class Import:
    line: Line
    module: str
    names: tuple  # of `from module import names`; empty for `import module`


def files(root, *suffixes, under=("l0rt",)):
    """Return the files below ``root`` with one of these suffixes, sorted."""
    found = (p for folder in under for p in (Path(root) / folder).rglob("*") if p.suffix in suffixes)
    return sorted(p for p in found if "__pycache__" not in p.parts and p.is_file())


def blank(text, c=False):
    """Return ``text`` with strings and comments replaced by spaces, line for line."""
    return (_C_TOKEN if c else _TOKEN).sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def strings_and_comments(text, c=False):
    """Return what `blank` takes away."""
    return "\n".join(m.group() for m in (_C_TOKEN if c else _TOKEN).finditer(text))


@cache
def lines(text):
    """Return the logical lines of Python or Cython source."""
    found, parents = [], []
    for number, joined in _joined(blank(text)):
        indent = len(joined) - len(joined.lstrip())
        while parents and parents[-1].indent >= indent:
            parents.pop()
        line = Line(number, indent, " ".join(joined.split()), tuple(parents))
        found.append(line)
        parents.append(line)
    return tuple(found)


def _joined(text):
    start, parts, depth = 0, [], 0
    for number, raw in enumerate(text.split("\n"), 1):
        if not parts:
            start = number
        parts.append(raw.rstrip().removesuffix("\\"))
        depth += sum(map(raw.count, "([{")) - sum(map(raw.count, ")]}"))
        if depth > 0 or raw.rstrip().endswith("\\"):
            continue
        joined, parts, depth = " ".join([parts[0], *map(str.strip, parts[1:])]), [], 0
        if joined.strip():
            yield start, joined


@cache
def calls(text, name):
    """Return (what stands before, the function's name, what stands after) for each call of a function ``name``."""
    return tuple(
        (text[: match.start()].rstrip(), match.group(1), text[closing(text, match.end() - 1) + 1 :].lstrip())
        for match in re.finditer(rf"(?:[\w.\[\]]*\.)?\b({name})\s*\(", text)
    )


def closing(text, opening):
    """Return where the round bracket that opens at ``opening`` closes."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    return len(text)


def module_of(path, root):
    """Return the dotted name of a source file; a .pyx and its .pxd are one module."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path, root):
    """Return the imports and cimports of a file, relative ones resolved; not those that only type checkers execute."""
    module = module_of(path, root)
    package = module if path.stem == "__init__" else module.rpartition(".")[0]
    found = []
    for line in lines(path.read_text()):
        if any(parent.text == "if TYPE_CHECKING:" for parent in line.parents):
            continue
        text = re.sub(r"^.*?:\s*(?=(from|import|cimport)\b)", "", line.text)  # `try: import x` on one line
        if match := re.match(r"from\s+(\.*)\s*([\w.]*)\s+c?import\s+\(?(.*?)[,\s]*\)?$", text):
            dots, base, names = match.groups()
            if dots:
                above = package.split(".")[: len(package.split(".")) - len(dots) + 1]
                base = ".".join([*above, base] if base else above)
            found.append(Import(line, base, tuple(name.split()[0] for name in names.split(","))))
        elif match := re.match(r"c?import\s+(.*)$", text):
            found += [Import(line, name.split()[0], ()) for name in match.group(1).split(",")]
    return found


def copy_of_tree(target):
    """Copy the source text that the rules are about to ``target``, to plant violations in."""
    ignore = shutil.ignore_patterns("__pycache__", "*.so", "*.npz", "build")
    for name in ("l0rt", "include", "docs"):
        shutil.copytree(ROOT / name, target / name, ignore=ignore)
    shutil.copytree(ROOT / "tests/cpu_driver", target / "tests/cpu_driver", ignore=ignore)
    shutil.copy(ROOT / "setup.py", target)
    return target


def stamps(tree):
    """Return what tells whether a file in a copy of the tree has been changed, and None for each folder."""
    found = {}
    for folder, folders, files in os.walk(tree):
        found.update((os.path.join(folder, name), None) for name in folders)
        for path in (os.path.join(folder, name) for name in files):
            status = os.stat(path)
            found[path] = status.st_ino, status.st_size, status.st_mtime_ns
    return found


def restore(tree, before):
    """Make a copy of the tree what it was when it had these stamps."""
    after = stamps(tree)
    for path in sorted(after.keys() - before.keys(), reverse=True):  # a folder comes before what is in it
        if after[path] is None:
            os.rmdir(path)
        else:
            os.unlink(path)
    for path, stamp in before.items():
        if stamp is None:
            os.makedirs(path, exist_ok=True)
        elif after.get(path) != stamp:
            shutil.copy2(ROOT / os.path.relpath(path, tree), path)


def plant(tree, path, text):
    """Write a file into a copy of the tree."""
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def none_of(complaints):
    """Fail with every complaint on a line of its own, if there is one."""
    if complaints:
        pytest.fail("\n".join(complaints), pytrace=False)


def not_yet(what, names):
    """Names that are promised and not there: a failure in CI, and said aloud elsewhere."""
    if names:
        skip_unless_ci(f"{what}: {', '.join(sorted(names))}")


CLASS = re.compile(r"cdef\s+class\s+(\w+)")


def classes(path):
    """Return class name -> (its header line, its decorators, its body) for the cdef classes of a file."""
    found, decorators = {}, []
    source = lines(path.read_text())
    for line in source:
        if header := CLASS.match(line.text):
            body = [inner for inner in source if line in inner.parents]
            found[header.group(1)] = (line, decorators, body)
        decorators = [*decorators, line.text] if line.text.startswith("@") else []
    return found
