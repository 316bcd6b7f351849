# SPDX-License-Identifier: Apache-2.0
"""Every public name has a docstring in NumPy's sections that names what it takes and what it returns."""

import ast
import inspect
import re
from pathlib import Path

import l0rt
import pytest
from pages.python_names import MODULES, members, public

CLASSES = ("Stream", "Event", "Buffer", "Module", "Image", "Sampler", "LocalMemory", "Pointer", "Generator", "device")
PACKAGE = Path(l0rt.__file__).parent
# What a subclass fills in, and classes whose methods are documented by the names that they have in l0rt.accelerator.
UNCHECKED = {"interface.DeviceInterface", "interface.XpuInterface", "interface.CpuInterface"}


def surface():
    """Yield (name, value) of every public function, class and method."""
    for name in l0rt.__all__:
        if inspect.isroutine(getattr(l0rt, name)):
            yield name, getattr(l0rt, name)
    for name in CLASSES:
        owner = getattr(l0rt, name)
        yield name, owner
        for member in members(owner):
            value = inspect.getattr_static(owner, member)
            yield f"{name}.{member}", getattr(value, "__func__", value)
    for place in MODULES:
        for name in public(getattr(l0rt, place)):
            value = getattr(getattr(l0rt, place), name)
            if callable(value) and f"{place}.{name}" not in UNCHECKED:
                yield f"{place}.{name}", value


SURFACE = {name: value for name, value in surface() if callable(value)}


def sections(text):
    """Return section -> the names that its entries begin with."""
    found = {}
    for name, body in re.findall(r"^(\w+)\n-+\n((?:.*\n)*?)(?=\n\w+\n-+\n|\Z)", text + "\n", re.MULTILINE):
        heads = [line.partition(" : ")[0] for line in body.splitlines() if line and not line[0].isspace()]
        found[name] = [part for head in heads for part in head.split(", ")] if name == "Parameters" else heads
    return found


def parameters(value):
    """Return the names that a call gives, as a docstring writes them; none for a class that tells no signature."""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        taken = inspect.signature(value).parameters.values()
    except ValueError:
        return []
    names = [marks.get(p.kind, "") + p.name for p in taken if p.name not in ("self", "cls")]
    return [] if names == ["*args", "**kwargs"] else names


def returning():
    """Return the annotated functions and methods that return something, by name; and those that do not."""
    found = {True: set(), False: set()}
    for path in (path for kind in ("*.pyi", "*.py") for path in PACKAGE.rglob(kind)):
        for node in ast.walk(ast.parse(path.read_text())):
            for inner in node.body if isinstance(node, (ast.Module, ast.ClassDef)) else ():
                if isinstance(inner, ast.FunctionDef) and inner.returns is not None:
                    name = f"{node.name}.{inner.name}" if isinstance(node, ast.ClassDef) else inner.name
                    found[ast.unparse(inner.returns) not in ("None", "Literal[False]")].add((path.stem, name))
    return found


def complaints(name, value, returns=False):
    """Return what the docstring of a public name leaves out."""
    text = inspect.getdoc(value) or ""
    text = re.sub(r"^[\w.]+\(.*\)\n+", "", text)  # Cython writes the signature first
    first = text.partition("\n\n")[0]
    is_sentence = re.match(r"[A-Z`0-9]", first) and first.rstrip().endswith((".", ":"))
    found = [] if is_sentence else [f"{name}: {first!r} is no sentence"]
    have = sections(text)
    wanted, named = parameters(value), have.get("Parameters", [])
    if sorted(wanted) != sorted(named):
        found.append(f"{name}: takes {wanted}, explains {named}")
    if returns and not have.get("Returns"):
        found.append(f"{name}: does not say what it returns")
    return found


RETURNING = returning()


def returns_something(name):
    """Does the stub of that name say so? Names of one meaning share a stub; where stubs differ, the doc may."""
    last = name.partition(".")[2] if name.partition(".")[0] in MODULES else name
    yes = {stub for stub, function in RETURNING[True] if function == last}
    no = {stub for stub, function in RETURNING[False] if function == last}
    return bool(yes) and not no


@pytest.mark.parametrize("name", SURFACE)
def test_the_docstring_says_what_is_taken_and_returned(name):
    assert complaints(name, SURFACE[name], returns_something(name) and not inspect.isclass(SURFACE[name])) == []


def test_many_names_are_walked_and_many_return_something():
    assert len(SURFACE) > 180
    assert sum(map(returns_something, SURFACE)) > 80


# Names whose formula, constant or contract comes from elsewhere: their Notes name the source.
SOURCED = """
empty Stream Stream.synchronize Stream.wait_event
Event.record Event.wait Event.query Event.elapsed_time Event.host_time Event.ipc_handle
Buffer.fill Buffer.record_stream
Generator Generator.manual_seed Generator.philox_engine_inputs Generator.graphsafe_get_state Generator.set_state
accelerator.DeviceGuard accelerator.StreamGuard accelerator.MultiStreamGuard accelerator.OptionalDeviceGuard
accelerator.OptionalStreamGuard accelerator.wait_all accelerator.set_sync_debug_mode
memory.MemPool memory.PluggableAllocator memory.attach_oom_observer memory.caching_allocator_alloc
memory.change_current_allocator memory.host_memory_stats memory.memory_info memory.memory_snapshot memory.memory_stats
memory.memory_summary memory.recommended_max_memory memory.register memory.set_alloc_conf
memory.set_per_process_memory_fraction memory.use_mem_pool
xpu.affinity_mask xpu.can_device_access_peer xpu.find_device xpu.get_device_properties xpu.is_bf16_supported
interface.register_interface_for_device sanitizer.host_access
philox.philox4x32 philox.words philox.words_needed philox.uniform philox.normal philox.randint
philox.exponential philox.bernoulli
""".split()
SOURCE = re.compile(
    r"torch|CUDA|c10::|``cuda[A-Z]|``zes?[A-Z]\w+``|``ze_\w+_t``|``ZE_\w+``|Level Zero"
    r"|SC11|\(19\d\d\)|20\d\d,|a rule of l0rt"
)


def notes(text):
    """Return the Notes section of a docstring; an empty text if it has none."""
    found = re.search(r"^Notes\n-----\n(.*)", inspect.cleandoc(text), re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def unsourced(text):
    """Has the docstring no Notes, Notes without a source, or Notes before another section?"""
    body = notes(text)
    return not SOURCE.search(body) or bool(re.search(r"^\w+\n-{3,}$", body, re.MULTILINE))


@pytest.mark.parametrize("name", SOURCED)
def test_the_notes_name_the_source_of_a_formula_a_constant_or_a_contract(name):
    assert not unsourced(inspect.getdoc(SURFACE[name])), f"{name}: Notes with the source are missing"


def test_all_of_philox_has_its_source():
    assert {name for name in SURFACE if name.startswith("philox.")} == {n for n in SOURCED if n.startswith("philox.")}


@pytest.mark.parametrize(
    "text",
    [
        "Return it.",
        "Return it.\n\nNotes\n-----\nIt is so.",
        "Return it.\n\nNotes\n-----\nAs in torch.\n\nReturns\n-------\nint",
    ],
)
def test_a_docstring_without_its_source_is_found(text):
    assert unsourced(text)


def whole(a, *rest, b=1):
    """Return a number.

    Parameters
    ----------
    a, b : int
        The numbers.
    *rest : object
        More.

    Returns
    -------
    int
    """


def missing(a):
    """Return a number."""


def extra(a):
    """Do it.

    Parameters
    ----------
    a : int
        A number.
    c : int
        Another.
    """


def wordless(a): ...


@pytest.mark.parametrize(("function", "count"), [(whole, 0), (missing, 2), (extra, 2), (wordless, 3)])
def test_it_bites(function, count):
    assert len(complaints("planted", function, returns=True)) == count
