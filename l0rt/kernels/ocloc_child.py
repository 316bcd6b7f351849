# SPDX-License-Identifier: Apache-2.0
"""The process that libocloc runs in: a program, which takes a call from stdin and writes its result to stdout.

It imports nothing of l0rt and needs no site packages. What the library prints goes to stderr.
"""

import ctypes
import marshal
import os
import sys

__all__: list[str] = []

TOKEN = 16  # bytes that a call begins with
OPTION = "--l0rt-ocloc-child"

command: list[str] | None = None  # what starts this program as the child, where it is frozen and can be that


def pack(files):
    """Return what libocloc takes files as: count, contents, sizes, names; texts end in a null byte that counts."""
    count = len(files)
    contents = (ctypes.c_char_p * count)(*[content for _, content in files])
    sizes = (ctypes.c_uint64 * count)(*[len(content) + 1 for _, content in files])
    names = (ctypes.c_char_p * count)(*[os.fsencode(name) for name, _ in files])
    return ctypes.c_uint32(count), contents, sizes, names


def invoke(path, words, sources, headers):
    """Call the compiler; return its code and its outputs by name."""
    library = ctypes.CDLL(path)
    count = ctypes.c_uint32()
    contents = ctypes.POINTER(ctypes.c_void_p)()
    sizes = ctypes.POINTER(ctypes.c_uint64)()
    names = ctypes.POINTER(ctypes.c_char_p)()
    outputs = [ctypes.byref(each) for each in (count, contents, sizes, names)]
    arguments = (ctypes.c_char_p * len(words))(*[os.fsencode(word) for word in words])
    code = library.oclocInvoke(ctypes.c_uint32(len(words)), arguments, *pack(sources), *pack(headers), *outputs)
    found = {}
    for i in range(count.value):
        found[os.fsdecode(names[i])] = ctypes.string_at(contents[i], sizes[i])
    return code, found


def answer_of(token):
    """Return what the result of a call with this token begins with: nobody else's output does."""
    return b"l0rt" + token[::-1]


def main():
    """Answer one call."""
    reply = os.dup(1)
    os.dup2(2, 1)
    call = sys.stdin.buffer.read()
    result = invoke(*marshal.loads(call[TOKEN:]))
    with os.fdopen(reply, "wb") as out:
        out.write(answer_of(call[:TOKEN]) + marshal.dumps(result))
    os._exit(0)  # the libraries' destructors have nothing to do


def begin_frozen():
    """In a frozen program, before anything of it runs: be the child if it was started as one."""
    global command
    if sys.argv[1:] == [OPTION]:
        main()
    command = [sys.executable, OPTION]


if __name__ == "__main__":
    main()
