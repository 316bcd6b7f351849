# SPDX-License-Identifier: Apache-2.0
"""What the CPU driver has of each function of the specification, read from its source."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DRIVER = "l0rt/cpu_driver"
FUNCTIONS = "tests/cpu_driver/functions.txt"
DONE, UNSUPPORTED, ABSENT = "done", "answered as unsupported", "absent"
HEAD = """# The CPU driver, function by function

Every `ze*` and `zes*` function of specification 1.17, by table. **Done**: it does what the specification says.
**Answered as unsupported**: it is there and returns `ERROR_UNSUPPORTED_FEATURE`. **Absent**: it is not exported, and
the loader says the same for it. A number is the minor version that has the function first, where that is not 1.0.

"""


def specified(root=ROOT):
    """Return [(table, since, name)] of the specification."""
    lines = (root / FUNCTIONS).read_text().splitlines()
    rows = [line.split() for line in lines if not line.startswith("#")]
    return [(table, int(since), name) for table, since, name in rows]


def in_tables(root=ROOT):
    """Return the same of the tables that the driver fills."""
    text = (root / DRIVER / "base/functions.h").read_text().replace("\\\n", " ")
    macros = re.findall(r"#define CPU_(zes?Get\w+)\(X\) (.*)", text)
    listed = set(re.findall(r"T\((\w+)\)", text))
    entries = [(table, re.findall(r"X\((\d+), (\w+)\)", body)) for table, body in macros if table in listed]
    return [(table, int(since), name) for table, rows in entries for since, name in rows]


def states(root=ROOT):
    """Return name -> what there is of it."""
    sources = [path.read_text() for path in (root / DRIVER).rglob("*.c") if path.parent.name != "loader"]
    absent = (root / DRIVER / "base/absent.c").read_text()
    unsupported = set(re.findall(r"^ABSENT\((\w+)\)", absent, re.MULTILINE))
    exported = re.compile(r"^(?:CPU_EXPORT \w+ |N?ONE\(|CPU_GETTER(?:_IF)?\()(zes?[A-Z]\w+)", re.MULTILINE)
    done = {name for text in sources for name in exported.findall(text)}
    names = [name for _, _, name in specified(root)]
    return {n: UNSUPPORTED if n in unsupported else DONE if n in done else ABSENT for n in names}


def page(root=ROOT):
    """Return the text of the page."""
    rows, state = specified(root), states(root)
    count = {kind: sum(s == kind for s in state.values()) for kind in (DONE, UNSUPPORTED, ABSENT)}
    out = [", ".join(f"{n} {kind}" for kind, n in count.items()) + ".", ""]
    for table in dict.fromkeys(t for t, _, _ in rows):
        out += [f"## {table.replace('Get', ' ', 1)}", ""]
        for kind in (DONE, UNSUPPORTED, ABSENT):
            names = [f"`{n}`" + (f" 1.{s}" if s else "") for t, s, n in rows if t == table and state[n] == kind]
            if names:
                out += [f"* {kind}: {', '.join(names)}"]
        out += [""]
    return HEAD + "\n".join(out).rstrip() + "\n"
