# SPDX-License-Identifier: Apache-2.0
"""Headers: which files may a source include? They are read before the compiler runs.

So the key of the cache has what they contain, and the compiler sees the same bytes. A header stands in a small file
system of its own: one of the user's dict below ``headers/``, a file of the disk below ``files/``, by its whole path.
"""

import os
import posixpath
import re
import stat
from collections import namedtuple
from collections.abc import Iterable

__all__: list[str] = []

DICT, DISK = "headers", "files"
MOST_BYTES = 1 << 26  # of one header or source
MOST_FILES = 10_000

# A directive, or the question whether there is such a header. More is found than is included: conditions, comments and
# texts are not looked at.
INCLUDE = re.compile(
    rb"""(?:^[ \t]*(?:\#|%:)[ \t]*(?:include|include_next|import)\b|\b__has_include(?:_next)?\s*\()[ \t]*"""
    rb"""(?:"([^"\n]+)"|<([^>\n]+)>|([^\s"<][^\n]*))""",
    re.MULTILINE,
)

Header = namedtuple("Header", "place shown content")
Header.__doc__ = "A header: its place in the compiler's file system, its name in messages, its bytes."

Headers = namedtuple("Headers", "files folders is_whole")
Headers.__doc__ = """What a source may include.

``files`` is a list of `Header`, ``folders`` where the compiler looks for them, first to last. Without ``is_whole``
there may be more that only the compiler finds: a name that a macro makes.
"""


def text_of(value, what):
    """Return the bytes of a source or a header: UTF-8, without the mark that some editors put first."""
    if isinstance(value, str):
        try:
            data = value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{what} has no text at character {error.start}: {value[error.start]!a}") from None
    elif isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ValueError(f"{what} is not UTF-8: byte {data[error.start]:#x} in line {line}") from None
    else:
        raise TypeError(f"{what} must be a str or bytes, got {type(value).__name__}")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise ValueError(f"{what} has a null character in line {line}")
    return data.removeprefix(b"\xef\xbb\xbf")


def given_headers(headers):
    """Return the bytes of the dict's headers by name, after checking the names."""
    if headers is None:
        return {}
    if not hasattr(headers, "items"):
        raise TypeError(f"headers must be a dict of name to text, got {type(headers).__name__}")
    found = {}
    for name, text in headers.items():
        if not isinstance(name, str):
            raise TypeError(f"a header's name must be a str, got {type(name).__name__}")
        if posixpath.normpath(name) != name or name.startswith(("/", "../")) or name in (".", "..") or odd(name):
            raise ValueError(f"a header's name must be a path such as 'math/fft.h', without '..', got {name!r}")
        found[name] = text_of(text, f"header {name!r}")
    return found


def given_folders(include_dirs):
    """Return the folders as whole paths, after checking them."""
    if isinstance(include_dirs, (str, bytes, os.PathLike)) or not isinstance(include_dirs, (Iterable, type(None))):
        raise TypeError(f"include_dirs must be a list of folders, got {type(include_dirs).__name__}")
    found = []
    for folder in () if include_dirs is None else include_dirs:
        path = os.fspath(folder) if isinstance(folder, os.PathLike) else folder
        if not isinstance(path, str):
            raise TypeError(f"a folder of include_dirs must be a str or a path, got {type(folder).__name__}")
        if not path or odd(path):
            signs = ", ".join(repr(sign) for sign in sorted(set(filter(odd, path))))
            why = f", which has {signs}: a compiler's command line cannot carry it" if path else ""
            rule = "a path without double quotes, backslashes, tabs and other control characters"
            raise ValueError(f"a folder of include_dirs must be {rule}, got {path!r}{why}")
        if not os.path.isdir(path):
            raise FileNotFoundError(f"include_dirs: {path!r} is no folder")
        found.append(path)
    return found


def odd(path):
    """Whether a path has characters that a compiler's command line or a #line directive could not carry."""
    return any(sign in '"\\' or ord(sign) < 32 or 0xD800 <= ord(sign) < 0xE000 for sign in path)


def headers_of(source, home, folders, headers):
    """Return what a source may include: `Headers`.

    Parameters
    ----------
    source : bytes
        The source.
    home : str or None
        The folder that the source is in, if it is a file.
    folders : list of str
        Where headers are looked for on the disk, behind the ones of ``headers``.
    headers : dict of str to bytes
        Headers that are no files.
    """
    roots = [_root(folder) for folder in ([home] if home else []) + folders]
    places = ([DICT] if headers else []) + [place for place, _, _ in roots]
    if b"include" not in source and b"import" not in source:
        return Headers([Header(f"{DICT}/{name}", name, text) for name, text in headers.items()], places, True)
    found, is_whole = {}, True
    for name, text in headers.items():
        found[f"{DICT}/{name}"] = Header(f"{DICT}/{name}", name, text)
    todo = [(source, None)] + [(header.content, header) for header in found.values()]
    while todo:
        text, includer = todo.pop()
        for quoted, bracketed, made in INCLUDE.findall(text.replace(b"\\\n", b"")):
            if made:
                is_whole = False
                continue
            near = includer if quoted else None
            header = _find((quoted or bracketed).decode("utf-8", "surrogateescape"), near, roots, found)
            if header is not None and header.place not in found:
                if len(found) >= MOST_FILES:
                    raise ValueError(f"the source may include more than {MOST_FILES} headers")
                found[header.place] = header
                todo.append((header.content, header))
    return Headers(list(found.values()), places, is_whole)


def _root(folder):
    """Return a folder's place in the compiler's file system, its whole path, and its name in messages."""
    whole = os.path.abspath(folder)
    return DISK + whole, whole, folder


def _find(name, includer, roots, found):
    """Return the header that a name means, read if it was not read before; None if there is none."""
    if odd(name):
        return None
    if name.startswith("/"):
        path = os.path.normpath(name)
        return found.get(path) or _read(path, path, path)
    if includer is not None:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(includer.place), name))
        shown = os.path.normpath(os.path.join(os.path.dirname(includer.shown), name))
        header = found.get(place)
        if header is None and place.startswith(f"{DISK}/"):
            header = _read(place[len(DISK) :], place, shown)
        if header is not None:
            return header
    header = found.get(posixpath.normpath(f"{DICT}/{name}"))
    if header is not None:
        return header
    for place, whole, folder in roots:
        place = posixpath.normpath(f"{place}/{name}")
        header = found.get(place)
        if header is None and place.startswith(f"{DISK}/"):
            header = _read(os.path.join(whole, name), place, os.path.join(folder, name))
        if header is not None:
            return header
    return None


def _read(path, place, shown):
    """Return the header in a file; None if there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    facts = os.fstat(file)
    if not stat.S_ISREG(facts.st_mode):
        os.close(file)
        return None
    with open(file, "rb") as opened:
        if facts.st_size > MOST_BYTES:
            raise ValueError(f"header {shown!r} has {facts.st_size} bytes, more than {MOST_BYTES}")
        content = opened.read()
    if b"\0" in content:
        raise ValueError(f"header {shown!r} has a null character")
    return Header(place, shown, content.removeprefix(b"\xef\xbb\xbf"))


def lined(content, shown):
    """Return a text whose lines the compiler calls by a file's name."""
    name = re.sub(r'(["\\])', r"\\\1", re.sub(r"[\0-\x1f]", "?", shown))
    return b'#line 1 "%s"\n%s' % (name.encode("utf-8", "replace"), content)
