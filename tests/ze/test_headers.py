# SPDX-License-Identifier: Apache-2.0
"""Our declaration of the Level Zero ABI agrees with the official headers, wherever those are installed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = sorted((ROOT / "include" / "l0rt").glob("ze_*.h"))
OFFICIAL = Path("/usr/include/level_zero/zes_api.h")  # includes ze_api.h


def text_of(path):
    return path.read_text()


def structs():
    """Yield (type, [members]) for every structure that our headers declare."""
    for path in OURS:
        for body, name in re.findall(r"typedef struct \{([^}]*)\}\s*(\w+);", text_of(path)):
            if not name.startswith(("ze_", "zes_")):
                continue
            lines = re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(";")
            yield name, [re.search(r"(\w+)(\[\w+\])?\s*$", line).group(1) for line in lines if line.strip()]


def constants():
    """Yield the name of every enumerator and numeric macro of our headers."""
    for path in OURS:
        text = text_of(path)
        for body in re.findall(r"typedef enum \{([^}]*)\}", text):
            yield from re.findall(r"^\s*(ZES?_\w+)\s*=", body, flags=re.M)
        yield from re.findall(r"^#define (ZES?_\w+) \(?[0-9]", text, flags=re.M)


def known(name, official):
    return re.search(rf"\b{name}\b", official) is not None


def layout(header, names):
    """A program that prints what `header` says of every name."""
    lines = [f'#include "{header}"', "#include <stddef.h>", "#include <stdio.h>", "int main(void) {"]
    for name, members in names:
        if members is None:
            lines.append(f'  printf("{name} %lld\\n", (long long)(unsigned){name});')
            continue
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        for m in members:
            member = f"(({name} *)0)->{m}"
            lines.append(f'  printf("{name}.{m} %zu %zu\\n", offsetof({name}, {m}), sizeof({member}));')
    return "\n".join([*lines, "  return 0;", "}", ""])


def said_by(header, names, folder):
    source, program = folder / "layout.c", folder / "layout"
    source.write_text(layout(header, names))
    subprocess.run(["cc", "-std=gnu11", "-w", f"-I{ROOT / 'include'}", source, "-o", program], check=True)
    return subprocess.run([program], check=True, capture_output=True, text=True).stdout


needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)")
needs_headers = pytest.mark.skipif(
    not OFFICIAL.exists(), reason="needs the official Level Zero headers (Debian: apt install libze-dev)"
)


@needs_compiler
@needs_headers
def test_sizes_offsets_and_values_are_the_official_ones(tmp_path):
    official = text_of(OFFICIAL.with_name("ze_api.h")) + text_of(OFFICIAL)
    names = [(n, m) for n, m in structs() if known(n, official)]
    names += [(n, None) for n in constants() if known(n, official)]
    assert len(names) > 200, "the headers are read, not skipped"
    (tmp_path / "ours").mkdir()
    (tmp_path / "official").mkdir()
    ours = said_by("l0rt/ze_sysman.h", names, tmp_path / "ours").splitlines()
    theirs = said_by(str(OFFICIAL), names, tmp_path / "official").splitlines()
    assert [line for line in zip(ours, theirs, strict=True) if line[0] != line[1]] == []


@needs_headers
def test_what_the_official_headers_lack_says_that_it_is_newer():
    """A misspelt name would be in no version, and nobody would write one beside it."""
    official = text_of(OFFICIAL.with_name("ze_api.h")) + text_of(OFFICIAL)
    version = int(re.search(r"ZE_API_VERSION_CURRENT = ZE_MAKE_VERSION\(\s*1,\s*(\d+)\s*\)", official).group(1))
    ours = set(constants())
    for path in OURS:
        for line in text_of(path).splitlines():
            name = re.match(r"(?:\s*|#define )(ZES?_\w+)\b", line)
            if name is None or name.group(1) not in ours or known(name.group(1), official):
                continue
            since = re.search(r"/\* 1\.(\d+)\b", line)
            assert since is not None, f"{path.name}: {line.strip()}"
            assert int(since.group(1)) > version, f"{path.name}: {line.strip()}"


@needs_compiler
@pytest.mark.parametrize(
    ("language", "standard"), [("c", "c11"), pytest.param("c++", "c++17", marks=pytest.mark.needs_cxx)]
)
def test_headers_are_good_c_and_good_cxx(language, standard):
    flags = ["-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run(
        ["cc", *flags, f"-I{ROOT / 'include'}", "-"], input='#include "l0rt/ze_sysman.h"\n', text=True, check=True
    )
