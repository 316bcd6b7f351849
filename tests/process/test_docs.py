# SPDX-License-Identifier: Apache-2.0
"""The code in the docs runs, on any machine; the reference has every public name."""

import ast
import inspect
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu.gpu_trace
import pytest
from pages import c_functions, python_names
from pages.python_names import MODULES, public

from helpers import build_loops, compilers
from helpers.process import run_python
from helpers.source import ROOT

PAGES = [file for file in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if "```python\n" in file.read_text()]
PAGES = [file for file in PAGES if file.name != "torch.md"]  # which tests/partners/test_torch_device.py runs


NO_GPU = re.compile(r"<string>:\d+: UserWarning: no GPU .*: using the bundled CPU driver, .*\n(  .*\n)?")


def scripts(file):
    """Return the page's programs, at the lines where the page has them: a block with `import l0rt` begins one."""
    text, found = file.read_text(), []
    for block in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if not found or re.search(r"^import l0rt\b(?!\.)", block.group(1), re.MULTILINE):
            found.append([])
        start = text[: block.start(1)].count("\n")
        found[-1] += [""] * (start - len(found[-1])) + block.group(1).splitlines()
    return ["\n".join(lines) for lines in found]


def compile_modules(file, folder):
    """Build the page's Cython modules, whose blocks begin with their files' names."""
    for block in re.finditer(r"^```cython\n# ((\w+)\.pyx)\n(.*?)^```$", file.read_text(), re.DOTALL | re.MULTILINE):
        source = folder / block.group(1)
        source.write_text(f"# cython: language_level=3\n{block.group(3)}")
        build_loops.compile(folder, block.group(2), source)


def add_kernels(file, folder):
    """Put the module where a reader of the page has it."""
    if file.name == "kernels.md":
        shutil.copy(ROOT / "tests/kernels/add.spv", folder)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_program_runs_with_nothing_set_on_any_machine(file, tmp_path):
    """A reader without a GPU copies it and runs it: it says itself that the CPU driver will do."""
    if "l0rt.compile(" in "".join(scripts(file)) and not compilers.INSTALLED:
        pytest.skip(compilers.WITHOUT)
    compile_modules(file, tmp_path)
    add_kernels(file, tmp_path)
    for script in scripts(file):
        environment = {"L0RT_DRIVER": None, "L0RT_CPU_DEVICES": None, "PYTHONPATH": tmp_path}
        result = run_python(script, environment, tmp_path, timeout=120, fresh="os.environ" in script)
        assert result.returncode == 0, result
        assert NO_GPU.fullmatch(result.stderr) or result.stderr == "", result


PRELUDE = "#include <Python.h>\n#include <l0rt/l0rt.h>\n#include <stdint.h>\n"
C_BLOCKS = [
    (file.name, block)
    for file in sorted(ROOT.glob("docs/*.md"))
    for block in re.findall(r"^```c\n(.*?)^```$", file.read_text(), re.DOTALL | re.MULTILINE)
]


def compiled(block, folder):
    """Return the C compiler's answer to a block of a page, behind the headers that the page names."""
    source = folder / "block.c"
    source.write_text(PRELUDE + block)
    folders = [f"-I{l0rt.get_include()}", f"-I{sysconfig.get_path('include')}"]
    flags = ["-fsyntax-only", "-std=c11", "-Wall", "-Werror", "-Wno-unused"]
    return subprocess.run(["cc", *flags, *folders, source], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("block", C_BLOCKS, ids=lambda block: block[0])
def test_every_block_of_c_compiles(block, tmp_path):
    result = compiled(block[1], tmp_path)
    assert result.returncode == 0, result.stderr


def test_a_block_of_c_with_a_wrong_name_does_not_compile(tmp_path):
    assert len(C_BLOCKS) > 2
    assert "nothing_of_this_name" in compiled("int (*f)(void) = nothing_of_this_name;\n", tmp_path).stderr


def test_every_block_of_the_docs_is_of_a_language_that_a_test_reads_or_of_none():
    """A block of a new language would be read by no test."""
    languages = {
        language
        for file in (ROOT / "README.md", *ROOT.glob("docs/*.md"))
        for language in re.findall(r"^ *```(\w\S*)$", file.read_text(), re.MULTILINE)
    }
    assert languages == {"python", "cython", "c", "cpp", "sh"}


def test_the_start_page_is_among_them():
    assert {"start.md", "settings.md", "README.md"} <= {file.name for file in PAGES}


def unexplained(pages):
    """Return the public names of which no page of the site's reference has a directive."""
    shown = {path for text in pages.values() for path in re.findall(r"^\.\. \S+:: ([\w.]+)$", text, re.MULTILINE)}
    places = {"l0rt": l0rt, **{f"l0rt.{name}": getattr(l0rt, name) for name in MODULES}}
    names = {(path, name) for path, place in places.items() for name in public(place)}
    names = {f"{path}.{name}" for path, name in names if not inspect.ismodule(getattr(places[path], name))}
    return sorted({*places, *names} - shown)


def test_the_reference_explains_every_public_name():
    pages = python_names.pages()
    assert unexplained(pages) == []
    without = {**pages, "l0rt": pages["l0rt"].replace(".. autofunction:: l0rt.empty\n", "")}
    assert unexplained(without) == ["l0rt.empty"]


def test_every_module_of_the_package_is_public_or_known_to_be_none():
    """A new public module is not forgotten: it is in `l0rt.__all__`, or in this list of those that are not public."""
    private = {"_base", "buffers", "cli", "core", "cpu_driver", "graphs", "launch", "runtime", "selftest", "ze"}
    folder = Path(l0rt.__file__).parent
    modules = {path.stem.partition(".")[0] for path in folder.iterdir() if path.suffix in (".py", ".so")}
    modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
    assert modules - private - {"__init__", "__main__"} == {name for name in l0rt.__all__ if name in modules}


def uncommented(text):
    """Return the functions of a header that no comment explains."""
    return [name for _, name, comment in c_functions.functions(text) if len(comment.split()) < 4]


@pytest.mark.parametrize("header", c_functions.HEADERS)
def test_every_c_function_has_a_comment(header):
    text = c_functions.text_of(header)
    pointers, inlines = len(re.findall(r"\(\*\w+\)\(", text)), len(re.findall(r"^static inline", text, re.MULTILINE))
    found = c_functions.functions(text)
    assert len(found) == pointers + inlines
    assert len(found) > 12
    assert uncommented(text) == []


def test_a_c_function_without_a_comment_is_found():
    text = c_functions.text_of("l0rt.h")
    comment = next(
        comment for comment in re.findall(r"  /\*.*?\*/\n", text, re.DOTALL) if "Opens the driver now" in comment
    )
    assert uncommented(text.replace(comment, "")) == ["init"]


def test_cython_declares_the_functions_of_the_c_table():
    """The same names with the prefix, the same types."""
    text = (ROOT / "l0rt/capi.pxd").read_text()
    declared = re.findall(r"^cdef ([\w ]+?\*?) ?(l0rt_\w+)\(([^)]*)\)", text, re.MULTILINE)
    cython = {f"{kind} {name}({parameters})".replace("* ", " *") for kind, name, parameters in declared}
    c = set()
    for signature, name, _ in c_functions.functions(c_functions.text_of("l0rt.h")):
        if name != "l0rt_import":
            c.add(signature.replace(f"{name}(", f"l0rt_{name}(").replace("(void)", "()"))
    assert set(map(plain_signature, cython)) == set(map(plain_signature, c))


def plain_signature(text):
    """Return a signature as C and Cython both write it: an array that is passed is a pointer."""
    text = re.sub(r"(\w+)\[\d+\]", r"*\1", " ".join(text.split())).replace("unsigned flags", "unsigned int flags")
    return re.sub(r"\s*\*\s*", "* ", text).replace("( ", "(")


CELL = re.compile(r"(?<!\\)\|")
COMING = ROOT / "docs/coming-from.md"


def spans(text):
    """Return the code in a text that names something of l0rt."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [span for span in re.findall(r"`([^`]+)`", text) if re.match(r"(l0rt|acc)\.", span)]


def resolved(node):
    """Return what a chain of names below `l0rt` or `acc` means; AttributeError if there is none."""
    if isinstance(node, ast.Name):
        return {"l0rt": l0rt, "acc": acc}[node.id]
    return getattr(resolved(node.value), node.attr)


def complaints(span):
    """Return what is wrong with a piece of code: names that are not there, keywords that are not taken."""
    found = []
    for node in ast.walk(ast.parse(span, mode="eval")):
        called = node.func if isinstance(node, ast.Call) else node
        root = called
        while isinstance(root, (ast.Attribute, ast.Call)):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        if not isinstance(called, ast.Attribute) or not isinstance(root, ast.Name) or root.id not in ("l0rt", "acc"):
            continue
        if any(isinstance(inner, ast.Call) for inner in ast.walk(called)):
            continue  # a method of what a call returns
        try:
            value = resolved(called)
        except AttributeError as e:
            found.append(f"{span}: {e}")
            continue
        if isinstance(node, ast.Call):
            if inspect.isclass(value) and value.__init__ is object.__init__ and not value.__text_signature__:
                continue  # a compiled class whose parameters nothing tells
            taken = inspect.signature(value).parameters
            wrong = [keyword.arg for keyword in node.keywords if keyword.arg not in taken]
            most = sum(parameter.kind is not parameter.KEYWORD_ONLY for parameter in taken.values()) - ("self" in taken)
            several = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in taken.values())
            if wrong or (len(node.args) > most and not several):
                found.append(f"{span}: takes {list(taken)}")
    return sorted(set(found))


def test_every_name_for_newcomers_is_there_and_takes_what_is_shown():
    shown = [span for span in spans(COMING.read_text()) if not span.endswith("NAME")]
    assert len(shown) > 100
    assert [complaint for span in shown for complaint in complaints(span)] == []


@pytest.mark.parametrize(
    "span", ["l0rt.nothing", "l0rt.Stream.nothing()", "l0rt.empty(1, size=3)", "acc.synchronize(1, 2)"]
)
def test_it_bites(span):
    assert len(complaints(span)) == 1


def test_every_row_for_newcomers_names_something_of_ours():
    rows = [CELL.split(line)[1:-1] for line in COMING.read_text().splitlines() if line.startswith("| ")]
    rows = [row for row in rows if row[1].strip() != "l0rt"]
    assert len(rows) > 60
    assert [row for row in rows if len(row) != 2 or not (spans(row[1]) or "l0rt doctor" in row[1])] == []
